//! Rules for sorting rows: choice of the algorithm, and sizes of pieces.

use pliant_machine::Machine;

/// The algorithm by which a row is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A sorting network, which sorts several rows at a time.
    Network,
    /// Insertion of each element into a short sorted list, which contains the first elements in
    /// sorted order so far.
    Top,
    /// Collection of elements that may be among the requested ones (candidates). Whenever many candidates are collected, they are
    /// reduced to the best ones; at the end, these are sorted.
    Candidates,
    /// Selection of the requested elements from the whole row, which are then sorted.
    Select,
}

/// Maximum number of elements that a sorting network sorts.
pub const MAX_NETWORK: usize = 64;
/// Maximum length of the sorted list of [`Algorithm::Top`]. A list of 16 elements takes 1.5 times as long as
/// [`Algorithm::Candidates`] for rows of 256 elements, and 0.8 times as long for rows of 4096.
pub const MAX_TOP: usize = 8;

/// Chooses the algorithm for rows of `columns` elements, if the first `wanted` elements in sorted order are requested.
pub fn algorithm(columns: usize, wanted: usize) -> Algorithm {
    match wanted {
        _ if columns <= MAX_NETWORK => Algorithm::Network,
        _ if wanted > columns / 8 => Algorithm::Select,
        ..=MAX_TOP => Algorithm::Top,
        _ => Algorithm::Candidates,
    }
}
/// Number of elements that an algorithm processes per microsecond. Times per element on Zen 5 with
/// AVX-512: 4 to 6 ns for a sorting network of 4 to 32 elements, 1.3 ns for a sorted list of 5 of
/// 256 elements, 2.9 ns for candidates of 32 of 256 elements, and 10 to 11 ns for a sort of 256 or
/// 4096 elements.
pub fn unit(algorithm: Algorithm) -> usize {
    let copied = Machine::host().rates.copied;
    let unit = match algorithm {
        Algorithm::Network => copied / 16,
        Algorithm::Top => copied / 4,
        Algorithm::Candidates => copied / 8,
        Algorithm::Select => copied / 48,
    };
    unit.max(1)
}
/// Number of row elements that a thread sorts as one piece of work, which takes about 16 microseconds. `unit` is the number of
/// elements that the algorithm processes per microsecond.
pub fn piece(unit: usize) -> usize {
    16 * unit
}
/// Number of strided rows whose elements are copied together to contiguous rows before sorting: 256
/// KB of float32, which fit in a second-level cache. This value was not measured.
pub const fn gathered_rows(columns: usize) -> usize {
    (1 << 16) / columns
}

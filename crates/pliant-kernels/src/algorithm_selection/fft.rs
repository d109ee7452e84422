//! Rules for discrete Fourier transforms: sizes of pieces of work.

/// The estimated number of operations of a Fourier transform of a row of `length` numbers: `length * (log2(length) + 4)`.
pub fn row_operations(length: usize) -> usize {
    length.saturating_mul(length.max(1).ilog2() as usize + 4)
}
/// Number of operations of a Fourier transform that a thread computes per microsecond. On Zen 5, a
/// row of 256 real numbers takes 0.7 us.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.copied
}
/// Number of operations of Fourier transforms that a thread computes as one piece of work, which takes about 16 microseconds.
pub fn piece() -> usize {
    16 * unit()
}

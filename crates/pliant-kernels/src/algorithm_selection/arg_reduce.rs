//! Rules for argmin and argmax of rows.

/// Minimum number of columns for which argmin and argmax process one row at a time instead of several rows side by side.
/// On Zen 5 with AVX-512, rows side by side take 0.57 ns per element; one row at a time takes 0.47 ns per element for 128
/// elements and 0.23 ns for 1000.
pub const MIN_ROW_AT_A_TIME_COLUMNS: usize = 96;
/// Estimated number of elements that a thread compares per microsecond. The estimate assumes that comparing takes as long as
/// copying.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.copied
}
/// Number of row elements that a thread processes as one piece of work of argmin or argmax, which takes about 4 microseconds.
pub fn piece() -> usize {
    4 * unit()
}
/// Returns the number of parts into which each row is divided. It is one if there are enough rows for all threads.
pub fn parts(rows: usize, columns: usize) -> usize {
    let pieces = super::partition::pieces();
    if rows >= pieces { 1 } else { (columns / piece()).clamp(1, pieces) }
}

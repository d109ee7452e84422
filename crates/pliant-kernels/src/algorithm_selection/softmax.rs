//! Rules for softmax: sizes of pieces of work.

/// Number of elements for which a thread computes softmax per microsecond: an exponential, a sum, two differences and a product
/// take about as long as 32 multiply-adds. On Zen 5 with AVX-512, a thread takes 0.33 ns per element for rows of 256 elements, and
/// 1.3 ns for rows of 4.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.multiply_adds / 32
}
/// Number of row elements for which a thread computes softmax as one piece of work, which takes about 16 microseconds.
pub fn piece() -> usize {
    16 * unit()
}

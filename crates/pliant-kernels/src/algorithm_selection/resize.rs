//! Rules for resizing images: sizes of pieces of work.

/// Number of elements that a thread copies per microsecond, the unit of the cost of a resize.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.copied
}
/// Number of elements of the results that a thread computes as one piece of work. Copying so many
/// elements takes about 16 microseconds. If the first row of results of a piece depends on input
/// rows that the previous piece has resized, the piece resizes these input rows again.
pub fn piece() -> usize {
    16 * unit()
}

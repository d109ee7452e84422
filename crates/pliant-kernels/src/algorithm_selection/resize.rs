//! Rules for resizing images: sizes of pieces of work.

/// Number of elements that are copied per microsecond.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.copied
}
/// Number of elements of a piece of work, which takes a thread about as long as 16 microseconds
/// of copying. Each piece also resizes the input rows that its first row shares with the
/// previous piece.
pub fn piece() -> usize {
    16 * unit()
}

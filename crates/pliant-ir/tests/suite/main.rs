//! The integration tests of `pliant-ir`, one program: a file of its own for each would be linked for itself.

mod common;
mod print;
mod structure;
mod verify;

//! The integration tests of `pliant-ir` in one binary, because every test file of its own would be linked separately.

mod common;
mod print;
mod structure;
mod verify;

//! The integration tests of `pliant-vm` in one binary, because every test file of its own would be
//! linked separately.

mod builtins;
mod common;
mod dynamic;
mod random;
mod time_limits;
mod virtual_machine;

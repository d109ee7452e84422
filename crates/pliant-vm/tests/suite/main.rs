//! The integration tests of `pliant-vm`, one program: a file of its own for each would be linked for itself.

mod builtins;
mod common;
mod dynamic;
mod machine;
mod random;
mod time_limits;

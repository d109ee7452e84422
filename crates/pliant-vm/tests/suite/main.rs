//! The integration tests of `pliant-vm`. They are one binary, which links faster than one binary per file.

mod builtins;
mod common;
mod data_dependent_builtins;
mod random;
mod time_limits;
mod virtual_machine;

//! The integration tests of `pliant-script`, one program: a file of its own for each would be linked for itself.

mod common;
mod dialects;
mod errors;
mod host;
mod robust;
mod tir;

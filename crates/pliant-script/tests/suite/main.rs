//! The integration tests of `pliant-script` in one binary, because every test file of its own would
//! be linked separately.

mod common;
mod dialects;
mod errors;
mod host;
mod robust;
mod tir;

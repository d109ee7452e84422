//! The integration tests of `pliant-pass` in one binary, because every test file of its own would be linked separately.

mod common;
mod manager;
mod pattern;
mod rewrite;

//! The integration tests of `pliant-pass`, one program: a file of its own for each would be linked for itself.

mod common;
mod manager;
mod pattern;
mod rewrite;

//! The integration tests of `pliant-interp`, one program: a file of its own for each would be linked for itself.

mod common;
mod graph;
mod language;
mod loops;
mod operators;

//! The integration tests of `pliant-interp`, as one program: each separate file would be linked separately.

mod common;
mod graph;
mod language;
mod loops;
mod operators;

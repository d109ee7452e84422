//! The integration tests of `pliant-interp`. They are one binary, which links faster than one binary per file.

mod common;
mod graph;
mod host_interaction;
mod loops;
mod operators;

//! The integration tests of `pliant-ops`, one program: a file of its own for each would be linked for itself.

mod common;
mod documents;
mod ops;
mod te;
mod types;
mod types_nn;
mod values;

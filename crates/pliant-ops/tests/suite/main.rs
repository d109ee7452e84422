//! The integration tests of `pliant-ops` in one binary, because every test file of its own would be
//! linked separately.

mod common;
mod documents;
mod ops;
mod te;
mod types;
mod types_nn;
mod values;

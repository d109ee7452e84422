//! The integration tests of `pliant-sym` in one binary, because every test file of its own would be
//! linked separately.

mod common;
mod normal_form;
mod properties;
mod shape_facts;
mod solve;
mod stress;
mod text;

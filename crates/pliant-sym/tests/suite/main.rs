//! The integration tests of `pliant-sym`, one program: a file of its own for each would be linked for itself.

mod common;
mod hostile;
mod normal_form;
mod properties;
mod shape_facts;
mod solve;
mod text;

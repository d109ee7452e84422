//! The integration tests of `pliant-ops` in one binary, because every test file of its own would be
//! linked separately.

mod common;
mod generated_docs;
mod legalize;
mod op_results;
mod tensor_expressions;
mod type_rules;
mod type_rules_nn;

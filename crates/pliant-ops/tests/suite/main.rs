//! The integration tests of `pliant-ops`. They form one binary, because separate test files would be linked separately.

mod generated_docs;
mod legalize;
mod op_call_text;
mod op_results;
mod tensor_expressions;
mod type_rules;
mod type_rules_nn;

//! The integration tests of `pliant-ir` in one binary, because every test file of its own would be linked separately.

mod equality_and_traversal;
mod printer;
mod test_op_registry;
mod verifier_rules;

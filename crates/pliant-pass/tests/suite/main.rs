//! The integration tests of `pliant-pass` in one binary, because every test file of its own would be linked separately.

mod failing_pass_reports;
mod pattern_matching;
mod pattern_test_functions;
mod rewriting_with_rules;

//! The integration tests of `pliant-sym`. They are one binary, which links faster than one binary per file.

mod common;
mod expression_parser;
mod normal_form;
mod properties;
mod shape_facts;
mod solve;
mod stress;

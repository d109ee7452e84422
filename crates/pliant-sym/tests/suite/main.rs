//! The integration tests of `pliant-sym`. They are one binary, which links faster than one binary per file.

mod expression_parser;
mod match_cast_solutions;
mod normal_form;
mod provable_shape_facts;
mod random_expression_properties;
mod random_expressions;
mod very_large_terms;

//! The integration tests of `pliant-script`. They are one binary, which links faster than one binary per file.

mod dialects;
mod error_messages;
mod host_values;
mod loop_functions;
mod parse_and_print;
mod robustness;

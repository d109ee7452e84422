//! The C interface, which `include/pliant.h` documents.
//!
//! No function unwinds. A function that fails stores a message for the calling thread and returns a status.

mod inputs_and_outputs;
mod main_function;
mod model;
mod status;

pub use inputs_and_outputs::*;
pub use main_function::pliant_main;
pub use model::*;
pub use status::*;

/// The names of all functions of the interface, which shared libraries export.
pub const FUNCTIONS: &[&str] = &[
    "pliant_create",
    "pliant_destroy",
    "pliant_error_message",
    "pliant_input_count",
    "pliant_input_dim",
    "pliant_input_dim_text",
    "pliant_input_dtype",
    "pliant_input_index",
    "pliant_input_name",
    "pliant_input_rank",
    "pliant_interrupt",
    "pliant_main",
    "pliant_output",
    "pliant_output_count",
    "pliant_output_name",
    "pliant_run",
    "pliant_run_for",
    "pliant_set_input",
    "pliant_symbol",
];

/// The text of the header `pliant.h`.
pub const HEADER: &str = include_str!("../../include/pliant.h");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_declares_exactly_the_functions() {
        let mut declared: Vec<&str> = Vec::new();
        for line in HEADER.lines().filter(|line| !line.starts_with(" *") && line.ends_with(");")) {
            let name = line.split('(').next().unwrap_or_default();
            declared.push(name.rsplit([' ', '*']).next().unwrap_or_default());
        }
        declared.sort_unstable();
        assert_eq!(declared, FUNCTIONS);
    }
}

//! The integration tests of `pliant-filetests`. They are one program, because Cargo links each test program separately.

mod filetests;
mod language_coverage;
mod lowered_functions;

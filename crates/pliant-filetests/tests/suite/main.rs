//! The integration tests of `pliant-filetests`. They are one program, because Cargo links each test program separately.

mod constructs;
mod filetests;
mod lowered;

//! The integration tests of `pliant-exec`. They are one binary, which links faster than one binary per file.

mod builder_and_validator;
mod save_and_load;

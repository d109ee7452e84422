//! The integration tests of `pliant-exec`. They are one binary, which links faster than one binary per file.

mod format;
mod program;

//! The integration tests of `pliant-exec` in one binary, because every test file of its own would
//! be linked separately.

mod format;
mod program;

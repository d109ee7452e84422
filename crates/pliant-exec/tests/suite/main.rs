//! The integration tests of `pliant-exec`, one program: a file of its own for each would be linked for itself.

mod format;
mod program;

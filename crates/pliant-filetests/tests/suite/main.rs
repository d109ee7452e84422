//! The integration tests of `pliant-filetests`, one program: a file of its own for each would be linked for itself.

mod constructs;
mod filetests;
mod lowered;

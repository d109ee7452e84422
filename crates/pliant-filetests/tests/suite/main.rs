//! The integration tests of `pliant-filetests`, as one program: each separate file would be linked
//! separately.

mod constructs;
mod filetests;
mod lowered;

//! The integration tests of `pliant-filetests`, as one program, since each separate program would be linked
//! separately.

mod constructs;
mod filetests;
mod lowered;

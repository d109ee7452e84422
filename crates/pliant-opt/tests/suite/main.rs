//! The integration tests of `pliant-opt`, as one program, because each separate file would be linked separately.

mod contracts;
mod custom_legalize;
mod documentation;
mod linear;
mod linear_passes;
mod lowering;
mod unchanged;

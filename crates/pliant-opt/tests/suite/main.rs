//! The integration tests of `pliant-opt`, one program: a file of its own for each would be linked for itself.

mod contracts;
mod custom_legalize;
mod documentation;
mod linear;
mod linear_passes;
mod lowering;
mod unchanged;

//! The tests of the kernels, one program.

mod guard;
mod packed;
mod varying;
mod vector;

//! The tests of the kernels, one program.

mod attention;
mod fused;
mod guard;
mod packed;
mod varying;
mod vector;

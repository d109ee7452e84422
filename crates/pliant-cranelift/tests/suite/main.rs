//! The integration tests of `pliant-cranelift`, one program: a file of its own for each would be linked for itself.

mod common;
mod control;
mod lowered;
mod overflow;
mod pipeline;
mod tiles;

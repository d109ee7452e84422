//! The integration tests of `pliant`, one program: a file of its own for each would be linked for itself.

mod broadcast;
mod bytecode;
mod calls;
mod common;
mod control;
mod dynamic;
mod encoder;
mod native;
mod onnx;
mod onnx_memory;
mod onnx_mutate;
mod run;
mod stages;
mod unknown;

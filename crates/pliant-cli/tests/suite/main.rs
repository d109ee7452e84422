//! The integration tests of the command line, as one program.

mod common;
mod diff;
mod onnx;
mod scripts;

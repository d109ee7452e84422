//! The integration tests of the command line, one program.

mod common;
mod onnx;
mod peers;
mod scripts;

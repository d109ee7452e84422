//! The integration tests of the command line, as one program.

mod common;
mod onnx;
mod peers;
mod scripts;

//! The integration tests of `pliant-tensor`, one program: a file of its own for each would be linked for itself.

mod dlpack;
mod storage;
mod tensor;

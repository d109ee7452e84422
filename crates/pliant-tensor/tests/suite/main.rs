//! The integration tests of `pliant-tensor` in one binary, because every test file of its own would
//! be linked separately.

mod dlpack;
mod storage;
mod tensor;

//! The integration tests of `pliant-tensor`. They are one binary, which links faster than one binary per file.

mod dlpack;
mod storage;
mod tensor;

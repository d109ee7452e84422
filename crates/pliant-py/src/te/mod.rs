//! Tensor expressions in Python.

pub mod functions;
pub mod prim_func;
pub mod statements;
pub mod tensor;
pub mod topi;

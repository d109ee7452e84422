//! Tensor expressions in Python.

pub mod compute_and_reduce;
pub mod prim_func;
pub mod statement_stages;
pub mod tensor;
pub mod topi;

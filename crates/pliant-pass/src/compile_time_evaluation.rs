//! [`Evaluate`]: executes parts of a program during compilation, for constant folding. Compiled code is faster than the reference
//! interpreter.
//!
//! This crate does not depend on the VM and the code generators, so the implementation is passed in as
//! [`PassContext::evaluator`](crate::PassContext::evaluator).

use pliant_ir::IRModule;
use pliant_tensor::Tensor;

/// Executes functions of modules at compile time.
pub trait Evaluate: Send + Sync {
    /// Executes the function `name` of the module and returns the tensors of its result. The function must have no parameters and
    /// return a tuple of tensors. Returns `None` if it cannot be compiled, fails, or is interrupted.
    fn evaluate(&self, module: IRModule, name: &str) -> Option<Vec<Tensor>>;
}

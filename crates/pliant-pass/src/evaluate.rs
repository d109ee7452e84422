//! [`Evaluate`]: running parts of a program while it is compiled, faster than the reference interpreter does.
//!
//! Passes live below the machine and its code generators, so who has both hands them in by
//! [`PassContext::evaluator`](crate::PassContext::evaluator).

use pliant_ir::IRModule;
use pliant_tensor::Tensor;

/// Runs functions of modules.
pub trait Evaluate: Send + Sync {
    /// The tensors of the tuple that the function of that name gives, which takes no parameters; nothing where it cannot
    /// be compiled, fails, or is stopped.
    fn evaluate(&self, module: IRModule, name: &str) -> Option<Vec<Tensor>>;
}

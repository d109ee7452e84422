//! [`Compiled`]: parts of a program that passes want to know the result of, compiled and run.

use pliant_ir::IRModule;
use pliant_pass::{CancelToken, Evaluate};
use pliant_tensor::Tensor;
use pliant_vm::Value;

use crate::compile::compile_quietly;
use crate::options::{CompileOptions, Target};

/// Compiles functions without optimising the graph, and runs them.
pub(crate) struct Compiled {
    pub(crate) target: Target,
    pub(crate) threads: Option<usize>,
    pub(crate) cancel: CancelToken,
}

impl Evaluate for Compiled {
    fn evaluate(&self, module: IRModule, name: &str) -> Option<Vec<Tensor>> {
        let options = CompileOptions {
            target: self.target,
            pipeline: Some("minimum".into()),
            threads: self.threads,
            cancel: self.cancel.clone(),
            ..CompileOptions::default()
        };
        let vm = compile_quietly(module, &options).ok()?.vm().ok()?;
        let Value::Tuple(values) = vm.invoke(name, &[]).ok()? else { return None };
        values
            .iter()
            .map(|value| match value {
                Value::Tensor(tensor) => Some(tensor.clone()),
                _ => None,
            })
            .collect()
    }
}

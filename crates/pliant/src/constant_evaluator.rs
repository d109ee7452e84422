//! [`CompiledEvaluator`]: compiles and runs functions for passes that need their results, such as
//! constant folding.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use pliant_ir::IRModule;
use pliant_pass::{CancelToken, Evaluate};
use pliant_pool::start_scoped;
use pliant_tensor::Tensor;
use pliant_vm::{Value, VirtualMachine};

use crate::compile::compile_nested;
use crate::compile_options::{CompileOptions, Target};

/// An evaluator for passes. It compiles functions without graph optimizations, and runs them.
pub(crate) struct CompiledEvaluator {
    pub(crate) threads: Option<usize>,
    pub(crate) cancel: CancelToken,
}

/// The interval at which a thread polls whether the compilation was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The stack size of the thread that polls for cancellation, in bytes.
const POLL_THREAD_STACK: usize = 256 << 10;

impl CompiledEvaluator {
    /// Runs a function without parameters; `None` if it fails. Cancelling the compilation also
    /// interrupts the run.
    fn invoke(&self, vm: &VirtualMachine, name: &str) -> Option<Value> {
        let (finished, finish_receiver) = channel::<()>();
        std::thread::scope(|scope| {
            let poll = move || {
                while finish_receiver.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout)
                {
                    if self.cancel.is_cancelled() {
                        vm.interrupt();
                    }
                }
            };
            // If the thread cannot be started, the run cannot be cancelled.
            let _ = start_scoped(scope, Builder::new(), POLL_THREAD_STACK, poll);
            let result = vm.invoke(name, &[]);
            drop(finished);
            result.ok()
        })
    }
}

impl Evaluate for CompiledEvaluator {
    fn evaluate(&self, module: IRModule, name: &str) -> Option<Vec<Tensor>> {
        let options = CompileOptions {
            // Each function runs once, so compiling it fast matters more than fast code.
            target: Target::fastest_compiler(),
            pipeline: Some("minimum".into()),
            threads: self.threads,
            cancel: self.cancel.clone(),
            ..CompileOptions::default()
        };
        let vm = compile_nested(module, &options).ok()?.vm().ok()?;
        let Value::Tuple(values) = self.invoke(&vm, name)? else { return None };
        values
            .iter()
            .map(|value| match value {
                Value::Tensor(tensor) => Some(tensor.clone()),
                _ => None,
            })
            .collect()
    }
}

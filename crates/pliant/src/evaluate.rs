//! [`Compiled`]: compiles and runs parts of a program whose results passes need.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use pliant_ir::IRModule;
use pliant_pass::{CancelToken, Evaluate};
use pliant_pool::start_scoped;
use pliant_tensor::Tensor;
use pliant_vm::{Value, VirtualMachine};

use crate::compile::compile_quietly;
use crate::options::{CompileOptions, Target};

/// Compiles functions without graph optimisations, and runs them.
pub(crate) struct Compiled {
    pub(crate) target: Target,
    pub(crate) threads: Option<usize>,
    pub(crate) cancel: CancelToken,
}

/// Cancellation poll interval.
const TICK: Duration = Duration::from_millis(20);
/// The stack size of the thread that polls for cancellation, in bytes.
const STACK: usize = 256 << 10;

impl Compiled {
    /// The result of a function without parameters. Cancelling the compilation also stops the run.
    fn invoke(&self, vm: &VirtualMachine, name: &str) -> Option<Value> {
        let (over, runs) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = move || {
                while runs.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    if self.cancel.is_cancelled() {
                        vm.interrupt();
                    }
                }
            };
            // If the thread cannot be started, the run cannot be cancelled.
            let _ = start_scoped(scope, Builder::new(), STACK, watch);
            let result = vm.invoke(name, &[]);
            drop(over);
            result.ok()
        })
    }
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

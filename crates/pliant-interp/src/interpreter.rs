//! [`Interpreter`]: the state of a run, such as its step budget, its call depth and the functions of the module.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pliant_ir::{BaseFunc, IRModule};
use pliant_tensor::{DType, Storage, Tensor, checked_nbytes};

use crate::interp_error::{ErrorKind, Result};
use crate::runtime_values::Func;
use crate::{InterpError, PackedFuncs, Value, builtins, graph_functions, loop_functions};

/// The number of interpreter steps after which the run checks again whether it was cancelled.
const STEPS_PER_STOP_CHECK: u64 = 1 << 12;

/// The limits and settings of a run of the interpreter.
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of steps: executed bindings, statements and loop iterations, and elements that library kernels compute.
    pub max_steps: u64,
    /// Maximum nesting depth of calls.
    pub max_depth: usize,
    /// Maximum size in bytes of one allocation.
    pub max_alloc_bytes: usize,
    /// The stack size in bytes of the thread that executes the run. The system commits only the pages that are used.
    pub stack_bytes: usize,
    /// Whether each value is checked against the type of the variable to which it is bound.
    pub check_types: bool,
    /// A callback that is called a few times per second on the thread that started the run. If it returns true, the run stops with
    /// [`ErrorKind::Stopped`].
    pub should_stop: Option<fn() -> bool>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_steps: 1 << 28,
            max_depth: 1000,
            max_alloc_bytes: 1 << 30,
            stack_bytes: 64 << 20,
            check_types: true,
            should_stop: None,
        }
    }
}

/// Runs a graph function or loop function of the module with the default [`Options`]. A loop function writes to its tensor
/// arguments and returns the empty tuple.
///
/// # Errors
/// If the program fails, or exceeds the limits ([`ErrorKind::Budget`]).
pub fn run(
    module: &IRModule,
    func_name: &str,
    args: &[Value],
    packed: &dyn PackedFuncs,
) -> Result<Value, InterpError> {
    run_with(module, func_name, args, packed, &Options::default())
}

/// Maximum nesting depth of runs. A run is nested if a packed function of another run starts it.
const MAX_NESTING: usize = 64;

/// The interval at which [`Options::should_stop`] is called.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The nesting level and the stop flag of the run that a thread executes.
#[derive(Clone, Default)]
struct RunContext {
    /// The nesting level of the run, which is 1 if it is not nested.
    level: usize,
    /// The flag that stops the run. Nested runs share the flag.
    stop: Arc<AtomicBool>,
}

thread_local! {
    static RUN_CONTEXT: RefCell<Option<RunContext>> = const { RefCell::new(None) };
}

/// Runs a graph function or loop function of the module with the given options. A loop function writes to its tensor arguments and
/// returns the empty tuple.
///
/// # Errors
/// The same errors as [`run`].
pub fn run_with(
    module: &IRModule,
    func_name: &str,
    args: &[Value],
    packed: &dyn PackedFuncs,
    options: &Options,
) -> Result<Value, InterpError> {
    run_func(module, &Func::Global(func_name.into()), args, packed, options)
}

/// Calls a function value, which may be the result of an earlier run of the same module.
///
/// # Errors
/// The same errors as [`run`].
pub fn run_func(
    module: &IRModule,
    func: &Func,
    args: &[Value],
    packed: &dyn PackedFuncs,
    options: &Options,
) -> Result<Value, InterpError> {
    let mut context = RUN_CONTEXT.with_borrow(Option::clone).unwrap_or_default();
    context.level += 1;
    if context.level > MAX_NESTING {
        let text = format!(
            "runs are nested too deeply: packed functions have started more than {MAX_NESTING} runs"
        );
        return Err(InterpError::unsupported(text));
    }
    let (sender, result) = channel();
    let stop = context.stop.clone();
    // The run gets its own thread, so that its stack size does not depend on the caller.
    std::thread::scope(|scope| {
        let stack = options.stack_bytes.max(1 << 20);
        let thread = std::thread::Builder::new().name("interp".into());
        let spawned = pliant_pool::start_scoped(scope, thread, stack, move || {
            RUN_CONTEXT.set(Some(context.clone()));
            let mut interp = Interpreter::new(module, packed, options, context.stop, stack);
            // Sending cannot fail, because the receiver waits for the result.
            let _ = sender.send(interp.call_func(func, args));
        });
        let thread = spawned.map_err(|e| {
            InterpError::unsupported(format!(
                "the interpreter cannot create a thread to run the function: {e}"
            ))
        })?;
        loop {
            match result.recv_timeout(STOP_POLL_INTERVAL) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if options.should_stop.is_some_and(|f| f()) => {
                    stop.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = thread.join();
                    let text = "the interpreter panicked, which is a bug of the interpreter";
                    return Err(InterpError::unsupported(text));
                }
            }
        }
    })
}

/// The state of a run of the interpreter.
pub(crate) struct Interpreter<'a> {
    pub module: &'a IRModule,
    pub packed: &'a dyn PackedFuncs,
    pub options: &'a Options,
    /// Whether the module contains in-place calls. If it does, graph functions copy constants, which these calls may overwrite.
    pub in_place: bool,
    steps_left: u64,
    stop: Arc<AtomicBool>,
    depth: usize,
    stack_base: usize,
    stack_bytes: usize,
}

impl<'a> Interpreter<'a> {
    fn new(
        module: &'a IRModule,
        packed: &'a dyn PackedFuncs,
        options: &'a Options,
        stop: Arc<AtomicBool>,
        stack: usize,
    ) -> Self {
        Interpreter {
            module,
            packed,
            options,
            in_place: module.has_inplace_calls(),
            steps_left: options.max_steps,
            stop,
            depth: 0,
            stack_base: stack_address(),
            stack_bytes: stack,
        }
    }

    /// Consumes steps of the budget. Fails if none are left, or if the run has been cancelled.
    pub fn step(&mut self, count: u64) -> Result<()> {
        match self.steps_left.checked_sub(count) {
            Some(left) => {
                let check = left / STEPS_PER_STOP_CHECK != self.steps_left / STEPS_PER_STOP_CHECK;
                self.steps_left = left;
                if check && self.stop.load(Ordering::Relaxed) {
                    return Err(InterpError::new(
                        ErrorKind::Stopped,
                        "the run was stopped because the host program requested it",
                    ));
                }
                Ok(())
            }
            None => Err(InterpError::new(
                ErrorKind::Budget,
                format!(
                    "the run takes more than {} steps, which is its limit",
                    self.options.max_steps
                ),
            )),
        }
    }

    /// Fails if the stack is almost exhausted.
    pub fn check_stack(&self) -> Result<()> {
        let used = self.stack_base.abs_diff(stack_address());
        if used < self.stack_bytes / 8 * 7 {
            return Ok(());
        }
        Err(InterpError::new(
            ErrorKind::Budget,
            "the program is nested too deeply: the interpreter's stack is exhausted",
        ))
    }

    /// Calls the function `name` by running `f`, at a call depth that is increased by one.
    pub fn nested_call<T>(
        &mut self,
        name: &str,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth >= self.options.max_depth {
            let limit = self.options.max_depth;
            let text = format!("calls nest more than {limit} deep, in '{name}'");
            return Err(InterpError::new(ErrorKind::Budget, text));
        }
        self.check_stack()?;
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Calls the function `name` of the module.
    pub fn call_global(&mut self, name: &str, args: &[Value]) -> Result<Value> {
        match self.module.functions.get_key_value(name) {
            Some((name, BaseFunc::Relax(func))) => {
                let (name, func) = (name.clone(), func.clone());
                self.nested_call(&name, |interp| {
                    graph_functions::call_function(interp, &name, &func, args)
                })
            }
            Some((name, BaseFunc::Prim(func))) => {
                self.nested_call(name, |interp| loop_functions::call(interp, name, func, args))?;
                Ok(Value::unit())
            }
            None => {
                let text = format!("the module has no function '{name}'");
                Err(InterpError::unsupported(text))
            }
        }
    }

    /// Calls a packed function: a builtin, a function of the host (the program that runs the interpreter), or a function of the
    /// module.
    pub fn call_packed(&mut self, name: &str, args: &[Value]) -> Result<Value> {
        if let Some(result) = builtins::call(self, name, args) {
            return result.map_err(|e| e.at(|| format!("builtin '{name}'")));
        }
        match self.packed.call(name, args) {
            Some(Ok(value)) => Ok(value),
            Some(Err(text)) => Err(packed_error(name, &text)),
            // Lowered modules also call their own functions as packed functions.
            None if self.module.get(name).is_some() => self.call_global(name, args),
            // Programs of 2022 call these builtins without the prefix `vm.builtin.`.
            None if builtins::UNPREFIXED.contains(&name) => {
                self.call_packed(&format!("vm.builtin.{name}"), args)
            }
            None => Err(InterpError::new(
                ErrorKind::Packed,
                format!("packed function '{name}' is not registered"),
            )),
        }
    }

    /// Calls a function value, such as a closure.
    pub fn call_func(&mut self, func: &Func, args: &[Value]) -> Result<Value> {
        match func {
            Func::Global(name) => self.call_global(name, args),
            Func::Packed(name) => self.call_packed(name, args),
            Func::Closure(closure) => {
                let closure = closure.clone();
                let name = closure.name.clone();
                self.nested_call(&name, |interp| {
                    graph_functions::call_closure(interp, &closure, args)
                })
            }
            Func::Bound(func, bound) => {
                let args: Vec<Value> = args.iter().chain(bound.iter()).cloned().collect();
                let func = Arc::clone(func);
                self.nested_call("closure", |interp| interp.call_func(&func, &args))
            }
            Func::Host(host) => (host.call)(args).map_err(|text| packed_error(&host.name, &text)),
        }
    }

    /// Allocates memory, filled with a pattern that makes reads of uninitialized memory visible.
    pub fn alloc_storage(&self, bytes: i64) -> Result<Storage> {
        let limit = self.options.max_alloc_bytes;
        match usize::try_from(bytes) {
            Ok(n) if n <= limit => {
                let storage = Storage::zeroed(n)?;
                poison(storage.as_ptr(), n, DType::UInt8);
                Ok(storage)
            }
            Ok(_) => Err(InterpError::size(format!(
                "a storage of {bytes} bytes cannot be allocated, because it exceeds the interpreter's limit of {limit} bytes"
            ))),
            Err(_) => Err(InterpError::size(format!(
                "a storage of {bytes} bytes cannot be allocated, because its size must be from 0 to {limit} bytes"
            ))),
        }
    }

    /// Allocates a row-major tensor, filled with a pattern that makes reads of uninitialized memory visible
    /// ([`poison`]).
    pub fn alloc_tensor(&self, shape: &[i64], dtype: DType) -> Result<Tensor> {
        let bytes = checked_nbytes(shape, dtype)?;
        if bytes > self.options.max_alloc_bytes {
            let dtype = dtype.with_article();
            let text = format!("{dtype} tensor of shape {shape:?} is too large to allocate");
            return Err(InterpError::size(text));
        }
        let tensor = Tensor::zeros(shape, dtype)?;
        poison(tensor.data_ptr(), bytes, dtype);
        Ok(tensor)
    }

    /// Creates a row-major tensor in a storage at an offset in bytes, filled with a pattern that makes reads of
    /// uninitialized memory visible ([`poison`]).
    pub fn tensor_in_storage(
        &self,
        storage: &Storage,
        offset: i64,
        shape: &[i64],
        dtype: DType,
    ) -> Result<Tensor> {
        let offset = usize::try_from(offset).map_err(|_| {
            InterpError::size(format!(
                "a tensor in a storage cannot start at the negative byte offset {offset}"
            ))
        })?;
        let tensor = Tensor::from_storage(storage.clone(), offset, shape, dtype)?;
        poison(tensor.data_ptr(), tensor.nbytes(), dtype);
        Ok(tensor)
    }
}

/// Creates the error that a packed function failed, with its message.
pub(crate) fn packed_error(name: &str, text: &str) -> InterpError {
    InterpError::new(ErrorKind::Packed, format!("packed function '{name}' failed: {text}"))
}

fn stack_address() -> usize {
    let marker = 0u8;
    std::hint::black_box(&raw const marker) as usize
}

/// Fills memory with conspicuous values, so that reads of uninitialized memory are noticed: NaN for floats, a large number for
/// integers, false for bools.
fn poison(ptr: *mut u8, bytes: usize, dtype: DType) {
    let fill = match dtype {
        // Other values than 0 and 1 are invalid.
        DType::Bool => 0,
        _ if dtype.is_float() => 0xff,
        _ => 0x5b,
    };
    if bytes > 0 {
        // SAFETY: the callers pass memory of that many bytes that a tensor or storage owns; no other code accesses it during the
        // run.
        unsafe { ptr.write_bytes(fill, bytes) };
    }
}

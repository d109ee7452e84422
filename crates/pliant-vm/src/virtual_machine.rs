//! [`VirtualMachine`]: the public interface of the VM, its shared state, and interrupts.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use pliant_exec::abi::KernelRuntime;
use pliant_exec::{Executable, FuncDef, Param, VmFunction};
use pliant_pool::Team;
use pliant_tensor::POISONS;
use rustc_hash::FxHashMap;

use crate::error::TraceEntry;
use crate::executable_linker::{Entry, Linked, LoopFuncTable, link};
use crate::interpreter::Runner;
use crate::interrupt_flags::{InterruptFlag, InterruptFlags};
use crate::memory_pool::Owner;
use crate::registers_and_frames::{Context, ContextLease};
use crate::run_cancellation::CancelHandle;
use crate::runtime_compilations::CompilationCounter;
use crate::time_limit::EarlyStop;
use crate::uninitialized_result_check::check_poison;
use crate::{FuncValue, Instrument, Object, PackedFunc, Value, VmError};

/// Bit 0 of the VM's attention word, which requests a poll. The attention word is an integer that changes when running
/// invocations must stop or poll. They compare the word with the value that they handled last. The other bits of the lower half
/// count interrupts. The upper half counts expired time limits; when it changes, every run checks its own limit.
const POLL: u64 = 1;
const INTERRUPT: u64 = 2;
const INTERRUPTS: u64 = (1 << 32) - INTERRUPT;
const TIME_LIMIT: u64 = 1 << 32;

/// A callback that asks the embedding program whether to stop. Returns true to interrupt the invocation.
type Poll = Arc<dyn Fn() -> bool + Send + Sync>;

/// The default of [`VmOptions::max_depth`], the maximum nesting depth of calls.
pub const DEFAULT_DEPTH: usize = 100_000;

/// Options for creating a VM.
#[derive(Default, Clone)]
pub struct VmOptions {
    /// The worker team for parallel loops. Default: the global team.
    pub team: Option<Arc<Team>>,
    /// Packed functions that only this VM can call. They take precedence over registered packed
    /// functions.
    pub functions: FxHashMap<String, PackedFunc>,
    /// Whether to interpret bytecode functions even if they have native bodies (machine code).
    pub bytecode: bool,
    /// Maximum nesting depth of calls within one invocation. Default: [`DEFAULT_DEPTH`]. In addition, all frames together have at
    /// most 16 million registers.
    pub max_depth: Option<usize>,
    /// Whether dropping the VM also returns the allocator's free memory to the system.
    pub trim: bool,
    /// An object that the VM keeps alive for its creator. [`VirtualMachine::attachment`] returns it.
    pub attachment: Option<Arc<dyn Any + Send + Sync>>,
}

/// Options for one invocation of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// The time limit of the run. Default: unlimited. When it expires, the run stops at the next poll of the interrupt flag and
    /// fails with [`VmError::TimeLimit`]. Packed and library functions that are running are not interrupted. With a limit of zero,
    /// the run fails immediately.
    pub time_limit: Option<Duration>,
    /// A handle that stops the run from another thread, with [`VmError::Cancelled`]. Default: none.
    pub cancel: Option<CancelHandle>,
}

impl RunOptions {
    /// The options of a run that only an interrupt stops.
    pub(crate) const UNLIMITED: &RunOptions = &RunOptions { time_limit: None, cancel: None };

    /// Whether the options may stop a run.
    pub(crate) fn may_stop(&self) -> bool {
        self.time_limit.is_some() || self.cancel.is_some()
    }
}

/// Statistics of a VM, such as the number of invocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VmStats {
    /// The number of invocations so far, including runs nested in other runs. Calls inside a program are not counted.
    pub invocations: u64,
    /// The number of programs that packed and library functions compiled during these invocations, as recorded by
    /// [`record_compilation`](crate::record_compilation).
    pub compilations: u64,
}

/// The inputs and the result of a function that is called with `set_input` and `invoke_stateful`.
#[derive(Default)]
struct StatefulCall {
    inputs: Vec<Value>,
    output: Option<Value>,
}

/// The state of a VM, which all clones of the VM and all runs share.
pub(crate) struct Inner {
    pub(crate) linked: Linked,
    interrupt_flags: InterruptFlags,
    pub(crate) attention: AtomicU64,
    /// Packed functions that only this VM can call.
    pub(crate) functions: FxHashMap<String, PackedFunc>,
    attachment: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) max_depth: AtomicUsize,
    exe: Arc<Executable>,
    weak_self: Weak<Inner>,
    poll: RwLock<Option<Poll>>,
    instrument: RwLock<Option<Instrument>>,
    has_instrument: AtomicBool,
    stateful: Mutex<FxHashMap<String, StatefulCall>>,
    invocations: AtomicU64,
    /// The number of programs that packed and library functions compiled during invocations.
    compilations: AtomicU64,
    /// The machine code and the worker team, which are kept alive as long as the VM.
    _owners: (LoopFuncTable, Option<Arc<Team>>),
    /// The VM's ownership of pooled memory. It must be the last field, because dropping it also
    /// releases memory that the other fields free.
    pub(crate) owner: Owner,
}

/// The kind of an invocation: top-level or nested.
pub(crate) enum InvokeMode<'a> {
    /// A top-level run with its options.
    TopLevel(&'a RunOptions),
    /// A run that is nested in another run, which passed this runtime.
    Nested(&'a KernelRuntime),
}

/// Runs the functions of an executable. Clones share the same VM. All methods can be called from
/// any thread.
#[derive(Clone)]
pub struct VirtualMachine(Arc<Inner>);

/// A weak reference to a VM, which does not keep it alive.
#[derive(Clone)]
pub struct WeakVm(Weak<Inner>);

impl WeakVm {
    /// Returns the VM, or `None` if it was dropped.
    pub fn upgrade(&self) -> Option<VirtualMachine> {
        self.0.upgrade().map(VirtualMachine)
    }
}

impl fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualMachine({})", self.function_names().join(", "))
    }
}

impl VirtualMachine {
    /// Creates a VM: links `exe` with its machine code and the registered packed functions.
    ///
    /// # Errors
    /// `MissingFunctions` lists all names that were not found.
    pub fn new(exe: Arc<Executable>, loop_funcs: LoopFuncTable) -> Result<VirtualMachine, VmError> {
        Self::with_options(exe, loop_funcs, VmOptions::default())
    }

    /// Creates a VM with options: links `exe` with its machine code and the packed functions.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::new`].
    pub fn with_options(
        exe: Arc<Executable>,
        loop_funcs: LoopFuncTable,
        options: VmOptions,
    ) -> Result<VirtualMachine, VmError> {
        let team: *const Team = match &options.team {
            Some(team) => Arc::as_ptr(team),
            None => pliant_pool::global(),
        };
        let interrupt_flags = InterruptFlags::new(team);
        let mut failure = None;
        let inner = Arc::new_cyclic(|weak_self| {
            let mut linked =
                link(&exe, &loop_funcs, &options.functions, weak_self).unwrap_or_else(|error| {
                    failure = Some(error);
                    Linked {
                        functions: Vec::new(),
                        native: false,
                        loop_funcs: Vec::new(),
                        packed: Vec::new(),
                        entries: Vec::new(),
                        consts: Vec::new(),
                    }
                });
            linked.native &= !options.bytecode;
            Inner {
                linked,
                interrupt_flags,
                attention: AtomicU64::new(0),
                functions: options.functions,
                attachment: options.attachment,
                max_depth: AtomicUsize::new(options.max_depth.unwrap_or(DEFAULT_DEPTH)),
                exe,
                weak_self: Weak::clone(weak_self),
                poll: RwLock::new(None),
                instrument: RwLock::new(None),
                has_instrument: AtomicBool::new(false),
                stateful: Mutex::default(),
                invocations: AtomicU64::new(0),
                compilations: AtomicU64::new(0),
                _owners: (loop_funcs, options.team),
                owner: Owner::new(options.trim),
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(VirtualMachine(inner)),
        }
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> VirtualMachine {
        VirtualMachine(inner)
    }

    /// Returns the executable that the VM runs.
    pub fn executable(&self) -> &Arc<Executable> {
        &self.0.exe
    }

    /// Returns the object passed in [`VmOptions::attachment`].
    pub fn attachment(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.0.attachment.as_ref()
    }

    /// Returns the names of all functions that [`VirtualMachine::invoke`] accepts.
    pub fn function_names(&self) -> Vec<&str> {
        self.0.linked.functions.iter().map(|f| &*f.name).collect()
    }

    /// Whether bytecode functions run as machine code (`exec_mode="compiled"`) instead of being interpreted.
    pub fn is_native(&self) -> bool {
        self.0.linked.native
    }

    /// Returns the parameters of the function `name`; `None` if there is no such function.
    pub fn params(&self, name: &str) -> Option<&[Param]> {
        self.0.exe.vm_function(name).map(|f| &f.params[..])
    }

    /// Calls the bytecode function `name` with `args` and returns its result.
    ///
    /// # Errors
    /// `UnknownFunction`, `Arity`, and any error reported by the program's checks, loop functions
    /// and packed functions.
    pub fn invoke(&self, name: &str, args: &[Value]) -> Result<Value, VmError> {
        self.invoke_with(name, args, &RunOptions::default())
    }

    /// Calls the function `name` with run options.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::invoke`]; with a time limit also `TimeLimit` and `NoTimer`, and with a cancel
    /// handle also `Cancelled`.
    pub fn invoke_with(
        &self,
        name: &str,
        args: &[Value],
        options: &RunOptions,
    ) -> Result<Value, VmError> {
        self.invoke_index_with(self.index_of(name)?, args, options)
    }

    /// Returns the function `name` as a value. Calls of the value fail after the VM is dropped.
    ///
    /// # Errors
    /// `UnknownFunction` if the executable has no function of this name.
    pub fn function(&self, name: &str) -> Result<FuncValue, VmError> {
        let index = self.index_of(name)?;
        let target =
            crate::runtime_value::FuncTarget::Linked { vm: self.0.weak_self.clone(), index };
        Ok(FuncValue::new(name.to_string(), target, Vec::new()))
    }

    /// Returns the index of the function `name` in the function table, for
    /// [`VirtualMachine::invoke_index`].
    ///
    /// # Errors
    /// `UnknownFunction` if the executable has no function of this name.
    pub fn index_of(&self, name: &str) -> Result<u32, VmError> {
        let exe = &self.0.exe;
        match exe.find(name) {
            Some(index) if matches!(exe.funcs()[index as usize], FuncDef::Vm(_)) => Ok(index),
            _ => {
                let known = self.function_names().into_iter().map(str::to_string).collect();
                Err(VmError::UnknownFunction { name: name.to_string(), known })
            }
        }
    }

    /// Calls the function with the given table index, which saves the lookup of the name.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::invoke`].
    pub fn invoke_index(&self, index: u32, args: &[Value]) -> Result<Value, VmError> {
        self.start(index, args, 0, InvokeMode::TopLevel(RunOptions::UNLIMITED))
    }

    /// Calls the function with the given table index, with run options.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::invoke_with`].
    pub fn invoke_index_with(
        &self,
        index: u32,
        args: &[Value],
        options: &RunOptions,
    ) -> Result<Value, VmError> {
        self.start(index, args, 0, InvokeMode::TopLevel(options))
    }

    /// Calls the function `name`, nested in another run. `outer` is the runtime of the outer run:
    /// its worker team runs the parallel loops, and an interrupt of the outer run also stops the
    /// call. An interrupt of this VM takes effect only between instructions.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::invoke`].
    ///
    /// # Safety
    /// `outer` is the runtime that was passed to a library function ([`crate::LibraryFunc`]) that
    /// has not returned yet.
    pub unsafe fn invoke_within(
        &self,
        outer: &KernelRuntime,
        name: &str,
        args: &[Value],
    ) -> Result<Value, VmError> {
        // The outer runtime may belong to a library function, which cannot call packed functions. The loop functions of this run
        // can.
        let runtime = KernelRuntime {
            call_packed: crate::loop_function_callbacks::call_packed,
            report_error: crate::loop_function_callbacks::report_error,
            ..*outer
        };
        self.start(self.index_of(name)?, args, 0, InvokeMode::Nested(&runtime))
    }

    /// Invokes the function with the given table index. The last `bound` arguments are values captured by a closure.
    pub(crate) fn start(
        &self,
        index: u32,
        args: &[Value],
        bound: usize,
        mode: InvokeMode<'_>,
    ) -> Result<Value, VmError> {
        let inner = &*self.0;
        let Some(Entry::Vm(function)) = inner.linked.entries.get(index as usize).copied() else {
            let name = inner.exe.funcs().get(index as usize).map_or("?", FuncDef::name);
            return Err(VmError::type_error(format!(
                "the host program cannot invoke '{name}': it can invoke only graph functions, which are compiled to bytecode"
            )));
        };
        if args.len() != inner.linked.functions[function as usize].num_params {
            return Err(inner.arity_error(index, args.len().saturating_sub(bound), bound));
        }
        inner.invocations.fetch_add(1, Ordering::Relaxed);
        let nested = matches!(mode, InvokeMode::Nested(_));
        let _counter = CompilationCounter::new(&inner.compilations, nested);
        let instrument = if inner.has_instrument.load(Ordering::Acquire) {
            inner.instrument.read().unwrap_or_else(PoisonError::into_inner).clone()
        } else {
            None
        };
        let mut lease = ContextLease::new(&inner.owner)?;
        let context = lease.get();
        let result = match mode {
            InvokeMode::TopLevel(options) if options.may_stop() => {
                inner.run_stoppable(function, args, options, (context, instrument.as_ref()))
            }
            InvokeMode::TopLevel(_) => {
                Runner::new(inner, context, instrument.as_ref(), None).run(function, args)
            }
            InvokeMode::Nested(outer) => {
                Runner::new(inner, context, instrument.as_ref(), Some(outer)).run(function, args)
            }
        }?;
        if POISONS {
            check_poison(inner.exe.funcs()[index as usize].name(), args, &result)?;
        }
        Ok(result)
    }

    /// Stores the arguments for the next [`VirtualMachine::invoke_stateful`].
    ///
    /// # Errors
    /// `UnknownFunction` or `Arity`, if the function does not exist or the number of arguments is
    /// wrong.
    pub fn set_input(&self, name: &str, args: Vec<Value>) -> Result<(), VmError> {
        let index = self.index_of(name)?;
        if args.len() != self.params(name).map_or(0, <[Param]>::len) {
            return Err(self.0.arity_error(index, args.len(), 0));
        }
        let mut stateful = self.0.stateful.lock().unwrap_or_else(PoisonError::into_inner);
        let old = stateful.insert(name.to_string(), StatefulCall { inputs: args, output: None });
        drop(stateful);
        drop(old);
        Ok(())
    }

    /// Calls the function `name` with the arguments stored by [`VirtualMachine::set_input`], and
    /// stores its result.
    ///
    /// # Errors
    /// `Type` if no inputs are set; otherwise as [`VirtualMachine::invoke`].
    pub fn invoke_stateful(&self, name: &str) -> Result<(), VmError> {
        self.invoke_stateful_with(name, &RunOptions::default())
    }

    /// Calls the function `name` with the stored arguments and run options, and stores its result.
    ///
    /// # Errors
    /// The same errors as [`VirtualMachine::invoke_stateful`]; with a time limit also `TimeLimit` and `NoTimer`, and with a
    /// cancel handle also `Cancelled`.
    pub fn invoke_stateful_with(&self, name: &str, options: &RunOptions) -> Result<(), VmError> {
        let lock = || self.0.stateful.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(args) = lock().get(name).map(|state| state.inputs.clone()) else {
            self.index_of(name)?;
            return Err(VmError::type_error(format!(
                "the function '{name}' has no stored inputs: call set_input first"
            )));
        };
        let output = self.invoke_with(name, &args, options)?;
        if let Some(state) = lock().get_mut(name) {
            state.output = Some(output);
        }
        Ok(())
    }

    /// Returns the result that the last [`VirtualMachine::invoke_stateful`] stored for the function
    /// `name`.
    ///
    /// # Errors
    /// `Type` if the function has not been invoked since its inputs were set.
    pub fn get_outputs(&self, name: &str) -> Result<Value, VmError> {
        let stateful = self.0.stateful.lock().unwrap_or_else(PoisonError::into_inner);
        stateful.get(name).and_then(|state| state.output.clone()).ok_or_else(|| {
            VmError::type_error(format!(
                "the function '{name}' has no stored output: call invoke_stateful first"
            ))
        })
    }

    /// Calls `visit` for each opaque object (such as a Python object) that only the stored inputs and results keep alive. Does
    /// nothing while another thread accesses the inputs or results.
    pub fn uniquely_held_objects(&self, visit: &mut dyn FnMut(&Object)) {
        let Ok(stateful) = self.0.stateful.try_lock() else { return };
        crate::uniquely_held_objects(
            stateful.values().flat_map(|s| s.inputs.iter().chain(&s.output)),
            visit,
        );
    }

    /// Returns a weak reference to the VM.
    pub fn downgrade(&self) -> WeakVm {
        WeakVm(self.0.weak_self.clone())
    }

    /// Returns the maximum nesting depth of calls of the program's functions in one invocation.
    pub fn max_depth(&self) -> usize {
        self.0.max_depth.load(Ordering::Relaxed)
    }

    /// Sets the maximum nesting depth of calls. Running invocations use the new depth from their
    /// next call on.
    pub fn set_max_depth(&self, depth: usize) {
        self.0.max_depth.store(depth, Ordering::Relaxed);
    }

    /// Interrupts all running invocations. Each returns `Interrupted` at its next instruction or poll.
    pub fn interrupt(&self) {
        self.0.interrupt_flags.raise();
        self.0.attention.fetch_add(INTERRUPT, Ordering::Relaxed);
    }

    /// Sets the callback that [`VirtualMachine::request_poll`] triggers, or removes it.
    pub fn set_poll(&self, poll: Option<Arc<dyn Fn() -> bool + Send + Sync>>) {
        *self.0.poll.write().unwrap_or_else(PoisonError::into_inner) = poll;
    }

    /// Makes one running invocation call the poll callback ([`VirtualMachine::set_poll`]) on its own thread at its next
    /// instruction. Embedding programs that handle signals on a specific thread use this to check for signals.
    pub fn request_poll(&self) {
        self.0.attention.fetch_or(POLL, Ordering::Relaxed);
    }

    /// Sets the instrument that the VM invokes before and after each call, or removes it. Running
    /// invocations keep the previous instrument.
    pub fn set_instrument(&self, instrument: Option<Instrument>) {
        self.0.has_instrument.store(instrument.is_some(), Ordering::Release);
        *self.0.instrument.write().unwrap_or_else(PoisonError::into_inner) = instrument;
    }

    /// Returns the statistics of this VM.
    pub fn stats(&self) -> VmStats {
        VmStats {
            invocations: self.0.invocations.load(Ordering::Relaxed),
            compilations: self.0.compilations.load(Ordering::Relaxed),
        }
    }
}

impl Inner {
    /// Whether `other` refers to the same VM as `self`.
    pub(crate) fn is(&self, other: &Weak<Inner>) -> bool {
        Weak::ptr_eq(&self.weak_self, other)
    }

    /// Begins a run. Returns the VM's attention word (an integer that changes when running functions must stop or poll), without
    /// the bit of a pending poll, and the interrupt flag for the run's loop functions.
    pub(crate) fn begin_run(&self) -> (u64, &InterruptFlag) {
        // Read the word first, so that an interrupt in between also stops this run.
        let attention = self.attention.load(Ordering::Relaxed) & !POLL;
        (attention, self.interrupt_flags.enter())
    }

    /// Handles a change of the VM's attention word (an integer that changes when running functions must stop or poll) from the
    /// value `seen`. Returns the current value, with which the run compares the word from now on.
    pub(crate) fn handle_attention(&self, seen: u64) -> Result<u64, VmError> {
        let now = self.attention.fetch_and(!POLL, Ordering::Relaxed);
        if (now ^ seen) & INTERRUPTS != 0 {
            return Err(VmError::Interrupted);
        }
        let poll = self.poll.read().unwrap_or_else(PoisonError::into_inner).clone();
        match poll {
            Some(poll) if poll() => Err(VmError::Interrupted),
            _ => Ok(now & !POLL),
        }
    }

    /// Whether the VM was interrupted after a run read the value `seen` of the VM's attention word, which counts interrupts.
    pub(crate) fn is_interrupted_since(&self, seen: u64) -> bool {
        (self.attention.load(Ordering::Relaxed) ^ seen) & INTERRUPTS != 0
    }

    /// Changes the VM's attention word, which running functions watch, so that all runs check whether their time limits have
    /// expired or their handles were cancelled.
    pub(crate) fn wake_runs(&self) {
        // The reason why a run must stop is visible to whoever sees the changed word.
        self.attention.fetch_add(TIME_LIMIT, Ordering::Release);
    }

    /// Runs a bytecode function that a time limit or a cancel handle may stop.
    #[cold]
    fn run_stoppable(
        &self,
        function: u32,
        args: &[Value],
        options: &RunOptions,
        (context, instrument): (&mut Context, Option<&Instrument>),
    ) -> Result<Value, VmError> {
        let name = &self.linked.functions[function as usize].name;
        let flags = &self.interrupt_flags.run_flags;
        let stop = EarlyStop::start(flags, &self.weak_self, options, name)?;
        let runtime = self.interrupt_flags.runtime(stop.interrupt());
        let runner = Runner::stoppable(self, context, instrument, &stop, &runtime);
        // The runner watches for changes of the attention word from now on. It misses a change that was made after the start of the
        // time limit and before the runner read the word.
        fence(Ordering::Acquire);
        match stop.error(name) {
            Some(error) => Err(error),
            None => runner.run(function, args),
        }
    }

    /// Returns the source location of an instruction of a linked function; `None` if unknown.
    #[cold]
    pub(crate) fn source_location(
        &self,
        function: usize,
        instruction: usize,
    ) -> Option<TraceEntry> {
        let index = self.linked.functions.get(function)?.index;
        let location = self.exe.source_location(index, instruction)?;
        Some(TraceEntry {
            function: location.function.to_string(),
            file: location.file.to_string(),
            line: location.line,
            last: location.last,
        })
    }

    /// Returns the error for a call of function `index` with the wrong number of arguments. The
    /// last `bound` parameters are not counted, because a closure supplies their arguments.
    #[cold]
    pub(crate) fn arity_error(&self, index: u32, given: usize, bound: usize) -> VmError {
        let def = &self.exe.funcs()[index as usize];
        let empty = VmFunction::default();
        let function = if let FuncDef::Vm(function) = def { function } else { &empty };
        let own = function.params.len().saturating_sub(bound);
        let params: Vec<String> = function.params[..own].iter().map(Param::to_string).collect();
        let missing = function.params[..own].iter().skip(given).map(|p| p.name.clone()).collect();
        VmError::Arity {
            signature: format!("{}({})", def.name(), params.join(", ")),
            expected: params.len(),
            given,
            missing,
        }
    }
}

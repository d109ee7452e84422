//! The bytecode interpreter, which runs the instructions of linked functions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use pliant_exec::abi::{AssertArgs, Flops, KernelRuntime, STATUS_OK};

use crate::builtin_operands::{Args, poll};
use crate::builtins::{Builtin, alloc_own_tensor_unwritten, bytes, clear};
use crate::call_instruments::{CallEvent, CalleeKind, InstrumentAction};
use crate::error::TraceEntry;
use crate::executable_linker::{Callee, Entry, LinkedLoopFunc, Op, Operand, VOID};
use crate::host_function_registry::HostFunc;
use crate::interrupt_flags::InterruptFlag;
use crate::loop_function_callbacks::LoopCall;
use crate::registers_and_frames::{Context, Frame};
use crate::runtime_value::FuncTarget;
use crate::time_limit::EarlyStop;
use crate::uninitialized_read_analysis::FirstUse;
use crate::virtual_machine::Inner;
use crate::{FuncValue, Instrument, Value, VmError};

mod argument_encoding;
mod call_errors;

pub(crate) use argument_encoding::condition;
use argument_encoding::{encode_arg, row_major_copy};
use call_errors::{bad_loop_func_arg, loop_func_error, not_callable};
pub(crate) use call_errors::{in_function, panic_text};

/// Maximum number of registers (24 bytes each) in all frames of an invocation.
const MAX_STACK: usize = 1 << 24;
/// Maximum number of source locations in an error. The locations are those of the failed instruction and of the
/// enclosing calls.
const MAX_TRACE_ENTRIES: usize = 8;
/// Maximum number of frames that are searched for source locations.
const MAX_TRACED_FRAMES: usize = 1 << 10;

/// The state of an invocation of a bytecode function. The frame of the running function is `regs[base..]` of the [`Context`], the
/// memory for registers and frames.
pub(crate) struct Runner<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) context: &'a mut Context,
    instrument: Option<&'a Instrument>,
    /// Counts the floating-point operations that library kernels execute during the current call. Instruments receive this number.
    flops: Flops,
    pub(crate) function: usize,
    pub(crate) base: usize,
    /// The last value of the VM's attention word (an integer that interrupts, poll requests and expired time limits change) that
    /// the run has handled. If the current value differs, the run must handle one of these events.
    pub(crate) attention: u64,
    /// The flag that an interrupt of this VM sets. Loop functions poll it. It also counts the runs that use it,
    /// including this run.
    flag: &'a InterruptFlag,
    /// The runtime that loop functions of this run receive. A nested run uses the runtime of the outer run.
    pub(crate) runtime: &'a KernelRuntime,
    /// Whether the run is nested in another run. An interrupt of the outer run does not change the attention word of this VM
    /// ([`Self::attention`]), so the interpreter checks for such interrupts separately.
    nested: bool,
    /// The time limit and the cancel handle of the run, if any. Set to `None` after an interrupt, so that the interrupt is reported
    /// even if the run would be stopped afterwards.
    stop: Option<&'a EarlyStop>,
    /// The index of the function with which the run began.
    entry: usize,
}

/// The position of a call in a function, and the destination of its result.
#[derive(Clone, Copy)]
pub(crate) struct CallSite {
    pub(crate) pc: usize,
    pub(crate) dst: u32,
    /// Whether the call is in tail position, so that the callee may replace the frame.
    pub(crate) tail: bool,
}

/// The state of a call after the interpreter has executed the call instruction.
pub(crate) enum CallOutcome {
    /// The call is complete and returned this value, which is not stored in a register yet.
    Value(Value),
    /// The call is complete and the result is in the destination register.
    Stored,
    /// The frame of a bytecode function was pushed. The function has not run yet.
    Entered,
}

/// The next step after a function has returned.
pub(crate) enum ReturnOutcome {
    /// The run is complete, with this result.
    RunDone(Value),
    /// The function returned to its caller, which resumes at the instruction with this index.
    Resume(usize),
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.flag.leave();
    }
}

impl<'a> Runner<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        context: &'a mut Context,
        instrument: Option<&'a Instrument>,
        outer: Option<&'a KernelRuntime>,
    ) -> Runner<'a> {
        let (attention, flag) = inner.begin_run();
        context.tensor_cache.owner = inner.owner.id();
        let runtime = outer.unwrap_or(&flag.runtime);
        let nested = outer.is_some();
        let (function, base, entry) = (0, 0, 0);
        Runner {
            inner,
            context,
            instrument,
            flops: Flops::default(),
            function,
            base,
            attention,
            flag,
            runtime,
            nested,
            stop: None,
            entry,
        }
    }

    /// Creates a run that `stop` may stop early. `runtime` must contain the interrupt flag that it sets.
    pub(crate) fn stoppable(
        inner: &'a Inner,
        context: &'a mut Context,
        instrument: Option<&'a Instrument>,
        stop: &'a EarlyStop,
        runtime: &'a KernelRuntime,
    ) -> Runner<'a> {
        let mut runner = Runner::new(inner, context, instrument, None);
        (runner.stop, runner.runtime) = (Some(stop), runtime);
        runner
    }

    /// Runs a bytecode function. The caller has checked the number of arguments.
    pub(crate) fn run(mut self, function: u32, args: &[Value]) -> Result<Value, VmError> {
        (self.function, self.entry) = (function as usize, function as usize);
        self.context.regs.extend_from_slice(args);
        let size = self.frame_size(self.base, self.function)?;
        self.context.regs.resize(size, Value::None);
        match self.instrument {
            // An instrument must see every call, so native bodies are not used.
            Some(_) => self.execute::<true>(),
            None if self.inner.linked.native => crate::native_body_runtime::execute(&mut self),
            None => self.execute::<false>(),
        }
    }

    /// Returns the size of the register stack, in registers, that is needed if the frame of `function` starts at
    /// `base`.
    fn frame_size(&self, base: usize, function: usize) -> Result<usize, VmError> {
        let size = base + self.inner.linked.functions[function].num_regs;
        if size > MAX_STACK {
            return Err(self.too_deep(function, self.context.frames.len()));
        }
        Ok(size)
    }

    /// Adds source locations to an error of instruction `pc` of the running function: the locations of the instruction
    /// and of the enclosing calls.
    #[cold]
    pub(crate) fn traced(&self, error: VmError, pc: usize) -> VmError {
        let error = match error {
            VmError::Interrupted => match self.early_stop_error() {
                Some(error) => error,
                None => return VmError::Interrupted,
            },
            error => error,
        };
        let frames = self.context.frames.iter().rev();
        let around = frames.map(|f| (f.function as usize, f.pc.saturating_sub(1)));
        let mut trace: Vec<TraceEntry> = Vec::new();
        for (function, pc) in
            [(self.function, pc)].into_iter().chain(around).take(MAX_TRACED_FRAMES)
        {
            // Recursive calls from the same location are listed once.
            let location = self.inner.source_location(function, pc);
            trace.extend(location.filter(|location| trace.last() != Some(location)));
            if trace.len() == MAX_TRACE_ENTRIES {
                break;
            }
        }
        error.traced(trace)
    }

    /// Returns the error of an expired time limit or a cancelled handle; `None` if something else caused the interrupt.
    fn early_stop_error(&self) -> Option<VmError> {
        let error = self.stop?.error(&self.inner.linked.functions[self.entry].name)?;
        (!self.inner.is_interrupted_since(self.attention)).then_some(error)
    }

    #[cold]
    fn too_deep(&self, function: usize, depth: usize) -> VmError {
        let function = self.inner.linked.functions[function].name.to_string();
        VmError::StackOverflow { depth, function }
    }

    fn execute<const INSTRUMENTED: bool>(&mut self) -> Result<Value, VmError> {
        let inner = self.inner;
        let mut pc = 0usize;
        let mut function = &inner.linked.functions[self.function];
        loop {
            match function.ops[pc] {
                op @ (Op::Call { callee, args_start, args_len, dst }
                | Op::TailCall { callee, args_start, args_len, dst }) => {
                    self.check_attention(pc)?;
                    let start = args_start as usize;
                    let operands = &function.operands[start..start + args_len as usize];
                    let site = CallSite { pc, dst, tail: matches!(op, Op::TailCall { .. }) };
                    let outcome = if INSTRUMENTED {
                        self.instrumented_call(callee, operands, site)
                    } else {
                        self.call(callee, operands, site)
                    };
                    let outcome = outcome.map_err(|error| self.traced(error, pc))?;
                    pc += 1;
                    match outcome {
                        CallOutcome::Value(value) => self.set_register(dst, value),
                        CallOutcome::Stored => {}
                        CallOutcome::Entered => {
                            pc = 0;
                            function = &inner.linked.functions[self.function];
                        }
                    }
                }
                Op::Ret { reg } => match self.return_from_frame(reg) {
                    ReturnOutcome::RunDone(value) => return Ok(value),
                    ReturnOutcome::Resume(next) => {
                        pc = next;
                        function = &inner.linked.functions[self.function];
                    }
                },
                Op::If { cond, other } => {
                    let holds = condition(&self.context.regs[self.base + cond as usize])
                        .map_err(|error| self.traced(in_function(error, &function.name), pc))?;
                    pc = if holds { pc + 1 } else { self.jump(pc, other)? };
                }
                Op::Goto { target } => pc = self.jump(pc, target)?,
            }
        }
    }

    /// Stores a value in a register of the running frame. Small tensors in the old value are kept for reuse.
    #[inline]
    pub(crate) fn set_register(&mut self, dst: u32, value: Value) {
        if dst != VOID {
            let context = &mut *self.context;
            let old = std::mem::replace(&mut context.regs[self.base + dst as usize], value);
            context.tensor_cache.recycle(old);
        }
    }

    /// Returns the value of register `reg` to the caller: pops the running frame and restores the frame of the caller.
    pub(crate) fn return_from_frame(&mut self, reg: u32) -> ReturnOutcome {
        let context = &mut *self.context;
        let value = std::mem::take(&mut context.regs[self.base + reg as usize]);
        for old in context.regs.drain(self.base..) {
            context.tensor_cache.recycle(old);
        }
        let Some(frame) = context.frames.pop() else { return ReturnOutcome::RunDone(value) };
        self.function = frame.function as usize;
        self.base = frame.base;
        self.set_register(frame.dst, value);
        ReturnOutcome::Resume(frame.pc)
    }

    /// Returns the target of a jump. Before backward jumps, checks for interrupts, because a loop may contain no calls.
    fn jump(&mut self, pc: usize, target: u32) -> Result<usize, VmError> {
        let target = target as usize;
        if target <= pc {
            self.check_attention(pc)?;
            self.check_outer()?;
        }
        Ok(target)
    }

    /// Fails if this run is nested in an outer run that was interrupted. The interpreter calls this function in every loop and
    /// every recursion, so that an interrupt of the outer run also stops this run.
    pub(crate) fn check_outer(&self) -> Result<(), VmError> {
        if self.nested { poll(self.runtime) } else { Ok(()) }
    }

    fn check_attention(&mut self, pc: usize) -> Result<(), VmError> {
        let now = self.inner.attention.load(Ordering::Relaxed);
        if now == self.attention { Ok(()) } else { self.handle_attention(pc) }
    }

    /// Handles a change of the VM's attention word, which an interrupt, a poll request, an expired time limit or a cancelled
    /// handle has caused, at instruction `pc` of the running function.
    #[cold]
    pub(crate) fn handle_attention(&mut self, pc: usize) -> Result<(), VmError> {
        match self.inner.handle_attention(self.attention) {
            Ok(attention) => self.attention = attention,
            Err(error) => {
                self.stop = None;
                return Err(error);
            }
        }
        match self.stop.is_some_and(EarlyStop::is_stopped) {
            true => Err(self.traced(VmError::Interrupted, pc)),
            false => Ok(()),
        }
    }

    pub(crate) fn call(
        &mut self,
        callee: Callee,
        operands: &[Operand],
        site: CallSite,
    ) -> Result<CallOutcome, VmError> {
        let inner = self.inner;
        match callee {
            Callee::Builtin(builtin, function) => {
                let args = Args {
                    name: builtin.name,
                    regs: &self.context.regs[self.base..],
                    consts: &inner.linked.consts,
                    operands,
                    runtime: self.runtime,
                };
                function(args).map(CallOutcome::Value)
            }
            Callee::LoopFunc(index) => {
                let loop_func = &inner.linked.loop_funcs[index as usize];
                self.call_loop_func(loop_func, operands, None)?;
                Ok(CallOutcome::Value(Value::None))
            }
            Callee::Alloc(builtin, first_use) => {
                self.alloc(builtin, first_use, operands).map(CallOutcome::Value)
            }
            Callee::Kill(reg) => {
                self.set_register(reg, Value::None);
                Ok(CallOutcome::Stored)
            }
            Callee::Vm(index) => {
                self.enter(index, operands, None, site)?;
                Ok(CallOutcome::Entered)
            }
            Callee::Packed(index) => {
                let (name, func) = &inner.linked.packed[index as usize];
                self.call_host(name, func, operands, &[]).map(CallOutcome::Value)
            }
            Callee::Closure => self.call_closure(operands, site),
            Callee::LoopFuncDyn => self.call_dynamic(operands),
        }
    }

    /// `alloc_tensor_with_storage(bytes, shape, dtype)`: allocates a tensor with its own storage, or takes one from the tensor
    /// cache.
    pub(crate) fn alloc(
        &mut self,
        builtin: &'static Builtin,
        first_use: FirstUse,
        operands: &[Operand],
    ) -> Result<Value, VmError> {
        let Context { regs, tensor_cache, .. } = &mut *self.context;
        let regs = &regs[self.base..];
        let args = Args {
            name: builtin.name,
            regs,
            consts: &self.inner.linked.consts,
            operands,
            runtime: self.runtime,
        };
        let bytes = bytes(args)?;
        let value = match tensor_cache.take(bytes, args.shape(1)?, args.dtype(2)?) {
            Some(tensor) => Value::Tensor(tensor),
            None => alloc_own_tensor_unwritten(args)?,
        };
        // An instrument may skip the call that would write the tensor.
        let may_skip = self.instrument.is_some_and(|instrument| instrument.may_skip);
        if first_use == FirstUse::Unknown || may_skip {
            clear(&value);
        }
        Ok(value)
    }

    /// Enters a bytecode function. The new frame is pushed on the register stack, or replaces the running frame in a
    /// tail call. If the callee is a closure, `closure` is its operand; the captured values follow the arguments.
    pub(crate) fn enter(
        &mut self,
        index: u32,
        operands: &[Operand],
        closure: Option<Operand>,
        site: CallSite,
    ) -> Result<(), VmError> {
        self.check_outer()?;
        let callee = &self.inner.linked.functions[index as usize];
        let consts = &self.inner.linked.consts[..];
        let context = &mut *self.context;
        let captured = |regs: &[Value]| match closure.map(|c| c.get(regs, consts)) {
            Some(Value::Func(func)) => func.captured().len(),
            _ => 0,
        };
        let bound = captured(&context.regs[self.base..]);
        if operands.len() + bound != callee.num_params {
            return Err(self.inner.arity_error(callee.index, operands.len(), bound));
        }
        let limit = self.inner.max_depth.load(std::sync::atomic::Ordering::Relaxed);
        if !site.tail && context.frames.len() >= limit {
            return Err(self.too_deep(index as usize, limit));
        }
        let base = context.regs.len();
        let size = self.frame_size(if site.tail { self.base } else { base }, index as usize)?;
        let context = &mut *self.context;
        context.regs.reserve(callee.num_regs);
        for operand in operands {
            let value = operand.get(&context.regs[self.base..], consts).clone();
            context.regs.push(value);
        }
        for i in 0..bound {
            // Look up the function value in every iteration, because it may be in the register stack, which grows here.
            let func = closure.map(|c| c.get(&context.regs[self.base..], consts));
            let Some(Value::Func(func)) = func else { break };
            let value = func.captured()[i].clone();
            context.regs.push(value);
        }
        if site.tail {
            // Move the arguments to the start of the running frame. Its registers are dead.
            for old in context.regs.drain(self.base..base) {
                context.tensor_cache.recycle(old);
            }
        } else {
            context.frames.push(Frame {
                function: self.function as u32,
                pc: site.pc + 1,
                base: self.base,
                dst: site.dst,
            });
            self.base = base;
        }
        self.function = index as usize;
        self.context.regs.resize(size, Value::None);
        Ok(())
    }

    pub(crate) fn call_host(
        &mut self,
        name: &str,
        func: &HostFunc,
        operands: &[Operand],
        bound: &[Value],
    ) -> Result<Value, VmError> {
        let consts = &self.inner.linked.consts;
        let context = &mut *self.context;
        context.host_args.clear();
        for operand in operands {
            let value = operand.get(&context.regs[self.base..], consts).clone();
            context.host_args.push(value);
        }
        context.host_args.extend_from_slice(bound);
        let args = &context.host_args[..];
        let runtime = self.runtime;
        let result = match catch_unwind(AssertUnwindSafe(|| func.call(runtime, args))) {
            Ok(result) => result.map_err(|error| error.in_packed(name)),
            Err(panic) => {
                Err(VmError::external(format!("the function panicked: {}", panic_text(&*panic)))
                    .in_packed(name))
            }
        };
        // Drop the arguments now, so that killing their registers releases the memory.
        self.context.host_args.clear();
        result
    }

    pub(crate) fn call_closure(
        &mut self,
        operands: &[Operand],
        site: CallSite,
    ) -> Result<CallOutcome, VmError> {
        let inner = self.inner;
        let Some((&closure, rest)) = operands.split_first() else {
            return Err(VmError::type_error(
                "vm.builtin.invoke_closure: operand 0 (the function) is missing",
            ));
        };
        let callee = closure.get(&self.context.regs[self.base..], &inner.linked.consts);
        // A function of this program is entered directly. Any other function value is cloned to keep it alive during the call.
        let Value::Func(func) = callee else {
            let caller = &inner.linked.functions[self.function].name;
            return Err(not_callable(caller, callee));
        };
        if let FuncTarget::Linked { vm, index } = func.target()
            && inner.is(vm)
            && let Entry::Vm(index) = inner.linked.entries[*index as usize]
        {
            self.enter(index, rest, Some(closure), site)?;
            return Ok(CallOutcome::Entered);
        }
        let func = func.clone();
        match func.target() {
            FuncTarget::Packed(packed) => {
                self.call_host(func.name(), packed, rest, func.captured()).map(CallOutcome::Value)
            }
            FuncTarget::Linked { vm, index } if inner.is(vm) => {
                match inner.linked.entries[*index as usize] {
                    Entry::LoopFunc(i) if func.captured().is_empty() => {
                        self.call_loop_func(&inner.linked.loop_funcs[i as usize], rest, None)?;
                        Ok(CallOutcome::Value(Value::None))
                    }
                    _ => Err(VmError::type_error(format!(
                        "vm.builtin.invoke_closure: '{}' cannot be called, because it is neither a graph function nor a loop \
                         function without captured values",
                        func.name()
                    ))),
                }
            }
            FuncTarget::Linked { .. } => {
                let regs = &self.context.regs[self.base..];
                let consts = &inner.linked.consts;
                let args: Vec<Value> = rest.iter().map(|o| o.get(regs, consts).clone()).collect();
                func.call_within(&args, self.runtime).map(CallOutcome::Value)
            }
        }
    }

    /// Returns the function in operand 0 of a call, and the remaining operands.
    fn leading_func<'o>(
        &self,
        name: &'static str,
        operands: &'o [Operand],
    ) -> Result<(FuncValue, &'o [Operand]), VmError> {
        let args = Args {
            name,
            regs: &self.context.regs[self.base..],
            consts: &self.inner.linked.consts,
            operands,
            runtime: self.runtime,
        };
        Ok((args.func(0)?.clone(), &operands[1..]))
    }

    /// `call_tir_dyn(f, args.., shape)`: calls the loop function `f`. The dims of `shape` are passed as integer
    /// arguments after the other arguments.
    pub(crate) fn call_dynamic(&mut self, operands: &[Operand]) -> Result<CallOutcome, VmError> {
        let inner = self.inner;
        let (func, rest) = self.leading_func("vm.builtin.call_tir_dyn", operands)?;
        let Some((last, rest)) = rest.split_last() else {
            return Err(VmError::type_error(
                "vm.builtin.call_tir_dyn: the last operand (the sizes) is missing",
            ));
        };
        let regs = &self.context.regs[self.base..];
        let Value::Shape(dims) = last.get(regs, &inner.linked.consts).clone() else {
            return Err(VmError::type_error(
                "vm.builtin.call_tir_dyn: the last operand (the sizes) must be a shape",
            ));
        };
        match func.target() {
            FuncTarget::Packed(packed) => {
                let dims: Vec<Value> = dims.iter().map(|&dim| Value::Int(dim)).collect();
                self.call_host(func.name(), packed, rest, &dims).map(CallOutcome::Value)
            }
            FuncTarget::Linked { vm, index } if inner.is(vm) => {
                let Entry::LoopFunc(i) = inner.linked.entries[*index as usize] else {
                    let text = format!(
                        "vm.builtin.call_tir_dyn: '{}' is not a loop function",
                        func.name()
                    );
                    return Err(VmError::type_error(text));
                };
                self.call_loop_func(&inner.linked.loop_funcs[i as usize], rest, Some(&dims))?;
                Ok(CallOutcome::Value(Value::None))
            }
            FuncTarget::Linked { .. } => Err(VmError::type_error(
                "vm.builtin.call_tir_dyn: the loop function belongs to another VM",
            )),
        }
    }

    pub(crate) fn call_loop_func(
        &mut self,
        loop_func: &LinkedLoopFunc,
        operands: &[Operand],
        dims: Option<&[i64]>,
    ) -> Result<(), VmError> {
        let Context { regs, words, copies, .. } = &mut *self.context;
        let regs = &regs[self.base..];
        let expected = &loop_func.info.args;
        let dims = dims.unwrap_or_default();
        if operands.len() + dims.len() != expected.len() {
            return Err(VmError::type_error(format!(
                "loop function '{}' takes {} arguments, but {} were given",
                loop_func.info.name,
                expected.len(),
                operands.len() + dims.len()
            )));
        }
        words.clear();
        for (i, (operand, expected)) in operands.iter().zip(expected).enumerate() {
            let value = operand.get(regs, &self.inner.linked.consts);
            let Some(mut word) = encode_arg(value, *expected) else {
                return Err(bad_loop_func_arg(loop_func, i, value));
            };
            if let Value::Tensor(tensor) = value
                && !tensor.is_row_major_aligned()
                && let Some(copy) = row_major_copy(tensor, *expected)?
            {
                word = std::ptr::from_ref(copy.dl()) as u64;
                copies.push(copy);
            }
            words.push(word);
        }
        for (&dim, (i, expected)) in dims.iter().zip(expected.iter().enumerate().skip(words.len()))
        {
            match encode_arg(&Value::Int(dim), *expected) {
                Some(word) => words.push(word),
                None => return Err(bad_loop_func_arg(loop_func, i, &Value::Int(dim))),
            }
        }
        let call =
            LoopCall { inner: self.inner, regs, operands, copies, words, error: Mutex::new(None) };
        let assert_args = AssertArgs::default();
        let runtime = KernelRuntime {
            call: (&raw const call).cast(),
            assert_args: &raw const assert_args,
            flops: match self.instrument {
                Some(_) => &raw const self.flops,
                None => std::ptr::null(),
            },
            ..*self.runtime
        };
        let code = loop_func.code.load();
        // SAFETY: the provider of the table guarantees that the function follows the ABI and accepts these arguments. Registers and
        // constants keep the tensors alive during the call, and the VM keeps the runtime alive.
        let status = unsafe { (code.function)(words.as_ptr(), &raw const runtime) };
        let result = match status {
            STATUS_OK => Ok(()),
            _ => Err(loop_func_error((loop_func, code), status, &call, &assert_args)),
        };
        if !copies.is_empty() {
            copies.clear();
        }
        result
    }

    #[cold]
    fn instrumented_call(
        &mut self,
        callee: Callee,
        operands: &[Operand],
        site: CallSite,
    ) -> Result<CallOutcome, VmError> {
        let inner = self.inner;
        let Some(instrument) = self.instrument else { return self.call(callee, operands, site) };
        let regs = &self.context.regs[self.base..];
        let consts = &inner.linked.consts;
        let args: Vec<Value> = operands.iter().map(|o| o.get(regs, consts).clone()).collect();
        let callee_name = match callee {
            Callee::Builtin(builtin, _) => builtin.name,
            Callee::LoopFunc(i) => &inner.linked.loop_funcs[i as usize].info.name,
            Callee::Packed(i) => &inner.linked.packed[i as usize].0,
            Callee::Vm(i) => &inner.linked.functions[i as usize].name,
            Callee::LoopFuncDyn => "vm.builtin.call_tir_dyn",
            Callee::Closure => "vm.builtin.invoke_closure",
            Callee::Alloc(builtin, _) => builtin.name,
            Callee::Kill(_) => "vm.builtin.kill_object",
        };
        let event = CallEvent {
            function: &inner.linked.functions[self.function].name,
            instruction: site.pc,
            callee: callee_name,
            kind: match callee {
                Callee::LoopFunc(_) | Callee::LoopFuncDyn => CalleeKind::LoopFunction,
                Callee::Packed(_) => CalleeKind::Packed,
                Callee::Vm(_) | Callee::Closure => CalleeKind::GraphFunction,
                Callee::Builtin(..) | Callee::Alloc(..) | Callee::Kill(_) => CalleeKind::Builtin,
            },
            args: &args,
            result: None,
            flops: 0,
            before: true,
        };
        if instrument.report(&event) == InstrumentAction::Skip {
            return Ok(CallOutcome::Value(Value::None));
        }
        self.flops.take();
        let outcome = self.call(callee, operands, site)?;
        let result = if let CallOutcome::Value(value) = &outcome { Some(value) } else { None };
        let flops = self.flops.take();
        instrument.report(&CallEvent { result, flops, before: false, ..event });
        Ok(outcome)
    }
}

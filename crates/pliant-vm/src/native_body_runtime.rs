//! Executes native bodies (bytecode functions compiled to machine code): the driver loop that calls
//! them, and the runtime entries that they call.
//!
//! Register frames are the same as those of the bytecode interpreter, and a runtime entry executes
//! a call exactly as the interpreter does. `pliant_exec::native_body_abi` specifies the interface
//! between bodies and entries.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pliant_exec::native_body_abi::{
    ATTENTION, BODY_PIECE, BodyContext, BodyEntries, ENTERED, FAILED, JUMP, RETURN, code_kind,
    code_payload,
};

use crate::builtin_operands::Args;
use crate::executable_linker::{Callee, Op, Operand};
use crate::interpreter::{CallOutcome, CallSite, ReturnOutcome, Runner, condition, in_function};
use crate::{Value, VmError};

/// The reason why a VM function that native bodies (machine code of bytecode functions) call has stopped the run.
enum Failure {
    Error(VmError),
    /// A panic, which is caused by a bug. The driver (the loop that calls native bodies) resumes the panic, because native
    /// bodies cannot unwind.
    Panic(Box<dyn Any + Send>),
}

/// The state of the driver, the VM's loop that runs native bodies (machine code of bytecode functions). Native bodies access only
/// the first field.
#[repr(C)]
struct State<'r, 'a> {
    context: BodyContext,
    runner: &'r mut Runner<'a>,
    failure: Option<Failure>,
}

static ENTRIES: BodyEntries = BodyEntries {
    builtin: call_builtin,
    release: call_release,
    loop_func: call_loop_func,
    dynamic: call_any,
    packed: call_packed,
    function: call_function,
    closure: call_any,
    condition: read_condition,
};

/// Runs the function in the top frame, and all functions that it calls, until the run ends.
pub(crate) fn execute(runner: &mut Runner<'_>) -> Result<Value, VmError> {
    let inner = runner.inner;
    let context = BodyContext {
        attention: (&raw const inner.attention).cast(),
        seen: runner.attention,
        entries: &raw const ENTRIES,
    };
    let mut state = State { context, runner, failure: None };
    let mut pc = 0u32;
    loop {
        let function = &inner.linked.functions[state.runner.function];
        let piece = function.native[pc as usize / BODY_PIECE];
        // SAFETY: the provider of the table guarantees that this is a body of the function, and
        // `pc` is in the piece. The state is what the entries expect, and nothing else uses it
        // during the call.
        let code = unsafe { piece((&raw mut state).cast(), pc) };
        let payload = code_payload(code);
        match code_kind(code) {
            RETURN => match state.runner.return_from_frame(payload) {
                ReturnOutcome::RunDone(value) => return Ok(value),
                ReturnOutcome::Resume(next) => pc = next as u32,
            },
            ENTERED => pc = 0,
            JUMP => pc = payload,
            ATTENTION => {
                state.runner.handle_attention(payload as usize)?;
                state.context.seen = state.runner.attention;
                pc = payload;
            }
            _ => return Err(state.failed()),
        }
    }
}

impl State<'_, '_> {
    #[cold]
    fn failed(&mut self) -> VmError {
        match self.failure.take() {
            Some(Failure::Error(error)) => error,
            Some(Failure::Panic(panic)) => resume_unwind(panic),
            None => VmError::type_error(
                "a compiled graph function failed without recording an error (this is a bug in Pliant)",
            ),
        }
    }
}

/// Runs `op`, the operation for which a native body (the machine code of a bytecode function) has called the VM. If the operation
/// fails or panics, records the failure in the state of the driver (the loop that calls native bodies).
///
/// # Safety
/// `context` is the state of the driver that called the body, and `at` is the instruction being
/// executed.
unsafe fn run_entry(
    context: *mut BodyContext,
    at: u32,
    op: impl FnOnce(&mut Runner<'_>) -> Result<u64, VmError>,
) -> u64 {
    // SAFETY: guaranteed by the caller. The driver does not access the state until the body
    // returns.
    let state = unsafe { &mut *context.cast::<State<'_, '_>>() };
    let failure = match catch_unwind(AssertUnwindSafe(|| op(state.runner))) {
        Ok(Ok(code)) => return code,
        Ok(Err(error)) => Failure::Error(state.runner.traced(error, at as usize)),
        Err(panic) => Failure::Panic(panic),
    };
    state.failure = Some(failure);
    FAILED
}

unsafe extern "C" fn call_builtin(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Builtin(builtin, function), operands, site) => {
            let value = function(Args {
                name: builtin.name,
                regs: &runner.context.regs[runner.base..],
                consts: &runner.inner.linked.consts,
                operands,
                runtime: runner.runtime,
            })?;
            runner.set_register(site.dst, value);
            Ok(0)
        }
        (Callee::Alloc(builtin, first_use), operands, site) => {
            let value = runner.alloc(builtin, first_use, operands)?;
            runner.set_register(site.dst, value);
            Ok(0)
        }
        call => runner.call_generic(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn call_release(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Kill(reg), ..) => {
            runner.set_register(reg, Value::None);
            Ok(0)
        }
        call => runner.call_generic(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn call_loop_func(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::LoopFunc(index), operands, site) => {
            let loop_func = &runner.inner.linked.loop_funcs[index as usize];
            runner.call_loop_func(loop_func, operands, None)?;
            runner.set_register(site.dst, Value::None);
            Ok(0)
        }
        call => runner.call_generic(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn call_packed(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Packed(index), operands, site) => {
            let (name, func) = &runner.inner.linked.packed[index as usize];
            let value = runner.call_host(name, func, operands, &[])?;
            runner.set_register(site.dst, value);
            Ok(0)
        }
        call => runner.call_generic(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn call_function(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Vm(index), operands, site) => {
            runner.enter(index, operands, None, site)?;
            Ok(ENTERED)
        }
        call => runner.call_generic(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn call_any(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| {
        let call = runner.call_at(at);
        runner.call_generic(call)
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

unsafe extern "C" fn read_condition(context: *mut BodyContext, at: u32) -> u64 {
    let op = |runner: &mut Runner<'_>| {
        // Interrupts of the outer run must be checked here, because the body checks only this VM's attention word.
        runner.check_outer()?;
        let function = &runner.inner.linked.functions[runner.function];
        let Op::If { cond, .. } = function.ops[at as usize] else {
            unreachable!("a body evaluates conditions of its own branches only")
        };
        let holds = condition(&runner.context.regs[runner.base + cond as usize]);
        holds.map(u64::from).map_err(|error| in_function(error, &function.name))
    };
    // SAFETY: a body passes on its own context.
    unsafe { run_entry(context, at, op) }
}

/// A linked call: the callee, the operands and the call site.
type Call<'a> = (Callee, &'a [Operand], CallSite);

impl<'a> Runner<'a> {
    /// Returns the call at instruction `at` of the running function.
    #[inline]
    fn call_at(&self, at: u32) -> Call<'a> {
        let function = &self.inner.linked.functions[self.function];
        let (callee, start, len, dst, tail) = match function.ops[at as usize] {
            Op::Call { callee, args_start, args_len, dst } => {
                (callee, args_start, args_len, dst, false)
            }
            Op::TailCall { callee, args_start, args_len, dst } => {
                (callee, args_start, args_len, dst, true)
            }
            _ => unreachable!("a body executes its own calls only"),
        };
        let start = start as usize;
        let operands = &function.operands[start..start + len as usize];
        (callee, operands, CallSite { pc: at as usize, dst, tail })
    }

    /// Executes a call of any kind of callee, as the interpreter does.
    #[inline(never)]
    fn call_generic(&mut self, (callee, operands, site): Call<'a>) -> Result<u64, VmError> {
        match self.call(callee, operands, site)? {
            CallOutcome::Value(value) => self.set_register(site.dst, value),
            CallOutcome::Stored => {}
            CallOutcome::Entered => return Ok(ENTERED),
        }
        Ok(0)
    }
}

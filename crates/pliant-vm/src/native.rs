//! Executes native bodies: the driver that calls them, and the runtime entries that they call.
//!
//! Frames and registers are the same as in the bytecode interpreter, and the entries execute a call
//! as the interpreter does. The interface between bodies and entries is described in
//! `pliant_exec::body`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pliant_exec::body::{
    ATTEND, BODY_PIECE, BodyContext, BodyEntries, ENTERED, FAILED, JUMP, RETURN, code_kind,
    code_payload,
};

use crate::args::Args;
use crate::link::{Callee, Op, Operand};
use crate::run::{Called, Left, Runner, Site, condition, in_function};
use crate::{Value, VmError};

/// The reason why an entry stopped the run.
enum Failure {
    Error(VmError),
    /// A panic, which is a bug. The driver resumes it, because native bodies must not be unwound.
    Panic(Box<dyn Any + Send>),
}

/// The driver's state. Bodies only access its first field.
#[repr(C)]
struct State<'r, 'a> {
    context: BodyContext,
    runner: &'r mut Runner<'a>,
    failure: Option<Failure>,
}

static ENTRIES: BodyEntries = BodyEntries {
    builtin: call_builtin,
    release: call_release,
    kernel: call_kernel,
    dynamic: call_any,
    packed: call_packed,
    function: call_function,
    closure: call_any,
    condition: read_condition,
};

/// Runs the function in the top frame until the run ends.
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
            RETURN => match state.runner.leave(payload) {
                Left::Run(value) => return Ok(value),
                Left::Call(next) => pc = next as u32,
            },
            ENTERED => pc = 0,
            JUMP => pc = payload,
            ATTEND => {
                state.runner.attend(payload as usize)?;
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
            None => VmError::type_error("a native body was left without a reason"),
        }
    }
}

/// Runs the work of an entry. Errors and panics are recorded in the state.
///
/// # Safety
/// `context` is the state of the driver that called the body, and `at` is the instruction being
/// executed.
unsafe fn guarded(
    context: *mut BodyContext,
    at: u32,
    work: impl FnOnce(&mut Runner<'_>) -> Result<u64, VmError>,
) -> u64 {
    // SAFETY: guaranteed by the caller. The driver does not access the state until the body
    // returns.
    let state = unsafe { &mut *context.cast::<State<'_, '_>>() };
    let failure = match catch_unwind(AssertUnwindSafe(|| work(state.runner))) {
        Ok(Ok(code)) => return code,
        Ok(Err(error)) => Failure::Error(state.runner.traced(error, at as usize)),
        Err(panic) => Failure::Panic(panic),
    };
    state.failure = Some(failure);
    FAILED
}

unsafe extern "C" fn call_builtin(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Builtin(builtin, function), operands, site) => {
            let value = function(Args {
                name: builtin.name,
                regs: &runner.context.regs[runner.base..],
                consts: &runner.inner.linked.consts,
                operands,
                runtime: runner.runtime,
            })?;
            runner.put(site.dst, value);
            Ok(0)
        }
        (Callee::Alloc(builtin, first_use), operands, site) => {
            let value = runner.alloc(builtin, first_use, operands)?;
            runner.put(site.dst, value);
            Ok(0)
        }
        call => runner.any(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn call_release(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Kill(reg), ..) => {
            runner.put(reg, Value::None);
            Ok(0)
        }
        call => runner.any(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn call_kernel(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Kernel(index), operands, site) => {
            let kernel = &runner.inner.linked.kernels[index as usize];
            runner.call_kernel(kernel, operands, None)?;
            runner.put(site.dst, Value::None);
            Ok(0)
        }
        call => runner.any(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn call_packed(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Packed(index), operands, site) => {
            let (name, func) = &runner.inner.linked.packed[index as usize];
            let value = runner.call_host(name, func, operands, &[])?;
            runner.put(site.dst, value);
            Ok(0)
        }
        call => runner.any(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn call_function(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| match runner.call_at(at) {
        (Callee::Vm(index), operands, site) => {
            runner.enter(index, operands, None, site)?;
            Ok(ENTERED)
        }
        call => runner.any(call),
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn call_any(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| {
        let call = runner.call_at(at);
        runner.any(call)
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

unsafe extern "C" fn read_condition(context: *mut BodyContext, at: u32) -> u64 {
    let work = |runner: &mut Runner<'_>| {
        // Loops of nested runs must be interrupted here, because the body only checks this VM's
        // attention word.
        runner.check_outer()?;
        let function = &runner.inner.linked.functions[runner.function];
        let Op::If { cond, .. } = function.ops[at as usize] else {
            unreachable!("a body reports branches of its own instructions only")
        };
        let holds = condition(&runner.context.regs[runner.base + cond as usize]);
        holds.map(u64::from).map_err(|error| in_function(error, &function.name))
    };
    // SAFETY: a body passes on its own context.
    unsafe { guarded(context, at, work) }
}

/// A linked call: callee, operands, call site.
type Call<'a> = (Callee, &'a [Operand], Site);

impl<'a> Runner<'a> {
    /// The call at an instruction of the running function.
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
            _ => unreachable!("a body reports calls of its own instructions only"),
        };
        let start = start as usize;
        let operands = &function.operands[start..start + len as usize];
        (callee, operands, Site { pc: at as usize, dst, tail })
    }

    /// Executes a call of any kind.
    #[inline(never)]
    fn any(&mut self, (callee, operands, site): Call<'a>) -> Result<u64, VmError> {
        match self.call(callee, operands, site)? {
            Called::Value(value) => self.put(site.dst, value),
            Called::Done => {}
            Called::Entered => return Ok(ENTERED),
        }
        Ok(0)
    }
}

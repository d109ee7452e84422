//! The working memory of an invocation. It is cached per thread and reused.

use std::cell::{Cell, RefCell};

use pliant_tensor::Tensor;

use crate::memory::{Owner, Running};
use crate::spares::Spares;
use crate::{Value, VmError};

/// Maximum number of nested invocations on one thread. A program can call the host, which calls a
/// program again, and each level uses native stack.
const MAX_NESTING: usize = 64;
/// Minimum native stack in bytes for a nested invocation. Threads may have small stacks, and the
/// stack use of the host's functions is unknown.
const MIN_STACK: usize = 128 << 10;
/// Maximum number of contexts cached per thread.
const MAX_KEPT: usize = 4;
/// A context with a larger register stack is not cached.
const MAX_KEPT_REGS: usize = 1 << 16;

/// A suspended caller.
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) pc: usize,
    pub(crate) base: usize,
    /// The register for the result in the caller's frame.
    pub(crate) dst: u32,
}

/// Registers, frames and argument words of one invocation.
#[derive(Default)]
pub(crate) struct Context {
    /// The registers of all frames. Those of the running frame are last.
    pub(crate) regs: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    /// The argument words of the current call of a loop function.
    pub(crate) words: Vec<u64>,
    /// Row-major copies of strided tensors, kept during the call of a loop function.
    pub(crate) copies: Vec<Tensor>,
    /// The arguments of the current call of a host function.
    pub(crate) host_args: Vec<Value>,
    /// Small tensors that this invocation has released, for reuse.
    pub(crate) spares: Spares,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "a lease moves one word, not the context")]
    static KEPT: RefCell<Vec<Box<Context>>> = const { RefCell::new(Vec::new()) };
    static NESTING: Cell<usize> = const { Cell::new(0) };
}

/// A context in use. On drop, it is emptied and returned to the thread's cache.
pub(crate) struct Lease {
    context: Option<Box<Context>>,
    /// Dropped last, so that memory freed by the context is still attributed to the VM.
    _running: Running,
}

impl Lease {
    /// # Errors
    /// `StackOverflow` if too many invocations are nested on this thread.
    pub(crate) fn new(owner: &Owner) -> Result<Lease, VmError> {
        let depth = NESTING.get();
        let is_short = || stacker::remaining_stack().is_some_and(|left| left < MIN_STACK);
        if depth >= MAX_NESTING || (depth > 0 && is_short()) {
            return Err(VmError::StackOverflow { depth, function: String::new() });
        }
        NESTING.set(depth + 1);
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        Ok(Lease { context: Some(kept.unwrap_or_default()), _running: owner.begin() })
    }

    pub(crate) fn get(&mut self) -> &mut Context {
        self.context.as_mut().expect("the context is there until the lease is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
        let Some(mut context) = self.context.take() else { return };
        context.regs.clear();
        context.frames.clear();
        context.host_args.clear();
        context.copies.clear();
        context.spares.clear();
        if context.regs.capacity() <= MAX_KEPT_REGS {
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < MAX_KEPT {
                    kept.push(context);
                }
            });
        }
    }
}

//! The working memory (context) of an invocation: registers and frames. Each thread caches this
//! memory and reuses it.

use std::cell::{Cell, RefCell};

use pliant_tensor::Tensor;

use crate::memory_pool::{Owner, RunGuard};
use crate::tensor_cache::TensorCache;
use crate::{Value, VmError};

/// Maximum number of nested runs on one thread. A run is nested if a program calls a packed or library function that runs a
/// program. Each level uses native stack.
const MAX_NESTING: usize = 64;
/// Minimum free native stack in bytes for a nested run. Threads may have small stacks, and the stack use of packed functions is
/// unknown.
const MIN_STACK: usize = 128 << 10;
/// Maximum number of contexts (registers and frames of an invocation) that a thread caches.
const MAX_CACHED: usize = 4;
/// Maximum capacity, in registers, of a context (registers and frames of an invocation) that a thread caches.
const MAX_CACHED_REGS: usize = 1 << 16;

/// The saved state of a calling function, which continues when its callee returns.
pub(crate) struct Frame {
    pub(crate) function: u32,
    pub(crate) pc: usize,
    pub(crate) base: usize,
    /// The register of the calling function that receives the result of its callee.
    pub(crate) dst: u32,
}

/// Registers, frames and argument words of one invocation.
#[derive(Default)]
pub(crate) struct Context {
    /// The registers of all frames. The running frame is last.
    pub(crate) regs: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    /// The argument words of the current call of a loop function.
    pub(crate) words: Vec<u64>,
    /// Row-major copies that the current call of a loop function receives instead of strided
    /// tensors.
    pub(crate) copies: Vec<Tensor>,
    /// The arguments of the current call of a packed or library function.
    pub(crate) host_args: Vec<Value>,
    /// Small tensors released by this invocation, for reuse.
    pub(crate) tensor_cache: TensorCache,
}

thread_local! {
    #[expect(clippy::vec_box, reason = "moving a boxed context copies one word instead of the whole context")]
    static CACHED: RefCell<Vec<Box<Context>>> = const { RefCell::new(Vec::new()) };
    static NESTING: Cell<usize> = const { Cell::new(0) };
}

/// A context (registers and frames) in use by an invocation. Dropping the lease clears the context
/// and returns it to the thread's cache.
pub(crate) struct ContextLease {
    context: Option<Box<Context>>,
    /// Marks the VM as running on this thread. It must be dropped last, so that the memory of the registers is still attributed
    /// to the VM when it is freed.
    _running: RunGuard,
}

impl ContextLease {
    /// Takes a context from the thread's cache, or creates a new context.
    ///
    /// # Errors
    /// `StackOverflow` if too many invocations are nested on this thread.
    pub(crate) fn new(owner: &Owner) -> Result<ContextLease, VmError> {
        let depth = NESTING.get();
        let is_short = || stacker::remaining_stack().is_some_and(|left| left < MIN_STACK);
        if depth >= MAX_NESTING || (depth > 0 && is_short()) {
            return Err(VmError::StackOverflow { depth, function: String::new() });
        }
        NESTING.set(depth + 1);
        let cached = CACHED.try_with(|cached| cached.borrow_mut().pop()).ok().flatten();
        Ok(ContextLease { context: Some(cached.unwrap_or_default()), _running: owner.begin() })
    }

    pub(crate) fn get(&mut self) -> &mut Context {
        self.context.as_mut().expect("a lease contains its context until the lease is dropped")
    }
}

impl Drop for ContextLease {
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
        let Some(mut context) = self.context.take() else { return };
        context.regs.clear();
        context.frames.clear();
        context.host_args.clear();
        context.copies.clear();
        context.tensor_cache.clear();
        if context.regs.capacity() <= MAX_CACHED_REGS {
            let _ = CACHED.try_with(|cached| {
                let mut cached = cached.borrow_mut();
                if cached.len() < MAX_CACHED {
                    cached.push(context);
                }
            });
        }
    }
}

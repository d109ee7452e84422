//! The calling convention of compiled loop functions.
//!
//! A loop function is a C function of two arguments: an array of 64-bit words, one per parameter, and a [`KernelRuntime`] with the
//! services of the caller. The content of a word depends on the parameter:
//! - tensor: the address of its [`DLTensor`]. `byte_offset` is 0 and `strides` is never null. The addresses of shape, strides and
//!   data do not change during the call;
//! - integer: the value as `i64` (smaller types are sign- or zero-extended);
//! - float: the bits of the value as `f64`, for every float type;
//! - bool: 0 or 1.
//!
//! The return value is a status: 0 on success, `k > 0` if check number `k` failed (its message is entry `k - 1` of
//! [`crate::LoopFuncInfo::checks`]), or one of the negative `STATUS_*` codes. A loop function does not unwind.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use pliant_tensor::CheckFailure;
pub use pliant_tensor::DLTensor;

/// A compiled loop function: `(argument words, runtime)`. Returns a status.
pub type LoopFn = unsafe extern "C" fn(args: *const u64, runtime: *const KernelRuntime) -> i64;

/// The body of a parallel loop: `(context, begin, end)`. Runs the iterations `begin..end` and returns a status.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64) -> i64;

/// Runs a parallel loop: `(team, body, context, extent, grain)`. Returns 0 or the first nonzero status of the body. A positive
/// `grain` is the number of iterations that together take about a microsecond. A negative `grain` is minus the number of
/// microseconds per iteration.
pub type ParallelLaunch =
    unsafe extern "C" fn(*const c_void, ParallelBody, *mut c_void, i64, i64) -> i64;

/// Allocates scratch memory: `(bytes)`. The memory is 64-byte aligned. Returns null if out of memory.
pub type AllocWorkspace = unsafe extern "C" fn(u64) -> *mut c_void;

/// Frees scratch memory on the thread that allocated it. A null pointer is ignored.
pub type FreeWorkspace = unsafe extern "C" fn(*mut c_void);

/// Calls a packed function: `(runtime, name, length of the name, arguments, number of arguments, result)`. The caller sets the
/// kind of the result; the call fails if the function returns another kind. Returns a status and does not unwind. Threads of a
/// parallel loop may call the packed function, too.
pub type CallPacked = unsafe extern "C" fn(
    *const KernelRuntime,
    *const u8,
    u64,
    *const PackedWord,
    u64,
    *mut PackedWord,
) -> i64;

/// Reports the error of a library kernel: `(runtime, kind, UTF-8 message, length of the message)`. The kind is one of the
/// `FAILED_*` constants. Returns the status that the kernel must return.
pub type ReportError = unsafe extern "C" fn(*const KernelRuntime, u64, *const u8, u64) -> i64;

/// Error kind: an operand is missing or has the wrong type.
pub const FAILED_TYPE: u64 = 0;
/// Error kind: the sizes of operands are incompatible.
pub const FAILED_SHAPE: u64 = 1;
/// Error kind: an attribute is out of range, or buffers overlap.
pub const FAILED_VALUE: u64 = 2;

/// The encoding of one value that generated code passes by address: an argument or the result of a
/// packed function, or an operand of a library kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PackedWord {
    /// The kind of the value: one of the `PACKED_*` constants, such as [`PACKED_INT`].
    pub kind: u64,
    /// The value, encoded as the `PACKED_*` constant in `kind` states.
    pub word: u64,
    /// The length of a string in bytes, or the number of dims of a tensor.
    pub len: u64,
}

/// Kind of a [`PackedWord`]: `word` is an `i64`.
pub const PACKED_INT: u64 = 0;
/// Kind of a [`PackedWord`]: `word` contains the bits of an `f64`.
pub const PACKED_FLOAT: u64 = 1;
/// Kind of a [`PackedWord`]: `word` is a bool, 0 or 1.
pub const PACKED_BOOL: u64 = 2;
/// Kind of a [`PackedWord`]: a tensor that the loop function received as a parameter. `word` is the index of the parameter.
pub const PACKED_PARAM: u64 = 3;
/// Kind of a [`PackedWord`]: `word` is the address of a UTF-8 string of `len` bytes.
pub const PACKED_TEXT: u64 = 4;
/// Kind of a [`PackedWord`] for a result that is ignored, because the function is called for its side effect.
pub const PACKED_UNUSED: u64 = 5;
/// Kind of a [`PackedWord`]: a contiguous tensor in memory that the loop function has allocated. `word` is the address of a
/// descriptor of 64-bit words: the address of the elements, the data type (DLPack's code and bits in the two lowest bytes), and
/// `len` dims.
pub const PACKED_MEMORY: u64 = 6;

/// Kind of a [`PackedWord`]: a tensor with strides. The descriptor has the format of [`PACKED_MEMORY`], followed by `len`
/// strides in elements. Only for operands of library kernels.
pub const PACKED_STRIDED: u64 = 7;
/// Kind of a [`PackedWord`]: an absent optional operand of a library kernel.
pub const PACKED_ABSENT: u64 = 8;
/// Kind of a [`PackedWord`]: a view of a buffer. `word` is the address of a descriptor of 64-bit words: the address of the
/// buffer's elements, the data type as in [`PACKED_MEMORY`], the number of elements in the buffer, the offset of the view in
/// elements, `len` dims and `len` strides. Only for operands of library kernels. The kernel checks that the view is inside the
/// buffer.
pub const PACKED_VIEW: u64 = 9;

/// Status of a call that succeeded.
pub const STATUS_OK: i64 = 0;
/// Status of a call that ran out of scratch memory.
pub const STATUS_NO_MEMORY: i64 = -1;
/// Status of a call that stopped because the interrupt flag was set.
pub const STATUS_CANCELLED: i64 = -2;
/// Status of a kernel call whose operands are inconsistent or not supported.
pub const STATUS_BAD_ARGUMENTS: i64 = -3;
/// Status of a call that failed because a packed function failed. The runtime has recorded the
/// error of the packed function.
pub const STATUS_PACKED: i64 = -4;

/// A table of functions and state that the caller passes to loop functions and library kernels. The
/// layout is part of the ABI; see the `OFFSET_*` constants.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelRuntime {
    /// The function that runs a parallel loop on `team`.
    pub parallel_launch: ParallelLaunch,
    /// The worker team, passed to `parallel_launch`. If null, loops run serially.
    pub team: *const c_void,
    /// The function that allocates scratch memory.
    pub alloc_workspace: AllocWorkspace,
    /// The function that frees scratch memory.
    pub free_workspace: FreeWorkspace,
    /// The interrupt flag. When it becomes true, long-running kernels should return [`STATUS_CANCELLED`]. Never null; the flag
    /// outlives the runtime. Rust code reads it with [`KernelRuntime::is_interrupted`].
    pub interrupt: *const AtomicBool,
    /// The function that calls a packed function.
    pub call_packed: CallPacked,
    /// An opaque pointer to the caller's state of the current call, which `call_packed` receives.
    pub call: *const c_void,
    /// The memory in which a failed check stores its status and the integers of its error message.
    /// Never null.
    pub assert_args: *const AssertArgs,
    /// The function that reports the error of a library kernel.
    pub report_error: ReportError,
    /// Counts the floating-point operations of library kernels. Null unless an instrument (a
    /// profiling callback) is set.
    pub flops: *const Flops,
}

/// A counter of the floating-point operations of library kernels. A multiply-add counts as two
/// operations.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Flops(AtomicU64);

impl Flops {
    /// Adds the number of operations of one kernel call. The counter saturates at its maximum.
    pub fn add(&self, flops: f64) {
        let add = |sum: u64| Some(sum.saturating_add(flops as u64));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns the number of operations counted so far and resets the counter to 0.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Maximum number of integers in the error message of a failed check.
pub const MAX_ASSERT_ARGS: usize = CheckFailure::MAX_ASSERT_ARGS;

/// The integer arguments of a failed check's message, preceded by the status of the check. If several threads of a parallel
/// loop fail, only the arguments from one of the threads are stored.
#[derive(Debug, Default)]
#[repr(C)]
pub struct AssertArgs([AtomicI64; 1 + MAX_ASSERT_ARGS]);

impl AssertArgs {
    /// Replaces `{0}`, `{1}`, ... in `message` by the stored integers. Returns the message unchanged if the integers were
    /// stored for a status other than `status`.
    pub fn fill(&self, status: i64, message: &str) -> String {
        if self.0[0].load(Ordering::Relaxed) != status {
            return message.to_string();
        }
        let values: Vec<i64> = self.0[1..].iter().map(|v| v.load(Ordering::Relaxed)).collect();
        CheckFailure::fill_args(message, &values)
    }
}

// SAFETY: the pointers refer to a team and a flag that are Sync and outlive the users of the runtime.
unsafe impl Send for KernelRuntime {}
// SAFETY: as for Send.
unsafe impl Sync for KernelRuntime {}

/// Byte offset of `parallel_launch` in [`KernelRuntime`].
pub const OFFSET_PARALLEL_LAUNCH: usize = offset_of!(KernelRuntime, parallel_launch);
/// Byte offset of `team` in [`KernelRuntime`].
pub const OFFSET_TEAM: usize = offset_of!(KernelRuntime, team);
/// Byte offset of `alloc_workspace` in [`KernelRuntime`].
pub const OFFSET_ALLOC_WORKSPACE: usize = offset_of!(KernelRuntime, alloc_workspace);
/// Byte offset of `free_workspace` in [`KernelRuntime`].
pub const OFFSET_FREE_WORKSPACE: usize = offset_of!(KernelRuntime, free_workspace);
/// Byte offset of `interrupt` in [`KernelRuntime`].
pub const OFFSET_INTERRUPT: usize = offset_of!(KernelRuntime, interrupt);

/// Byte offset of `assert_args` in [`KernelRuntime`].
pub const OFFSET_ASSERT_ARGS: usize = offset_of!(KernelRuntime, assert_args);

/// Byte offset of `call_packed` in [`KernelRuntime`].
pub const OFFSET_CALL_PACKED: usize = offset_of!(KernelRuntime, call_packed);

/// Byte offset of `data` in [`DLTensor`].
pub const OFFSET_TENSOR_DATA: usize = offset_of!(DLTensor, data);
/// Byte offset of the `shape` pointer in [`DLTensor`].
pub const OFFSET_TENSOR_SHAPE: usize = offset_of!(DLTensor, shape);
/// Byte offset of the `strides` pointer in [`DLTensor`].
pub const OFFSET_TENSOR_STRIDES: usize = offset_of!(DLTensor, strides);

const _: () = assert!(
    size_of::<KernelRuntime>() == 80 && size_of::<DLTensor>() == 48,
    "the layouts are part of the ABI"
);

unsafe extern "C" fn serial_launch(
    _team: *const c_void,
    body: ParallelBody,
    context: *mut c_void,
    extent: i64,
    _grain: i64,
) -> i64 {
    if extent <= 0 {
        return STATUS_OK;
    }
    // SAFETY: the caller guarantees that the body can be called with its context.
    unsafe { body(context, 0, extent) }
}

unsafe extern "C" fn no_packed(
    _runtime: *const KernelRuntime,
    _name: *const u8,
    _name_len: u64,
    _args: *const PackedWord,
    _count: u64,
    _result: *mut PackedWord,
) -> i64 {
    STATUS_BAD_ARGUMENTS
}

unsafe extern "C" fn drop_error(
    _runtime: *const KernelRuntime,
    _kind: u64,
    _text: *const u8,
    _len: u64,
) -> i64 {
    STATUS_BAD_ARGUMENTS
}

/// The size in bytes of the header before each workspace block, which stores the size of the block:
/// one cache line.
const HEADER: usize = 64;

unsafe extern "C" fn system_alloc(bytes: u64) -> *mut c_void {
    let Some(layout) = workspace_layout(bytes) else { return std::ptr::null_mut() };
    // SAFETY: the layout is not empty, because it includes the header.
    let block = unsafe { std::alloc::alloc(layout) };
    if block.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the header has space for the size, and the block continues after it.
    unsafe {
        block.cast::<u64>().write(bytes);
        block.add(HEADER).cast()
    }
}

unsafe extern "C" fn system_free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the pointer came from `system_alloc`, so the header with the size precedes it.
    unsafe {
        let block = block.cast::<u8>().sub(HEADER);
        let layout = workspace_layout(block.cast::<u64>().read());
        std::alloc::dealloc(
            block,
            layout.expect("the size of a workspace was valid when it was allocated"),
        );
    }
}

fn workspace_layout(bytes: u64) -> Option<std::alloc::Layout> {
    let size = usize::try_from(bytes).ok()?.checked_add(HEADER)?;
    std::alloc::Layout::from_size_align(size, HEADER).ok()
}

impl KernelRuntime {
    /// Whether an interrupt was requested. Long-running code polls this function, and returns [`STATUS_CANCELLED`] once the result
    /// is true.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        // SAFETY: by the field's contract the pointer is never null and the flag outlives the
        // runtime.
        unsafe { (*self.interrupt).load(Ordering::Relaxed) }
    }

    /// Reports an error of a library kernel. `kind` is one of the `FAILED_*` constants. Returns the status that the kernel must
    /// return.
    pub fn fail(&self, kind: u64, message: &str) -> i64 {
        // SAFETY: the text is valid during the call, and the runtime is this one.
        unsafe { (self.report_error)(self, kind, message.as_ptr(), message.len() as u64) }
    }

    /// Creates a runtime for calls outside the VM: serial loops, memory from the system allocator,
    /// no packed functions, no error messages.
    pub fn serial() -> KernelRuntime {
        static NEVER: AtomicBool = AtomicBool::new(false);
        static UNREAD: AssertArgs = AssertArgs([const { AtomicI64::new(0) }; 1 + MAX_ASSERT_ARGS]);
        KernelRuntime {
            parallel_launch: serial_launch,
            team: std::ptr::null(),
            alloc_workspace: system_alloc,
            free_workspace: system_free,
            interrupt: &raw const NEVER,
            call_packed: no_packed,
            call: std::ptr::null(),
            assert_args: &raw const UNREAD,
            report_error: drop_error,
            flops: std::ptr::null(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_runtime_allocates_memory_and_runs_loops() {
        let runtime = KernelRuntime::serial();
        unsafe extern "C" fn body(context: *mut c_void, begin: i64, end: i64) -> i64 {
            // SAFETY: the test passes an i64.
            unsafe { *context.cast::<i64>() += end - begin };
            5
        }
        let mut sum = 0i64;
        // SAFETY: the body takes the sum; the block is freed once.
        unsafe {
            let context = (&raw mut sum).cast();
            assert_eq!((runtime.parallel_launch)(runtime.team, body, context, 9, 1), 5);
            assert_eq!((runtime.parallel_launch)(runtime.team, body, context, 0, 1), 0);
            let block = (runtime.alloc_workspace)(100);
            assert_eq!(block as usize % 64, 0);
            block.cast::<u8>().write_bytes(1, 100);
            (runtime.free_workspace)(block);
            (runtime.free_workspace)(std::ptr::null_mut());
            assert!((runtime.alloc_workspace)(u64::MAX).is_null());
        }
        assert_eq!(sum, 9);
    }

    #[test]
    fn is_interrupted_reads_the_flag() {
        let flag = AtomicBool::new(false);
        let runtime = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
        assert!(!runtime.is_interrupted() && !KernelRuntime::serial().is_interrupted());
        flag.store(true, Ordering::Relaxed);
        assert!(runtime.is_interrupted() && !KernelRuntime::serial().is_interrupted());
    }
}

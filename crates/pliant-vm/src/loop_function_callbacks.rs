//! Callbacks from loop functions to the VM: calls of packed functions (`T.call_packed`), and error reports of library kernels.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use pliant_exec::abi::{
    FAILED_SHAPE, FAILED_TYPE, KernelRuntime, PACKED_BOOL, PACKED_FLOAT, PACKED_INT, PACKED_MEMORY,
    PACKED_PARAM, PACKED_TEXT, PACKED_UNUSED, PackedWord, STATUS_BAD_ARGUMENTS, STATUS_OK,
    STATUS_PACKED,
};
use pliant_tensor::{DType, Tensor, checked_nbytes};

use crate::builtins::element;
use crate::executable_linker::{Operand, find_host};
use crate::host_function_registry::HostFunc;
use crate::interpreter::panic_text;
use crate::virtual_machine::Inner;
use crate::{CheckKind, Value, VmError};

/// The state of one call of a loop function, which callbacks from the loop function to the VM use.
pub(crate) struct LoopCall<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) regs: &'a [Value],
    pub(crate) operands: &'a [Operand],
    /// Row-major copies of strided tensors that were passed to the loop function.
    pub(crate) copies: &'a [Tensor],
    pub(crate) words: &'a [u64],
    /// The first error that a packed function returned or a library kernel reported.
    pub(crate) error: Mutex<Option<VmError>>,
}

impl LoopCall<'_> {
    /// Removes and returns the recorded error.
    pub(crate) fn take_error(&self) -> Option<VmError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Describes the loop function's arguments in error messages, for example `float32(3, 4), 7`.
    pub(crate) fn arguments(&self) -> String {
        let mut text = String::new();
        for operand in self.operands {
            let sep = if text.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = match operand.get(self.regs, &self.inner.linked.consts) {
                Value::Tensor(t) => {
                    let dims: Vec<String> = t.shape().iter().map(i64::to_string).collect();
                    write!(text, "{sep}{}({})", t.dtype(), dims.join(", "))
                }
                other => write!(text, "{sep}{other:?}"),
            };
        }
        text
    }

    /// Returns the tensor that the loop function received as parameter `position`: the argument, or
    /// its row-major copy.
    fn param(&self, position: u64) -> Option<Value> {
        let position = usize::try_from(position).ok()?;
        let word = *self.words.get(position)?;
        if let Some(copy) = self.copies.iter().find(|t| std::ptr::from_ref(t.dl()) as u64 == word) {
            return Some(Value::Tensor(copy.clone()));
        }
        let operand = self.operands.get(position)?;
        Some(operand.get(self.regs, &self.inner.linked.consts).clone())
    }

    fn call(
        &self,
        runtime: &KernelRuntime,
        name: &str,
        args: &[PackedWord],
    ) -> Result<Value, VmError> {
        let Some(func) = find_host(name, &self.inner.functions) else {
            return Err(VmError::MissingFunctions {
                packed: vec![name.into()],
                loop_funcs: vec![],
            });
        };
        let mut values = Vec::with_capacity(args.len());
        let mut buffers = Vec::new();
        for arg in args {
            values.push(match arg.kind {
                PACKED_INT => Value::Int(arg.word as i64),
                PACKED_FLOAT => Value::Float(f64::from_bits(arg.word)),
                PACKED_BOOL => Value::Bool(arg.word != 0),
                PACKED_TEXT => {
                    // SAFETY: the loop function passes the address and length of a string that it owns.
                    let text = unsafe { text(arg.word as *const u8, arg.len) };
                    Value::Str(text.ok_or_else(malformed_argument)?.into())
                }
                PACKED_PARAM => self.param(arg.word).ok_or_else(malformed_argument)?,
                PACKED_MEMORY => {
                    // SAFETY: the loop function describes its own memory, which lives until it returns.
                    let memory = unsafe { BorrowedBuffer::new(arg.word as *const u64, arg.len) }?;
                    // The same buffer passed twice becomes the same tensor.
                    let known =
                        buffers.iter().find(|l: &&BorrowedBuffer| l.is_same_buffer(&memory));
                    let tensor = known.map_or(&memory.tensor, |l| &l.tensor).clone();
                    if known.is_none() {
                        buffers.push(memory);
                    }
                    Value::Tensor(tensor)
                }
                _ => return Err(malformed_argument()),
            });
        }
        let result = self.call_guarded(&func, runtime, name, &values);
        buffers.iter().for_each(BorrowedBuffer::copy_back);
        result
    }

    fn call_guarded(
        &self,
        func: &HostFunc,
        runtime: &KernelRuntime,
        name: &str,
        values: &[Value],
    ) -> Result<Value, VmError> {
        match catch_unwind(AssertUnwindSafe(|| func.call(runtime, values))) {
            Ok(result) => result.map_err(|error| error.in_packed(name)),
            Err(panic) => {
                Err(VmError::external(format!("the function panicked: {}", panic_text(&*panic)))
                    .in_packed(name))
            }
        }
    }
}

/// A buffer of a loop function that is passed to a packed function. The packed function receives a tensor with a copy of the
/// contents, because it may keep the tensor after the call. The contents are copied back when the packed function returns.
struct BorrowedBuffer {
    tensor: Tensor,
    memory: *mut u8,
}

impl BorrowedBuffer {
    /// Wraps the buffer of a loop function that `descriptor` describes, and copies its contents to a tensor.
    ///
    /// # Safety
    /// `descriptor` is the address of words in the format of [`PACKED_MEMORY`]. The memory that they describe is live, and nothing
    /// else uses it until the result is dropped.
    unsafe fn new(descriptor: *const u64, rank: u64) -> Result<BorrowedBuffer, VmError> {
        let rank = usize::try_from(rank).map_err(|_| malformed_argument())?;
        // SAFETY: guaranteed by the caller: an address, a data type and `rank` dims.
        let words = unsafe { std::slice::from_raw_parts(descriptor, rank + 2) };
        let [code, bits, ..] = words[1].to_le_bytes();
        let dtype = DType::from_dlpack(code, bits).ok_or_else(malformed_argument)?;
        let shape: Vec<i64> = words[2..].iter().map(|&dim| dim as i64).collect();
        let bytes = checked_nbytes(&shape, dtype)?;
        let memory = words[0] as *mut u8;
        let bytes = match bytes {
            // An empty tensor may have no valid address.
            0 => &[],
            // SAFETY: guaranteed by the caller: the bytes of a compact buffer.
            _ => unsafe { std::slice::from_raw_parts(memory, bytes) },
        };
        Ok(BorrowedBuffer { tensor: Tensor::from_bytes(&shape, dtype, bytes)?, memory })
    }

    /// Whether `self` and `other` describe the same buffer.
    fn is_same_buffer(&self, other: &BorrowedBuffer) -> bool {
        self.memory == other.memory && self.tensor.shape() == other.tensor.shape()
    }

    /// Copies the tensor's contents back to the buffer of the loop function.
    fn copy_back(&self) {
        let (from, bytes) = (self.tensor.data_ptr(), self.tensor.nbytes());
        if bytes > 0 {
            // SAFETY: the tensor is compact and has the size of the memory; `new` requires the
            // memory to be live.
            unsafe { std::ptr::copy_nonoverlapping(from, self.memory, bytes) };
        }
    }
}

#[cold]
fn malformed_argument() -> VmError {
    VmError::type_error(
        "a loop function passed a malformed argument to a packed function (a bug in Pliant)",
    )
}

/// Encodes the result of a packed function as a word of the expected kind.
fn encode_result(kind: u64, value: &Value) -> Result<u64, VmError> {
    if kind == PACKED_UNUSED {
        return Ok(0);
    }
    let element = match value {
        Value::Tensor(t) if t.numel() == 1 => &element(t)?,
        other => other,
    };
    match (kind, element) {
        (PACKED_FLOAT, Value::Float(v)) => Ok(v.to_bits()),
        (PACKED_FLOAT, Value::Int(v)) => Ok((*v as f64).to_bits()),
        (PACKED_FLOAT, Value::Bool(v)) => Ok(f64::from(u8::from(*v)).to_bits()),
        (PACKED_INT, Value::Int(v)) => Ok(*v as u64),
        (PACKED_INT, Value::Bool(v)) => Ok(u64::from(*v)),
        _ => {
            let wanted = if kind == PACKED_FLOAT { "a number" } else { "an integer" };
            let help = match element {
                Value::Float(_) => {
                    " (help: T.call_packed(..., dtype=\"float32\") declares a float result)"
                }
                _ => "",
            };
            let text = format!(
                "the loop function expects {wanted}, but the packed function returned {value:?}{help}"
            );
            Err(VmError::external(text))
        }
    }
}

/// Decodes a string that a loop function passed. `None` if it is not valid UTF-8.
///
/// # Safety
/// `start` is the address of `len` bytes that live as long as the caller uses them.
unsafe fn text<'t>(start: *const u8, len: u64) -> Option<&'t str> {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts(start, usize::try_from(len).ok()?) };
    std::str::from_utf8(bytes).ok()
}

/// Records the error of a library kernel, as the VM's implementation of [`ReportError`](pliant_exec::abi::ReportError).
///
/// # Safety
/// The same requirements as for [`call_packed`]. In addition, the message must be readable for its given length.
pub(crate) unsafe extern "C" fn report_error(
    runtime: *const KernelRuntime,
    kind: u64,
    message: *const u8,
    len: u64,
) -> i64 {
    // SAFETY: the VM's runtime and the current call live until the loop function returns.
    let call = unsafe { &*(*runtime).call.cast::<LoopCall<'_>>() };
    // SAFETY: the kernel passes the address and length of the text.
    let message = unsafe { text(message, len) }
        .unwrap_or("a library kernel failed without an error message (a bug in Pliant)");
    let kind = match kind {
        FAILED_TYPE => CheckKind::Type,
        FAILED_SHAPE => CheckKind::Shape,
        _ => CheckKind::Value,
    };
    let error = VmError::check(kind, message);
    call.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    STATUS_PACKED
}

/// Calls a packed function for a loop function, as the VM's implementation of
/// [`CallPacked`](pliant_exec::abi::CallPacked).
///
/// # Safety
/// As required by the ABI. `runtime` is the runtime that the VM passed to the running loop
/// function.
pub(crate) unsafe extern "C" fn call_packed(
    runtime: *const KernelRuntime,
    name: *const u8,
    name_len: u64,
    args: *const PackedWord,
    count: u64,
    result: *mut PackedWord,
) -> i64 {
    // SAFETY: the VM's runtime lives until the loop function returns.
    let runtime = unsafe { &*runtime };
    // SAFETY: the VM set `call` to the current call, which lives until the loop function returns.
    let call = unsafe { &*runtime.call.cast::<LoopCall<'_>>() };
    // SAFETY: the loop function passes the address and length of the name.
    let Some(name) = (unsafe { text(name, name_len) }) else { return STATUS_BAD_ARGUMENTS };
    // SAFETY: the loop function passes `count` arguments.
    let args = unsafe { std::slice::from_raw_parts(args, count as usize) };
    // SAFETY: the loop function passes memory for the result and has set the kind that it expects.
    let result = unsafe { &mut *result };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let value = call.call(runtime, name, args)?;
        encode_result(result.kind, &value).map_err(|error| error.in_packed(name))
    }))
    .unwrap_or_else(|_| {
        let text = format!(
            "packed function '{name}': the conversion of its arguments or result panicked (a bug in Pliant)"
        );
        Err(VmError::type_error(text))
    });
    match outcome {
        Ok(word) => {
            result.word = word;
            STATUS_OK
        }
        Err(error) => {
            call.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            STATUS_PACKED
        }
    }
}

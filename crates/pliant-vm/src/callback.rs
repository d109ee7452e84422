//! Packed functions called by kernels (`T.call_packed`).

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
use crate::link::{Operand, find_host};
use crate::machine::Inner;
use crate::registry::HostFunc;
use crate::run::panic_text;
use crate::{CheckKind, Value, VmError};

/// One call of a kernel, as the packed functions that it calls see it.
pub(crate) struct KernelCall<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) regs: &'a [Value],
    pub(crate) operands: &'a [Operand],
    /// Row-major copies that the kernel got for strided tensors.
    pub(crate) copies: &'a [Tensor],
    pub(crate) words: &'a [u64],
    /// The first error of a packed function.
    pub(crate) error: Mutex<Option<VmError>>,
}

impl KernelCall<'_> {
    /// The error that a packed function has left.
    pub(crate) fn take_error(&self) -> Option<VmError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What the kernel was called with, for messages: `float32(3, 4), 7`.
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

    /// The tensor of a parameter: what the kernel itself works on.
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
            return Err(VmError::MissingFunctions { packed: vec![name.into()], kernels: vec![] });
        };
        let mut values = Vec::with_capacity(args.len());
        let mut lent = Vec::new();
        for arg in args {
            values.push(match arg.kind {
                PACKED_INT => Value::Int(arg.word as i64),
                PACKED_FLOAT => Value::Float(f64::from_bits(arg.word)),
                PACKED_BOOL => Value::Bool(arg.word != 0),
                PACKED_TEXT => {
                    // SAFETY: the kernel gives the address and length of a text of its own.
                    let text = unsafe { text(arg.word as *const u8, arg.len) };
                    Value::Str(text.ok_or_else(malformed)?.into())
                }
                PACKED_PARAM => self.param(arg.word).ok_or_else(malformed)?,
                PACKED_MEMORY => {
                    // SAFETY: the kernel describes memory of its own, which stays until it returns.
                    let memory = unsafe { Lent::new(arg.word as *const u64, arg.len) }?;
                    // What is handed over twice is one tensor.
                    let known = lent.iter().find(|l: &&Lent| l.is_of(&memory));
                    let tensor = known.map_or(&memory.tensor, |l| &l.tensor).clone();
                    if known.is_none() {
                        lent.push(memory);
                    }
                    Value::Tensor(tensor)
                }
                _ => return Err(malformed()),
            });
        }
        let result = self.guarded(&func, runtime, name, &values);
        lent.iter().for_each(Lent::give_back);
        result
    }

    fn guarded(
        &self,
        func: &HostFunc,
        runtime: &KernelRuntime,
        name: &str,
        values: &[Value],
    ) -> Result<Value, VmError> {
        match catch_unwind(AssertUnwindSafe(|| func.call(runtime, values))) {
            Ok(result) => result.map_err(|error| error.in_packed(name)),
            Err(panic) => {
                Err(VmError::external(format!("panic: {}", panic_text(&*panic))).in_packed(name))
            }
        }
    }
}

/// Memory of a kernel's own that a packed function works on: on a tensor that may live longer, so it is copied both ways.
struct Lent {
    tensor: Tensor,
    memory: *mut u8,
}

impl Lent {
    /// # Safety
    /// `told` is the address of words as [`PACKED_MEMORY`] says, and the memory that they describe is live and used by nobody
    /// else until the result is dropped.
    unsafe fn new(told: *const u64, rank: u64) -> Result<Lent, VmError> {
        let rank = usize::try_from(rank).map_err(|_| malformed())?;
        // SAFETY: the caller's promise: an address, a data type and so many dims.
        let words = unsafe { std::slice::from_raw_parts(told, rank + 2) };
        let [code, bits, ..] = words[1].to_le_bytes();
        let dtype = DType::from_dlpack(code, bits).ok_or_else(malformed)?;
        let shape: Vec<i64> = words[2..].iter().map(|&dim| dim as i64).collect();
        let bytes = checked_nbytes(&shape, dtype)?;
        let memory = words[0] as *mut u8;
        let bytes = match bytes {
            // No elements may have no address.
            0 => &[],
            // SAFETY: the caller's promise: as many bytes of a compact buffer.
            _ => unsafe { std::slice::from_raw_parts(memory, bytes) },
        };
        Ok(Lent { tensor: Tensor::from_bytes(&shape, dtype, bytes)?, memory })
    }

    /// Whether both are of one buffer.
    fn is_of(&self, other: &Lent) -> bool {
        self.memory == other.memory && self.tensor.shape() == other.tensor.shape()
    }

    /// Writes what the tensor holds into the kernel's memory.
    fn give_back(&self) {
        let (from, bytes) = (self.tensor.data_ptr(), self.tensor.nbytes());
        if bytes > 0 {
            // SAFETY: the tensor is compact and as large as the memory, by `new`, whose promise still holds.
            unsafe { std::ptr::copy_nonoverlapping(from, self.memory, bytes) };
        }
    }
}

#[cold]
fn malformed() -> VmError {
    VmError::type_error("a kernel calls a packed function with a malformed argument")
}

/// A result as the word of the kind that the kernel wants.
fn word(kind: u64, value: &Value) -> Result<u64, VmError> {
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
                    " (help: T.call_packed(..., dtype=\"float32\") says what it returns)"
                }
                _ => "",
            };
            let text = format!("the loop function wants {wanted}, and it returned {value:?}{help}");
            Err(VmError::external(text))
        }
    }
}

/// # Safety
/// `start` is the address of `len` bytes that live as long as the caller uses them.
unsafe fn text<'t>(start: *const u8, len: u64) -> Option<&'t str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(start, usize::try_from(len).ok()?) };
    std::str::from_utf8(bytes).ok()
}

/// The machine's [`ReportError`](pliant_exec::abi::ReportError).
///
/// # Safety
/// As for [`call_packed`]; the text is valid.
pub(crate) unsafe extern "C" fn report_error(
    runtime: *const KernelRuntime,
    kind: u64,
    message: *const u8,
    len: u64,
) -> i64 {
    // SAFETY: the machine's runtime, and the call that is going on, stay until the kernel returns.
    let call = unsafe { &*(*runtime).call.cast::<KernelCall<'_>>() };
    // SAFETY: the kernel gives the text's address and length.
    let message = unsafe { text(message, len) }.unwrap_or("a kernel failed");
    let kind = match kind {
        FAILED_TYPE => CheckKind::Type,
        FAILED_SHAPE => CheckKind::Shape,
        _ => CheckKind::Value,
    };
    let error = VmError::check(kind, message);
    call.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    STATUS_PACKED
}

/// The machine's [`CallPacked`](pliant_exec::abi::CallPacked).
///
/// # Safety
/// As the ABI says; `runtime` is the one that the machine handed to the kernel, whose call is going on.
pub(crate) unsafe extern "C" fn call_packed(
    runtime: *const KernelRuntime,
    name: *const u8,
    name_len: u64,
    args: *const PackedWord,
    count: u64,
    result: *mut PackedWord,
) -> i64 {
    // SAFETY: the machine's runtime stays until the kernel returns.
    let runtime = unsafe { &*runtime };
    // SAFETY: the machine set `call` to the call that is going on, and it stays until the kernel returns.
    let call = unsafe { &*runtime.call.cast::<KernelCall<'_>>() };
    // SAFETY: the kernel gives the name's address and length.
    let Some(name) = (unsafe { text(name, name_len) }) else { return STATUS_BAD_ARGUMENTS };
    // SAFETY: the kernel gives so many arguments.
    let args = unsafe { std::slice::from_raw_parts(args, count as usize) };
    // SAFETY: the kernel gives room for the result and has set the kind that it wants.
    let result = unsafe { &mut *result };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let value = call.call(runtime, name, args)?;
        word(result.kind, &value).map_err(|error| error.in_packed(name))
    }))
    .unwrap_or_else(|_| Err(VmError::type_error("a packed function's result cannot be kept")));
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

//! The operands of a builtin call, read in place from registers and constants.

use pliant_exec::abi::KernelRuntime;
use pliant_tensor::{DType, Storage, Tensor};

use crate::executable_linker::Operand;
use crate::{FuncValue, Value, VmError};

/// The number of elements that a builtin processes between two polls of the interrupt flag.
pub(crate) const POLL_INTERVAL: usize = 1 << 16;

/// Fails if the run to which `runtime` belongs was interrupted.
///
/// # Errors
/// `Interrupted` if the run was interrupted.
pub(crate) fn poll(runtime: &KernelRuntime) -> Result<(), VmError> {
    if runtime.is_interrupted() { Err(VmError::Interrupted) } else { Ok(()) }
}

/// The operands of one builtin call. They are read in place from the registers and the constant table, without copies.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    pub(crate) name: &'static str,
    pub(crate) regs: &'a [Value],
    pub(crate) consts: &'a [Value],
    pub(crate) operands: &'a [Operand],
    /// The runtime of the run, which loop functions also receive. It contains the interrupt flag
    /// and the worker team.
    pub(crate) runtime: &'a KernelRuntime,
}

impl<'a> Args<'a> {
    /// Returns the number of operands of the call.
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether the call has no operands.
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// Fails if the run was interrupted. Builtins call this function at least once per 65,536
    /// elements where possible.
    ///
    /// # Errors
    /// `Interrupted` if the run was interrupted.
    pub fn check_interrupt(&self) -> Result<(), VmError> {
        poll(self.runtime)
    }

    /// Iterates over all operands in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a Value> + use<'a> {
        let args = *self;
        args.operands.iter().map(move |operand| operand.get(args.regs, args.consts))
    }

    /// Returns operand `i`; `None` if the call has fewer operands.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a Value> {
        self.operands.get(i).map(|operand| operand.get(self.regs, self.consts))
    }

    /// Returns operand `i` as a value of any kind.
    ///
    /// # Errors
    /// `Type` if the call has fewer operands.
    #[inline]
    pub fn value(&self, i: usize) -> Result<&'a Value, VmError> {
        match self.get(i) {
            Some(value) => Ok(value),
            None => Err(self.missing(i)),
        }
    }

    #[cold]
    fn missing(&self, i: usize) -> VmError {
        let name = self.name;
        VmError::type_error(format!("{name}: operand {i} is missing"))
    }

    #[cold]
    fn wrong(&self, i: usize, wanted: &str) -> VmError {
        let (name, kind) = (self.name, self.get(i).map_or("missing", Value::kind));
        VmError::type_error(format!("{name}: operand {i} must be {wanted}, but is {kind}"))
    }

    /// Returns operand `i` as a tensor.
    ///
    /// # Errors
    /// `Type` if the operand is not a tensor.
    pub fn tensor(&self, i: usize) -> Result<&'a Tensor, VmError> {
        match self.get(i) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(self.wrong(i, "a tensor")),
        }
    }

    /// Returns operand `i` as an integer. A bool is converted to 0 or 1.
    ///
    /// # Errors
    /// `Type` if the operand is not an integer.
    #[inline]
    pub fn int(&self, i: usize) -> Result<i64, VmError> {
        match self.get(i) {
            Some(Value::Int(value)) => Ok(*value),
            Some(Value::Bool(value)) => Ok(i64::from(*value)),
            _ => Err(self.wrong(i, "an integer")),
        }
    }

    /// Returns operand `i` as a shape.
    ///
    /// # Errors
    /// `Type` if the operand is not a shape.
    pub fn shape(&self, i: usize) -> Result<&'a [i64], VmError> {
        match self.get(i) {
            Some(Value::Shape(shape)) => Ok(shape),
            _ => Err(self.wrong(i, "a shape")),
        }
    }

    /// Returns operand `i` as a dtype. The operand is a dtype value or the name of a dtype.
    ///
    /// # Errors
    /// `Type` if the operand is neither a dtype nor the name of a dtype.
    pub fn dtype(&self, i: usize) -> Result<DType, VmError> {
        match self.get(i) {
            Some(Value::DType(dtype)) => Ok(*dtype),
            Some(Value::Str(text)) => text.parse().map_err(|_| self.wrong(i, "a dtype")),
            _ => Err(self.wrong(i, "a dtype")),
        }
    }

    /// Returns operand `i` as a storage.
    ///
    /// # Errors
    /// `Type` if the operand is not a storage.
    pub fn storage(&self, i: usize) -> Result<&'a Storage, VmError> {
        match self.get(i) {
            Some(Value::Storage(storage)) => Ok(storage),
            _ => Err(self.wrong(i, "a storage")),
        }
    }

    /// Returns operand `i` as a function.
    ///
    /// # Errors
    /// `Type` if the operand is not a function.
    #[inline]
    pub fn func(&self, i: usize) -> Result<&'a FuncValue, VmError> {
        match self.get(i) {
            Some(Value::Func(func)) => Ok(func),
            _ => Err(self.wrong(i, "a function")),
        }
    }

    /// Returns operand `i` as a tuple.
    ///
    /// # Errors
    /// `Type` if the operand is not a tuple.
    #[inline]
    pub fn tuple(&self, i: usize) -> Result<&'a [Value], VmError> {
        match self.get(i) {
            Some(Value::Tuple(items)) => Ok(items),
            _ => Err(self.wrong(i, "a tuple")),
        }
    }

    /// Returns operand `i` as a string, or `default` if the operand is missing or not a string.
    pub fn text_or(&self, i: usize, default: &'a str) -> &'a str {
        match self.get(i) {
            Some(Value::Str(text)) => text,
            _ => default,
        }
    }
}

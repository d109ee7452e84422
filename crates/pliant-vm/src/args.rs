//! The operands of a builtin, read in place from registers and constants.

use pliant_exec::abi::KernelRuntime;
use pliant_tensor::{DType, Storage, Tensor};

use crate::link::Operand;
use crate::{FuncValue, Value, VmError};

/// How many elements a builtin processes between two polls of the interrupt flag.
pub(crate) const POLL_INTERVAL: usize = 1 << 16;

/// Fails if the run was interrupted.
pub(crate) fn poll(runtime: &KernelRuntime) -> Result<(), VmError> {
    if runtime.is_interrupted() { Err(VmError::Interrupted) } else { Ok(()) }
}

/// The operands of one call. Values are not copied: they stay in the registers and constants that hold them.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    pub(crate) name: &'static str,
    pub(crate) regs: &'a [Value],
    pub(crate) consts: &'a [Value],
    pub(crate) operands: &'a [Operand],
    /// The runtime that the run passes to kernels.
    pub(crate) runtime: &'a KernelRuntime,
}

impl<'a> Args<'a> {
    /// The number of operands.
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there are no operands.
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// Fails if the run was interrupted. Builtins call this every [`POLL_INTERVAL`] elements where they can.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn check_interrupt(&self) -> Result<(), VmError> {
        poll(self.runtime)
    }

    /// All operands in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a Value> + use<'a> {
        let args = *self;
        args.operands.iter().map(move |operand| operand.get(args.regs, args.consts))
    }

    /// Operand `i`, if there are so many.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a Value> {
        self.operands.get(i).map(|operand| operand.get(self.regs, self.consts))
    }

    /// Operand `i`.
    ///
    /// # Errors
    /// `Type`: there are not so many.
    #[inline]
    pub fn value(&self, i: usize) -> Result<&'a Value, VmError> {
        match self.get(i) {
            Some(value) => Ok(value),
            None => Err(self.missing(i)),
        }
    }

    #[cold]
    fn missing(&self, i: usize) -> VmError {
        VmError::type_error(format!("{}: operand {i} is missing", self.name))
    }

    #[cold]
    fn wrong(&self, i: usize, wanted: &str) -> VmError {
        let kind = self.get(i).map_or("missing", Value::kind);
        VmError::type_error(format!("{}: operand {i} must be {wanted}, but is {kind}", self.name))
    }

    /// Operand `i`, a tensor.
    ///
    /// # Errors
    /// `Type`.
    pub fn tensor(&self, i: usize) -> Result<&'a Tensor, VmError> {
        match self.get(i) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(self.wrong(i, "a tensor")),
        }
    }

    /// Operand `i`, an integer.
    ///
    /// # Errors
    /// `Type`.
    #[inline]
    pub fn int(&self, i: usize) -> Result<i64, VmError> {
        match self.get(i) {
            Some(Value::Int(value)) => Ok(*value),
            Some(Value::Bool(value)) => Ok(i64::from(*value)),
            _ => Err(self.wrong(i, "an integer")),
        }
    }

    /// Operand `i`, a shape.
    ///
    /// # Errors
    /// `Type`.
    pub fn shape(&self, i: usize) -> Result<&'a [i64], VmError> {
        match self.get(i) {
            Some(Value::Shape(shape)) => Ok(shape),
            _ => Err(self.wrong(i, "a shape")),
        }
    }

    /// Operand `i`, a dtype (as such or as its name).
    ///
    /// # Errors
    /// `Type`.
    pub fn dtype(&self, i: usize) -> Result<DType, VmError> {
        match self.get(i) {
            Some(Value::DType(dtype)) => Ok(*dtype),
            Some(Value::Str(text)) => text.parse().map_err(|_| self.wrong(i, "a dtype")),
            _ => Err(self.wrong(i, "a dtype")),
        }
    }

    /// Operand `i`, a storage.
    ///
    /// # Errors
    /// `Type`.
    pub fn storage(&self, i: usize) -> Result<&'a Storage, VmError> {
        match self.get(i) {
            Some(Value::Storage(storage)) => Ok(storage),
            _ => Err(self.wrong(i, "a storage")),
        }
    }

    /// Operand `i`, a function.
    ///
    /// # Errors
    /// `Type`.
    #[inline]
    pub fn func(&self, i: usize) -> Result<&'a FuncValue, VmError> {
        match self.get(i) {
            Some(Value::Func(func)) => Ok(func),
            _ => Err(self.wrong(i, "a function")),
        }
    }

    /// Operand `i`, a tuple.
    ///
    /// # Errors
    /// `Type`.
    #[inline]
    pub fn tuple(&self, i: usize) -> Result<&'a [Value], VmError> {
        match self.get(i) {
            Some(Value::Tuple(items)) => Ok(items),
            _ => Err(self.wrong(i, "a tuple")),
        }
    }

    /// Operand `i`, a text, or `default` where it is missing or no text.
    pub fn text_or(&self, i: usize, default: &'a str) -> &'a str {
        match self.get(i) {
            Some(Value::Str(text)) => text,
            _ => default,
        }
    }
}

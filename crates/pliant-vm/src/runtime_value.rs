//! [`Value`]: the contents of registers, and the arguments and results of functions.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use pliant_exec::Constant;
use pliant_exec::abi::KernelRuntime;
use pliant_tensor::{DType, Storage, Tensor};

use crate::host_function_registry::HostFunc;
use crate::virtual_machine::{Inner, InvokeMode, VirtualMachine};
use crate::{PackedFunc, RunOptions, VmError};

/// A shared object of the program that embeds the VM, such as a Python object. The VM does not access its contents.
pub type Object = Arc<dyn Any + Send + Sync>;

/// A run-time value. Cloning is cheap: large contents are shared.
///
/// # Examples
/// ```
/// use pliant_tensor::Tensor;
/// use pliant_vm::Value;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let value = Value::tuple([Value::Tensor(x), Value::Int(3), Value::str("text")]);
/// let items = value.as_tuple().expect("a tuple");
/// assert_eq!(items[0].as_tensor().expect("a tensor").shape(), [2]);
/// assert_eq!(items[1].as_int(), Some(3));
/// assert_eq!(items[2].kind(), "a string");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub enum Value {
    /// The absence of a value. Unused registers contain this variant.
    #[default]
    None,
    /// A tensor value.
    Tensor(Tensor),
    /// A shape: a list of dims.
    Shape(Arc<[i64]>),
    /// An integer scalar of 64 bits.
    Int(i64),
    /// A float scalar of 64 bits.
    Float(f64),
    /// A bool scalar.
    Bool(bool),
    /// A string value.
    Str(Arc<str>),
    /// An element type (dtype) as a value.
    DType(DType),
    /// A tuple of other values.
    Tuple(Tuple),
    /// Memory in which tensors can be allocated.
    Storage(Storage),
    /// A function or closure as a value.
    Func(FuncValue),
    /// An object of the embedding program, such as a Python object. The VM does not access it.
    Object(Object),
}

const _: () = assert!(size_of::<Value>() == 24, "a register is three words");

impl Value {
    /// Creates a tuple value from items.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(Tuple(items.into_iter().collect()))
    }

    /// Creates a shape value from dims.
    pub fn shape(dims: &[i64]) -> Value {
        Value::Shape(dims.into())
    }

    /// Creates a string value from text.
    pub fn str(text: &str) -> Value {
        Value::Str(text.into())
    }

    /// Returns the kind of the value with an article, for error messages, such as `a tensor`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "no value",
            Value::Tensor(_) => "a tensor",
            Value::Shape(_) => "a shape",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a bool",
            Value::Str(_) => "a string",
            Value::DType(_) => "a dtype",
            Value::Tuple(_) => "a tuple",
            Value::Storage(_) => "a storage",
            Value::Func(_) => "a function",
            Value::Object(_) => "an object",
        }
    }

    /// Returns the tensor; `None` for other kinds of values.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Value::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// Returns the dims of a shape; `None` for other kinds of values.
    pub fn as_shape(&self) -> Option<&[i64]> {
        if let Value::Shape(shape) = self { Some(shape) } else { None }
    }

    /// Returns the value of an integer or a bool as an integer; `None` for other kinds of values.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// Returns the value of a numeric scalar as a float; `None` for other kinds of values.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }

    /// Returns the text of a string; `None` for other kinds of values.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Str(text) = self { Some(text) } else { None }
    }

    /// Returns the items of a tuple; `None` for other kinds of values.
    pub fn as_tuple(&self) -> Option<&[Value]> {
        if let Value::Tuple(items) = self { Some(items) } else { None }
    }

    /// Returns the function; `None` for other kinds of values.
    pub fn as_func(&self) -> Option<&FuncValue> {
        if let Value::Func(func) = self { Some(func) } else { None }
    }
}

/// Whether `value` is in the range of the integer type `dtype`.
pub(crate) fn holds_int(dtype: DType, value: i64) -> bool {
    dtype.has_int(value) && (dtype != DType::UInt64 || value >= 0)
}

/// Maximum nesting depth of tuples that are printed. Deeper tuples and further items are printed as
/// `..`: tuples can be nested to any depth, and tuples with shared items can have exponentially
/// long text.
const MAX_PRINT_DEPTH: usize = 8;
const MAX_PRINT_ITEMS: usize = 200;

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self, f, 0, &mut 0)
    }
}

fn print(
    value: &Value,
    f: &mut fmt::Formatter<'_>,
    depth: usize,
    items: &mut usize,
) -> fmt::Result {
    match value {
        Value::None => f.write_str("None"),
        Value::Tensor(tensor) => write!(f, "{tensor:?}"),
        Value::Shape(shape) => write!(f, "Shape({shape:?})"),
        Value::Int(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{value:?}"),
        Value::Bool(value) => write!(f, "{value}"),
        Value::Str(text) => write!(f, "{text:?}"),
        Value::DType(dtype) => write!(f, "{dtype}"),
        Value::Storage(storage) => write!(f, "{storage:?}"),
        Value::Func(func) => write!(f, "Function({})", func.name()),
        Value::Object(_) => f.write_str("Object"),
        Value::Tuple(_) if depth == MAX_PRINT_DEPTH => f.write_str("[..]"),
        Value::Tuple(tuple) => {
            f.write_str("[")?;
            for (i, item) in tuple.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                *items += 1;
                if *items > MAX_PRINT_ITEMS {
                    f.write_str("..")?;
                    break;
                }
                print(item, f, depth + 1, items)?;
            }
            f.write_str("]")
        }
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident),* $(,)?) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

from! {
    Tensor => Tensor, i64 => Int, f64 => Float, bool => Bool, &str => Str, String => Str, DType => DType,
    Storage => Storage, FuncValue => Func, Tuple => Tuple,
}

impl From<&Constant> for Value {
    fn from(constant: &Constant) -> Value {
        match constant {
            Constant::Tensor(tensor) => Value::Tensor(tensor.clone()),
            Constant::Shape(shape) => Value::Shape(Arc::clone(shape)),
            Constant::Int(value) => Value::Int(*value),
            Constant::Float(value) => Value::Float(*value),
            Constant::Bool(value) => Value::Bool(*value),
            Constant::Str(text) => Value::Str(Arc::clone(text)),
            Constant::DType(dtype) => Value::DType(*dtype),
            Constant::None => Value::None,
        }
    }
}

/// A tuple whose clones share the items.
///
/// The type exists because dropping nested tuples must not recurse: programs can nest tuples to any
/// depth.
#[derive(Clone)]
pub struct Tuple(Arc<[Value]>);

impl Tuple {
    /// Returns the address of the tuple's items, and the number of references to the items.
    pub fn shared(&self) -> (*const (), usize) {
        (Arc::as_ptr(&self.0).cast(), Arc::strong_count(&self.0))
    }
}

impl Deref for Tuple {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl FromIterator<Value> for Tuple {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Tuple {
        Tuple(items.into_iter().collect())
    }
}

impl Drop for Tuple {
    fn drop(&mut self) {
        let mut nested = Vec::new();
        take_nested(Arc::get_mut(&mut self.0), &mut nested);
        while let Some(value) = nested.pop() {
            match value {
                Value::Tuple(mut tuple) => take_nested(Arc::get_mut(&mut tuple.0), &mut nested),
                Value::Func(mut func) => take_nested(func.bound_mut(), &mut nested),
                _ => {}
            }
        }
    }
}

/// Moves items that may contain further tuples to `nested`, so that dropping `items` does not recurse.
fn take_nested(items: Option<&mut [Value]>, nested: &mut Vec<Value>) {
    for item in items.into_iter().flatten() {
        if matches!(item, Value::Tuple(_) | Value::Func(_)) {
            nested.push(std::mem::take(item));
        }
    }
}

/// A function value: a packed or library function, a function of a program, or a closure (a function with captured values).
#[derive(Clone)]
pub struct FuncValue(Arc<FuncInner>);

struct FuncInner {
    name: Arc<str>,
    target: FuncTarget,
    bound: Vec<Value>,
    host: Option<Object>,
}

/// The target of a function value: a packed or library function, or a function of a VM.
#[derive(Clone)]
pub(crate) enum FuncTarget {
    Packed(HostFunc),
    /// The entry at `index` in the function table of a VM. The reference to the VM is weak, because the VM itself contains
    /// function values.
    Linked {
        vm: Weak<Inner>,
        index: u32,
    },
}

impl FuncValue {
    /// Creates a function value from a packed function.
    pub fn packed(name: impl Into<String>, func: PackedFunc) -> FuncValue {
        Self::new(name.into(), FuncTarget::Packed(HostFunc::Packed(func)), Vec::new())
    }

    /// Creates a function value from a packed function that represents the object `host` of the embedding program, such as a Python
    /// callable. [`FuncValue::host`] returns the object. The closure `func` must also hold a reference to the object.
    pub fn hosted(name: impl Into<String>, func: PackedFunc, host: Object) -> FuncValue {
        let name: String = name.into();
        let (name, target) = (name.into(), FuncTarget::Packed(HostFunc::Packed(func)));
        FuncValue(Arc::new(FuncInner { name, target, bound: Vec::new(), host: Some(host) }))
    }

    pub(crate) fn new(name: String, target: FuncTarget, bound: Vec<Value>) -> FuncValue {
        FuncValue(Arc::new(FuncInner { name: name.into(), target, bound, host: None }))
    }

    /// Returns the object that the function represents ([`FuncValue::hosted`]). Returns `None` for other functions and for closures
    /// with captured values.
    pub fn host(&self) -> Option<&Object> {
        self.0.host.as_ref()
    }

    /// Returns the VM to which the function belongs; `None` for packed and library functions, and if the VM was dropped. The
    /// function stays callable while the caller keeps the result.
    pub fn vm(&self) -> Option<VirtualMachine> {
        match &self.0.target {
            FuncTarget::Packed(_) => None,
            FuncTarget::Linked { vm, .. } => vm.upgrade().map(VirtualMachine::from_inner),
        }
    }

    /// Returns a closure of the function with additional captured values. A call passes the
    /// captured values after the arguments.
    pub(crate) fn bind(&self, captured: impl Iterator<Item = Value>) -> FuncValue {
        // Argument order: arguments, newly captured values, previously captured values.
        let bound = captured.chain(self.0.bound.iter().cloned()).collect();
        let (name, target) = (Arc::clone(&self.0.name), self.0.target.clone());
        FuncValue(Arc::new(FuncInner { name, target, bound, host: None }))
    }

    /// Returns the captured values, if `self` is the only reference to the function value;
    /// otherwise an empty slice.
    pub fn captured_if_unique(&self) -> &[Value] {
        if Arc::strong_count(&self.0) == 1 { &self.0.bound } else { &[] }
    }

    /// Returns the address of the function value, and the number of references to it.
    pub(crate) fn shared(&self) -> (*const (), usize) {
        (Arc::as_ptr(&self.0).cast(), Arc::strong_count(&self.0))
    }

    /// Returns the values that a cycle collector can reach from the function: the captured values, and the object that the function
    /// represents if only this function value and its closure reference it.
    pub(crate) fn gc_children(&self) -> (&[Value], Option<&Object>) {
        let own = match &self.0.target {
            FuncTarget::Packed(HostFunc::Packed(func)) => Arc::strong_count(func) == 1,
            _ => false,
        };
        let host = self.0.host.as_ref().filter(|host| own && Arc::strong_count(host) == 2);
        (&self.0.bound, host)
    }

    fn bound_mut(&mut self) -> Option<&mut [Value]> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.bound[..])
    }

    /// The name of the called function.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The captured values. A call passes them after the arguments.
    pub fn captured(&self) -> &[Value] {
        &self.0.bound
    }

    pub(crate) fn target(&self) -> &FuncTarget {
        &self.0.target
    }

    /// Calls the function with `args` as arguments.
    ///
    /// # Errors
    /// The error of the function; `Type` if its VM was dropped.
    pub fn call(&self, args: &[Value]) -> Result<Value, VmError> {
        self.call_in_mode(args, InvokeMode::TopLevel(RunOptions::UNLIMITED))
    }

    /// Calls the function with run options. Packed and library functions support neither a time limit nor a cancel handle.
    ///
    /// # Errors
    /// The same errors as [`FuncValue::call`]; with options also `TimeLimit`, `Cancelled` and `NoTimer`, or `Type` for a packed or
    /// library function.
    pub fn call_with(&self, args: &[Value], options: &RunOptions) -> Result<Value, VmError> {
        self.call_in_mode(args, InvokeMode::TopLevel(options))
    }

    /// Calls a function of another VM, nested in the run with the runtime `outer`. An interrupt of
    /// the outer run also stops the call.
    pub(crate) fn call_within(
        &self,
        args: &[Value],
        outer: &KernelRuntime,
    ) -> Result<Value, VmError> {
        self.call_in_mode(args, InvokeMode::Nested(outer))
    }

    fn call_in_mode(&self, args: &[Value], mode: InvokeMode<'_>) -> Result<Value, VmError> {
        let all: Vec<Value>;
        let args = if self.0.bound.is_empty() {
            args
        } else {
            all = args.iter().chain(&self.0.bound).cloned().collect();
            &all[..]
        };
        match &self.0.target {
            FuncTarget::Packed(_) if matches!(mode, InvokeMode::TopLevel(options) if options.may_stop()) =>
            {
                let text = format!(
                    "'{}' is a function of the host; time limits and cancel handles apply only to functions of programs",
                    self.0.name
                );
                Err(VmError::type_error(text))
            }
            FuncTarget::Packed(func) => {
                func.call_outside(args).map_err(|error| error.in_packed(&self.0.name))
            }
            FuncTarget::Linked { vm, index } => {
                let Some(inner) = vm.upgrade() else {
                    let text = format!(
                        "the VM of function '{}' was dropped; keep the VM alive while its functions are called",
                        self.0.name
                    );
                    return Err(VmError::type_error(text));
                };
                VirtualMachine::from_inner(inner).start(*index, args, self.0.bound.len(), mode)
            }
        }
    }
}

impl Drop for FuncInner {
    fn drop(&mut self) {
        if !self.bound.iter().any(|value| matches!(value, Value::Tuple(_) | Value::Func(_))) {
            return;
        }
        // Captured values are dropped as a tuple, which does not recurse.
        drop(std::mem::take(&mut self.bound).into_iter().collect::<Tuple>());
    }
}

impl fmt::Debug for FuncValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FuncValue({})", self.0.name)
    }
}

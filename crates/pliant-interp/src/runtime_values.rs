//! [`Value`]: the values of graph functions.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use pliant_ir::relax::{FuncId, Function, Var};
use pliant_ir::{DType, SymVar};
use pliant_tensor::{Storage, Tensor, format_shape};
use rustc_hash::FxHashMap;

/// A run-time value of a graph function. Clones share tensors, storages and objects, so a write through one clone, such as by a
/// destination-passing call, is visible through all of them.
#[derive(Clone)]
pub enum Value {
    /// The absence of a value: `R.null_value()`.
    None,
    /// A tensor. Clones of the value share its memory.
    Tensor(Tensor),
    /// A shape: the sizes of its dims.
    Shape(Arc<[i64]>),
    /// An integer scalar of any integer data type.
    Int(i64),
    /// A scalar of a float data type.
    Float(f64),
    /// A scalar of the data type bool.
    Bool(bool),
    /// A string, such as an argument of a packed function.
    Str(Arc<str>),
    /// A data type as a value, such as an argument of a packed function.
    DType(DType),
    /// A tuple of other values.
    Tuple(Arc<[Value]>),
    /// Untyped memory, in which tensors can be allocated.
    Storage(Storage),
    /// A function that can be called.
    Func(Func),
    /// An object that is opaque to the interpreter. The host, the program that runs the interpreter, creates and uses it.
    Object(Arc<dyn Any + Send + Sync>),
}

/// A function as a run-time value.
#[derive(Clone)]
pub enum Func {
    /// A function of the module, by name.
    Global(Arc<str>),
    /// A packed function, by name.
    Packed(Arc<str>),
    /// A local function with its captured values.
    Closure(Arc<Closure>),
    /// A function together with captured values, which a call passes after the other arguments.
    Bound(Arc<Func>, Arc<[Value]>),
    /// A function of the host (the program that runs the interpreter) that is not registered under a name.
    Host(Arc<HostFunc>),
}

/// The implementation of a function of the host, the program that runs the interpreter. The error is a message.
type HostCall = dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync;

/// A function of the host (the program that runs the interpreter) that is used as a value.
pub struct HostFunc {
    /// The name of the function in messages.
    pub name: Arc<str>,
    /// The implementation of the function.
    pub call: Box<HostCall>,
    /// The object of the host from which this function was created, such as a function of the VM.
    pub object: Arc<dyn Any + Send + Sync>,
}

/// A local function with the captured values of its free variables and symbols.
pub struct Closure {
    pub(crate) id: FuncId,
    pub(crate) name: Arc<str>,
    pub(crate) group: Arc<ClosureGroup>,
}

/// A group of local functions that can refer to each other. They are created together and share
/// their captured values. These values contain no closure of the group, so there are no reference
/// cycles.
pub(crate) struct ClosureGroup {
    pub func: Arc<Function>,
    pub members: Vec<(Var, FuncId)>,
    pub captured: Vec<(Var, Value)>,
    pub syms: FxHashMap<SymVar, i64>,
}

impl ClosureGroup {
    /// Returns the variables and the function values of all functions in the group.
    pub fn closures(self: &Arc<Self>) -> impl Iterator<Item = (Var, Value)> + '_ {
        self.members.iter().map(|&(var, id)| {
            let name = self.func.var(var).name.clone();
            let closure = Closure { id, name, group: self.clone() };
            (var, Value::Func(Func::Closure(Arc::new(closure))))
        })
    }
}

impl Value {
    /// Creates the empty tuple, which functions without a result return.
    pub fn unit() -> Value {
        Value::Tuple(Arc::from([]))
    }

    /// Creates a tuple value from its items.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(items.into_iter().collect())
    }

    /// Creates a shape value from its dims.
    pub fn shape(dims: &[i64]) -> Value {
        Value::Shape(dims.into())
    }

    /// Returns the tensor; `None` for other values.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the dims of a shape; `None` for other values.
    pub fn as_shape(&self) -> Option<&[i64]> {
        match self {
            Value::Shape(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the items of a tuple; `None` for other values.
    pub fn as_tuple(&self) -> Option<&[Value]> {
        match self {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value of an integer or of a bool, which counts as 0 or 1; `None` for other values.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(v) => Some(*v),
            Value::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// Returns the kind of the value with an article, such as `a tensor`, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "none",
            Value::Tensor(_) => "a tensor",
            Value::Shape(_) => "a shape",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a bool",
            Value::Str(_) => "a string",
            Value::DType(_) => "a data type",
            Value::Tuple(_) => "a tuple",
            Value::Storage(_) => "a storage",
            Value::Func(_) => "a function",
            Value::Object(_) => "an object",
        }
    }

    /// Describes the value with types and sizes, for messages.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(t) => {
                format!("{} tensor of shape {}", t.dtype().with_article(), format_shape(t.shape()))
            }
            Value::Shape(s) => format!("a shape of {}", plural(s.len() as i64, "dim")),
            Value::Tuple(items) => format!("a tuple of {}", plural(items.len() as i64, "value")),
            other => other.kind().to_string(),
        }
    }
}

/// Formats a number with a noun in the singular or plural: `1 dim`, `2 dims`.
pub(crate) fn plural(n: i64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

impl Func {
    /// Returns the name of the function, for messages.
    pub fn name(&self) -> &str {
        match self {
            Func::Global(name) | Func::Packed(name) => name,
            Func::Closure(closure) => &closure.name,
            Func::Bound(func, _) => func.name(),
            Func::Host(host) => &host.name,
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Tensor(t) => t.fmt(f),
            Value::Shape(s) => write!(f, "Shape{s:?}"),
            Value::Int(v) => v.fmt(f),
            Value::Float(v) => v.fmt(f),
            Value::Bool(v) => v.fmt(f),
            Value::Str(s) => s.fmt(f),
            Value::DType(d) => write!(f, "{d}"),
            Value::Tuple(items) => f.debug_list().entries(items.iter()).finish(),
            Value::Storage(s) => s.fmt(f),
            Value::Func(func) => func.fmt(f),
            Value::Object(_) => f.write_str("Object"),
        }
    }
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Func({})", self.name())
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Value {
                Value::$variant(value.into())
            }
        }
    )*};
}

from!(Tensor => Tensor, i64 => Int, f64 => Float, bool => Bool, &str => Str, DType => DType, Func => Func);

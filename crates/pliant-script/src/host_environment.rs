//! The interface between a script and its host program, which is the Python program that contains
//! the script.

use pliant_diag::FileId;
use pliant_ir::BaseFunc;
use pliant_tensor::{DType, Tensor};

/// Gives a script access to the values of its host program, which is the Python program that contains the script. A script file has
/// no host program and uses [`NoHost`].
pub trait HostEnv {
    /// The value that the surrounding Python program has for a name that the script uses but does not define; `None` if the program
    /// does not define the name. The parser calls this method for plain names only, and [`eval`](Self::eval) for attributes of
    /// Python objects.
    fn lookup(&self, name: &str) -> Option<HostValue>;

    /// Evaluates a Python expression in the surrounding Python program.
    ///
    /// # Errors
    /// The text of the Python exception.
    fn eval(&self, text: &str) -> Result<HostValue, String>;

    /// The value of an attribute that is a Python function, as text: an index map such as `lambda i, j: (j, i)`. `None` if the
    /// expression `text` is not such a function.
    fn function_text(&self, _text: &str) -> Option<String> {
        None
    }

    /// Whether the parser follows TVM where Pliant differs: the type of a function's result replaces the declared type if it is a
    /// subtype, parameters must have types, results of calls must be bound to names, the calls of packed functions whose results
    /// have names must state their types, and `R.output` must be the last statement of its block.
    fn follows_tvm(&self) -> bool {
        false
    }
}

/// A macro that the surrounding Python program defines. Its source text is appended to the source text of the script.
pub struct HostMacro<'a> {
    /// The byte offset, in the combined source text, at which the macro's source starts.
    pub start: u32,
    /// The file that contains the macro. Source locations are relative to the start of the macro's source.
    pub file: FileId,
    /// Whether names in the macro are resolved where the macro is defined (hygienic) or where it is used.
    pub hygienic: bool,
    /// The Python environment in which the macro is defined.
    pub env: &'a dyn HostEnv,
}

/// The environment of a standalone script, which is not part of a Python program.
pub struct NoHost;

impl HostEnv for NoHost {
    fn lookup(&self, _name: &str) -> Option<HostValue> {
        None
    }

    fn eval(&self, _text: &str) -> Result<HostValue, String> {
        Err("the script is parsed as text, so it cannot use values of a Python program".into())
    }
}

/// A value of the surrounding Python program that a script can read.
#[derive(Clone, Debug)]
pub enum HostValue {
    /// The Python value `None`.
    None,
    /// A Python integer.
    Int(i64),
    /// A Python float.
    Float(f64),
    /// A Python bool.
    Bool(bool),
    /// A Python string.
    Str(String),
    /// A data type, such as `float32`, that is a value of the surrounding Python program.
    DType(DType),
    /// A Python list of other values.
    List(Vec<HostValue>),
    /// A Python tuple of other values.
    Tuple(Vec<HostValue>),
    /// A Python dict with string keys.
    Map(Vec<(String, HostValue)>),
    /// A tensor. It becomes a constant.
    Tensor(Tensor),
    /// A symbolic integer over symbolic variables that the surrounding Python program creates.
    Sym(HostSym),
    /// A module, function or operator of the script language, as a dotted path such as `pliant.script.relax`, `tvm.tir.grid` or
    /// `relax.add`.
    Path(String),
    /// A macro, as an index into the macros passed to the parser.
    Macro(u32),
    /// A graph or loop function that the surrounding Python program defines, with its name. The parser adds it to the module.
    Func(String, BaseFunc),
    /// A Python object that scripts cannot use as a value, represented by the name of its type. It can occur only in expressions
    /// that Python evaluates.
    Other(String),
}

/// A symbolic integer of the surrounding Python program. Variables are identified by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSym {
    /// An integer constant.
    Int(i64),
    /// A variable: its unique id and its name.
    Var(u64, String),
    /// A binary operation on two symbolic integers.
    Binary(HostSymOp, Box<HostSym>, Box<HostSym>),
}

/// The binary operators of [`HostSym`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSymOp {
    /// The sum of two symbolic integers.
    Add,
    /// The difference of two symbolic integers.
    Sub,
    /// The product of two symbolic integers.
    Mul,
    /// The quotient of two symbolic integers, rounded towards minus infinity.
    FloorDiv,
    /// The remainder of the division of two symbolic integers whose quotient is rounded towards minus infinity.
    FloorMod,
    /// The smaller of two symbolic integers.
    Min,
    /// The larger of two symbolic integers.
    Max,
}

//! The interface between a script and its host program.

use pliant_diag::FileId;
use pliant_ir::BaseFunc;
use pliant_tensor::{DType, Tensor};

/// The host program whose values a script can read. Script files have no host and use [`NoHost`].
pub trait HostEnv {
    /// The value of a name that the script captures; `None` if the host does not define the name. The parser calls this method for
    /// plain names only, and [`eval`](Self::eval) for attributes of host objects.
    fn lookup(&self, name: &str) -> Option<HostValue>;

    /// Evaluates an expression of the host language.
    ///
    /// # Errors
    /// The text of the host's exception.
    fn eval(&self, text: &str) -> Result<HostValue, String>;
}

/// A macro that the host program defines. Its source text is appended to that of the script.
pub struct HostMacro<'a> {
    /// The byte offset, in the combined source text, at which the macro's source starts.
    pub start: u32,
    /// The file that contains the macro. Source locations are relative to the start of the macro's source.
    pub file: FileId,
    /// Whether names in the macro are resolved where the macro is defined (hygienic) or where it is used.
    pub hygienic: bool,
    /// The environment in which the macro is defined.
    pub env: &'a dyn HostEnv,
}

/// The environment of a standalone script, without a host.
pub struct NoHost;

impl HostEnv for NoHost {
    fn lookup(&self, _name: &str) -> Option<HostValue> {
        None
    }

    fn eval(&self, _text: &str) -> Result<HostValue, String> {
        Err("this expression needs the Python program around the script".into())
    }
}

/// A value of the host program.
#[derive(Clone, Debug)]
pub enum HostValue {
    /// `None`.
    None,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A Boolean.
    Bool(bool),
    /// A string.
    Str(String),
    /// A data type.
    DType(DType),
    /// A list.
    List(Vec<HostValue>),
    /// A tuple.
    Tuple(Vec<HostValue>),
    /// A dict with string keys.
    Map(Vec<(String, HostValue)>),
    /// A tensor. It becomes a constant.
    Tensor(Tensor),
    /// A symbolic integer over variables of the host program.
    Sym(HostSym),
    /// A module, function or operator of the script language, as a dotted path such as `pliant.script.relax`, `tvm.tir.grid` or
    /// `relax.add`.
    Path(String),
    /// A macro, as an index into the macros passed to the parser.
    Macro(u32),
    /// A function of the host program, with its name. The parser adds it to the module.
    Func(String, BaseFunc),
    /// Any other value, represented by the name of its type. It can occur only in expressions that the host evaluates.
    Other(String),
}

/// A symbolic integer of the host program. Variables are identified by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSym {
    /// A constant.
    Int(i64),
    /// A variable: its unique id and its name.
    Var(u64, String),
    /// A binary operation.
    Binary(HostSymOp, Box<HostSym>, Box<HostSym>),
}

/// The operators of [`HostSym`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostSymOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded towards minus infinity.
    FloorDiv,
    /// Remainder of the floor division.
    FloorMod,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

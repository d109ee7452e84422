//! What a script sees of the program around it.

use pliant_diag::FileId;
use pliant_ir::BaseFunc;
use pliant_tensor::{DType, Tensor};

/// The surrounding program, as far as a script may look at it. Files have none: [`NoHost`].
pub trait HostEnv {
    /// The value of a captured name. Only plain names are asked for; attributes of host objects go through
    /// [`eval`](Self::eval).
    fn lookup(&self, name: &str) -> Option<HostValue>;

    /// The value of an expression of the host language, given by its text.
    ///
    /// # Errors
    /// What the host says: the text of the exception.
    fn eval(&self, text: &str) -> Result<HostValue, String>;
}

/// A macro of the surrounding program. Its text stands behind that of the script, in one text with it.
pub struct HostMacro<'a> {
    /// Where its text begins.
    pub start: u32,
    /// The file that its text is from, counted from its first character.
    pub file: FileId,
    /// Whether its names mean what they mean where it is defined, not where it is used.
    pub hygienic: bool,
    /// The program around its definition.
    pub env: &'a dyn HostEnv,
}

/// The environment of a script that stands alone.
pub struct NoHost;

impl HostEnv for NoHost {
    fn lookup(&self, _name: &str) -> Option<HostValue> {
        None
    }

    fn eval(&self, _text: &str) -> Result<HostValue, String> {
        Err("this expression needs the Python program around the script".into())
    }
}

/// A value of the surrounding program.
#[derive(Clone, Debug)]
pub enum HostValue {
    /// `None`.
    None,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
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
    /// A tensor, which becomes a constant.
    Tensor(Tensor),
    /// A symbolic integer over variables of the surrounding program.
    Sym(HostSym),
    /// A module, function or operator of the script's language, by its dotted path: `pliant.script.relax`,
    /// `tvm.tir.grid`, `relax.add`.
    Path(String),
    /// A macro, by its place among those that the parse is given.
    Macro(u32),
    /// A function, which is added to the module that is parsed: its name and itself.
    Func(String, BaseFunc),
    /// Anything else, by the name of its type: usable only inside expressions that the host evaluates.
    Other(String),
}

/// A symbolic integer of the surrounding program. Two variables are the same if their ids are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSym {
    /// A constant.
    Int(i64),
    /// A variable: a stable id, and its name.
    Var(u64, String),
    /// An operator of two operands.
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
    /// Quotient towards minus infinity.
    FloorDiv,
    /// Remainder of it.
    FloorMod,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

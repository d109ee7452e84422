//! The nodes of the graph level: variables, expressions, bindings, blocks, sequences.

use std::sync::Arc;

use cranelift_entity::{EntityList, entity_impl, packed_option::PackedOption};
use pliant_diag::Span;
use pliant_sym::Sym;
use pliant_tensor::DType;

use super::types::Type;
use crate::attr_values::FuncAttrs;
use crate::op::Op;

/// The id of a variable: a parameter, or the variable of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "var");

/// The id of an expression in the arena of its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(u32);
entity_impl!(Expr, "expr");

/// The id of a binding block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// The id of a sequence: binding blocks, followed by a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(u32);
entity_impl!(Seq, "seq");

/// The id of a tensor constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Const(u32);
entity_impl!(Const, "const");

/// The id of an interned string: the name of a global or packed function, or a string value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str(u32);
entity_impl!(Str, "str");

/// The id of the interned attributes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrsId(u32);
entity_impl!(AttrsId, "attrs");

/// The id of a function expression: the root function, or a local function, which shares the arenas of the root.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "func");

/// The properties of a variable of a graph function.
#[derive(Clone, Debug)]
pub struct VarData {
    /// The name of the variable, unique among the visible names.
    pub name: Arc<str>,
    /// The type of the variable.
    pub ty: Type,
    /// Whether the variable is only visible in the dataflow block that defines it.
    pub dataflow: bool,
    /// The source location of the definition.
    pub span: Span,
}

/// The operator or function that a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// The call calls an operator.
    Op(Op),
    /// A global function ([`ExprData::Global`]), a packed function ([`ExprData::Extern`]) or a variable that contains a function.
    Expr(Expr),
}

/// An expression in A-normal form: operands are leaves (variables, names, constants, shapes, scalars, strings, data types) or
/// tuples of leaves.
#[derive(Clone, Debug)]
pub enum ExprData {
    /// A reference to a variable.
    Var(Var),
    /// A function of the module, by its name.
    Global(Str),
    /// A packed function, by its registered name; `R.ExternFunc` in scripts.
    Extern(Str),
    /// A tensor constant, by its id.
    Constant(Const),
    /// A shape value, as its symbolic dims.
    Shape(Box<[Sym]>),
    /// An integer scalar, as a symbolic integer and its data type.
    Int(Sym, DType),
    /// A float scalar, represented by its bits as f64.
    Float(u64, DType),
    /// A string value, by its id.
    Str(Str),
    /// A data type as a value.
    DType(DType),
    /// A tuple whose fields are operands.
    Tuple(EntityList<Expr>),
    /// The field with the given index of a tuple.
    TupleGetItem(Expr, u32),
    /// A call of an operator or a function.
    Call {
        /// The called operator or function.
        callee: Callee,
        /// The operands of the call.
        args: EntityList<Expr>,
        /// The attributes of the call.
        attrs: AttrsId,
        /// The stated result types, if they do not follow from the callee; `sinfo_args` or `out_sinfo` in scripts.
        ty_args: EntityList<Type>,
    },
    /// A conditional on a scalar bool.
    If {
        /// The condition, a scalar bool.
        cond: Expr,
        /// The sequence that is evaluated if the condition is true.
        then_seq: Seq,
        /// The sequence that is evaluated if the condition is false.
        else_seq: Seq,
    },
    /// A local function, by its id.
    Func(FuncId),
}

/// A binding: `var = value`, or `var = match_cast(value, cast)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The variable that the binding defines.
    pub var: Var,
    /// The expression whose value is bound to the variable.
    pub value: Expr,
    /// For a `match_cast`, the type against which the value is checked at run time. The binding defines the new symbols in this
    /// type.
    pub cast: PackedOption<Type>,
}

impl Binding {
    /// Creates the binding `var = value`.
    pub fn bind(var: Var, value: Expr) -> Self {
        Binding { var, value, cast: None.into() }
    }

    /// Creates the binding `var = match_cast(value, cast)`.
    pub fn match_cast(var: Var, value: Expr, cast: Type) -> Self {
        Binding { var, value, cast: Some(cast).into() }
    }
}

/// A binding block. A dataflow block is pure and has no control flow, and its dataflow variables are only visible inside.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Whether the block is a dataflow block.
    pub dataflow: bool,
    /// The bindings of the block, in order.
    pub bindings: Vec<Binding>,
}

/// A sequence of binding blocks, followed by a result, which is an operand.
#[derive(Clone, Debug)]
pub struct SeqData {
    /// The binding blocks of the sequence, in order.
    pub blocks: Vec<Block>,
    /// The value of the sequence, which is an operand: a leaf (see [`ExprData`]) or a tuple of leaves.
    pub result: Expr,
}

/// The properties of a function expression.
#[derive(Clone, Debug)]
pub struct FuncData {
    /// The parameters of the function.
    pub params: Vec<Var>,
    /// The body of the function.
    pub body: Seq,
    /// The type of the function's result.
    pub ret_ty: Type,
    /// Whether calls of the function have no side effects.
    pub pure: bool,
    /// The attributes of a local function. Those of the root are [`Function::attrs`](super::Function::attrs).
    pub attrs: FuncAttrs,
}

// Every binding needs these nodes, so their sizes are limited.
const _: () = {
    assert!(size_of::<Binding>() == 12);
    assert!(size_of::<ExprData>() <= 40);
    assert!(size_of::<VarData>() <= 40);
};

//! The nodes of the graph level: variables, expressions, bindings, blocks, sequences.

use std::sync::Arc;

use cranelift_entity::{EntityList, entity_impl, packed_option::PackedOption};
use pliant_diag::Span;
use pliant_sym::Sym;
use pliant_tensor::DType;

use super::types::Type;
use crate::attrs::FuncAttrs;
use crate::op::Op;

/// A variable: a parameter, or the variable of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "var");

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(u32);
entity_impl!(Expr, "expr");

/// A binding block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// A sequence: binding blocks, then a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(u32);
entity_impl!(Seq, "seq");

/// A tensor constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Const(u32);
entity_impl!(Const, "const");

/// An interned string: the name of a global or packed function, or a string value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str(u32);
entity_impl!(Str, "str");

/// Interned attributes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttrsId(u32);
entity_impl!(AttrsId, "attrs");

/// A function expression: the root function, or a local function, which shares the root's arenas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "func");

/// The properties of a variable.
#[derive(Clone, Debug)]
pub struct VarData {
    /// The name, unique among the visible names.
    pub name: Arc<str>,
    /// The type.
    pub ty: Type,
    /// Whether it is local to its dataflow block.
    pub dataflow: bool,
    /// The source location.
    pub span: Span,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// An operator.
    Op(Op),
    /// A global function ([`ExprData::Global`]), a packed function ([`ExprData::Extern`]) or a variable that contains a function.
    Expr(Expr),
}

/// An expression in A-normal form: operands are leaves (variables, names, constants, shapes, scalars, strings, data types) or
/// tuples of leaves.
#[derive(Clone, Debug)]
pub enum ExprData {
    /// A variable.
    Var(Var),
    /// A function of the module, by its name.
    Global(Str),
    /// A packed function, by its registered name: `R.ExternFunc`.
    Extern(Str),
    /// A tensor constant.
    Constant(Const),
    /// A shape value.
    Shape(Box<[Sym]>),
    /// An integer scalar.
    Int(Sym, DType),
    /// A float scalar, represented by its bits as f64.
    Float(u64, DType),
    /// A string.
    Str(Str),
    /// A data type.
    DType(DType),
    /// A tuple of operands.
    Tuple(EntityList<Expr>),
    /// A field of a tuple.
    TupleGetItem(Expr, u32),
    /// A call.
    Call {
        /// The target.
        callee: Callee,
        /// The operands.
        args: EntityList<Expr>,
        /// The attributes.
        attrs: AttrsId,
        /// The result types, if they do not follow from the callee: `sinfo_args`, `out_sinfo`.
        ty_args: EntityList<Type>,
    },
    /// A conditional on a scalar bool.
    If {
        /// The condition.
        cond: Expr,
        /// Evaluated if the condition is true.
        then_seq: Seq,
        /// Evaluated if the condition is false.
        else_seq: Seq,
    },
    /// A local function.
    Func(FuncId),
}

/// A binding: `var = value`, or `var = match_cast(value, cast)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The variable that it defines.
    pub var: Var,
    /// The value.
    pub value: Expr,
    /// For a `match_cast`, the type against which the value is checked at run time. The binding defines the new symbols in this
    /// type.
    pub cast: PackedOption<Type>,
}

impl Binding {
    /// `var = value`.
    pub fn bind(var: Var, value: Expr) -> Self {
        Binding { var, value, cast: None.into() }
    }

    /// `var = match_cast(value, cast)`.
    pub fn match_cast(var: Var, value: Expr, cast: Type) -> Self {
        Binding { var, value, cast: Some(cast).into() }
    }
}

/// A binding block. A dataflow block is pure and has no control flow, and its dataflow variables are only visible inside.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Whether it is a dataflow block.
    pub dataflow: bool,
    /// The bindings, in order.
    pub bindings: Vec<Binding>,
}

/// A sequence of blocks with a result, which is a leaf or a tuple of leaves.
#[derive(Clone, Debug)]
pub struct SeqData {
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// The result.
    pub result: Expr,
}

/// A function expression.
#[derive(Clone, Debug)]
pub struct FuncData {
    /// The parameters.
    pub params: Vec<Var>,
    /// The body.
    pub body: Seq,
    /// The type of the result.
    pub ret_ty: Type,
    /// Whether calls have no side effects.
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

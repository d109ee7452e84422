//! Scalar (and vector) expressions of the loop level.

use std::fmt;
use std::sync::Arc;

use cranelift_entity::entity_impl;
use pliant_tensor::DType;

use super::buffer::Buffer;
use super::intrin::Intrin;

/// A variable: a scalar parameter, a size, a loop variable, a `let`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "tvar");

/// An expression, hash-consed within its function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(u32);
entity_impl!(Expr, "texpr");

/// The type of a value: an element type and a number of vector lanes (1 for scalars).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The element type.
    pub dtype: DType,
    /// The lanes; 1 for scalars.
    pub lanes: u16,
}

impl Ty {
    /// A scalar type.
    pub const fn scalar(dtype: DType) -> Self {
        Ty { dtype, lanes: 1 }
    }

    /// 64-bit integers: the type of sizes and indices.
    pub const I64: Ty = Ty::scalar(DType::Int64);
    /// Truth values.
    pub const BOOL: Ty = Ty::scalar(DType::Bool);

    /// The same element type with that many lanes.
    pub const fn with_lanes(self, lanes: u16) -> Self {
        Ty { dtype: self.dtype, lanes }
    }
}

impl From<DType> for Ty {
    fn from(dtype: DType) -> Self {
        Ty::scalar(dtype)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        if self.lanes != 1 {
            write!(f, "x{}", self.lanes)?;
        }
        Ok(())
    }
}

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarTy {
    /// A tensor argument, which `buffer_map` turns into a buffer; `T.handle`.
    Handle,
    /// A value.
    Value(Ty),
}

/// A variable's facts.
#[derive(Clone, Debug)]
pub struct VarData {
    /// Its name; printing makes names unique.
    pub name: Arc<str>,
    /// Its type.
    pub ty: VarTy,
}

/// Two-operand operators. Comparisons and the two connectives yield bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum; wraps for integers.
    Add,
    /// Difference; wraps for integers.
    Sub,
    /// Product; wraps for integers.
    Mul,
    /// Quotient: exact for floats, towards zero for integers.
    Div,
    /// Remainder of [`BinOp::Div`] (the sign of the dividend), integers.
    Mod,
    /// Quotient towards minus infinity.
    FloorDiv,
    /// Remainder of [`BinOp::FloorDiv`] (the sign of the divisor).
    FloorMod,
    /// The smaller; NaN if either is NaN.
    Min,
    /// The larger; NaN if either is NaN.
    Max,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Both; the second operand may be evaluated in any case.
    And,
    /// Either.
    Or,
}

impl BinOp {
    /// Whether the result is bool whatever the operands.
    pub fn is_predicate(self) -> bool {
        use BinOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | And | Or)
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprData {
    /// An integer or bool constant.
    Int(i64, Ty),
    /// A float constant, by its bits as f64.
    Float(u64, Ty),
    /// A string, only as an argument of calls.
    Str(Arc<str>),
    /// A variable.
    Var(Var),
    /// Conversion to a type; float to integer truncates and saturates.
    Cast(Ty, Expr),
    /// A two-operand operator.
    Binary(BinOp, Expr, Expr),
    /// Logical negation.
    Not(Expr),
    /// `c ? a : b`, both evaluated.
    Select(Expr, Expr, Expr),
    /// An element of a buffer; one index per dim, or one alone: the linear position from the first
    /// element, in lowered
    /// functions. A [`ExprData::Ramp`] as last index loads a vector.
    Load(Buffer, Box<[Expr]>),
    /// The vector `base, base + stride, ...`.
    Ramp(Expr, Expr, u16),
    /// A vector of equal elements.
    Broadcast(Expr, u16),
    /// A call of an intrinsic, of the given result type.
    Call(Intrin, Box<[Expr]>, Ty),
}

//! Scalar and vector expressions of the loop level.

use std::fmt;
use std::sync::Arc;

use cranelift_entity::entity_impl;
use pliant_tensor::DType;

use super::buffer::Buffer;
use super::intrin::Intrin;

/// The id of a variable: a scalar parameter, a size, a loop variable, or the variable of a `let`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "tvar");

/// The id of an expression. Expressions are hash-consed within their function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(u32);
entity_impl!(Expr, "texpr");

/// The type of a value: an element type and the number of vector lanes (1 for scalars).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The type of one lane.
    pub dtype: DType,
    /// The number of lanes; 1 for scalars.
    pub lanes: u16,
}

impl Ty {
    /// Creates a scalar type.
    pub const fn scalar(dtype: DType) -> Self {
        Ty { dtype, lanes: 1 }
    }

    /// The type of 64-bit integers, which sizes and indices have.
    pub const I64: Ty = Ty::scalar(DType::Int64);
    /// The type of Booleans.
    pub const BOOL: Ty = Ty::scalar(DType::Bool);

    /// The vector type with the same element type and the given number of lanes.
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
    /// A tensor argument that `buffer_map` maps to a buffer; `T.handle`.
    Handle,
    /// The variable has a scalar or vector value of this type.
    Value(Ty),
}

/// The properties of a variable of a loop function.
#[derive(Clone, Debug)]
pub struct VarData {
    /// The name of the variable. The printer makes names unique.
    pub name: Arc<str>,
    /// The type of the variable.
    pub ty: VarTy,
}

/// Binary operators. Comparisons and the two logical connectives return bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum; wraps for integers.
    Add,
    /// Difference; wraps for integers.
    Sub,
    /// Product; wraps for integers.
    Mul,
    /// Quotient. For integers, it is rounded towards zero.
    Div,
    /// Remainder of [`BinOp::Div`], with the sign of the dividend; for integers.
    Mod,
    /// Quotient, rounded towards minus infinity.
    FloorDiv,
    /// Remainder of [`BinOp::FloorDiv`], with the sign of the divisor.
    FloorMod,
    /// Minimum; NaN if either operand is NaN.
    Min,
    /// Maximum; NaN if either operand is NaN.
    Max,
    /// Whether the operands are equal.
    Eq,
    /// Whether the operands differ.
    Ne,
    /// Whether the first operand is less than the second.
    Lt,
    /// Whether the first operand is less than or equal to the second.
    Le,
    /// Whether the first operand is greater than the second.
    Gt,
    /// Whether the first operand is greater than or equal to the second.
    Ge,
    /// Logical and. Not short-circuiting: the second operand may always be evaluated.
    And,
    /// Logical or. Not short-circuiting: the second operand may always be evaluated.
    Or,
}

impl BinOp {
    /// Whether the operator returns bool for all operand types.
    pub fn is_predicate(self) -> bool {
        use BinOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | And | Or)
    }
}

/// An expression of the loop level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprData {
    /// An integer or bool constant.
    Int(i64, Ty),
    /// A float constant, represented by its bits as f64.
    Float(u64, Ty),
    /// A string, which can only be an argument of a call.
    Str(Arc<str>),
    /// A reference to a variable.
    Var(Var),
    /// A type conversion. From float to integer it truncates and saturates.
    Cast(Ty, Expr),
    /// A binary operator applied to two operands.
    Binary(BinOp, Expr, Expr),
    /// Logical negation of a bool operand.
    Not(Expr),
    /// `c ? a : b`, where both alternatives are evaluated.
    Select(Expr, Expr, Expr),
    /// A load from a buffer, with one index per dim or, in flat functions ([`FLAT`](super::func::FLAT)), a single linear index
    /// relative to the first element. If the last index is an [`ExprData::Ramp`], a vector is loaded.
    Load(Buffer, Box<[Expr]>),
    /// A vector (base, stride, number of lanes) with the lanes `base, base + stride, base + 2 * stride, ...`.
    Ramp(Expr, Expr, u16),
    /// A vector whose lanes all equal the scalar operand, with this number of lanes.
    Broadcast(Expr, u16),
    /// A call of an intrinsic with the given result type.
    Call(Intrin, Box<[Expr]>, Ty),
}

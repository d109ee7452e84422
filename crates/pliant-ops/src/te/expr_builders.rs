//! Functions that build expressions: constants, operators that convert their operands to one type,
//! intrinsics and reductions.
//!
//! Integer constants are folded if the result does not overflow. Neutral operands, such as a
//! summand 0, are dropped, so sizes and indices stay small. Floats are not folded, except for
//! conversions of constants.

use std::ops;
use std::sync::Arc;

use pliant_ir::tir::{BinOp, Intrin, IterKind, Ty};
use pliant_tensor::{DType, round_to_bf16, round_to_f16};

use super::expr::{CustomReducer, Expr, ExprKind, IterVar, Reduce, Reducer, Var};

// ---- constants and variables ----

/// An int64 constant.
pub fn int(value: i64) -> Expr {
    Expr::new(ExprKind::Int(value), Ty::I64)
}

/// A bool constant.
pub fn bool_const(value: bool) -> Expr {
    Expr::new(ExprKind::Int(value as i64), Ty::BOOL)
}

/// A float32 constant.
pub fn float(value: f64) -> Expr {
    Expr::new(ExprKind::Float(value), Ty::scalar(DType::Float32))
}

/// A constant of any element type. A float that becomes an integer is rounded towards zero.
pub fn const_of(value: f64, dtype: DType) -> Expr {
    let kind = if dtype.is_float() { ExprKind::Float(value) } else { ExprKind::Int(value as i64) };
    Expr::new(kind, Ty::scalar(dtype))
}

/// An integer constant of any element type.
pub fn int_of(value: i64, dtype: DType) -> Expr {
    let kind = if dtype.is_float() { ExprKind::Float(value as f64) } else { ExprKind::Int(value) };
    Expr::new(kind, Ty::scalar(dtype))
}

/// A string, which can only be an argument of a call.
pub fn string(value: impl Into<Arc<str>>) -> Expr {
    Expr::new(ExprKind::Str(value.into()), Ty::I64)
}

/// A new size variable. See [`Var::size`].
pub fn var(name: impl Into<Arc<str>>) -> Var {
    Var::size(name)
}

/// The largest value of a type (infinity for floats).
pub fn max_value(dtype: DType) -> Expr {
    match dtype {
        DType::Bool => bool_const(true),
        // The largest uint64 does not fit in the constant's 64 signed bits.
        DType::UInt64 => call(Intrin::BitwiseNot, vec![int_of(0, dtype)]),
        d if d.is_float() => const_of(f64::INFINITY, d),
        d if d.is_uint() => int_of((1i64 << d.bits()) - 1, d),
        d => int_of(i64::MAX >> (64 - d.bits()), d),
    }
}

/// The smallest value of a type (minus infinity for floats).
pub fn min_value(dtype: DType) -> Expr {
    match dtype {
        DType::Bool => bool_const(false),
        d if d.is_float() => const_of(f64::NEG_INFINITY, d),
        d if d.is_uint() => int_of(0, d),
        d => int_of(i64::MIN >> (64 - d.bits()), d),
    }
}

/// The largest finite value of a type, or the smallest one if `largest` is false.
pub fn finite_limit(dtype: DType, largest: bool) -> Expr {
    match dtype.largest_float() {
        Some(max) => const_of(if largest { max } else { -max }, dtype),
        None if largest => max_value(dtype),
        None => min_value(dtype),
    }
}

// ---- conversion and type matching ----

/// A conversion to `ty`. Constants are converted at compile time. An expression that already has the type is returned unchanged.
pub fn cast(e: &Expr, ty: impl Into<Ty>) -> Expr {
    let ty = ty.into();
    if e.ty() == ty {
        return e.clone();
    }
    let folded = match *e.kind() {
        ExprKind::Int(v) if ty.dtype.is_bool() => Some(ExprKind::Int((v != 0) as i64)),
        ExprKind::Int(v) if ty.dtype.is_float() && v.unsigned_abs() <= 1 << 53 => {
            Some(ExprKind::Float(v as f64))
        }
        ExprKind::Int(v) if fits(v, ty.dtype) => Some(ExprKind::Int(v)),
        ExprKind::Float(v) if ty.dtype.is_float() => {
            Some(ExprKind::Float(rounded(v, e.ty().dtype)))
        }
        _ => None,
    };
    match folded {
        Some(kind) if ty.lanes == 1 => Expr::new(kind, ty),
        _ => Expr::new(ExprKind::Cast(e.clone()), ty),
    }
}

/// Rounds the value of a float constant to the precision of its type `dtype`, because the literal may have more digits.
fn rounded(v: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => round_to_f16(v).to_f64(),
        DType::BFloat16 => round_to_bf16(v).to_f64(),
        DType::Float32 => f64::from(v as f32),
        _ => v,
    }
}

/// Whether an integer is in the range of an integer type.
fn fits(v: i64, dtype: DType) -> bool {
    match dtype {
        DType::Int64 => true,
        DType::UInt64 => v >= 0,
        d if d.is_uint() => (0..1i64 << d.bits()).contains(&v),
        d if d.is_int() => (-(1i64 << (d.bits() - 1))..1i64 << (d.bits() - 1)).contains(&v),
        _ => false,
    }
}

/// Converts both operands to one type. A constant gets the type of the other operand. Otherwise a
/// float type is preferred to an integer type, an integer type to bool, and a wider type to a
/// narrower one. A signed and an unsigned integer are converted to a signed type that represents
/// both, if there is one.
pub fn match_types(a: &Expr, b: &Expr) -> (Expr, Expr) {
    if a.ty() == b.ty() {
        return (a.clone(), b.clone());
    }
    let dtype = match (is_literal(a), is_literal(b)) {
        (true, false) if may_adopt(a, b.ty().dtype) => b.ty().dtype,
        (false, true) if may_adopt(b, a.ty().dtype) => a.ty().dtype,
        _ => a.ty().dtype.promote(b.ty().dtype),
    };
    (cast(a, Ty::scalar(dtype)), cast(b, Ty::scalar(dtype)))
}

fn is_literal(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Int(_) | ExprKind::Float(_))
}

/// Whether a constant can be converted to the other operand's type without changing its value.
fn may_adopt(literal: &Expr, dtype: DType) -> bool {
    match *literal.kind() {
        ExprKind::Int(v) => dtype.is_float() || fits(v, dtype),
        _ => dtype.is_float(),
    }
}

// ---- two-operand operators ----

/// An operator over two operands, which are first converted to one type. Constants are folded.
pub fn binary(op: BinOp, a: &Expr, b: &Expr) -> Expr {
    let (a, b) = operands(op, a, b);
    fold_binary(op, &a, &b).unwrap_or_else(|| node(op, a, b))
}

/// An operator over two operands without constant folding: `1 + 2` remains a sum.
pub fn binary_as_written(op: BinOp, a: &Expr, b: &Expr) -> Expr {
    let (a, b) = operands(op, a, b);
    node(op, a, b)
}

/// Converts the operands of an operator to the type in which the operator is computed.
fn operands(op: BinOp, a: &Expr, b: &Expr) -> (Expr, Expr) {
    let (a, b) = match_types(a, b);
    match op {
        BinOp::And | BinOp::Or => {
            let bools = |e: &Expr| cast(e, Ty::BOOL.with_lanes(e.ty().lanes));
            (bools(&a), bools(&b))
        }
        _ => (a, b),
    }
}

fn node(op: BinOp, a: Expr, b: Expr) -> Expr {
    let ty = if op.is_predicate() { Ty::BOOL.with_lanes(a.ty().lanes) } else { a.ty() };
    Expr::new(ExprKind::Binary(op, a, b), ty)
}

/// The result of an operator on integer constants, or one operand if the other one is neutral, such
/// as 0 in a sum. `None` if nothing can be folded.
fn fold_binary(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    use BinOp::*;
    if a.ty().dtype.is_float() || a.ty().lanes != 1 {
        return None;
    }
    let ty = a.ty();
    match (op, a.as_int(), b.as_int()) {
        (_, Some(x), Some(y)) if op.is_predicate() => Some(bool_const(fold_predicate(op, x, y))),
        (_, Some(x), Some(y)) => fold_ints(op, x, y)
            .filter(|v| fits(*v, ty.dtype))
            .map(|v| Expr::new(ExprKind::Int(v), ty)),
        (Add, Some(0), _) | (Mul, Some(1), _) => Some(b.clone()),
        (Add | Sub, _, Some(0)) | (Mul | FloorDiv | Div, _, Some(1)) => Some(a.clone()),
        (Mul, Some(0), _) => Some(a.clone()),
        (Mul, _, Some(0)) => Some(b.clone()),
        (FloorMod | Mod, _, Some(1)) => Some(Expr::new(ExprKind::Int(0), ty)),
        (And, Some(1), _) | (Or, Some(0), _) => Some(b.clone()),
        (And, _, Some(1)) | (Or, _, Some(0)) => Some(a.clone()),
        (And, Some(_), _) | (Or, Some(_), _) => Some(a.clone()),
        (And, _, Some(_)) | (Or, _, Some(_)) => Some(b.clone()),
        (Min | Max, _, _) if a.same_as(b) => Some(a.clone()),
        (Sub, _, _) if same_var(a, b) => Some(Expr::new(ExprKind::Int(0), ty)),
        (Eq | Le | Ge, _, _) if same_var(a, b) => Some(bool_const(true)),
        _ => None,
    }
}

fn same_var(a: &Expr, b: &Expr) -> bool {
    a.as_var().is_some() && a.as_var() == b.as_var()
}

fn fold_predicate(op: BinOp, x: i64, y: i64) -> bool {
    use BinOp::*;
    match op {
        Eq => x == y,
        Ne => x != y,
        Lt => x < y,
        Le => x <= y,
        Gt => x > y,
        Ge => x >= y,
        And => x != 0 && y != 0,
        _ => x != 0 || y != 0,
    }
}

fn fold_ints(op: BinOp, x: i64, y: i64) -> Option<i64> {
    use BinOp::*;
    match op {
        Add => x.checked_add(y),
        Sub => x.checked_sub(y),
        Mul => x.checked_mul(y),
        Div => x.checked_div(y),
        Mod => x.checked_rem(y),
        FloorDiv => {
            x.checked_div_euclid(y).map(|q| if y < 0 && x.rem_euclid(y) != 0 { q - 1 } else { q })
        }
        FloorMod => x.checked_rem_euclid(y).map(|r| if y < 0 && r != 0 { r + y } else { r }),
        Min => Some(x.min(y)),
        Max => Some(x.max(y)),
        _ => None,
    }
}

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        $($(#[$doc])* pub fn $name(a: &Expr, b: &Expr) -> Expr { binary(BinOp::$op, a, b) })*
    };
}

binary_functions! {
    /// `a // b`, rounded towards minus infinity.
    floordiv = FloorDiv;
    /// `a % b` with the sign of `b`.
    floormod = FloorMod;
    /// The integer quotient rounded towards zero.
    truncdiv = Div;
    /// The integer remainder with the sign of `a`.
    truncmod = Mod;
    /// The smaller of two values.
    minimum = Min;
    /// The larger of two values.
    maximum = Max;
    /// `a == b`.
    eq = Eq;
    /// `a != b`.
    ne = Ne;
    /// `a < b`.
    lt = Lt;
    /// `a <= b`.
    le = Le;
    /// `a > b`.
    gt = Gt;
    /// `a >= b`.
    ge = Ge;
    /// Logical and.
    and = And;
    /// Logical or.
    or = Or;
}

/// The quotient `a / b` rounded towards plus infinity. It is computed as `-(-a // b)` for a negative integer constant `b`, and
/// otherwise as `(a + b - 1) // b`, which is correct for positive `b`.
pub fn ceildiv(a: &Expr, b: &Expr) -> Expr {
    if b.as_int().is_some_and(|v| v < 0) && !b.ty().dtype.is_float() {
        return -&floordiv(&-a, b);
    }
    floordiv(&(a + &(b - &int_of(1, b.ty().dtype))), b)
}

/// The conjunction of all conditions. It is true if there are none.
pub fn all<'e>(conds: impl IntoIterator<Item = &'e Expr>) -> Expr {
    conds.into_iter().fold(bool_const(true), |acc, c| and(&acc, c))
}

macro_rules! overload {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl ops::$trait<&Expr> for &Expr {
            type Output = Expr;
            fn $method(self, rhs: &Expr) -> Expr { binary(BinOp::$op, self, rhs) }
        }
        impl ops::$trait<Expr> for Expr {
            type Output = Expr;
            fn $method(self, rhs: Expr) -> Expr { binary(BinOp::$op, &self, &rhs) }
        }
        impl ops::$trait<&Expr> for Expr {
            type Output = Expr;
            fn $method(self, rhs: &Expr) -> Expr { binary(BinOp::$op, &self, rhs) }
        }
        impl ops::$trait<Expr> for &Expr {
            type Output = Expr;
            fn $method(self, rhs: Expr) -> Expr { binary(BinOp::$op, self, &rhs) }
        }
        impl ops::$trait<i64> for Expr {
            type Output = Expr;
            fn $method(self, rhs: i64) -> Expr { binary(BinOp::$op, &self, &int(rhs)) }
        }
        impl ops::$trait<i64> for &Expr {
            type Output = Expr;
            fn $method(self, rhs: i64) -> Expr { binary(BinOp::$op, self, &int(rhs)) }
        }
    )*};
}

overload! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl ops::Neg for &Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        match *self.kind() {
            ExprKind::Int(v) if v.checked_neg().is_some_and(|n| fits(n, self.ty().dtype)) => {
                Expr::new(ExprKind::Int(-v), self.ty())
            }
            ExprKind::Float(v) => Expr::new(ExprKind::Float(-v), self.ty()),
            // `0 - x` is 0.0 for 0.0, whose negation is -0.0. The product has the right sign.
            _ if self.ty().dtype.is_float() => {
                binary(BinOp::Mul, self, &const_of(-1.0, self.ty().dtype))
            }
            _ => binary(BinOp::Sub, &int_of(0, self.ty().dtype), self),
        }
    }
}

impl ops::Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        -&self
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Self {
        int(value)
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Self {
        var.expr()
    }
}

// ---- other nodes ----

/// Logical negation.
pub fn not(a: &Expr) -> Expr {
    let a = cast(a, Ty::BOOL.with_lanes(a.ty().lanes));
    match (a.as_int(), a.kind()) {
        (Some(v), _) => bool_const(v == 0),
        (_, ExprKind::Not(inner)) => inner.clone(),
        _ => Expr::new(ExprKind::Not(a.clone()), a.ty()),
    }
}

/// `cond ? a : b`, where both operands are evaluated.
pub fn select(cond: &Expr, a: &Expr, b: &Expr) -> Expr {
    match cond.as_int() {
        Some(0) => match_types(a, b).1,
        Some(_) => match_types(a, b).0,
        None => {
            let (a, b) = match_types(a, b);
            let ty = a.ty();
            Expr::new(ExprKind::Select(cond.clone(), a, b), ty)
        }
    }
}

/// `cond ? a : b`, where only the chosen operand is evaluated. Use it for reads that the condition guards.
pub fn if_then_else(cond: &Expr, a: &Expr, b: &Expr) -> Expr {
    match cond.as_int() {
        Some(_) => select(cond, a, b),
        None => {
            let (a, b) = match_types(a, b);
            let ty = a.ty();
            Expr::new(ExprKind::Call(Intrin::IfThenElse, vec![cond.clone(), a, b]), ty)
        }
    }
}

/// A call of an intrinsic whose result has the type of its first operand, or bool for a predicate.
pub fn call(intrin: Intrin, args: Vec<Expr>) -> Expr {
    let first = args.first().map_or(Ty::I64, Expr::ty);
    let ty = match intrin {
        Intrin::IfThenElse => args.get(1).map_or(Ty::I64, Expr::ty),
        Intrin::IsNan | Intrin::IsInf | Intrin::IsFinite => Ty::BOOL.with_lanes(first.lanes),
        _ => first,
    };
    call_typed(intrin, args, ty)
}

/// A call of an intrinsic with the result type `ty`.
pub fn call_typed(intrin: Intrin, args: Vec<Expr>, ty: Ty) -> Expr {
    Expr::new(ExprKind::Call(intrin, args), ty)
}

/// The bits of `x` as an element of `dtype`, which has the size of the type of `x`.
pub fn reinterpret(x: &Expr, dtype: DType) -> Expr {
    call_typed(Intrin::Reinterpret, vec![x.clone()], Ty::from(dtype).with_lanes(x.ty().lanes))
}

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $name:ident = $intrin:ident;)*) => {
        $($(#[$doc])* pub fn $name(x: &Expr) -> Expr { call(Intrin::$intrin, vec![x.clone()]) })*
    };
}

unary_functions! {
    /// `e^x`.
    exp = Exp;
    /// Natural logarithm.
    log = Log;
    /// Square root.
    sqrt = Sqrt;
    /// `1 / sqrt(x)`.
    rsqrt = Rsqrt;
    /// Hyperbolic tangent.
    tanh = Tanh;
    /// Logistic function.
    sigmoid = Sigmoid;
    /// Error function.
    erf = Erf;
    /// Gaussian error linear unit.
    gelu = Gelu;
    /// Absolute value.
    abs = Abs;
    /// The value rounded towards minus infinity.
    floor = Floor;
    /// The value rounded towards plus infinity.
    ceil = Ceil;
    /// The value rounded towards zero.
    trunc = Trunc;
    /// The value rounded to the nearest integer, ties to even.
    round = Round;
    /// Sine.
    sin = Sin;
    /// Cosine.
    cos = Cos;
    /// Tangent.
    tan = Tan;
    /// Hyperbolic sine.
    sinh = Sinh;
    /// Hyperbolic cosine.
    cosh = Cosh;
    /// Inverse sine.
    asin = Asin;
    /// Inverse cosine.
    acos = Acos;
    /// Inverse tangent.
    atan = Atan;
    /// Inverse hyperbolic sine.
    asinh = Asinh;
    /// Inverse hyperbolic cosine.
    acosh = Acosh;
    /// Inverse hyperbolic tangent.
    atanh = Atanh;
    /// `log(1 + x)`.
    log1p = Log1p;
    /// Whether the value is NaN.
    isnan = IsNan;
    /// Whether the value is infinite.
    isinf = IsInf;
    /// Whether the value is neither NaN nor infinite.
    isfinite = IsFinite;
    /// Bitwise negation.
    bitwise_not = BitwiseNot;
}

/// Attaches integer values to the condition of an assertion. The placeholders `{0}`, `{1}`, ... in
/// the assertion's message are replaced by these values.
pub fn explain(cond: &Expr, values: &[Expr]) -> Expr {
    let cond = cast(cond, Ty::BOOL);
    let values = values.iter().map(|v| cast(v, Ty::I64));
    call(Intrin::Explain, std::iter::once(cond).chain(values).collect())
}

/// The text of a size in an error message: its value if it is constant, else the symbolic size with the placeholder for value `k`
/// of [`explain`], as in `n + 1 = {0}`.
pub fn size_text(size: &Expr, k: usize) -> String {
    match size.as_int() {
        Some(v) => v.to_string(),
        None => format!("{size} = {{{k}}}"),
    }
}

macro_rules! binary_intrinsics {
    ($($(#[$doc:meta])* $name:ident = $intrin:ident;)*) => {
        $($(#[$doc])* pub fn $name(a: &Expr, b: &Expr) -> Expr {
            let (a, b) = match_types(a, b);
            call(Intrin::$intrin, vec![a, b])
        })*
    };
}

binary_intrinsics! {
    /// `a^b`.
    power = Pow;
    /// The angle of the point `(b, a)`.
    atan2 = Atan2;
    /// Float remainder with the sign of `a`.
    fmod = Fmod;
    /// Bitwise and.
    bitwise_and = BitwiseAnd;
    /// Bitwise or.
    bitwise_or = BitwiseOr;
    /// Bitwise exclusive or.
    bitwise_xor = BitwiseXor;
    /// Shift of `a` to the left by `b` bits. The result is 0 if `b` is negative or not smaller than
    /// the width of the type.
    shift_left = ShiftLeft;
    /// Arithmetic shift of `a` to the right by `b` bits. If `b` is negative or not smaller than the width of the type, all bits of
    /// the result are copies of the sign bit.
    shift_right = ShiftRight;
}

/// `a * b + c`, rounded once.
pub fn fma(a: &Expr, b: &Expr, c: &Expr) -> Expr {
    let ((a, b), (_, c)) = (match_types(a, b), match_types(a, c));
    call(Intrin::Fma, vec![a, b, c])
}

/// Rebuilds a node with other operands and folds constants in the result. Returns the node itself
/// if no operand changes.
pub(super) fn with_children(e: &Expr, children: &[Expr]) -> Expr {
    if e.children().iter().zip(children).all(|(old, new)| old.same_as(new)) {
        return e.clone();
    }
    match e.kind() {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::Var(_) => e.clone(),
        ExprKind::Binary(op, ..) => binary(*op, &children[0], &children[1]),
        ExprKind::Cast(_) => cast(&children[0], e.ty()),
        ExprKind::Not(_) => not(&children[0]),
        ExprKind::Select(..) => select(&children[0], &children[1], &children[2]),
        ExprKind::Call(Intrin::IfThenElse, _) => {
            if_then_else(&children[0], &children[1], &children[2])
        }
        ExprKind::Call(i, _) => call_typed(*i, children.to_vec(), e.ty()),
        ExprKind::Load(t, _) => t.at(children),
        ExprKind::Ramp(..) => {
            Expr::new(ExprKind::Ramp(children[0].clone(), children[1].clone()), e.ty())
        }
        ExprKind::Broadcast(_) => Expr::new(ExprKind::Broadcast(children[0].clone()), e.ty()),
        ExprKind::Reduce(r) => {
            let mut r = (**r).clone();
            r.source = children[0].clone();
            r.init = children.get(1).cloned();
            Expr::new(ExprKind::Reduce(Arc::new(r)), e.ty())
        }
    }
}

// ---- reductions ----

/// An axis to reduce over `0 .. extent`.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// let k = te::var("k").expr();
/// let x = te::placeholder(vec![k.clone()], DType::Float32, "x");
/// let r = te::reduce_axis(k, "r");
/// let total = te::compute(vec![], "total", |_| te::sum(&x.at(&[r.var.expr()]), &[r.clone()]));
/// assert_eq!(total.ndim(), 0);
/// ```
pub fn reduce_axis(extent: Expr, name: impl Into<Arc<str>>) -> IterVar {
    reduce_axis_from(int(0), extent, name)
}

/// An axis to reduce over `min .. min + extent`.
pub fn reduce_axis_from(min: Expr, extent: Expr, name: impl Into<Arc<str>>) -> IterVar {
    IterVar { var: Var::size(name), min, extent: cast(&extent, Ty::I64), kind: IterKind::Reduce }
}

/// A reduction with any reducer. Without axes, it is the source, combined with `init` if there is one.
pub fn reduce(reducer: Reducer, source: &Expr, axes: &[IterVar], init: Option<Expr>) -> Expr {
    if axes.is_empty() {
        return match init {
            Some(init) => reducer.combine(&cast(&init, source.ty()), source),
            None => source.clone(),
        };
    }
    let r = Reduce { reducer, source: source.clone(), axes: axes.to_vec(), init };
    Expr::new(ExprKind::Reduce(Arc::new(r)), source.ty())
}

/// The sum over the axes, or 0 if there are no elements.
pub fn sum(source: &Expr, axes: &[IterVar]) -> Expr {
    reduce(Reducer::Sum, source, axes, None)
}

/// The product over the axes, or 1 if there are no elements.
pub fn prod(source: &Expr, axes: &[IterVar]) -> Expr {
    reduce(Reducer::Prod, source, axes, None)
}

/// The maximum over the axes. Without elements, it is minus infinity or the smallest integer. It is NaN if any element is NaN.
pub fn max(source: &Expr, axes: &[IterVar]) -> Expr {
    reduce(Reducer::Max, source, axes, None)
}

/// The minimum over the axes. Without elements, it is infinity or the largest integer. It is NaN if any element is NaN.
pub fn min(source: &Expr, axes: &[IterVar]) -> Expr {
    reduce(Reducer::Min, source, axes, None)
}

/// Creates a reducer from a commutative and associative function of two values and its neutral value.
pub fn comm_reducer(identity: Expr, combine: impl FnOnce(&Expr, &Expr) -> Expr) -> Reducer {
    let (lhs, rhs) = (Var::new("x", identity.ty()), Var::new("y", identity.ty()));
    let result = combine(&lhs.expr(), &rhs.expr());
    Reducer::Custom(Arc::new(CustomReducer { lhs, rhs, result, identity }))
}

impl Reducer {
    /// The result of a reduction over no values.
    pub fn identity(&self, dtype: DType) -> Expr {
        match self {
            Reducer::Sum => const_of(0.0, dtype),
            Reducer::Prod => const_of(1.0, dtype),
            Reducer::Max => min_value(dtype),
            Reducer::Min => max_value(dtype),
            Reducer::Custom(c) => c.identity.clone(),
        }
    }

    /// The expression in which the reducer combines the values `a` and `b`.
    pub fn combine(&self, a: &Expr, b: &Expr) -> Expr {
        match self {
            Reducer::Sum => binary(BinOp::Add, a, b),
            Reducer::Prod => binary(BinOp::Mul, a, b),
            Reducer::Max => binary(BinOp::Max, a, b),
            Reducer::Min => binary(BinOp::Min, a, b),
            Reducer::Custom(c) => {
                let map =
                    [(c.lhs.clone(), a.clone()), (c.rhs.clone(), b.clone())].into_iter().collect();
                super::substitute(&c.result, &map)
            }
        }
    }
}

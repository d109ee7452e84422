//! Converters of elementwise operators and casts.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_ops::shared_operator_rules::wide_float;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value, broadcast_shape};
use crate::node::{ConvertResult, ExprResult, Node};
use crate::proto::tensor_proto::DataType;
use crate::rational_dims::{self, RationalTensor, Rounding};
use crate::shape_folding::{self, FoldOp};
use crate::subbyte_types;

pub(super) static OPS: &[OnnxOp] = &[
    op("Abs", |n| unary(n, "relax.abs")),
    op("Acos", |n| unary(n, "relax.acos")),
    op("Acosh", |n| unary(n, "relax.acosh")),
    op("Add", |n| binary(n, "relax.add", Some(FoldOp::Add))),
    op("And", |n| binary(n, "relax.logical_and", Some(FoldOp::And))),
    op("Asin", |n| unary(n, "relax.asin")),
    op("Asinh", |n| unary(n, "relax.asinh")),
    op("Atan", |n| unary(n, "relax.atan")),
    op("Atanh", |n| unary(n, "relax.atanh")),
    op("BitShift", bit_shift),
    op("BitwiseAnd", |n| binary(n, "relax.bitwise_and", None)),
    op("BitwiseNot", |n| unary(n, "relax.bitwise_not")),
    op("BitwiseOr", |n| binary(n, "relax.bitwise_or", None)),
    op("BitwiseXor", |n| binary(n, "relax.bitwise_xor", None)),
    op("Cast", cast),
    op("CastLike", cast_like),
    op("Ceil", |n| round_op(n, "relax.ceil", Rounding::Up)),
    op("Cos", |n| unary(n, "relax.cos")),
    op("Cosh", |n| unary(n, "relax.cosh")),
    op("Div", divide),
    op("Equal", |n| binary(n, "relax.equal", Some(FoldOp::Equal))),
    op("Erf", |n| unary(n, "relax.erf")),
    op("Exp", |n| unary(n, "relax.exp")),
    op("Floor", |n| round_op(n, "relax.floor", Rounding::Down)),
    op("Greater", |n| binary(n, "relax.greater", Some(FoldOp::Greater))),
    op("GreaterOrEqual", |n| binary(n, "relax.greater_equal", Some(FoldOp::GreaterOrEqual))),
    op("IsInf", is_inf),
    op("IsNaN", |n| unary(n, "relax.isnan")),
    op("Less", |n| binary(n, "relax.less", Some(FoldOp::Less))),
    op("LessOrEqual", |n| binary(n, "relax.less_equal", Some(FoldOp::LessOrEqual))),
    op("Log", |n| unary(n, "relax.log")),
    op("Max", |n| variadic(n, "relax.maximum", Some(FoldOp::Max))),
    op("Mean", mean),
    op("Min", |n| variadic(n, "relax.minimum", Some(FoldOp::Min))),
    op("Mod", modulo),
    op("Mul", |n| binary(n, "relax.multiply", Some(FoldOp::Mul))),
    op("Neg", negate),
    op("Not", not),
    op("Or", |n| binary(n, "relax.logical_or", Some(FoldOp::Or))),
    op("Pow", power),
    op("Reciprocal", reciprocal),
    op("Round", |n| unary(n, "relax.round")),
    op("Sigmoid", |n| unary(n, "relax.sigmoid")),
    op("Sign", |n| unary(n, "relax.sign")),
    op("Sin", |n| unary(n, "relax.sin")),
    op("Sinh", |n| unary(n, "relax.sinh")),
    op("Sqrt", |n| unary(n, "relax.sqrt")),
    op("Sub", |n| binary(n, "relax.subtract", Some(FoldOp::Sub))),
    op("Sum", |n| variadic(n, "relax.add", Some(FoldOp::Add))),
    op("Tan", |n| unary(n, "relax.tan")),
    op("Tanh", |n| unary(n, "relax.tanh")),
    op("Where", where_op),
    op("Xor", |n| binary(n, "relax.logical_xor", None)),
];

fn unary(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    let x = n.tensor(0)?;
    Ok(vec![n.op(op, &[x])?.into()])
}

/// Converts `Floor` and `Ceil`. Fractions of symbolic sizes ([`Value::Rational`]) are rounded symbolically.
fn round_op(n: &mut Node<'_, '_>, op: &str, how: Rounding) -> ConvertResult {
    if let Value::Rational(r) = n.input(0)
        && let Some(product) = n.round_rational(&r, how)
    {
        return Ok(vec![Value::Rational(RationalTensor::from_integers(
            product,
            r.dtype,
            n.func(),
        ))]);
    }
    unary(n, op)
}

/// Converts a binary operator with broadcasting. If both inputs are shape computations, the result
/// is folded with `fold`.
fn binary(n: &mut Node<'_, '_>, op: &str, fold: Option<FoldOp>) -> ConvertResult {
    if let Some(fold) = fold
        && let Some(folded) = fold_inputs(n, fold)?
    {
        return Ok(vec![folded]);
    }
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    Ok(vec![n.op(op, &[a, b])?.into()])
}

/// Folds a binary operator whose inputs are shape computations; `None` if it cannot be folded.
fn fold_inputs(n: &mut Node<'_, '_>, fold: FoldOp) -> Result<Option<Value>, Problem> {
    if let Some(result) = n.fold_rational(fold) {
        return Ok(Some(result));
    }
    let (Some(a), Some(b)) = (n.symbolic(0), n.symbolic(1)) else { return Ok(None) };
    match shape_folding::binary(n.func(), fold, &a, &b) {
        Some(result) => Ok(Some(n.fit_to_dtype(result)?.into())),
        None => Ok(None),
    }
}

/// Folds a variadic operator whose inputs are all shape computations; `None` if it cannot be folded.
fn fold_all_inputs(n: &mut Node<'_, '_>, fold: FoldOp) -> Option<SymTensor> {
    let mut all = (0..n.len()).map(|i| n.symbolic(i)).collect::<Option<Vec<_>>>()?.into_iter();
    let first = all.next()?;
    all.try_fold(first, |a, b| shape_folding::binary(n.func(), fold, &a, &b))
}

/// Converts an operator with any number of inputs, which is applied from left to right.
fn variadic(n: &mut Node<'_, '_>, op: &str, fold: Option<FoldOp>) -> ConvertResult {
    if n.len() == 2 {
        return binary(n, op, fold);
    }
    if let Some(folded) = fold.and_then(|fold| fold_all_inputs(n, fold)) {
        return Ok(vec![n.fit_to_dtype(folded)?.into()]);
    }
    Ok(vec![accumulate(n, op)?.into()])
}

/// Creates the problem that a node with a variadic operator has no inputs.
fn no_inputs_problem() -> Problem {
    Problem::invalid("the node has no inputs, but needs at least one")
}

/// Emits calls of a binary operator that combine all inputs, from left to right.
fn accumulate(n: &mut Node<'_, '_>, op: &str) -> ExprResult {
    let mut inputs = n.tensors()?.into_iter();
    let first = inputs.next().ok_or_else(no_inputs_problem)?;
    inputs.try_fold(first, |sum, x| n.op(op, &[sum, x]))
}

fn mean(n: &mut Node<'_, '_>) -> ConvertResult {
    let mut inputs = n.tensors()?;
    let first = *inputs.first().ok_or_else(no_inputs_problem)?;
    let input_dtype = n.dtype(first)?;
    let wide = wide_float(input_dtype);
    for input in &mut inputs {
        *input = n.cast(*input, wide)?;
    }
    let (first, remainder) = (inputs[0], &inputs[1..]);
    let sum = remainder.iter().try_fold(first, |sum, &x| n.op("relax.add", &[sum, x]))?;
    let count = n.scalar_as(inputs.len() as f64, wide)?;
    let y = n.op("relax.divide", &[sum, count])?;
    Ok(vec![n.cast(y, input_dtype)?.into()])
}

/// Converts `Div`. Integer division rounds towards zero.
fn divide(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Some(folded) = fold_inputs(n, FoldOp::Div)? {
        return Ok(vec![folded]);
    }
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    Ok(vec![n.op("relax.divide", &[a, b])?.into()])
}

/// Converts `Mod`. The remainder has the sign of the dividend if `fmod` is 1, else the sign of the
/// divisor.
fn modulo(n: &mut Node<'_, '_>) -> ConvertResult {
    let truncated = n.attrs().int("fmod")?.unwrap_or(0) != 0;
    if !truncated && let Some(folded) = fold_inputs(n, FoldOp::Mod)? {
        return Ok(vec![folded]);
    }
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let dtype = n.dtype(a)?;
    if truncated && dtype.is_float() {
        return Ok(vec![float_remainder(n, a, b)?.into()]);
    }
    if !truncated || dtype.is_uint() {
        return Ok(vec![n.op("relax.floor_mod", &[a, b])?.into()]);
    }
    let quotient = n.op("relax.divide", &[a, b])?;
    let product = n.op("relax.multiply", &[quotient, b])?;
    Ok(vec![n.op("relax.subtract", &[a, product])?.into()])
}

/// Computes the remainder of floats, with the sign of the dividend. The remainder of the absolute
/// values is computed first, because it is exact without a correction of the sign.
fn float_remainder(n: &mut Node<'_, '_>, a: Expr, b: Expr) -> ExprResult {
    let dtype = n.dtype(a)?;
    let (dividend, divisor) = (n.op("relax.abs", &[a])?, n.op("relax.abs", &[b])?);
    let remainder = n.op("relax.floor_mod", &[dividend, divisor])?;
    let (zero, minus) = (n.scalar_as(0.0, dtype)?, n.op("relax.negative", &[remainder])?);
    let negative = n.op("relax.less", &[a, zero])?;
    n.op("relax.where", &[negative, minus, remainder])
}

fn power(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Some(result) = fold_power(n) {
        return Ok(vec![n.fit_to_dtype(result)?.into()]);
    }
    let (x, y) = (n.tensor(0)?, n.tensor(1)?);
    let dtype = n.dtype(x)?;
    let rank = n.constant(1).map_or(0, |e| e.shape().len());
    // A multiplication is exact and much faster than a general power.
    if let Some([e]) = n.const_floats(1).as_deref()
        && rank <= n.rank(x)?
    {
        if *e == 2.0 {
            return Ok(vec![n.op("relax.multiply", &[x, x])?.into()]);
        }
        if *e == 0.5 && dtype.is_float() {
            return Ok(vec![n.op("relax.sqrt", &[x])?.into()]);
        }
    }
    if !dtype.is_float() && n.dtype(y)?.is_float() {
        // An integer raised to a fractional power is computed in float64 and truncated.
        let [x, y] = [n.cast(x, DType::Float64)?, n.cast(y, DType::Float64)?];
        let power = n.op("relax.power", &[x, y])?;
        return Ok(vec![n.cast(power, dtype)?.into()]);
    }
    let exact = n.const_floats(1).is_some_and(|all| all.iter().all(|e| e.abs() <= 256.0));
    if dtype.is_float() && n.dtype(y)?.is_integer() && !exact {
        // A narrow base type may not represent whether a large exponent is odd.
        let [x, y] = [n.cast(x, DType::Float64)?, n.cast(y, DType::Float64)?];
        let power = n.op("relax.power", &[x, y])?;
        return Ok(vec![n.cast(power, dtype)?.into()]);
    }
    let y = n.cast(y, dtype)?;
    Ok(vec![n.op("relax.power", &[x, y])?.into()])
}

/// Folds a small integer power of a shape computation; `None` if it cannot be folded.
fn fold_power(n: &mut Node<'_, '_>) -> Option<SymTensor> {
    if !n.is_symbolic(0) {
        return None;
    }
    let (t, exponents) = (n.symbolic(0)?, n.constant(1)?);
    let shape: Vec<usize> = exponents.shape().iter().map(|&d| d as usize).collect();
    let shape = broadcast_shape(&t.shape, &shape).filter(|s| *s == t.shape)?;
    let exponents = exponents.to_f64_vec().ok()?;
    let [e] = exponents[..] else { return None };
    let is_whole = t.dtype != DType::Bool && e.fract() == 0.0 && (0.0..=8.0).contains(&e);
    if !is_whole {
        return None;
    }
    let syms = &mut n.func().syms;
    let one = syms.int(1);
    let power = |x: Sym| (0..e as u32).fold(one, |product, _| syms.mul(product, x));
    let elems = t.elems.iter().copied().map(power).collect();
    Some(SymTensor { shape, elems, dtype: t.dtype })
}

fn reciprocal(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let dtype = n.dtype(x)?;
    let one = n.scalar_as(1.0, dtype)?;
    Ok(vec![n.op("relax.divide", &[one, x])?.into()])
}

fn negate(n: &mut Node<'_, '_>) -> ConvertResult {
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
    {
        return Ok(vec![shape_folding::map(&t, t.dtype, |e| n.func().syms.neg(e)).into()]);
    }
    unary(n, "relax.negative")
}

fn not(n: &mut Node<'_, '_>) -> ConvertResult {
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
    {
        return Ok(vec![shape_folding::map(&t, DType::Bool, |e| n.func().syms.not(e)).into()]);
    }
    unary(n, "relax.logical_not")
}

fn bit_shift(n: &mut Node<'_, '_>) -> ConvertResult {
    let direction = n.attrs().str("direction")?;
    let op = match direction {
        Some("LEFT") => "relax.left_shift",
        Some("RIGHT") => "relax.right_shift",
        other => {
            let text = match other {
                Some(other) => {
                    format!("attribute 'direction' is '{other}', but must be LEFT or RIGHT")
                }
                None => "attribute 'direction' is missing; it must be LEFT or RIGHT".to_owned(),
            };
            return Err(Problem::attribute(text));
        }
    };
    binary(n, op, None)
}

fn cast(n: &mut Node<'_, '_>) -> ConvertResult {
    let code =
        n.attrs().int("to")?.ok_or_else(|| Problem::attribute("attribute 'to' is missing"))?;
    if let Some(narrow) = subbyte_types::narrow_type(code) {
        return cast_to_narrow(n, narrow);
    }
    cast_to(n, crate::initializer_tensors::checked_dtype(code)?)
}

fn cast_like(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Some((narrow, _)) = n.narrow_tensor(1)? {
        return cast_to_narrow(n, narrow);
    }
    let like_tensor = n.tensor(1)?;
    let to = n.dtype(like_tensor)?;
    cast_to(n, to)
}

/// Casts input 0 of the node to a dtype. The cast of a shape computation is folded.
fn cast_to(n: &mut Node<'_, '_>, to: DType) -> ConvertResult {
    if n.is_symbolic(0)
        && let Some(t) = n.symbolic(0)
        && matches!((t.dtype, to), (DType::Int64 | DType::Int32, DType::Int64 | DType::Int32))
        && t.elems.iter().all(|&e| n.func().syms.as_int(e).is_none_or(|v| to.has_int(v)))
    {
        return Ok(vec![shape_folding::map(&t, to, |e| e).into()]);
    }
    if let Some(result) = cast_symbolic(n, to) {
        return Ok(vec![result]);
    }
    let x = decoded_input(n)?;
    Ok(vec![n.cast(x, to)?.into()])
}

/// Folds a cast of symbolic sizes to floats, or of fractions of symbolic sizes to integers. The result of a cast to floats is a
/// [`Value::Rational`]. `None` for other casts.
fn cast_symbolic(n: &mut Node<'_, '_>, to: DType) -> Option<Value> {
    match n.input(0) {
        Value::Symbolic(t) if t.dtype != DType::Bool && rational_dims::is_foldable_float(to) => {
            Some(Value::Rational(RationalTensor::from_integers(t, to, n.func())))
        }
        Value::Rational(r) if r.dtype == to => Some(Value::Rational(r)),
        Value::Rational(r) if matches!(to, DType::Int64 | DType::Int32) => {
            let product = n.round_rational(&r, Rounding::Zero)?;
            Some(Value::Symbolic(SymTensor { dtype: to, ..product }))
        }
        _ => None,
    }
}

/// Input 0 of the node as a tensor. Floats of 4 and 8 bits, which are stored as bit patterns, are converted to float32.
fn decoded_input(n: &mut Node<'_, '_>) -> ExprResult {
    match n.narrow_tensor(0)? {
        Some((ty, codes)) if subbyte_types::is_narrow_float(ty) => {
            subbyte_types::decode_floats(n, ty, codes)
        }
        _ => n.tensor(0),
    }
}

/// Casts input 0 of the node to a narrow element type: an integer of 2 or 4 bits or a float of 4 or 8 bits, which the IR lacks.
fn cast_to_narrow(n: &mut Node<'_, '_>, to: DataType) -> ConvertResult {
    let saturate = n.attrs().int("saturate")?.unwrap_or(1) != 0;
    let x = decoded_input(n)?;
    let storage = subbyte_types::encode(n, to, x, saturate)?;
    Ok(vec![Value::Narrow(to, Box::new(storage.into()))])
}

fn is_inf(n: &mut Node<'_, '_>) -> ConvertResult {
    let positive = n.attrs().int("detect_positive")?.unwrap_or(1) != 0;
    let negative = n.attrs().int("detect_negative")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let infinite = n.op("relax.isinf", &[x])?;
    if positive && negative {
        return Ok(vec![infinite.into()]);
    }
    let dtype = n.dtype(x)?;
    let zero = n.scalar_as(0.0, dtype)?;
    let has_sign = match (positive, negative) {
        (true, _) => n.op("relax.greater", &[x, zero])?,
        (_, true) => n.op("relax.less", &[x, zero])?,
        _ => n.op("relax.not_equal", &[infinite, infinite])?,
    };
    Ok(vec![n.op("relax.logical_and", &[infinite, has_sign])?.into()])
}

fn where_op(n: &mut Node<'_, '_>) -> ConvertResult {
    if n.is_symbolic(0) || n.is_symbolic(1) || n.is_symbolic(2) {
        let parts = (n.symbolic(0), n.symbolic(1), n.symbolic(2));
        if let (Some(c), Some(a), Some(b)) = parts
            && let Some(folded) = shape_folding::select(n.func(), &c, &a, &b)
        {
            return Ok(vec![folded.into()]);
        }
    }
    let args = n.tensors()?;
    Ok(vec![n.op("relax.where", &args)?.into()])
}

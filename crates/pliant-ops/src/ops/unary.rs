//! Elementwise operators with one operand.

use pliant_ir::DType;

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{
    infer_unary, infer_unary_float, infer_unary_number, require_bits, require_scalar, te_unary,
};
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

macro_rules! unary_op {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.", $name), $infer, $doc)
            .operands(&["x"])
            .te(Pattern::ElemWise, |ctx| te_unary(ctx, "compute", $te))
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    unary_op!("abs", infer_unary, abs, "Absolute value.").numpy("abs").onnx(&["Abs"])
        .gradient(|g| g.unary(|x, _, dy| dy * x.apply("relax.sign"))),
    unary_op!("negative", infer_unary_number, |x| -x, "Negation.").numpy("negative").onnx(&["Neg"])
        .gradient(|g| g.unary(|_, _, dy| -dy)),
    unary_op!("square", infer_unary_number, |x| x * x, "Square.").numpy("square")
        .gradient(|g| g.unary(|x, _, dy| dy * x * 2.0)),
    unary_op!("sign", infer_unary_number, sign, "The sign: -1, 0 or 1. NaN and -0.0 are returned unchanged.")
        .numpy("sign")
        .onnx(&["Sign"])
        .zero_gradient(),
    unary_op!("floor", infer_unary, |x| round_floats(x, te::floor), "Rounds towards minus infinity. Integers are returned \
        unchanged.")
        .numpy("floor")
        .onnx(&["Floor"])
        .zero_gradient(),
    unary_op!("ceil", infer_unary, |x| round_floats(x, te::ceil), "Rounds towards plus infinity. Integers are returned \
        unchanged.")
        .numpy("ceil")
        .onnx(&["Ceil"])
        .zero_gradient(),
    unary_op!("trunc", infer_unary, |x| round_floats(x, te::trunc), "Rounds towards zero. Integers are returned unchanged.")
        .numpy("trunc")
        .zero_gradient(),
    unary_op!("round", infer_unary, |x| round_floats(x, te::round), "Rounds to the nearest integer, ties to even. Integers are \
        returned unchanged.")
        .numpy("round")
        .onnx(&["Round"])
        .zero_gradient(),
    unary_op!("exp", infer_unary_float, te::exp, "`e` to the power `x`.").numpy("exp").onnx(&["Exp"])
        .gradient(|g| g.unary(|_, y, dy| dy * y)),
    unary_op!("log", infer_unary_float, te::log, "Natural logarithm.").numpy("log").onnx(&["Log"])
        .gradient(|g| g.unary(|x, _, dy| dy / x)),
    unary_op!("sqrt", infer_unary_float, te::sqrt, "Square root.").numpy("sqrt").onnx(&["Sqrt"])
        .gradient(|g| g.unary(|_, y, dy| dy * 0.5 / y)),
    unary_op!("rsqrt", infer_unary_float, te::rsqrt, "Reciprocal of the square root.")
        .gradient(|g| g.unary(|x, y, dy| dy * y / x * -0.5)),
    unary_op!("sin", infer_unary_float, te::sin, "Sine of an angle in radians.").numpy("sin").onnx(&["Sin"])
        .gradient(|g| g.unary(|x, _, dy| dy * x.cos())),
    unary_op!("cos", infer_unary_float, te::cos, "Cosine of an angle in radians.").numpy("cos").onnx(&["Cos"])
        .gradient(|g| g.unary(|x, _, dy| -dy * x.sin())),
    unary_op!("tanh", infer_unary_float, te::tanh, "Hyperbolic tangent.")
        .numpy("tanh")
        .onnx(&["Tanh"])
        .gradient(|g| g.unary(|_, y, dy| dy * (1.0 - y.square()))),
    unary_op!("erf", infer_unary_float, te::erf, "Error function.").onnx(&["Erf"])
        .gradient(|g| g.unary(|x, _, dy| dy * (-x.square()).exp() * std::f64::consts::FRAC_2_SQRT_PI)),
    unary_op!("sigmoid", infer_unary_float, te::sigmoid, "Logistic function.").onnx(&["Sigmoid"])
        .gradient(|g| g.unary(|_, y, dy| dy * (y * (1.0 - y)))),
    unary_op!("tan", infer_unary_float, te::tan, "Tangent of an angle in radians.").numpy("tan").onnx(&["Tan"])
        .gradient(|g| g.unary(|_, y, dy| dy * (1.0 + y.square()))),
    unary_op!("sinh", infer_unary_float, te::sinh, "Hyperbolic sine.")
        .numpy("sinh")
        .onnx(&["Sinh"])
        .gradient(|g| g.unary(|x, _, dy| dy * x.apply("relax.cosh"))),
    unary_op!("cosh", infer_unary_float, te::cosh, "Hyperbolic cosine.")
        .numpy("cosh")
        .onnx(&["Cosh"])
        .gradient(|g| g.unary(|x, _, dy| dy * x.apply("relax.sinh"))),
    unary_op!("asin", infer_unary_float, te::asin, "Inverse sine, an angle in radians.").numpy("arcsin").onnx(&["Asin"])
        .gradient(|g| g.unary(|x, _, dy| dy * (1.0 - x.square()).rsqrt())),
    unary_op!("acos", infer_unary_float, te::acos, "Inverse cosine, an angle in radians.")
        .numpy("arccos")
        .onnx(&["Acos"])
        .gradient(|g| g.unary(|x, _, dy| -dy * (1.0 - x.square()).rsqrt())),
    unary_op!("atan", infer_unary_float, te::atan, "Inverse tangent, an angle in radians.")
        .numpy("arctan")
        .onnx(&["Atan"])
        .gradient(|g| g.unary(|x, _, dy| dy / (1.0 + x.square()))),
    unary_op!("asinh", infer_unary_float, te::asinh, "Inverse hyperbolic sine.")
        .numpy("arcsinh")
        .onnx(&["Asinh"])
        .gradient(|g| g.unary(|x, _, dy| dy * (1.0 + x.square()).rsqrt())),
    unary_op!("acosh", infer_unary_float, te::acosh, "Inverse hyperbolic cosine.")
        .numpy("arccosh")
        .onnx(&["Acosh"])
        .gradient(|g| g.unary(|x, _, dy| dy * (x.square() - 1.0).rsqrt())),
    unary_op!("atanh", infer_unary_float, te::atanh, "Inverse hyperbolic tangent.")
        .numpy("arctanh")
        .onnx(&["Atanh"])
        .gradient(|g| g.unary(|x, _, dy| dy / (1.0 - x.square()))),
    unary_op!(
        "bitwise_not",
        infer_bitwise,
        te::bitwise_not,
        "Bitwise negation; logical negation of bools."
    )
    .numpy("bitwise_not")
    .onnx(&["BitwiseNot"]),
    unary_op!("isnan", infer_bool, |x| classify(x, te::isnan, false), "Whether the element is NaN.")
        .numpy("isnan")
        .onnx(&["IsNaN"]),
    unary_op!("isinf", infer_bool, |x| classify(x, te::isinf, false), "Whether the element is infinite.")
        .numpy("isinf")
        .onnx(&["IsInf"]),
    unary_op!(
        "isfinite",
        infer_bool,
        |x| classify(x, te::isfinite, true),
        "Whether the element is neither NaN nor infinite."
    )
    .numpy("isfinite"),
    OpDecl::new(
        "relax.clip",
        infer_clip,
        "Clamps the elements to the range from `min` to `max`, two scalars. The result is `max` if `min` is larger than \
        `max`. NaN elements stay NaN.",
    )
    .operands(&["x", "min", "max"])
    .te(Pattern::ElemWise, te_clip)
    .numpy("clip")
    .onnx(&["Clip"])
    .errors("`min` or `max` is not a scalar")
        .gradient_from_te(),
    OpDecl::new("relax.logical_not", infer_bool, "Whether the element is 0.")
        .operands(&["x"])
        .te(Pattern::ElemWise, |ctx| te_unary(ctx, "compute", te::not))
        .numpy("logical_not")
        .onnx(&["Not"]),
    OpDecl::new("relax.astype", infer_astype, "Conversion to another data type.")
        .operands(&["x"])
        .attrs(&[("dtype", Default::Required)])
        .te(Pattern::ElemWise, te_astype)
        .numpy("astype")
        .onnx(&["Cast"])
        .errors("`dtype` is not the name of a data type")
        .gradient(|g| g.unary(|x, _, dy| dy.astype(x.dtype()))),
    OpDecl::new(
        "relax.bitcast",
        infer_bitcast,
        "The bits of the elements as elements of another data type of the same size. A byte other than 0 becomes True. 16-bit \
        floats are not accepted; R.memory.view reinterprets them.",
    )
    .operands(&["x"])
    .attrs(&[("dtype", Default::Required)])
    .te(Pattern::ElemWise, te_bitcast)
    .onnx(&["BitCast"])
    .errors("`dtype` is not the name of a data type, or its size differs from that of the elements, or one of the types is a 16-bit float"),
    OpDecl::new("relax.wrap_param", infer_astype, "Converts a model parameter to a data type.")
        .operands(&["data"])
        .attrs(&[("dtype", Default::Str("float32"))])
        .te(Pattern::ElemWise, te_astype)
        .errors("`dtype` is not the name of a data type")
        .gradient(|g| g.unary(|x, _, dy| dy.astype(x.dtype()))),
];

fn infer_bool(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    Ok(ctx.tensor_type_like(&t, Some(DType::Bool)))
}

fn infer_astype(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?;
    Ok(ctx.tensor_type_like(&t, dtype))
}

fn te_astype(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dtype = ctx.out_dtype(0)?;
    te_unary(ctx, "compute", |x| convert(x, dtype))
}

fn infer_bitcast(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?;
    // Loop functions convert 16-bit floats to float32 when they load them.
    if let Some(half) = [t.dtype, dtype].into_iter().flatten().find(|d| d.is_half()) {
        return Err(ctx.error(format!(
            "a loop function cannot reinterpret the bits of {half} elements; use R.memory.view(x, dtype=...)"
        )));
    }
    if let Some((from, to)) = t.dtype.zip(dtype)
        && from.size() != to.size()
    {
        return Err(ctx.error(format!(
            "the bits of {from} elements ({} bits) cannot be elements of {to} ({} bits); use astype to convert the values",
            8 * from.size(),
            8 * to.size()
        )));
    }
    Ok(ctx.tensor_type_like(&t, dtype))
}

fn te_bitcast(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dtype = ctx.out_dtype(0)?;
    te_unary(ctx, "bitcast", |x| {
        let x = if x.ty().dtype.is_bool() { &te::cast(x, DType::UInt8) } else { x };
        if dtype.is_bool() {
            convert(&te::reinterpret(x, DType::UInt8), dtype)
        } else {
            te::reinterpret(x, dtype)
        }
    })
}

/// Converts a value as NumPy does. A conversion to bool tests whether the value is nonzero.
pub fn convert(x: &Expr, dtype: DType) -> Expr {
    let from = x.ty().dtype;
    if dtype.is_bool() && !from.is_bool() {
        return te::ne(x, &te::int_of(0, from));
    }
    te::cast(x, dtype)
}

fn abs(x: &Expr) -> Expr {
    if x.ty().dtype.is_uint() || x.ty().dtype.is_bool() { x.clone() } else { te::abs(x) }
}

fn sign(x: &Expr) -> Expr {
    let constant = |v: i64| te::int_of(v, x.ty().dtype);
    if x.ty().dtype.is_uint() {
        return te::minimum(x, &constant(1));
    }
    let negative = te::select(&te::lt(x, &constant(0)), &constant(-1), x);
    te::select(&te::gt(x, &constant(0)), &constant(1), &negative)
}

/// Lowers a classification of floats, such as whether a value is NaN. For integers, the result is the constant `integers`.
fn classify(x: &Expr, f: fn(&Expr) -> Expr, integers: bool) -> Expr {
    if x.ty().dtype.is_float() { f(x) } else { te::bool_const(integers) }
}

/// Applies a rounding function `f` to `x` if `x` is a float. An integer is returned unchanged.
fn round_floats(x: &Expr, f: fn(&Expr) -> Expr) -> Expr {
    if x.ty().dtype.is_float() { f(x) } else { x.clone() }
}

fn infer_bitwise(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_bits(ctx, 0, &t)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn infer_clip(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    for i in [1, 2] {
        require_scalar(ctx, i)?;
        ctx.same_dtype(0, i)?;
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_clip(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (low, high) = (ctx.value(1)?, ctx.value(2)?);
    let dtype = ctx.out_dtype(0)?;
    te_unary(ctx, "compute", |x| {
        let low = clip_bound(&low.at(&[]), dtype);
        te::minimum(&te::maximum(x, &low), &clip_bound(&high.at(&[]), dtype))
    })
}

/// A bound of `clip` in the type of the clipped value. An integer constant is clamped to the range of that type.
fn clip_bound(e: &Expr, dtype: DType) -> Expr {
    let ends = (te::min_value(dtype).as_int(), te::max_value(dtype).as_int());
    match (e.as_int(), ends) {
        (Some(v), (Some(min), Some(max))) => te::int_of(v.clamp(min, max), dtype),
        _ => te::cast(e, dtype),
    }
}

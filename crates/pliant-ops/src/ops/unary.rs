//! One-operand elementwise operators, activations among them.

use pliant_ir::DType;

use crate::decl::{Default, OpDecl, Pattern};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::rules::{infer_unary, infer_unary_float, te_unary};
use crate::te::{self, Expr};

macro_rules! row {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.", $name), $infer, $doc)
            .operands(&["x"])
            .te(Pattern::ElemWise, |ctx| te_unary(ctx, "compute", $te))
    };
}

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    row!("abs", infer_unary, abs, "Absolute value.").numpy("abs").onnx(&["Abs"]),
    row!("negative", infer_unary, |x| -x, "Negation.").numpy("negative").onnx(&["Neg"]),
    row!("square", infer_unary, |x| x * x, "Square.").numpy("square"),
    row!("sign", infer_unary, sign, "-1, 0 or 1; NaN of NaN.").numpy("sign").onnx(&["Sign"]),
    row!("floor", infer_unary, |x| rounded(x, te::floor), "Towards minus infinity.")
        .numpy("floor")
        .onnx(&["Floor"]),
    row!("ceil", infer_unary, |x| rounded(x, te::ceil), "Towards plus infinity.")
        .numpy("ceil")
        .onnx(&["Ceil"]),
    row!("trunc", infer_unary, |x| rounded(x, te::trunc), "Towards zero.").numpy("trunc"),
    row!("round", infer_unary, |x| rounded(x, te::round), "To nearest, ties to even.")
        .numpy("round")
        .onnx(&["Round"]),
    row!("exp", infer_unary_float, te::exp, "e to that power.").numpy("exp").onnx(&["Exp"]),
    row!("log", infer_unary_float, te::log, "Natural logarithm.").numpy("log").onnx(&["Log"]),
    row!("sqrt", infer_unary_float, te::sqrt, "Square root.").numpy("sqrt").onnx(&["Sqrt"]),
    row!("rsqrt", infer_unary_float, te::rsqrt, "1 over the square root."),
    row!("sin", infer_unary_float, te::sin, "Sine.").numpy("sin").onnx(&["Sin"]),
    row!("cos", infer_unary_float, te::cos, "Cosine.").numpy("cos").onnx(&["Cos"]),
    row!("tanh", infer_unary_float, te::tanh, "Hyperbolic tangent.").numpy("tanh").onnx(&["Tanh"]),
    row!("erf", infer_unary_float, te::erf, "Error function.").onnx(&["Erf"]),
    row!("sigmoid", infer_unary_float, te::sigmoid, "Logistic function.").onnx(&["Sigmoid"]),
    row!("nn.relu", infer_unary, relu, "The larger of x and 0.").onnx(&["Relu"]),
    row!("nn.gelu", infer_unary_float, gelu, "x times the normal distribution function of x.")
        .onnx(&["Gelu"]),
    row!("nn.gelu_tanh", infer_unary_float, gelu_tanh, "Approximation of gelu by tanh.")
        .onnx(&["Gelu"]),
    row!("nn.silu", infer_unary_float, |x| x * te::sigmoid(x), "x times its logistic function."),
    OpDecl::new("relax.logical_not", infer_bool, "Whether 0.")
        .operands(&["x"])
        .te(Pattern::ElemWise, |ctx| te_unary(ctx, "compute", te::not))
        .numpy("logical_not")
        .onnx(&["Not"]),
    OpDecl::new("relax.astype", infer_astype, "Conversion to another data type.")
        .operands(&["x"])
        .attrs(&[("dtype", Default::Required)])
        .te(Pattern::ElemWise, te_astype)
        .numpy("astype")
        .onnx(&["Cast"]),
];

fn infer_bool(
    ctx: &mut crate::infer::InferCtx<'_>,
) -> Result<pliant_ir::relax::Type, pliant_ir::op::InferError> {
    let t = ctx.tensor(0)?;
    Ok(ctx.like(&t, Some(DType::Bool)))
}

fn infer_astype(
    ctx: &mut crate::infer::InferCtx<'_>,
) -> Result<pliant_ir::relax::Type, pliant_ir::op::InferError> {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?;
    Ok(ctx.like(&t, dtype))
}

fn te_astype(ctx: &mut LegalizeCtx<'_>) -> Result<Vec<te::Tensor>, LegalizeError> {
    let dtype = ctx.out_dtype(0)?;
    te_unary(ctx, "compute", |x| convert(x, dtype))
}

/// Conversion as NumPy's: to bool, whether not 0.
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
    let of = |v: i64| te::int_of(v, x.ty().dtype);
    let negative = te::select(&te::lt(x, &of(0)), &of(-1), x);
    te::select(&te::gt(x, &of(0)), &of(1), &negative)
}

/// Rounding leaves integers as they are.
fn rounded(x: &Expr, f: fn(&Expr) -> Expr) -> Expr {
    if x.ty().dtype.is_float() { f(x) } else { x.clone() }
}

fn relu(x: &Expr) -> Expr {
    te::maximum(x, &te::int_of(0, x.ty().dtype))
}

fn gelu(x: &Expr) -> Expr {
    let c = |v: f64| te::const_of(v, x.ty().dtype);
    x * c(0.5) * (c(1.0) + te::erf(&(x * c(std::f64::consts::FRAC_1_SQRT_2))))
}

fn gelu_tanh(x: &Expr) -> Expr {
    let c = |v: f64| te::const_of(v, x.ty().dtype);
    let cube = x * x * x;
    let inner = (x + cube * c(0.044715)) * c((2.0 / std::f64::consts::PI).sqrt());
    x * c(0.5) * (c(1.0) + te::tanh(&inner))
}

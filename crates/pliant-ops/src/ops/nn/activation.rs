//! Activations, and dropout, which is the identity outside of training.

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::relax::TypeData;

use crate::broadcast::BroadcastTarget;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{ConstantSizes, Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{
    infer_unary_float, infer_unary_number, require_float, shared_dim, te_unary, te_unary_steps,
};
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

macro_rules! activation {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.nn.", $name), $infer, $doc)
            .operands(&["data"])
            .te(Pattern::ElemWise, |ctx| te_unary(ctx, "compute", $te))
    };
}

macro_rules! float_activation {
    ($name:literal, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.nn.", $name), infer_unary_float, $doc)
            .operands(&["data"])
            .te(Pattern::ElemWise, |ctx| te_unary_steps(ctx, $te))
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    activation!("relu", infer_unary_number, relu, "`max(x, 0)`.").onnx(&["Relu"])
    .gradient(|g| g.unary(|x, _, dy| x.constant(0.0).less(x).select(dy, dy.constant(0.0)))),
    activation!("relu6", infer_unary_number, relu6, "ReLU with an upper limit: `min(max(x, 0), 6)`.")
    .gradient_from_te(),
    float_activation!("gelu", te::gelu, "GELU (Hendrycks and Gimpel, 2016): `x` times the cumulative distribution function of \
        the standard normal distribution at `x`.")
        .onnx(&["Gelu"])
    .gradient_from_te(),
    float_activation!("gelu_tanh", gelu_tanh, "GELU, approximated with tanh.").onnx(&["Gelu"])
    .gradient_from_te(),
    float_activation!("silu", |x| x * te::sigmoid(x), "`x * sigmoid(x)`.")
        .onnx(&["Swish"])
    .gradient(|g| {
        g.unary(|x, _, dy| {
            let s = x.sigmoid();
            dy * (s * (1.0 + x * (1.0 - s)))
        })
    }),
    float_activation!("selu", selu, "SELU (Klambauer et al., 2017): `scale * x` for positive `x`, else `scale * alpha * (exp(x) \
        - 1)`, with the constants of the paper.")
        .onnx(&["Selu"])
    .gradient_from_te(),
    OpDecl::new("relax.nn.leakyrelu", infer_leaky, "Leaky ReLU: `alpha * x` for negative `x`, otherwise `x`.")
        .operands(&["data"])
        .attrs(&[("alpha", Default::Float(0.01))])
        .te(Pattern::ElemWise, te_leaky)
        .onnx(&["LeakyRelu"])
        .errors("`alpha` is NaN")
    .gradient_from_te(),
    OpDecl::new(
        "relax.nn.prelu",
        infer_prelu,
        "Parametric ReLU (He et al., 2015): `x`, multiplied by a slope where it is negative. `alpha` has one slope per index of \
        the axis, or one for all elements.",
    )
    .operands(&["data", "alpha"])
    .attrs(&[("axis", Default::Int(1))])
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::Broadcast, te_prelu)
    .constant_sizes(ConstantSizes::WhetherOne)
    .onnx(&["PRelu"])
    .errors("`alpha` has more than 1 dim or not one element per index of the axis, or the axis is out of range")
    .gradient_from_te(),
    OpDecl::new(
        "relax.nn.softplus",
        infer_softplus,
        "`log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` exceeds the threshold.",
    )
    .operands(&["data"])
    .attrs(&[("beta", Default::Float(1.0)), ("threshold", Default::Float(20.0))])
    .te(Pattern::ElemWise, te_softplus)
    .onnx(&["Softplus"])
    .errors("`beta` is 0")
    .gradient_from_te(),
    OpDecl::new(
        "relax.nn.dropout",
        infer_dropout,
        "Dropout in inference: the unchanged data, and a mask of ones of the same type.",
    )
    .operands(&["data"])
    .attrs(&[("rate", Default::Float(0.5))])
    .te(Pattern::ElemWise, te_dropout)
    .onnx(&["Dropout"])
    .errors("`rate` is not between 0 and 1")
    .gradient_from_te(),
];

fn relu(x: &Expr) -> Expr {
    te::maximum(x, &te::int_of(0, x.ty().dtype))
}

fn gelu_tanh(x: &Expr) -> Expr {
    let c = |v: f64| te::const_of(v, x.ty().dtype);
    let cube = x * x * x;
    let twice = (x + cube * c(0.044715)) * c((8.0 / std::f64::consts::PI).sqrt());
    // The logistic function avoids the cancellation in `1 + tanh`.
    x * te::sigmoid(&twice)
}

fn relu6(x: &Expr) -> Expr {
    te::minimum(&relu(x), &te::int_of(6, x.ty().dtype))
}

/// SELU. `e^x - 1` is computed with tanh, which is precise near 0.
fn selu(x: &Expr) -> Expr {
    const SCALE: f64 = 1.050_700_987_355_480_5;
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    let c = |v: f64| te::const_of(v, x.ty().dtype);
    let below = te::tanh(&(x * c(0.5))) * (te::exp(x) + c(1.0)) * c(SCALE * ALPHA);
    te::select(&te::gt(x, &c(0.0)), &(x * c(SCALE)), &below)
}

fn infer_leaky(ctx: &mut InferCtx<'_>) -> InferResult {
    if ctx.float("alpha")?.is_nan() {
        return Err(ctx.error("alpha must be a number, but is NaN"));
    }
    infer_unary_float(ctx)
}

fn te_leaky(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let alpha = ctx.infer().float("alpha")?;
    te_unary_steps(ctx, |x| scale_negative(x, &te::const_of(alpha, x.ty().dtype)))
}

/// Returns `x` if `x` is not negative, else `x * slope`.
fn scale_negative(x: &Expr, slope: &Expr) -> Expr {
    te::select(&te::lt(x, &te::int_of(0, x.ty().dtype)), &(x * slope), x)
}

/// The axis along which the slopes in the operand `alpha` vary. `None` if `alpha` has only one
/// slope.
fn prelu_axis(ctx: &mut InferCtx<'_>, ndim: usize) -> Result<Option<usize>, InferError> {
    let alpha = ctx.tensor(1)?;
    let one = match (&alpha.dims, alpha.ndim) {
        (_, Some(0)) => true,
        (Some(d), _) => d.len() == 1 && ctx.func.syms.as_int(d[0]) == Some(1),
        _ => false,
    };
    if one { Ok(None) } else { ctx.axis("axis", ndim).map(Some) }
}

fn infer_prelu(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, alpha) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_float(ctx, 0, &t)?;
    let dtype = ctx.same_dtype(0, 1)?;
    if alpha.ndim.is_some_and(|n| n > 1) {
        return Err(
            ctx.error(format!("alpha must have 1 dim, but is {ty}", ty = ctx.operand_type_text(1)))
        );
    }
    if let Some(ndim) = t.ndim
        && let Some(axis) = prelu_axis(ctx, ndim)?
        && let (Some(dims), Some(alpha_dims)) = (&t.dims, &alpha.dims)
        && shared_dim(ctx, dims[axis], alpha_dims[0]).is_none()
    {
        let (size, slopes) = (ctx.dim_text(dims[axis]), ctx.dim_text(alpha_dims[0]));
        return Err(ctx.error(format!(
            "axis {axis} of data has size {size}, but alpha has {slopes} elements"
        )));
    }
    Ok(ctx.tensor_type_like(&t, dtype))
}

fn te_prelu(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let x = ctx.value(0)?;
    let axis = prelu_axis(&mut ctx.infer(), dims.len())?;
    let Some(axis) = axis else {
        let (alpha, ndim) = (ctx.value(1)?, ctx.dims(1)?.len());
        let slope = te::cast(&alpha.at(&vec![te::int(0); ndim]), x.dtype());
        let shape = x.shape().to_vec();
        return Ok(vec![te::compute(shape, "T_prelu", |i| scale_negative(&x.at(i), &slope))]);
    };
    let mut target = BroadcastTarget::new(&dims[axis..=axis]);
    let alpha = target.operand(ctx, 1)?;
    let out = te::compute(x.shape().to_vec(), "T_prelu", |i| {
        scale_negative(&x.at(i), &te::cast(&alpha.at(&i[axis..=axis]), x.dtype()))
    });
    Ok(vec![target.checked(ctx, out)])
}

fn infer_softplus(ctx: &mut InferCtx<'_>) -> InferResult {
    ctx.float("threshold")?;
    if ctx.float("beta")? == 0.0 {
        return Err(ctx.error("beta must not be 0"));
    }
    infer_unary_float(ctx)
}

/// Lowers softplus as `max(x, 0) + log1p(exp(-|x|))`, so that no exponential overflows.
fn te_softplus(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let infer = ctx.infer();
    let (beta, threshold) = (infer.float("beta")?, infer.float("threshold")?);
    te_unary_steps(ctx, |x| {
        let c = |v: f64| te::const_of(v, x.ty().dtype);
        let scaled = if beta == 1.0 { x.clone() } else { x * c(beta) };
        let soft = te::maximum(&scaled, &c(0.0)) + te::log1p(&te::exp(&-te::abs(&scaled)));
        let soft = if beta == 1.0 { soft } else { soft / c(beta) };
        te::select(&te::gt(&scaled, &c(threshold)), x, &soft)
    })
}

fn infer_dropout(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    let rate = ctx.float("rate")?;
    if !(0.0..=1.0).contains(&rate) {
        return Err(ctx.error(format!("rate must be between 0 and 1, but is {rate}")));
    }
    let one = ctx.tensor_type_like(&t, t.dtype);
    Ok(ctx.func.intern(TypeData::Tuple([one, one].into())))
}

fn te_dropout(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.value(0)?;
    let shape = x.shape().to_vec();
    let mask = |_: &[Expr]| te::const_of(1.0, x.dtype());
    Ok(vec![
        te::compute(shape.clone(), "T_dropout", |i| x.at(i)),
        te::compute(shape, "T_dropout_mask", mask),
    ])
}

//! Operators for layer and RMS normalization.

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;

use super::super::reductions::{ReductionAxes, accumulator};
use super::norm_gradients;
use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{require_float, shared_dim};
use crate::te::{self, Expr, Reducer};
use crate::type_inference::{InferCtx, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.layer_norm",
        infer_norm,
        "Layer normalization (Ba et al., 2016): normalizes over `axes` to mean 0 and variance 1, then applies `gamma` and \
        `beta`.",
    )
    .operands(&["data", "gamma", "beta"])
    .attrs(&[
        ("axes", Default::Required),
        ("epsilon", Default::Float(1e-5)),
        ("center", Default::Bool(true)),
        ("scale", Default::Bool(true)),
    ])
    .lists(&[("axes", 1)])
    .dims(DimTrait::Named(&["axes"]))
    .te(Pattern::CommReduce, te_layer_norm)
    .onnx(&["LayerNormalization"])
    .errors("an axis is out of range or occurs twice, or a parameter does not have the dims of `axes`")
    .gradient(norm_gradients::layer_norm),
    OpDecl::new(
        "relax.nn.rms_norm",
        infer_norm,
        "RMS normalization (Zhang and Sennrich, 2019): divides by the root mean square over `axes`, then multiplies by \
        `weight`.",
    )
    .operands(&["data", "weight"])
    .attrs(&[("axes", Default::Ints(&[-1])), ("epsilon", Default::Float(1e-5))])
    .lists(&[("axes", 1)])
    .dims(DimTrait::Named(&["axes"]))
    .te(Pattern::CommReduce, te_rms_norm)
    .onnx(&["RMSNormalization"])
    .errors("an axis is out of range or occurs twice, or a parameter does not have the dims of `axes`")
    .gradient(norm_gradients::rms_norm),
];

// ---- types ----

fn infer_norm(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    if let Some(ndim) = t.ndim {
        let axes = ctx.axes("axes", ndim)?.unwrap_or_default();
        for i in 1..ctx.args.len() {
            check_param(ctx, i, &t, &axes)?;
        }
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

/// Checks that all operands have the same data type, also if that of the data is unknown.
///
/// # Errors
/// If two data types differ.
pub(super) fn check_dtypes(ctx: &InferCtx<'_>) -> Result<(), InferError> {
    for i in 1..ctx.args.len() {
        for other in 0..i {
            ctx.same_dtype(other, i)?;
        }
    }
    Ok(())
}

/// Checks that parameter `i` has the dims of the normalized axes of the data.
///
/// # Errors
/// If the parameter has another type or rank, or a dim provably differs.
pub(super) fn check_param(
    ctx: &mut InferCtx<'_>,
    i: usize,
    data: &TensorTy,
    axes: &[usize],
) -> Result<(), InferError> {
    let p = ctx.tensor(i)?;
    ctx.same_dtype(0, i)?;
    if p.ndim.is_some_and(|n| n != axes.len()) {
        let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
        return Err(ctx.error(format!(
            "{name} must have {} dims, one for each normalized axis, but is {ty}",
            axes.len()
        )));
    }
    let (Some(dims), Some(param_dims)) = (&data.dims, p.dims) else { return Ok(()) };
    for (&axis, &d) in axes.iter().zip(&param_dims) {
        shared_dim(ctx, dims[axis], d).ok_or_else(|| {
            let (expected, actual) = (ctx.dim_text(dims[axis]), ctx.dim_text(d));
            let (name, data) = (ctx.operand_name(i), ctx.operand_name(0));
            ctx.error(format!(
                "{name} has size {actual} for axis {axis} of {data}, but this axis has size {expected}"
            ))
        })?;
        ctx.assume_equal(dims[axis], d);
    }
    Ok(())
}

// ---- lowering ----

/// Reads the data, the normalized axes, and the parameters. The dims of the parameters are assumed
/// to equal the normalized dims of the data, which the loop function checks.
fn norm_operands(
    ctx: &mut LegalizeCtx<'_>,
) -> Result<(Value, Vec<usize>, Vec<Value>), LegalizeError> {
    let dims = ctx.dims(0)?;
    let axes = ctx.infer().axes("axes", dims.len())?.unwrap_or_default();
    let x = ctx.value(0)?;
    let param_dims: Vec<_> = axes.iter().map(|&a| dims[a]).collect();
    let params = (1..ctx.args.len())
        .map(|i| ctx.value_with_dims(i, &param_dims))
        .collect::<Result<_, _>>()?;
    Ok((x, axes, params))
}

fn te_layer_norm(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (x, axes, params) = norm_operands(ctx)?;
    let infer = ctx.infer();
    let (center, scale) = (infer.bool("center")?, infer.bool("scale")?);
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let epsilon = epsilon(ctx, acc_dtype)?;
    let reduced = ReductionAxes::new(x.shape(), axes.clone(), false);
    let count = te::cast(&reduced.count(), acc_dtype);
    let at = |i: &[Expr]| te::cast(&x.at(i), acc_dtype);
    let sum = reduced.stage("T_layer_norm_sum", Reducer::Sum, at);
    let mean = te::compute(sum.shape().to_vec(), "T_layer_norm_mean", |i| sum.at(i) / &count);
    let centred = |i: &[Expr]| at(i) - mean.at(&reduced.out_indices(i));
    let squares = reduced.stage("T_layer_norm_squares", Reducer::Sum, |i| {
        let d = centred(i);
        &d * &d
    });
    // Stages of their own, since each value is read once per element.
    let inverse_deviation =
        te::compute(squares.shape().to_vec(), "T_layer_norm_inverse_deviation", |i| {
            te::rsqrt(&(squares.at(i) / &count + &epsilon))
        });
    Ok(vec![te::compute(x.shape().to_vec(), "T_layer_norm", |i| {
        let param_indices: Vec<Expr> = axes.iter().map(|&a| i[a].clone()).collect();
        let mut y = centred(i) * inverse_deviation.at(&reduced.out_indices(i));
        if scale {
            y = y * te::cast(&params[0].at(&param_indices), acc_dtype);
        }
        if center {
            y = y + te::cast(&params[1].at(&param_indices), acc_dtype);
        }
        te::cast(&y, dtype)
    })])
}

fn te_rms_norm(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (x, axes, params) = norm_operands(ctx)?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let epsilon = epsilon(ctx, acc_dtype)?;
    let reduced = ReductionAxes::new(x.shape(), axes.clone(), false);
    let count = te::cast(&reduced.count(), acc_dtype);
    let at = |i: &[Expr]| te::cast(&x.at(i), acc_dtype);
    let squares = reduced.stage("T_rms_norm_squares", Reducer::Sum, |i| at(i) * at(i));
    let inverse_root = te::compute(squares.shape().to_vec(), "T_rms_norm_inverse_root", |i| {
        te::rsqrt(&(squares.at(i) / &count + &epsilon))
    });
    Ok(vec![te::compute(x.shape().to_vec(), "T_rms_norm", |i| {
        let param_indices: Vec<Expr> = axes.iter().map(|&a| i[a].clone()).collect();
        let y = at(i)
            * inverse_root.at(&reduced.out_indices(i))
            * te::cast(&params[0].at(&param_indices), acc_dtype);
        te::cast(&y, dtype)
    })])
}

/// The attribute `epsilon`, which is added to the variance, as an expression.
///
/// # Errors
/// If the attribute is not a number.
pub(super) fn epsilon(
    ctx: &LegalizeCtx<'_>,
    dtype: pliant_ir::DType,
) -> Result<Expr, LegalizeError> {
    let value =
        ctx.attr("epsilon").as_float().ok_or_else(|| ctx.error("epsilon must be a number"))?;
    Ok(te::const_of(value, dtype))
}

//! Batch normalization, with the statistics of the batch in training and with the moving statistics otherwise.

use pliant_ir::op::DimTrait;
use pliant_ir::relax::TypeData;

use super::super::reductions::{ReductionAxes, accumulator};
use super::layer_norm::{check_dtypes, check_param, epsilon};
use crate::legalize::{LegalizeCtx, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::require_float;
use crate::te::{self, Expr, Reducer};
use crate::type_inference::{InferCtx, Precision};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.nn.batch_norm",
    infer,
    "Batch normalization (Ioffe and Szegedy, 2015) with the mean and the population variance for each index of the axis. In \
    training, these are the statistics of the batch, and the moving statistics are updated by the momentum; otherwise, they are \
    the moving statistics. Returns the normalized data, the new mean and the new variance.",
)
.operands(&["data", "gamma", "beta", "moving_mean", "moving_var"])
.attrs(&[
    ("axis", Default::Required),
    ("epsilon", Default::Float(1e-5)),
    ("center", Default::Bool(true)),
    ("scale", Default::Bool(true)),
    ("momentum", Default::Float(0.1)),
    ("training", Default::Bool(true)),
])
.dims(DimTrait::Named(&["axis"]))
.te(Pattern::CommReduce, te_norm)
.onnx(&["BatchNormalization"])
.errors("the axis is out of range, a parameter is not a vector with the size of the axis, or `momentum` is not between 0 and 1")
    .gradient_from_te()];

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    let momentum = ctx.float("momentum")?;
    if !(0.0..=1.0).contains(&momentum) {
        return Err(ctx.error(format!("momentum must be between 0 and 1, but is {momentum}")));
    }
    for key in ["center", "scale", "training"] {
        ctx.bool(key)?;
    }
    check_dtypes(ctx)?;
    let mut channel_dims = None;
    if let Some(ndim) = t.ndim {
        let axis = ctx.axis("axis", ndim)?;
        for i in 1..5 {
            check_param(ctx, i, &t, &[axis])?;
        }
        channel_dims = t.dims.as_ref().map(|d| vec![d[axis]]);
    }
    let out = ctx.tensor_type_like(&t, t.dtype);
    let mut fields = vec![out];
    for i in [3, 4] {
        // A statistic has the size of the axis, or the shape of the operand that it updates.
        let known = channel_dims.clone().filter(|_| ctx.precision == Precision::Full);
        let stat = ctx.tensor(i)?;
        fields.push(match (known, stat.ndim) {
            (None, Some(_)) => ctx.tensor_type_like(&stat, t.dtype),
            (known, _) => ctx.tensor_type(known, Some(1), t.dtype),
        });
    }
    Ok(ctx.func.intern(TypeData::Tuple(fields.into())))
}

fn te_norm(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let infer = ctx.infer();
    let axis = infer.axis("axis", dims.len())?;
    let (center, scale) = (infer.bool("center")?, infer.bool("scale")?);
    let (training, momentum) = (infer.bool("training")?, infer.float("momentum")?);
    let x = ctx.value(0)?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let epsilon = epsilon(ctx, acc_dtype)?;
    let channel_dims = [dims[axis]];
    let params: Vec<Value> =
        (1..5).map(|i| ctx.value_with_dims(i, &channel_dims)).collect::<Result<_, _>>()?;
    let at = |i: &[Expr]| te::cast(&x.at(i), acc_dtype);
    let others = (0..dims.len()).filter(|&a| a != axis).collect();
    let reduced = ReductionAxes::new(x.shape(), others, false);
    let batch_sums = training.then(|| {
        let count = te::cast(&reduced.count(), acc_dtype);
        let sum = reduced.stage("T_batch_norm_sum", Reducer::Sum, at);
        let squares = reduced.stage("T_batch_norm_squares", Reducer::Sum, |i| {
            let d = at(i) - sum.at(&i[axis..=axis]) / &count;
            &d * &d
        });
        (sum, squares, count)
    });
    // The mean and the variance for an index on the axis.
    let moments = |c: &[Expr]| match &batch_sums {
        Some((sum, squares, count)) => (sum.at(c) / count, squares.at(c) / count),
        None => (te::cast(&params[2].at(c), acc_dtype), te::cast(&params[3].at(c), acc_dtype)),
    };
    let out = te::compute(x.shape().to_vec(), "T_batch_norm", |i| {
        let c = &i[axis..=axis];
        let (mean, variance) = moments(c);
        let mut y = (at(i) - mean) * te::rsqrt(&(variance + &epsilon));
        if scale {
            y = y * te::cast(&params[0].at(c), acc_dtype);
        }
        if center {
            y = y + te::cast(&params[1].at(c), acc_dtype);
        }
        te::cast(&y, dtype)
    });
    let moving_statistic = |k: usize, name: &str| {
        te::compute(vec![x.shape()[axis].clone()], name, |c| {
            let old = te::cast(&params[k].at(c), acc_dtype);
            if !training {
                return te::cast(&old, dtype);
            }
            let (mean, variance) = moments(c);
            let new = if k == 2 { mean } else { variance };
            let c = |v: f64| te::const_of(v, acc_dtype);
            te::cast(&(old * c(1.0 - momentum) + new * c(momentum)), dtype)
        })
    };
    Ok(vec![out, moving_statistic(2, "T_moving_mean"), moving_statistic(3, "T_moving_var")])
}

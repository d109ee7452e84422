//! The operators softmax and log_softmax.

use pliant_ir::op::DimTrait;

use super::super::reductions::{ReductionAxes, accumulator};
use super::norm_gradients;
use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::require_float;
use crate::te::{self, Expr, Reducer, Tensor};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.softmax",
        infer_softmax,
        "The softmax along an axis: `exp(x) / sum(exp(x))`. 16-bit floats are \
        accumulated in float32.",
    )
    .operands(&["data"])
    .attrs(&[("axis", Default::Int(-1))])
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::CommReduce, te_softmax)
    .onnx(&["Softmax"])
    .errors("the axis is out of range")
    .gradient(norm_gradients::softmax),
    OpDecl::new(
        "relax.nn.log_softmax",
        infer_softmax,
        "The logarithm of the softmax along an axis.",
    )
    .operands(&["data"])
    .attrs(&[("axis", Default::Int(-1))])
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::CommReduce, te_log_softmax)
    .onnx(&["LogSoftmax"])
    .errors("the axis is out of range")
    .gradient(norm_gradients::log_softmax),
];

fn infer_softmax(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    if let Some(ndim) = t.ndim {
        ctx.axis("axis", ndim)?;
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

/// The operand, the axis and the row maxima of a softmax. The maximum of a row is subtracted before
/// the exponential, so that it cannot overflow.
struct Softmax {
    x: Value,
    axes: ReductionAxes,
    max_element: Tensor,
}

impl Softmax {
    fn new(ctx: &mut LegalizeCtx<'_>) -> Result<Softmax, LegalizeError> {
        let x = ctx.value(0)?;
        let axis = ctx.infer().axis("axis", x.shape().len())?;
        let axes = ReductionAxes::new(x.shape(), vec![axis], false);
        let max_element = axes.stage("T_softmax_maxelem", Reducer::Max, |i| x.at(i));
        Ok(Softmax { x, axes, max_element })
    }

    /// The element at `i` minus the maximum of its row, in the type in which sums are accumulated.
    fn minus_max(&self, i: &[Expr]) -> Expr {
        let acc_dtype = accumulator(self.x.dtype());
        te::cast(&self.x.at(i), acc_dtype)
            - te::cast(&self.max_element.at(&self.axes.out_indices(i)), acc_dtype)
    }
}

fn te_softmax(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let s = Softmax::new(ctx)?;
    let (shape, dtype) = (s.x.shape().to_vec(), s.x.dtype());
    let exps = te::compute(shape.clone(), "T_softmax_exp", |i| te::exp(&s.minus_max(i)));
    let sum = s.axes.stage("T_softmax_expsum", Reducer::Sum, |i| exps.at(i));
    Ok(vec![te::compute(shape, "T_softmax_norm", |i| {
        te::cast(&(exps.at(i) / sum.at(&s.axes.out_indices(i))), dtype)
    })])
}

fn te_log_softmax(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let s = Softmax::new(ctx)?;
    let (shape, dtype) = (s.x.shape().to_vec(), s.x.dtype());
    let sum = s.axes.stage("T_softmax_expsum", Reducer::Sum, |i| te::exp(&s.minus_max(i)));
    Ok(vec![te::compute(shape, "T_log_softmax", |i| {
        te::cast(&(s.minus_max(i) - te::log(&sum.at(&s.axes.out_indices(i)))), dtype)
    })])
}

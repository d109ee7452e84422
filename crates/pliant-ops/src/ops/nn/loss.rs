//! Loss functions: cross-entropy and negative log-likelihood.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::super::indexing::index_bounds;
use super::super::reductions::accumulator;
use super::layer_norm::check_param;
use super::norm_gradients;
use crate::legalize::{LegalizeCtx, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{
    operand_types, require_float, require_integer, shared_dim, te_converted,
};
use crate::te::{self, Check, Expr, IterVar, Var};
use crate::type_inference::InferCtx;
use pliant_tensor::CheckFailure;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.cross_entropy_with_logits",
        infer_cross,
        "Minus the sum of the products of log-probabilities and labels. If there are 2 or more dims, the sum is divided by the \
        size of the first dim (the batch). The result is a scalar.",
    )
    .operands(&["predictions", "labels"])
    .te(Pattern::CommReduce, te_cross)
    .errors("the operands differ in shape")
    .gradient(norm_gradients::cross_entropy),
    OpDecl::new(
        "relax.nn.nll_loss",
        infer_nll,
        "Negative log-likelihood loss: minus the log-probability of the target class times the weight of the class. The \
        reduction returns all losses (\"none\"), their sum (\"sum\"), or their sum divided by the sum of the weights (\"mean\"). \
        Targets equal to `ignore_index` are ignored.",
    )
    .operands(&["predictions", "targets: index", "weights?"])
    .attrs(&[("reduction", Default::Str("mean")), ("ignore_index", Default::Int(-100))])
    .te(Pattern::CommReduce, te_nll)
    .onnx(&["NegativeLogLikelihoodLoss"])
    .errors(
        "a target that is not ignored is no class, `targets` does not have the shape of `predictions` without the class dim, or \
        `weights` does not have one element per class",
    )
    .gradient(norm_gradients::nll_loss),
];

const SAME_SHAPE: &str = "predictions and labels must have the same shape";
const SHAPE_WITHOUT_CLASSES: &str =
    "targets must have the shape of predictions without the class dim";

/// The common dims of two operands. Dims are assumed to be equal unless they provably differ.
///
/// # Errors
/// If the ranks or two dims provably differ. The message is `requirement`, with the types.
fn common_dims(
    ctx: &mut InferCtx<'_>,
    a: &[Sym],
    b: &[Sym],
    requirement: &str,
) -> Result<Vec<Sym>, InferError> {
    let fit = a.len() == b.len();
    let dims: Option<Vec<Sym>> = a.iter().zip(b).map(|(&x, &y)| shared_dim(ctx, x, y)).collect();
    match dims.filter(|_| fit) {
        Some(dims) => Ok(dims),
        None => {
            let types = operand_types(ctx);
            Err(ctx.error(format!("{requirement}: {types}")))
        }
    }
}

fn infer_cross(ctx: &mut InferCtx<'_>) -> InferResult {
    let (p, l) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_float(ctx, 0, &p)?;
    let dtype = ctx.same_dtype(0, 1)?;
    if p.ndim.zip(l.ndim).is_some_and(|(x, y)| x != y) {
        return Err(ctx.error(format!(
            "predictions and labels must have the same rank: {types}",
            types = operand_types(ctx)
        )));
    }
    if let (Some(a), Some(b)) = (&p.dims, &l.dims) {
        common_dims(ctx, a, b, SAME_SHAPE)?;
    }
    Ok(ctx.tensor_type(Some(Vec::new()), None, dtype))
}

fn te_cross(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (a, b) = (ctx.dims(0)?, ctx.dims(1)?);
    let dims = common_dims(&mut ctx.infer(), &a, &b, SAME_SHAPE)?;
    let (p, l) = (ctx.value_with_dims(0, &dims)?, ctx.value_with_dims(1, &dims)?);
    let (dtype, shape) = (p.dtype(), ctx.size_list(&dims));
    let acc_dtype = accumulator(dtype);
    let axes: Vec<IterVar> = shape
        .iter()
        .enumerate()
        .map(|(k, d)| te::reduce_axis(d.clone(), format!("k{k}")))
        .collect();
    let sum = te::compute(Vec::new(), "T_cross_entropy_sum", |_| {
        let i: Vec<Expr> = axes.iter().map(|a| a.var.expr()).collect();
        te::sum(&(te::cast(&p.at(&i), acc_dtype) * te::cast(&l.at(&i), acc_dtype)), &axes)
    });
    Ok(vec![te::compute(Vec::new(), "T_cross_entropy", |_| {
        let loss = -sum.at(&[]);
        let loss = if shape.len() > 1 { loss / te::cast(&shape[0], acc_dtype) } else { loss };
        te::cast(&loss, dtype)
    })])
}

// ---- nll_loss ----

const REDUCTIONS: [&str; 3] = ["none", "sum", "mean"];

fn infer_nll(ctx: &mut InferCtx<'_>) -> InferResult {
    let (p, t) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_float(ctx, 0, &p)?;
    require_integer(ctx, 1, &t)?;
    ctx.int("ignore_index")?;
    let none = ctx.choice("reduction", &REDUCTIONS)? == 0;
    if p.ndim == Some(0) {
        return Err(ctx.error("predictions must have at least 1 dim, but is a scalar"));
    }
    if p.ndim.zip(t.ndim).is_some_and(|(x, y)| x != y + 1) {
        return Err(ctx.error(format!(
            "targets must have the dims of predictions without the class dim: {types}",
            types = operand_types(ctx)
        )));
    }
    let class = p.ndim.map(|n| usize::from(n > 1));
    if ctx.has_operand(2)
        && let Some(class) = class
    {
        check_param(ctx, 2, &p, &[class])?;
    }
    let mut dims = t.dims.clone();
    if let (Some(a), Some(b)) = (&p.dims, &t.dims) {
        dims = Some(common_dims(ctx, &dims_without_class(a), b, SHAPE_WITHOUT_CLASSES)?);
    }
    Ok(match none {
        true => ctx.tensor_type(dims, t.ndim, p.dtype),
        false => ctx.tensor_type(Some(Vec::new()), None, p.dtype),
    })
}

/// The dims of the predictions without the class dim, which is the second one, or the only one.
fn dims_without_class(dims: &[Sym]) -> Vec<Sym> {
    let class = usize::from(dims.len() > 1);
    dims.iter().enumerate().filter(|(i, _)| *i != class).map(|(_, &d)| d).collect()
}

/// The tensors and parameters of `nll_loss` (negative log-likelihood).
struct NllTensors {
    p: Value,
    t: Value,
    weights: Option<Value>,
    classes: Expr,
    ignored: Expr,
    acc_dtype: DType,
}

impl NllTensors {
    fn target(&self, i: &[Expr]) -> Expr {
        index_bounds::as_int64(&self.t.at(i))
    }

    /// Whether the element at `i` contributes to the loss, because its target is not the ignored
    /// class.
    fn is_counted(&self, i: &[Expr]) -> Expr {
        te::ne(&self.target(i), &self.ignored)
    }

    /// The weight of the class of the element at `i`; 0 if the element does not contribute to the
    /// loss.
    fn weight(&self, i: &[Expr]) -> Expr {
        let weight = match &self.weights {
            Some(w) => te::cast(&w.at(&[self.target(i)]), self.acc_dtype),
            None => te::const_of(1.0, self.acc_dtype),
        };
        te::if_then_else(&self.is_counted(i), &weight, &te::const_of(0.0, self.acc_dtype))
    }

    fn loss(&self, i: &[Expr]) -> Expr {
        let mut at = i.to_vec();
        at.insert(1.min(i.len()), self.target(i));
        let p = te::cast(&self.p.at(&at), self.acc_dtype);
        let weighted = match &self.weights {
            Some(w) => -p * te::cast(&w.at(&[self.target(i)]), self.acc_dtype),
            None => -p,
        };
        te::if_then_else(&self.is_counted(i), &weighted, &te::const_of(0.0, self.acc_dtype))
    }

    /// The run-time check that the target of each element that contributes to the loss is a valid class.
    fn check(&self, shape: &[Expr]) -> Check {
        let axes: Vec<IterVar> = shape
            .iter()
            .enumerate()
            .map(|(k, d)| IterVar {
                var: Var::size(format!("t{k}")),
                min: te::int(0),
                extent: d.clone(),
                kind: te::IterKind::Spatial,
            })
            .collect();
        let i: Vec<Expr> = axes.iter().map(|a| a.var.expr()).collect();
        let t = self.target(&i);
        let inside = te::and(&te::ge(&t, &te::int(0)), &te::lt(&t, &self.classes));
        let cond = te::or(&te::not(&self.is_counted(&i)), &inside);
        let cond = te::explain(&cond, &[t, self.classes.clone()]);
        let message = "relax.nn.nll_loss: target {0} is out of range for {1} classes";
        Check { axes, cond, message: CheckFailure::Index.mark(message).into() }
    }
}

fn te_nll(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (mut prediction_dims, targets) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = &mut ctx.infer();
    let reduction = infer.choice("reduction", &REDUCTIONS)?;
    let ignored = te::int(infer.int("ignore_index")?);
    let without_class = dims_without_class(&prediction_dims);
    let dims = common_dims(infer, &without_class, &targets, SHAPE_WITHOUT_CLASSES)?;
    let class = usize::from(prediction_dims.len() > 1);
    let others =
        prediction_dims.iter_mut().enumerate().filter(|(i, _)| *i != class).map(|(_, d)| d);
    others.zip(&dims).for_each(|(d, &known)| *d = known);
    let weights = if ctx.has_operand(2) {
        Some(ctx.value_with_dims(2, &prediction_dims[class..=class])?)
    } else {
        None
    };
    let (p, t) = (ctx.value_with_dims(0, &prediction_dims)?, ctx.value_with_dims(1, &dims)?);
    let (dtype, shape) = (p.dtype(), ctx.size_list(&dims));
    let acc_dtype = accumulator(dtype);
    let nll =
        NllTensors { p, t, weights, classes: ctx.size(prediction_dims[class]), ignored, acc_dtype };
    let check = nll.check(&shape);
    if reduction == 0 {
        let loss = te::compute(shape, "T_nll_loss", |i| nll.loss(i)).with_check(check);
        return Ok(vec![te_converted(loss, dtype)]);
    }
    let axes: Vec<IterVar> = shape
        .iter()
        .enumerate()
        .map(|(k, d)| te::reduce_axis(d.clone(), format!("k{k}")))
        .collect();
    let i: Vec<Expr> = axes.iter().map(|a| a.var.expr()).collect();
    let total = |name: &str, e: Expr| te::compute(Vec::new(), name, |_| te::sum(&e, &axes));
    let sum = total("T_nll_loss_sum", nll.loss(&i)).with_check(check);
    if reduction == 1 {
        return Ok(vec![te_converted(sum, dtype)]);
    }
    let weights = total("T_nll_loss_weights", nll.weight(&i));
    Ok(vec![te::compute(Vec::new(), "T_nll_loss_mean", |_| {
        te::cast(&(sum.at(&[]) / weights.at(&[])), dtype)
    })])
}

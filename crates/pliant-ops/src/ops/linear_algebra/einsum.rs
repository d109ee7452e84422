//! einsum: sums of products over labelled dims.
//!
//! Operands are contracted pairwise from left to right. Each step sums over the labels that are not
//! needed later, so a chain of matrix products costs as much as the individual matrix products.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::einsum_gradient;
use crate::broadcast::{BroadcastOperand, BroadcastTarget, broadcast_dim};
use crate::einsum_equation::{Equation, EquationMismatch, Label, ParsedEquation};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::reductions::accumulator;
use crate::te::{self, Check, Expr, Tensor};
use crate::type_inference::{InferCtx, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.einsum",
    infer,
    "Sums of products over labelled dims, such as \"ij,jk->ik\". A label that is repeated in an operand selects its diagonal. \
    \"...\" stands for all other dims, which are broadcast. Without \"->\", the result has the labels that occur once, in \
    alphabetical order.",
)
.operands(&["operands"])
.attrs(&[("subscripts", Default::Required)])
.te(Pattern::OutEWiseFusable, te_einsum)
.numpy("einsum")
.onnx(&["Einsum"])
.errors("the operands differ in type, the subscripts do not fit their ranks, or the sizes of a label cannot be broadcast")
    .gradient(einsum_gradient::einsum)];

/// The operand and result labels in the attribute `subscripts`.
fn terms(ctx: &InferCtx<'_>) -> Result<ParsedEquation, InferError> {
    let value = ctx.attr("subscripts");
    let text = value.as_str().ok_or_else(|| ctx.error("subscripts must be a string"))?;
    ParsedEquation::parse(text).map_err(|message| ctx.error(message))
}

/// The labels of all dims of the operands and of the result, for operands with the ranks `ranks`.
fn equation(ctx: &InferCtx<'_>, ranks: &[usize]) -> Result<Equation, InferError> {
    terms(ctx)?.for_ranks(ranks).map_err(|mismatch| match mismatch {
        EquationMismatch::Count(expected) => {
            let actual = ranks.len();
            ctx.error(format!(
                "subscripts has terms for {expected} operands, but the call has {actual}"
            ))
        }
        EquationMismatch::Rank(i) => {
            let ty = ctx.operand_type_text(0);
            ctx.error(format!(
                "term {i} of subscripts does not fit the rank of operands[{i}]: operands is {ty}"
            ))
        }
    })
}

/// The size of each label: the broadcast size of all dims with that label.
fn sizes(
    ctx: &mut InferCtx<'_>,
    eq: &Equation,
    dims: &[Vec<Sym>],
) -> Result<Vec<(Label, Sym)>, InferError> {
    let mut sizes: Vec<(Label, Sym)> = Vec::new();
    for (labels, dims) in eq.inputs.iter().zip(dims) {
        for (&label, &dim) in labels.iter().zip(dims) {
            match sizes.iter().position(|(l, _)| *l == label) {
                None => sizes.push((label, dim)),
                Some(k) => {
                    let known = sizes[k].1;
                    sizes[k].1 = broadcast_dim(ctx.func, known, dim).ok_or_else(|| {
                        let (size, other_size) = (ctx.dim_text(known), ctx.dim_text(dim));
                        let label = match label {
                            Label::Letter(c) => format!("label {c:?}"),
                            Label::Ellipsis(_) => "a dim of the ellipsis".into(),
                        };
                        ctx.error(format!(
                            "{label} of subscripts must have the same size wherever it occurs, but has the sizes {size} and \
                             {other_size}"
                        ))
                    })?;
                }
            }
        }
    }
    Ok(sizes)
}

fn size_of(sizes: &[(Label, Sym)], label: Label) -> Option<Sym> {
    sizes.iter().find(|(l, _)| *l == label).map(|&(_, s)| s)
}

fn operand_types(ctx: &InferCtx<'_>) -> Result<Option<Vec<TensorTy>>, InferError> {
    let Some(list) = ctx.tensors(0)? else { return Ok(None) };
    if list.is_empty() {
        return Err(ctx.error("at least one operand is required"));
    }
    let dtype = list.iter().find_map(|t| t.dtype);
    if list.iter().any(|t| t.dtype.is_some() && t.dtype != dtype) {
        return Err(ctx.error(format!(
            "the operands must have the same data type, but are {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    if dtype.is_some_and(DType::is_bool) {
        return Err(ctx.error("the operator is not defined on bool, the data type of the operands; convert the operands first"));
    }
    Ok(Some(list))
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    terms(ctx)?;
    let Some(list) = operand_types(ctx)? else { return Ok(ctx.tensor_type(None, None, None)) };
    let dtype = list.iter().find_map(|t| t.dtype);
    let Some(ranks) = list.iter().map(|t| t.ndim).collect::<Option<Vec<_>>>() else {
        return Ok(ctx.tensor_type(None, None, dtype));
    };
    let eq = equation(ctx, &ranks)?;
    let rank = eq.output.len();
    let Some(dims) = list.into_iter().map(|t| t.dims).collect::<Option<Vec<_>>>() else {
        return Ok(ctx.tensor_type(None, Some(rank), dtype));
    };
    let sizes = sizes(ctx, &eq, &dims)?;
    let dims = eq.output.iter().map(|&l| size_of(&sizes, l)).collect::<Option<Vec<_>>>();
    Ok(ctx.tensor_type(dims, Some(rank), dtype))
}

/// An operand or an intermediate result, with the labels of its dims.
struct LabeledTensor {
    operand: BroadcastOperand,
    labels: Vec<Label>,
}

impl LabeledTensor {
    /// The element of the tensor where the dim with label `l` has the index `index(l)`. Dims of
    /// size 1 are broadcast.
    fn at(&self, index: &dyn Fn(Label) -> Expr) -> Expr {
        let at: Vec<Expr> = self.labels.iter().map(|&l| index(l)).collect();
        self.operand.at(&at)
    }
}

/// The operands, whose dims are broadcast to the sizes of their labels, and the run-time checks of
/// these sizes.
fn read_operands(
    ctx: &mut LegalizeCtx<'_>,
    eq: &Equation,
    sizes: &[(Label, Sym)],
    dims: &[Vec<Sym>],
) -> Result<(Vec<LabeledTensor>, Vec<Check>), LegalizeError> {
    let (mut read, mut checks) = (Vec::with_capacity(dims.len()), Vec::new());
    for (labels, operand_dims) in eq.inputs.iter().zip(dims) {
        let mut dims = operand_dims.clone();
        let to: Vec<Sym> = labels
            .iter()
            .zip(operand_dims)
            .map(|(&l, &d)| size_of(sizes, l).unwrap_or(d))
            .collect();
        let mut target = BroadcastTarget::new(&to);
        let axes = target.index_broadcast_dims(ctx, &mut dims);
        checks.extend(target.checks(ctx));
        read.push((dims, axes));
    }
    let tensors = ctx.fields_with_dims(0, |k, _| read[k].0.clone())?;
    let parts =
        tensors.into_iter().zip(read).zip(&eq.inputs).map(|((tensor, (_, axes)), labels)| {
            LabeledTensor { operand: BroadcastOperand::new(tensor, axes), labels: labels.clone() }
        });
    Ok((parts.collect(), checks))
}

/// Multiplies two operands and sums the products over all labels that are not in `keep`. With only
/// one operand, sums its elements over these labels.
fn contract(
    parts: &[&LabeledTensor],
    keep: &[Label],
    size: &dyn Fn(Label) -> Expr,
    dtype: DType,
) -> Tensor {
    let mut summed: Vec<Label> = Vec::new();
    for &l in parts.iter().flat_map(|p| &p.labels) {
        if !keep.contains(&l) && !summed.contains(&l) {
            summed.push(l);
        }
    }
    let axes: Vec<te::IterVar> = summed
        .iter()
        .enumerate()
        .map(|(k, &l)| te::reduce_axis(size(l), format!("k{k}")))
        .collect();
    let shape = keep.iter().map(|&l| size(l)).collect();
    te::compute(shape, "T_einsum", |i| {
        let index = |l: Label| match keep.iter().position(|&k| k == l) {
            Some(k) => i[k].clone(),
            None => summed
                .iter()
                .position(|&g| g == l)
                .map_or_else(|| te::int(0), |k| axes[k].var.expr()),
        };
        let value = |p: &&LabeledTensor| te::cast(&p.at(&index), dtype);
        let product = parts.iter().map(value).reduce(|a, b| a * b);
        let product = product.unwrap_or_else(|| te::const_of(1.0, dtype));
        te::sum(&product, &axes)
    })
}

fn te_einsum(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let mut infer = ctx.infer();
    let unknown =
        || LegalizeError::unknown("relax.einsum: the shapes of all operands must be known");
    let list = operand_types(&infer)?.ok_or_else(unknown)?;
    let dims: Vec<Vec<Sym>> =
        list.into_iter().map(|t| t.dims).collect::<Option<_>>().ok_or_else(unknown)?;
    let ranks: Vec<usize> = dims.iter().map(Vec::len).collect();
    let eq = equation(&infer, &ranks)?;
    let sizes = sizes(&mut infer, &eq, &dims)?;
    let (parts, checks) = read_operands(ctx, &eq, &sizes, &dims)?;
    let exprs: Vec<(Label, Expr)> = sizes.iter().map(|&(l, s)| (l, ctx.size(s))).collect();
    let size = |l: Label| {
        exprs.iter().find(|(o, _)| *o == l).map_or_else(|| te::int(1), |(_, e)| e.clone())
    };
    let dtype = ctx.out_dtype(0)?;
    let acc_dtype = accumulator(dtype);
    let mut parts = parts.into_iter();
    let mut accumulated = parts.next().ok_or_else(unknown)?;
    let mut checks = Some(checks);
    // The first product checks all operands.
    let mut product = |parts: &[&LabeledTensor], keep: &[Label]| {
        let stage = contract(parts, keep, &size, acc_dtype);
        checks.take().into_iter().flatten().fold(stage, |t, check| t.with_check(check))
    };
    let rest: Vec<LabeledTensor> = parts.collect();
    let mut result = None;
    if rest.is_empty() {
        result = Some(product(&[&accumulated], &eq.output));
    }
    for (k, part) in rest.iter().enumerate() {
        let later: Vec<Label> = rest[k + 1..].iter().flat_map(|p| p.labels.clone()).collect();
        let mut keep: Vec<Label> = Vec::new();
        let in_either = |l: &Label| accumulated.labels.contains(l) || part.labels.contains(l);
        for l in eq.output.iter().chain(&later).filter(|l| in_either(l)) {
            if !keep.contains(l) {
                keep.push(*l);
            }
        }
        if k + 1 == rest.len() {
            keep = eq.output.clone();
        }
        let tensor = product(&[&accumulated, part], &keep);
        result = Some(tensor.clone());
        accumulated =
            LabeledTensor { operand: BroadcastOperand::without_broadcast(tensor), labels: keep };
    }
    let result = result.ok_or_else(unknown)?;
    if acc_dtype == dtype {
        return Ok(vec![result]);
    }
    let shape = result.shape().to_vec();
    Ok(vec![te::compute(shape, "T_cast", |i| te::cast(&result.at(i), dtype))])
}

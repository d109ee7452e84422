//! The operators collapse_sum_to and collapse_sum_like, which sum a tensor over its broadcast dims,
//! and one_hot.

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::indexing::index_bounds;
use crate::ops::reductions::accumulator;
use crate::shared_operator_rules::{require_integer, require_number};
use crate::size_proofs;
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.collapse_sum_to",
        infer_sum_to,
        "The inverse of broadcasting: sums over the dims that broadcasting `shape` to the shape of `data` would add or stretch. \
        Whether a symbolic size is 1 is decided at run time.",
    )
    .operands(&["data", "shape: size"])
    .te(Pattern::CommReduce, te_sum_to)
    .errors("the target has more dims than `data`, or a target size is neither 1 nor that of the dim of `data`")
    .gradient(|g| g.first(g.dy().broadcast_to(g.arg(0).shape()))),
    OpDecl::new(
        "relax.collapse_sum_like",
        infer_sum_like,
        "The same as collapse_sum_to, with the shape of `collapse_target`.",
    )
    .operands(&["data", "collapse_target"])
    .te(Pattern::CommReduce, te_sum_to)
    .errors("the target has more dims than `data`, or a target size is neither 1 nor that of the dim of `data`")
    .gradient(|g| g.first(g.dy().broadcast_to(g.arg(0).shape()))),
    OpDecl::new(
        "relax.one_hot",
        infer_one_hot,
        "Expands each index to a new axis of size `depth` with `on_value` at the index and `off_value` elsewhere. An index \
        outside of `0 .. depth` results in `off_value` only.",
    )
    .operands(&["indices: index", "on_value", "off_value"])
    .attrs(&[("depth", Default::Required), ("axis", Default::Int(-1))])
    .symbolic("depth")
    .te(Pattern::Broadcast, te_one_hot)
    .onnx(&["OneHot"])
    .errors("`on_value` or `off_value` is not a scalar, `depth` is negative, or the axis is out of range"),
];

// ---- collapse_sum ----

/// How `collapse_sum_to` reduces a dim of its operand `data` to the target shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DimReduction {
    /// The dim is kept in the result.
    Kept,
    /// The elements along the dim are summed.
    Summed,
    /// The elements along the dim are summed if the target size is 1 at run time, else the dim is kept.
    SummedIfOne,
}

/// Decides how each dim of data is reduced. The dims of data and target are aligned at the right.
fn dim_reductions(
    ctx: &mut InferCtx<'_>,
    from: &[Sym],
    to: &[Sym],
) -> Result<Vec<DimReduction>, InferError> {
    let Some(skip) = from.len().checked_sub(to.len()) else {
        let data = ctx.operand_type_text(0);
        return Err(ctx.error(format!(
            "the target shape has {} dims, more than data, which is {data}",
            to.len()
        )));
    };
    let mut dim_reductions = vec![DimReduction::Summed; from.len()];
    for (i, &target) in to.iter().enumerate() {
        let actual = from[i + skip];
        let same = size_proofs::equal(ctx.func, actual, target);
        dim_reductions[i + skip] = match (ctx.func.syms.as_int(target), same) {
            (_, Some(true)) => DimReduction::Kept,
            (Some(1), _) => DimReduction::Summed,
            (Some(_), None) => DimReduction::Kept,
            (None, None) => DimReduction::SummedIfOne,
            (None, Some(false)) if ctx.func.syms.as_var(target).is_some() => {
                DimReduction::SummedIfOne
            }
            (_, Some(false)) => {
                let (actual, target) = (ctx.dim_text(actual), ctx.dim_text(target));
                let axis = i + skip;
                return Err(ctx.error(format!(
                    "dim {axis} of data has size {actual}, which cannot be summed to size {target} of \
                     the target shape: the sizes must be equal, or the target size must be 1"
                )));
            }
        };
    }
    Ok(dim_reductions)
}

fn infer_sum_to(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, sizes) = (ctx.tensor(0)?, ctx.result_sizes(1)?);
    require_number(ctx, 0, &t)?;
    if let (Some(from), Some(to)) = (&t.dims, &sizes.dims) {
        dim_reductions(ctx, from, to)?;
    }
    Ok(ctx.tensor_type(sizes.dims, sizes.ndim, t.dtype))
}

fn infer_sum_like(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, like) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_number(ctx, 0, &t)?;
    if let (Some(from), Some(to)) = (&t.dims, &like.dims) {
        dim_reductions(ctx, from, to)?;
    }
    Ok(ctx.tensor_type_like(&like, t.dtype))
}

fn te_sum_to(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (from, to) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let dim_reductions = dim_reductions(&mut ctx.infer(), &from, &to)?;
    let skip = from.len() - to.len();
    let assumed: Vec<Sym> = (0..from.len())
        .map(|i| if dim_reductions[i] == DimReduction::Kept { to[i - skip] } else { from[i] })
        .collect();
    let x = ctx.tensor_with_dims(0, &assumed)?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let shape = ctx.size_list(&to);
    let mut axes: Vec<Option<te::IterVar>> = Vec::with_capacity(from.len());
    let mut checks = Vec::new();
    for (i, actual) in x.shape().iter().enumerate() {
        let extent = match dim_reductions[i] {
            DimReduction::Kept => None,
            DimReduction::Summed => Some(actual.clone()),
            DimReduction::SummedIfOne => {
                let target = &shape[i - skip];
                let one = te::eq(target, &te::int(1));
                checks.push(collapse_check(ctx, target, actual));
                Some(te::select(&one, actual, &te::int(1)))
            }
        };
        axes.push(extent.map(|extent| te::reduce_axis(extent, format!("k{i}"))));
    }
    let sum = te::compute(shape.clone(), "T_collapse_sum", |out| {
        let at: Vec<Expr> = axes
            .iter()
            .enumerate()
            .map(|(i, axis)| match (dim_reductions[i], axis) {
                (DimReduction::Summed, Some(axis)) => axis.var.expr(),
                // One of the two indices is always 0.
                (DimReduction::SummedIfOne, Some(axis)) => &out[i - skip] + axis.var.expr(),
                _ => out[i - skip].clone(),
            })
            .collect();
        let axes: Vec<te::IterVar> = axes.iter().flatten().cloned().collect();
        te::sum(&te::cast(&x.at(&at), acc_dtype), &axes)
    });
    let sum = checks.into_iter().fold(sum, |sum, check| sum.with_check(check));
    if acc_dtype == dtype {
        return Ok(vec![sum]);
    }
    Ok(vec![te::compute(shape, "T_cast", |i| te::cast(&sum.at(i), dtype))])
}

/// The run-time check that the target size is 1 or equal to the size `actual` of the dim.
fn collapse_check(ctx: &LegalizeCtx<'_>, target: &Expr, actual: &Expr) -> te::Check {
    let fits = te::or(&te::eq(target, &te::int(1)), &te::eq(target, actual));
    let op = ctx.decl.name;
    let message = format!(
        "{op}: a dim of size {actual} = {{0}} cannot be summed to size {target} = {{1}} of the \
         target shape"
    );
    let cond = te::explain(&fits, &[actual.clone(), target.clone()]);
    te::Check { axes: Vec::new(), cond, message: message.into() }
}

// ---- one_hot ----

fn infer_one_hot(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_integer(ctx, 0, &t)?;
    for i in [1, 2] {
        if ctx.tensor(i)?.ndim.is_some_and(|n| n != 0) {
            let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
            return Err(ctx.error(format!("{name} must be a scalar, but is {ty}")));
        }
    }
    let dtype = ctx.same_dtype(1, 2)?;
    let depth = ctx.size_attr("depth", 0)?;
    let Some(ndim) = t.ndim else { return Ok(ctx.tensor_type(None, None, dtype)) };
    let axis = ctx.axis("axis", ndim + 1)?;
    let dims = t.dims.zip(depth).map(|(mut dims, depth)| {
        dims.insert(axis, depth);
        dims
    });
    Ok(ctx.tensor_type(dims, Some(ndim + 1), dtype))
}

fn te_one_hot(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let axis = ctx.infer().axis("axis", shape.len())?;
    let (indices, on, off) = (ctx.value(0)?, ctx.value(1)?, ctx.value(2)?);
    Ok(vec![te::compute(shape, "T_one_hot", |i| {
        let mut at = i.to_vec();
        let position = at.remove(axis);
        let is_on = te::eq(&index_bounds::as_int64(&indices.at(&at)), &position);
        te::select(&is_on, &te::cast(&on.at(&[]), dtype), &te::cast(&off.at(&[]), dtype))
    })])
}

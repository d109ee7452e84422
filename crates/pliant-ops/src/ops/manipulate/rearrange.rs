//! Operators that only rearrange elements: flip, stack, meshgrid, reverse_sequence.

use pliant_ir::Sym;
use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::relax::{Type, TypeData};

use super::concat_split::{ConcatOperands, MAX_SELECTED_PARTS, concat_operands};
use super::join_gradients;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::indexing::index_bounds;
use crate::shared_operator_rules::{require_integer, shared_dim};
use crate::te::{self, Expr, Tensor};
use crate::type_inference::InferCtx;
use pliant_tensor::CheckFailure;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.flip", infer_flip, "Reverses the elements along one or more axes.")
        .operands(&["data"])
        .attrs(&[("axis", Default::Required)])
        .dims(DimTrait::Named(&["axis"]))
        .te(Pattern::Injective, te_flip)
        .numpy("flip")
        .errors("an axis is out of range or occurs twice")
    .gradient(|g| g.reapplied()),
    OpDecl::new("relax.stack", infer_stack, "Joins tensors of the same shape along a new axis. The result has the type of the \
        tensors.")
        .operands(&["tensors"])
        .attrs(&[("axis", Default::Int(0))])
        .te(Pattern::Injective, te_stack)
        .numpy("stack")
        .onnx(&["ConcatFromSequence"])
        .errors("there are no tensors, they differ in type or shape, or the axis is out of range")
    .gradient(join_gradients::stack),
    OpDecl::new(
        "relax.meshgrid",
        infer_meshgrid,
        "Coordinate tensors of a grid: expands vector `k` to the shape of the grid, along dim `k`. With indexing \"xy\" instead \
        of \"ij\", the first two dims are exchanged.",
    )
    .operands(&["tensors"])
    .attrs(&[("indexing", Default::Str("ij"))])
    .te(Pattern::Injective, te_meshgrid)
    .numpy("meshgrid")
    .errors("there are no tensors, or one of them has more than 1 dim")
    .gradient_from_te(),
    OpDecl::new(
        "relax.reverse_sequence",
        infer_reverse,
        "For each index `b` of `batch_axis`, reverses the first `seq_lengths[b]` elements along `seq_axis` and keeps the \
        others.",
    )
    .operands(&["x", "seq_lengths: index"])
    .attrs(&[("seq_axis", Default::Int(1)), ("batch_axis", Default::Int(0))])
    .te(Pattern::Injective, te_reverse)
    .onnx(&["ReverseSequence"])
    .errors("a length or an axis is out of range, both axes are the same, or the number of lengths is not that of the sequences")
    .gradient(|g| g.reapplied()),
];

// ---- flip ----

fn infer_flip(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if let Some(ndim) = t.ndim {
        ctx.axes("axis", ndim)?;
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_flip(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    let axes = ctx.infer().axes("axis", x.ndim())?.unwrap_or_default();
    Ok(vec![te::compute(x.shape().to_vec(), "T_flip", |i| {
        let mut at = i.to_vec();
        axes.iter().for_each(|&a| at[a] = &x.shape()[a] - 1 - &i[a]);
        x.at(&at)
    })])
}

// ---- stack ----

/// The position of the axis that `stack` adds.
fn new_axis(ctx: &InferCtx<'_>, ndim: usize) -> Result<usize, InferError> {
    ctx.axis("axis", ndim + 1)
}

fn infer_stack(ctx: &mut InferCtx<'_>) -> InferResult {
    let Some(ConcatOperands { parts, ndim, dtype }) = concat_operands(ctx)? else {
        return Ok(ctx.tensor_type(None, None, None));
    };
    let Some(ndim) = ndim else { return Ok(ctx.tensor_type(None, None, dtype)) };
    let axis = new_axis(ctx, ndim)?;
    let known: Option<Vec<Vec<Sym>>> = parts.iter().map(|p| p.dims.clone()).collect();
    let Some(known) = known else { return Ok(ctx.tensor_type(None, Some(ndim + 1), dtype)) };
    let mut dims = known[0].clone();
    for (k, other) in known.iter().enumerate().skip(1) {
        for i in 0..ndim {
            dims[i] = shared_dim(ctx, dims[i], other[i]).ok_or_else(|| {
                let (a, b) = (ctx.dim_text(dims[i]), ctx.dim_text(other[i]));
                ctx.error(format!(
                    "tensors[{k}] has size {b} in dim {i}, but the tensors before it have {a}"
                ))
            })?;
        }
    }
    let count = ctx.func.syms.int(known.len() as i64);
    dims.insert(axis, count);
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

fn te_stack(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let mut out_dims = ctx.out_dims(0)?;
    let shape = ctx.size_list(&out_dims);
    let axis = new_axis(&ctx.infer(), out_dims.len() - 1)?;
    out_dims.remove(axis);
    let part_dims = out_dims;
    let parts = ctx.fields_with_dims(0, |_, _| part_dims.clone())?;
    if parts.len() > MAX_SELECTED_PARTS {
        return Ok(stack_sequentially(&parts, &shape, axis));
    }
    Ok(vec![te::compute(shape, "T_stack", |i| {
        let mut at = i.to_vec();
        at.remove(axis);
        let last = parts.len() - 1;
        (0..last).rev().fold(parts[last].at(&at), |rest, k| {
            te::if_then_else(&te::eq(&i[axis], &te::int(k as i64)), &parts[k].at(&at), &rest)
        })
    })])
}

/// Copies the parts of a `stack` one after another, with constant code size per part.
fn stack_sequentially(parts: &[Tensor], shape: &[Expr], axis: usize) -> Vec<Tensor> {
    te::extern_("T_stack", &[(shape.to_vec(), parts[0].dtype())], |b, out| {
        for (k, part) in parts.iter().enumerate() {
            b.for_each(part.shape(), |b, i| {
                let mut to = i.to_vec();
                to.insert(axis, te::int(k as i64));
                b.store(&out[0], &to, &part.at(i));
            });
        }
    })
}

// ---- meshgrid ----

/// For each operand of `meshgrid`, the dim of the grid along which the operand varies.
fn grid_dims(ctx: &InferCtx<'_>, count: usize) -> Result<Vec<usize>, InferError> {
    let mut dims: Vec<usize> = (0..count).collect();
    if ctx.choice("indexing", &["ij", "xy"])? == 1 && count > 1 {
        dims.swap(0, 1);
    }
    Ok(dims)
}

fn infer_meshgrid(ctx: &mut InferCtx<'_>) -> InferResult {
    let Some(parts) = ctx.tensors(0)? else { return Ok(ctx.func.intern(TypeData::Any)) };
    if parts.is_empty() {
        return Err(ctx.error("the tuple `tensors` is empty, but meshgrid requires at least one vector of coordinates"));
    }
    let along = grid_dims(ctx, parts.len())?;
    let one = ctx.func.syms.int(1);
    let mut grid: Option<Vec<Sym>> = Some(vec![one; parts.len()]);
    for (k, p) in parts.iter().enumerate() {
        if p.ndim.is_some_and(|n| n > 1) {
            let ty = ctx.operand_type_text(0);
            return Err(ctx.error(format!(
                "tensors[{k}] must have 0 or 1 dims, but the tuple `tensors` has type {ty}"
            )));
        }
        match &p.dims {
            Some(d) => {
                if let (Some(grid), Some(&d)) = (&mut grid, d.first()) {
                    grid[along[k]] = d;
                }
            }
            None => grid = None,
        }
    }
    let count = parts.len();
    let field = |p: &crate::type_inference::TensorTy| (grid.clone(), p.dtype);
    let fields: Vec<_> = parts.iter().map(field).collect();
    let fields: Vec<Type> =
        fields.into_iter().map(|(grid, dtype)| ctx.tensor_type(grid, Some(count), dtype)).collect();
    Ok(ctx.func.intern(TypeData::Tuple(fields.into())))
}

fn te_meshgrid(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let shape = ctx.out_shape(0)?;
    let parts = ctx.fields(0)?;
    let along = grid_dims(&ctx.infer(), parts.len())?;
    let stage = |(k, p): (usize, &Tensor)| {
        te::compute(shape.clone(), format!("T_meshgrid_{k}"), |i| {
            let at: Vec<Expr> = if p.ndim() == 0 { Vec::new() } else { vec![i[along[k]].clone()] };
            p.at(&at)
        })
    };
    Ok(parts.iter().enumerate().map(stage).collect())
}

// ---- reverse_sequence ----

fn reverse_axes(ctx: &InferCtx<'_>, ndim: usize) -> Result<(usize, usize), InferError> {
    let (seq, batch) = (ctx.axis("seq_axis", ndim)?, ctx.axis("batch_axis", ndim)?);
    if seq == batch {
        return Err(
            ctx.error(format!("seq_axis and batch_axis must be different, but both are {seq}"))
        );
    }
    Ok((seq, batch))
}

fn infer_reverse(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, lengths) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_integer(ctx, 1, &lengths)?;
    if lengths.ndim.is_some_and(|n| n != 1) {
        return Err(ctx.error(format!(
            "seq_lengths must have 1 dim, but is {ty}",
            ty = ctx.operand_type_text(1)
        )));
    }
    if let Some(ndim) = t.ndim {
        let (_, batch) = reverse_axes(ctx, ndim)?;
        if let (Some(x), Some(n)) = (&t.dims, &lengths.dims)
            && shared_dim(ctx, x[batch], n[0]).is_none()
        {
            let (a, b) = (ctx.dim_text(x[batch]), ctx.dim_text(n[0]));
            return Err(ctx.error(format!("x has {a} sequences, but seq_lengths has {b} elements")));
        }
    }
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_reverse(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let (seq, batch) = reverse_axes(&ctx.infer(), dims.len())?;
    let (x, lengths) = (ctx.tensor(0)?, ctx.tensor_with_dims(1, &[dims[batch]])?);
    let size = x.shape()[seq].clone();
    let out = te::compute(x.shape().to_vec(), "T_reverse_sequence", |i| {
        let n = index_bounds::as_int64(&lengths.at(std::slice::from_ref(&i[batch])));
        let mut at = i.to_vec();
        let back = index_bounds::clamp(&(&n - 1 - &i[seq]), &size);
        at[seq] = te::select(&te::lt(&i[seq], &n), &back, &i[seq]);
        x.at(&at)
    });
    let trust_indices = ctx.trust_indices;
    let check = index_bounds::check_all(lengths.shape(), |c| {
        let n = index_bounds::as_int64(&lengths.at(c));
        let inside = te::and(&te::ge(&n, &te::int(0)), &te::le(&n, &size));
        let message =
            "relax.reverse_sequence: the length {0} is out of range for a sequence of size {1}";
        (te::explain(&inside, &[n, size.clone()]), CheckFailure::Index.mark(message).into())
    });
    Ok(vec![if trust_indices { out } else { out.with_check(check) }])
}

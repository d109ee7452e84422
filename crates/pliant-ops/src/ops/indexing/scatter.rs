//! Scattering with non-constant indices: scatter_elements, scatter_nd, index_put, slice_scatter.
//!
//! Updates are applied in row-major order of the indices. With the reduction `update`, the last of several updates of an element
//! wins.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::gather::{
    check_index_dims, index_dim_checks, index_dims, index_tensors, index_tuple_len,
};
use super::index_bounds::{self, Negative, WRAP_NEGATIVE};
use super::scatter_gradients;
use super::scatter_loops::{ScatterUpdates, checked_row_index, scatter};
use crate::broadcast::{BroadcastTarget, broadcast_dims};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{ConstantSizes, Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_integer};
use crate::size_proofs;
use crate::te::{self, Body, Expr};
use crate::type_inference::{InferCtx, TensorTy};

const REDUCTIONS: &[&str] = &["update", "add", "mul", "min", "max", "mean"];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.scatter_elements",
        infer_scatter_elements,
        "Writes each element of `updates` to `data`. The element at position `p` is written at `p`, but with the coordinate \
        along the axis replaced by `indices[p]`. The reduction is \"update\", \"add\", \"mul\", \"min\", \"max\" or \
        \"mean\" (of the element and all its updates). Updates are applied in row-major order. Negative indices count from \
        the end; without `wrap_negative`, they are out of range.",
    )
    .operands(&["data", "indices: index", "updates"])
    .attrs(&[
        ("axis", Default::Int(0)),
        ("reduction", Default::Str("update")),
        (WRAP_NEGATIVE, Default::Bool(true)),
    ])
    .te(Pattern::Opaque, te_scatter_elements)
    .numpy("put_along_axis")
    .onnx(&["ScatterElements", "Scatter"])
    .errors(
        "an index or the axis is out of range, `updates` does not have the shape of `indices`, or the reduction is not defined \
        on bool",
    )
    .gradient(scatter_gradients::scatter_elements),
    OpDecl::new(
        "relax.scatter_nd",
        infer_scatter_nd,
        "Writes slices of `updates` to `data` at the index tuples in the last dim of `indices`. The reductions are those of \
        scatter_elements.",
    )
    .operands(&["data", "indices: index", "updates"])
    .attrs(&[("reduction", Default::Str("update"))])
    .te(Pattern::Opaque, te_scatter_nd)
    .constant_sizes(ConstantSizes::LastDim(1))
    .onnx(&["ScatterND"])
    .errors(
        "an index is out of range, `updates` does not have the shape of the selected slices, the last dim of `indices` is not a \
        constant, or the reduction is not defined on bool",
    )
    .gradient(scatter_gradients::scatter_nd),
    OpDecl::new(
        "relax.index_put",
        infer_index_put,
        "Writes `values` to the elements `data[indices]`, as NumPy's integer array indexing selects them. With `accumulate`, \
        adds them instead.",
    )
    .operands(&["data", "indices: index", "values"])
    .attrs(&[("accumulate", Default::Bool(false))])
    .te(Pattern::Opaque, te_index_put)
    .errors("an index is out of range, `values` cannot be broadcast to the selected elements, or bools are accumulated")
    .gradient(scatter_gradients::index_put),
    OpDecl::new(
        "relax.slice_scatter",
        infer_slice_scatter,
        "Replaces a slice of `input_tensor` by `src`: the elements along the axis from `start` (inclusive) to `end` (exclusive) \
        with step `step`. Bounds are resolved as in a Python slice.",
    )
    .operands(&["input_tensor", "src", "start: size", "end: size", "step: size"])
    .attrs(&[("axis", Default::Int(0))])
    .te(Pattern::Injective, te_slice_scatter)
    .errors("the axis is out of range, `step` is not a positive constant, or `src` does not have the shape of the slice")
    .gradient(scatter_gradients::slice_scatter),
];

fn reduction(ctx: &InferCtx<'_>) -> Result<&'static str, InferError> {
    let reduction = REDUCTIONS[ctx.choice("reduction", REDUCTIONS)?];
    if reduction != "update"
        && reduction != "mul"
        && ctx.tensor(0)?.dtype.is_some_and(DType::is_bool)
    {
        return Err(ctx.error(format!(
            "reduction {reduction:?} is not defined on bool, but operand 'data' has data type bool"
        )));
    }
    Ok(reduction)
}

/// Rejects a shape that provably differs from the shape that the operand must have.
fn check_dims(
    ctx: &mut InferCtx<'_>,
    i: usize,
    actual: &TensorTy,
    expected: &[Sym],
) -> Result<(), InferError> {
    let Some(actual) = &actual.dims else { return Ok(()) };
    let fits = actual.len() == expected.len()
        && actual
            .iter()
            .zip(expected)
            .all(|(&a, &b)| size_proofs::equal(ctx.func, a, b) != Some(false));
    if fits {
        return Ok(());
    }
    let expected: Vec<String> = expected.iter().map(|&d| ctx.dim_text(d)).collect();
    let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
    Err(ctx.error(format!("{name} must be of shape ({}), but is {ty}", expected.join(", "))))
}

// ---- scatter_elements ----

fn infer_scatter_elements(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    require_integer(ctx, 1, &indices)?;
    ctx.same_dtype(0, 2)?;
    reduction(ctx)?;
    Negative::of_attr(ctx)?;
    check_index_dims(ctx, (&data, "data"), &indices)?;
    if let Some(expected) = &indices.dims {
        check_dims(ctx, 2, &updates, expected)?;
    }
    Ok(ctx.tensor_type_like(&data, data.dtype))
}

fn te_scatter_elements(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let (axis, reduction) = (infer.axis("axis", dims.len())?, reduction(&infer)?);
    let negative = Negative::of_attr(&infer)?;
    let (x, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor_with_dims(2, &at)?);
    let (op, trust_indices) = (ctx.decl.name, ctx.trust_indices);
    let checks = index_dim_checks(ctx, &at, &dims, axis);
    let shape = indices.shape().to_vec();
    let target = |b: &mut Body, i: &[Expr]| {
        let position = index_bounds::emit_checked_index(
            b,
            op,
            trust_indices,
            (axis, &indices.at(i), &x.shape()[axis]),
            negative,
        );
        let mut to: Vec<Expr> =
            i.iter().zip(x.shape()).map(|(i, d)| index_bounds::clamp(i, d)).collect();
        to[axis] = position;
        to
    };
    let split = (0..shape.len()).find(|&k| k != axis && !shape[k].is_const(1));
    let updates_spec = ScatterUpdates { shape: &shape, lead: shape.len(), split, checks: &checks };
    Ok(scatter("scatter_elements", &x, reduction, &updates_spec, &target, &|i| updates.at(i)))
}

// ---- scatter_nd ----

fn infer_scatter_nd(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    require_integer(ctx, 1, &indices)?;
    ctx.same_dtype(0, 2)?;
    reduction(ctx)?;
    let len = index_tuple_len(ctx, &indices, data.ndim)?;
    if let (Some(len), Some(x), Some(i)) = (len, &data.dims, &indices.dims) {
        let expected = [&i[..i.len() - 1], &x[len..]].concat();
        check_dims(ctx, 2, &updates, &expected)?;
    }
    Ok(ctx.tensor_type_like(&data, data.dtype))
}

fn te_scatter_nd(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let reduction = reduction(&infer)?;
    let len = infer.func.syms.as_int(at[at.len() - 1]).unwrap_or(0) as usize;
    let lead = at.len() - 1;
    let expected = [&at[..lead], &dims[len..]].concat();
    let (x, indices, updates) =
        (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor_with_dims(2, &expected)?);
    let (op, trust_indices) = (ctx.decl.name, ctx.trust_indices);
    let shape = updates.shape().to_vec();
    let target = |b: &mut Body, i: &[Expr]| {
        let index = |k: usize| indices.at(&[i, &[te::int(k as i64)]].concat());
        (0..len)
            .map(|k| checked_row_index(b, op, trust_indices, (k, &index(k), &x.shape()[k])))
            .collect::<Vec<Expr>>()
    };
    let split = ScatterUpdates::row_dim(&shape, lead);
    let updates_spec = ScatterUpdates { shape: &shape, lead, split, checks: &[] };
    Ok(scatter("scatter_nd", &x, reduction, &updates_spec, &target, &|i| updates.at(i)))
}

// ---- index_put ----

fn infer_index_put(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, values) = (ctx.tensor(0)?, ctx.tensor(2)?);
    let accumulate = ctx.bool("accumulate")?;
    ctx.same_dtype(0, 2)?;
    if accumulate && data.dtype.is_some_and(DType::is_bool) {
        return Err(ctx.error(
            "accumulate=True is not defined on bool, but operand 'data' has data type bool",
        ));
    }
    if let Some(list) = index_tensors(ctx, 1)?
        && let (Some(i), Some(x), Some(v)) = (index_dims(ctx, &list)?, &data.dims, values.dims)
    {
        let expected = [&i[..], &x[list.len()..]].concat();
        if broadcast_dims(ctx, &expected, &v, 0)?.len() > expected.len() {
            return Err(ctx.error(format!(
                "operand 'values' has more dims than the part of operand 'data' that the indices select: {types}",
                types = operand_types(ctx)
            )));
        }
    }
    Ok(ctx.tensor_type_like(&data, data.dtype))
}

fn te_index_put(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let mut infer = ctx.infer();
    let list = index_tensors(&mut infer, 1)?.unwrap_or_default();
    let lead = index_dims(&mut infer, &list)?.ok_or_else(|| {
        LegalizeError::unknown(
            "relax.index_put: the shapes of the tensors in indices must be known",
        )
    })?;
    let accumulate = infer.bool("accumulate")?;
    let x = ctx.tensor(0)?;
    let mut index_tensors = BroadcastTarget::new(&lead);
    let indices = index_tensors.fields(ctx, 1)?;
    let whole = [&lead[..], &dims[list.len()..]].concat();
    let mut target = BroadcastTarget::new(&whole);
    let values = target.operand(ctx, 2)?;
    let shape = ctx.size_list(&whole);
    let (op, trust_indices, lead) = (ctx.decl.name, ctx.trust_indices, lead.len());
    let reduction = if accumulate { "add" } else { "update" };
    let checks = [index_tensors.checks(ctx), target.checks(ctx)].concat();
    let target = |b: &mut Body, i: &[Expr]| {
        let each = indices.iter().zip(x.shape()).enumerate();
        each.map(|(k, (t, size))| checked_row_index(b, op, trust_indices, (k, &t.at(i), size)))
            .collect::<Vec<Expr>>()
    };
    let split = ScatterUpdates::row_dim(&shape, lead);
    let updates_spec = ScatterUpdates { shape: &shape, lead, split, checks: &checks };
    Ok(scatter("index_put", &x, reduction, &updates_spec, &target, &|i| values.at(i)))
}

// ---- slice_scatter ----

/// The start, end and step of the slice that the operand `src` replaces; `None` if one is unknown.
fn slice_bounds(ctx: &InferCtx<'_>) -> Result<Option<[Sym; 3]>, InferError> {
    let mut bounds = Vec::with_capacity(3);
    for i in 2..5 {
        match ctx.sizes(i)?.dims.as_deref() {
            Some(&[one]) => bounds.push(one),
            Some(list) => {
                let (name, count) = (ctx.operand_name(i), list.len());
                return Err(
                    ctx.error(format!("{name} must be a single integer, but has {count} values"))
                );
            }
            None => {}
        }
    }
    Ok(bounds.try_into().ok())
}

/// The range of an axis of size `dim` that the operand `src` replaces: its first index, step and length.
fn slice_of(ctx: &mut InferCtx<'_>, dim: Sym) -> Result<Option<super::AxisSlice>, InferError> {
    let axis = ctx.axis("axis", ctx.tensor(0)?.ndim.unwrap_or(usize::MAX))?;
    let Some([start, end, step]) = slice_bounds(ctx)? else { return Ok(None) };
    let step = ctx.func.syms.as_int(step).filter(|&s| s > 0);
    let step = step.ok_or_else(|| ctx.error("step must be a constant above 0"))?;
    Ok(Some(super::axis_slice(ctx, axis, dim, (start, end, step), false)))
}

fn infer_slice_scatter(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, src) = (ctx.tensor(0)?, ctx.tensor(1)?);
    ctx.same_dtype(0, 1)?;
    slice_bounds(ctx)?;
    if let Some(dims) = &data.dims {
        let axis = ctx.axis("axis", dims.len())?;
        if let Some(slice) = slice_of(ctx, dims[axis])? {
            let mut expected = dims.clone();
            expected[axis] = slice.len;
            check_dims(ctx, 1, &src, &expected)?;
        }
    }
    Ok(ctx.tensor_type_like(&data, data.dtype))
}

fn te_slice_scatter(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let mut infer = ctx.infer();
    let axis = infer.axis("axis", dims.len())?;
    let slice = slice_of(&mut infer, dims[axis])?.ok_or_else(|| {
        LegalizeError::unknown(
            "relax.slice_scatter: start and end must be constants or symbolic sizes, and step must be a \
             constant",
        )
    })?;
    let mut part = dims;
    part[axis] = slice.len;
    let (x, src) = (ctx.tensor(0)?, ctx.tensor_with_dims(1, &part)?);
    let (begin, len) = (ctx.size(slice.begin), ctx.size(slice.len));
    let step = te::int(slice.step);
    Ok(vec![te::compute(x.shape().to_vec(), "T_slice_scatter", |i| {
        let from = &i[axis] - &begin;
        let step_index = te::floordiv(&from, &step);
        let is_replaced = te::all([
            &te::ge(&from, &te::int(0)),
            &te::lt(&step_index, &len),
            &te::eq(&te::floormod(&from, &step), &te::int(0)),
        ]);
        let mut at = i.to_vec();
        at[axis] = step_index;
        te::if_then_else(&is_replaced, &src.at(&at), &x.at(i))
    })])
}

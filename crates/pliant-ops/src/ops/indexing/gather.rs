//! Gathering with non-constant indices: gather_elements, gather_nd, index_tensor, bucketize.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::index_bounds::{self, Negative, WRAP_NEGATIVE};
use crate::broadcast::{BroadcastTarget, broadcast_dims};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{ConstantSizes, Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_integer, shared_dim};
use crate::size_proofs;
use crate::te::{self, Check, Expr};
use crate::type_inference::{InferCtx, TensorTy};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.gather_elements",
        infer_gather_elements,
        "Gathers one element of `data` for each element of `indices`. The element at position `p` of the result is read from \
        `data` at `p`, but with the coordinate along the axis replaced by `indices[p]`. Negative indices count from the \
        end; without `wrap_negative`, they are out of range.",
    )
    .operands(&["data", "indices: index"])
    .attrs(&[("axis", Default::Int(0)), (WRAP_NEGATIVE, Default::Bool(true))])
    .te(Pattern::Injective, te_gather_elements)
    .numpy("take_along_axis")
    .onnx(&["GatherElements"])
    .errors(
        "an index or the axis is out of range, the ranks differ, or a dim of `indices` other than the axis is larger than that \
        of `data`",
    )
    .gradient_from_te(),
    OpDecl::new(
        "relax.gather_nd",
        infer_gather_nd,
        "Gathers slices of `data`. The last dim of `indices` holds index tuples into the dims of `data` after the first \
        `batch_dims`, which both operands share. Negative indices count from the end.",
    )
    .operands(&["data", "indices: index"])
    .attrs(&[("batch_dims", Default::Int(0))])
    .te(Pattern::Injective, te_gather_nd)
    .constant_sizes(ConstantSizes::LastDim(1))
    .onnx(&["GatherND"])
    .errors(
        "an index is out of range, a batch dim differs in size, or the last dim of `indices` is not a constant or exceeds the \
        number of indexed dims",
    )
    .gradient_from_te(),
    OpDecl::new(
        "relax.index_tensor",
        infer_index_tensor,
        "NumPy's integer array indexing: `indices` has one integer tensor for each of the leading dims of `data`; the index \
        tensors are broadcast together. Negative indices count from the end.",
    )
    .operands(&["data", "indices: index"])
    .te(Pattern::Injective, te_index_tensor)
    .errors("an index is out of range, the shapes of the index tensors cannot be broadcast, or there are more of them than dims")
    .gradient_from_te(),
    OpDecl::new(
        "relax.bucketize",
        infer_bucketize,
        "The insertion index of each element in the sorted `boundaries`: the number of boundaries less than the element, or, \
        with `right`, less than or equal to it. NaN sorts after all boundaries. The result is int64, or int32 with `out_int32`.",
    )
    .operands(&["input_tensor", "boundaries"])
    .attrs(&[("out_int32", Default::Bool(false)), ("right", Default::Bool(false))])
    .te(Pattern::Opaque, te_bucketize)
    .numpy("searchsorted")
    .errors("`boundaries` is not a vector"),
];

// ---- gather_elements ----

/// Checks that indices have the rank of data, and that no dim of indices, except the axis, is
/// provably larger than the same dim of data. Returns the axis, or `None` if no rank is known.
pub(super) fn check_index_dims(
    ctx: &mut InferCtx<'_>,
    (data, name): (&TensorTy, &str),
    indices: &TensorTy,
) -> Result<Option<usize>, InferError> {
    if let (Some(n), Some(m)) = (data.ndim, indices.ndim)
        && n != m
    {
        return Err(ctx.error(format!(
            "indices must have as many dims as {name}: {types}",
            types = operand_types(ctx)
        )));
    }
    let Some(ndim) = data.ndim.or(indices.ndim) else { return Ok(None) };
    let axis = ctx.axis("axis", ndim)?;
    if let (Some(x), Some(i)) = (&data.dims, &indices.dims) {
        for k in (0..ndim).filter(|&k| k != axis) {
            if size_proofs::at_most(ctx.func, i[k], x[k]) == Some(false) {
                let (a, b) = (ctx.dim_text(i[k]), ctx.dim_text(x[k]));
                return Err(ctx.error(format!(
                    "dim {k} of indices has size {a}, which is larger than {b}, the size of dim \
                     {k} of {name}"
                )));
            }
        }
    }
    Ok(Some(axis))
}

/// Creates run-time checks that each dim of the indices, except the axis, is at most the same dim
/// of the tensor. Omits the checks of dims for which this is proved.
pub(super) fn index_dim_checks(
    ctx: &mut LegalizeCtx<'_>,
    inner: &[Sym],
    outer: &[Sym],
    axis: usize,
) -> Vec<Check> {
    let op = ctx.decl.name;
    let mut checks = Vec::new();
    for k in (0..inner.len()).filter(|&k| k != axis) {
        if size_proofs::at_most(ctx.func, inner[k], outer[k]) == Some(true) {
            continue;
        }
        let (a, b) = (ctx.size(inner[k]), ctx.size(outer[k]));
        let message = format!(
            "{op}: dim {k} of indices, {a} = {{0}}, is larger than dim {k} of the indexed tensor, \
             {b} = {{1}}"
        );
        let cond = te::explain(&te::le(&a, &b), &[a, b]);
        checks.push(Check { axes: Vec::new(), cond, message: message.into() });
    }
    checks
}

fn infer_gather_elements(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, indices) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_integer(ctx, 1, &indices)?;
    Negative::of_attr(ctx)?;
    check_index_dims(ctx, (&data, "data"), &indices)?;
    Ok(ctx.tensor_type_like(&indices, data.dtype))
}

fn te_gather_elements(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let (axis, negative) = (infer.axis("axis", dims.len())?, Negative::of_attr(&infer)?);
    let (x, indices) = (ctx.tensor(0)?, ctx.tensor(1)?);
    let size = x.shape()[axis].clone();
    let out = te::compute(indices.shape().to_vec(), "T_gather_elements", |i| {
        let mut position: Vec<Expr> =
            i.iter().zip(x.shape()).map(|(i, d)| index_bounds::clamp(i, d)).collect();
        position[axis] = index_bounds::normalize(&indices.at(i), &size, negative);
        x.at(&position)
    });
    let mut checks = index_dim_checks(ctx, &at, &dims, axis);
    if !ctx.trust_indices {
        let op = ctx.decl.name;
        checks.push(index_bounds::check_all(indices.shape(), |c| {
            index_bounds::range_condition(op, (axis, &indices.at(c), &size), negative)
        }));
    }
    Ok(vec![checks.into_iter().fold(out, |out, check| out.with_check(check))])
}

// ---- gather_nd ----

/// The number of dims that an index tuple addresses, which is the size of the last dim of the
/// indices.
pub(super) fn index_tuple_len(
    ctx: &mut InferCtx<'_>,
    indices: &TensorTy,
    max: Option<usize>,
) -> Result<Option<usize>, InferError> {
    let Some(dims) = &indices.dims else { return Ok(None) };
    let Some(&last) = dims.last() else {
        return Err(ctx.error("indices must have at least 1 dim, but is a scalar"));
    };
    let Some(len) = ctx.func.syms.as_int(last) else {
        let last = ctx.dim_text(last);
        return Err(ctx.error(format!("the last dim of indices must be a constant, but is {last}")));
    };
    let fits = usize::try_from(len).ok().filter(|&n| max.is_none_or(|m| n <= m));
    let bad = || {
        let data = ctx.operand_type_text(0);
        ctx.error(format!(
            "the last dim of indices is {len}, but must be from 0 to the number of \
             dims of data that are not batch dims: data is {data}"
        ))
    };
    fits.ok_or_else(bad).map(Some)
}

fn batch_dims(ctx: &InferCtx<'_>, ranks: &[Option<usize>]) -> Result<usize, InferError> {
    let n = ctx.int("batch_dims")?;
    let fits = |r: &Option<usize>| r.is_none_or(|r| n < r as i64);
    if n < 0 || !ranks.iter().all(fits) {
        return Err(ctx.error(format!(
            "batch_dims {n} is out of range: it must be at least 0 and less than the rank \
             of each operand: {types}",
            types = operand_types(ctx)
        )));
    }
    Ok(n as usize)
}

fn infer_gather_nd(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, indices) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_integer(ctx, 1, &indices)?;
    let batch = batch_dims(ctx, &[data.ndim, indices.ndim])?;
    let Some(len) = index_tuple_len(ctx, &indices, data.ndim.map(|n| n - batch))? else {
        return Ok(ctx.tensor_type(None, None, data.dtype));
    };
    let rank = data.ndim.zip(indices.ndim).map(|(n, m)| m - 1 + n - batch - len);
    let (Some(x), Some(i)) = (data.dims, indices.dims) else {
        return Ok(ctx.tensor_type(None, rank, data.dtype));
    };
    for k in 0..batch {
        if shared_dim(ctx, x[k], i[k]).is_none() {
            let (a, b) = (ctx.dim_text(x[k]), ctx.dim_text(i[k]));
            return Err(ctx.error(format!(
                "data and indices must have the same size in batch dim {k}, but have {a} \
                     and {b}: {types}",
                types = operand_types(ctx)
            )));
        }
    }
    let dims = [&i[..i.len() - 1], &x[batch + len..]].concat();
    Ok(ctx.tensor_type(Some(dims), None, data.dtype))
}

fn te_gather_nd(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (mut dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let batch = batch_dims(&infer, &[Some(dims.len()), Some(at.len())])?;
    let len = infer.func.syms.as_int(at[at.len() - 1]).unwrap_or(0) as usize;
    dims[..batch].copy_from_slice(&at[..batch]);
    let (x, indices) = (ctx.tensor_with_dims(0, &dims)?, ctx.tensor(1)?);
    let shape = ctx.out_shape(0)?;
    let lead = at.len() - 1;
    let element = |lead: &[Expr], k: usize| indices.at(&[lead, &[te::int(k as i64)]].concat());
    let mut out = te::compute(shape, "T_gather_nd", |i| {
        let mut position = i[..batch].to_vec();
        for k in 0..len {
            let (index, size) = (element(&i[..lead], k), &x.shape()[batch + k]);
            position.push(index_bounds::normalize(&index, size, Negative::FromEnd));
        }
        position.extend_from_slice(&i[lead..]);
        x.at(&position)
    });
    for k in 0..if ctx.trust_indices { 0 } else { len } {
        let size = x.shape()[batch + k].clone();
        out = out.with_check(index_bounds::check_all(&indices.shape()[..lead], |c| {
            let at = (batch + k, &element(c, k), &size);
            index_bounds::range_condition(ctx.decl.name, at, Negative::FromEnd)
        }));
    }
    Ok(vec![out])
}

// ---- index_tensor ----

/// The index tensors in operand `i`, a tuple. `None` if the type of the operand is unknown.
pub(super) fn index_tensors(
    ctx: &mut InferCtx<'_>,
    i: usize,
) -> Result<Option<Vec<TensorTy>>, InferError> {
    let Some(list) = ctx.tensors(i)? else { return Ok(None) };
    if list.is_empty() {
        return Err(ctx.error("indices must hold at least one tensor"));
    }
    for (k, t) in list.iter().enumerate() {
        if t.dtype.is_some_and(|d| !d.is_integer()) {
            let tys = ctx.operand_type_text(i);
            return Err(ctx.error(format!(
                "indices[{k}] must be a tensor of integers, but indices is {tys}"
            )));
        }
    }
    if let Some(n) = ctx.tensor(0)?.ndim
        && list.len() > n
    {
        let (x, n) = (ctx.operand_type_text(0), list.len());
        return Err(
            ctx.error(format!("indices has {n} tensors, more than data has dims: data is {x}"))
        );
    }
    Ok(Some(list))
}

/// The broadcast dims of all index tensors. `None` if dims are unknown.
pub(super) fn index_dims(
    ctx: &mut InferCtx<'_>,
    list: &[TensorTy],
) -> Result<Option<Vec<Sym>>, InferError> {
    let mut dims: Vec<Sym> = Vec::new();
    for t in list {
        let Some(tensor_dims) = &t.dims else { return Ok(None) };
        dims = broadcast_dims(ctx, &dims, tensor_dims, 0)?;
    }
    Ok(Some(dims))
}

fn infer_index_tensor(ctx: &mut InferCtx<'_>) -> InferResult {
    let data = ctx.tensor(0)?;
    let Some(list) = index_tensors(ctx, 1)? else {
        return Ok(ctx.tensor_type(None, None, data.dtype));
    };
    let dims = index_dims(ctx, &list)?;
    let rank = list.iter().try_fold(0, |max, t| Some(t.ndim?.max(max)));
    let rank = rank.zip(data.ndim).map(|(m, n)| m + n - list.len());
    let dims = dims.zip(data.dims).map(|(i, x)| [&i[..], &x[list.len()..]].concat());
    Ok(ctx.tensor_type(dims, rank, data.dtype))
}

fn te_index_tensor(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let out = ctx.out_dims(0)?;
    let x = ctx.tensor(0)?;
    let mut infer = ctx.infer();
    let list = index_tensors(&mut infer, 1)?.unwrap_or_default();
    let lead = out.len() - (x.ndim() - list.len());
    let mut target = BroadcastTarget::new(&out[..lead]);
    let indices = target.fields(ctx, 1)?;
    let shape = ctx.size_list(&out);
    let mut result = te::compute(shape, "T_index_tensor", |i| {
        let mut position: Vec<Expr> = indices
            .iter()
            .zip(x.shape())
            .map(|(t, size)| index_bounds::normalize(&t.at(&i[..lead]), size, Negative::FromEnd))
            .collect();
        position.extend_from_slice(&i[lead..]);
        x.at(&position)
    });
    result = target.checked(ctx, result);
    if !ctx.trust_indices {
        for (k, (t, size)) in indices.iter().zip(x.shape()).enumerate() {
            let index_value = t.value();
            let check = index_bounds::check_all(index_value.shape(), |c| {
                let at = (k, &index_value.at(c), size);
                index_bounds::range_condition(ctx.decl.name, at, Negative::FromEnd)
            });
            result = result.with_check(check);
        }
    }
    Ok(vec![result])
}

// ---- bucketize ----

fn infer_bucketize(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, bounds) = (ctx.tensor(0)?, ctx.tensor(1)?);
    ctx.same_dtype(0, 1)?;
    if bounds.ndim.is_some_and(|n| n != 1) {
        return Err(ctx.error(format!(
            "boundaries must have 1 dim, but is {ty}",
            ty = ctx.operand_type_text(1)
        )));
    }
    ctx.bool("right")?;
    let dtype = if ctx.bool("out_int32")? { DType::Int32 } else { DType::Int64 };
    Ok(ctx.tensor_type_like(&t, Some(dtype)))
}

/// Lowers `bucketize`: a binary search for the number of boundaries before each element.
fn te_bucketize(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (x, bounds) = (ctx.value(0)?, ctx.tensor(1)?);
    let (right, dtype) = (ctx.infer().bool("right")?, ctx.out_dtype(0)?);
    let count = bounds.shape()[0].clone();
    let shape = x.shape().to_vec();
    Ok(te::extern_("bucketize", &[(shape.clone(), dtype)], |b, out| {
        b.for_each(&shape, |b, i| {
            let value = b.let_("value", &x.at(i));
            let (low, high) = (b.cell("low", &te::int(0)), b.cell("high", &count));
            b.while_(&te::lt(&low.get(), &high.get()), |b| {
                let middle =
                    b.let_("middle", &te::floordiv(&(low.get() + high.get()), &te::int(2)));
                let bound = bounds.at(&[index_bounds::clamp(&middle, &count)]);
                // Formulated with a negated comparison, so that NaN sorts after all boundaries.
                let after = match right {
                    true => te::not(&te::lt(&value, &bound)),
                    false => te::not(&te::le(&value, &bound)),
                };
                b.if_else(&after, |b| b.set(&low, &(&middle + 1)), |b| b.set(&high, &middle));
            });
            b.store(&out[0], i, &low.get());
        });
    }))
}

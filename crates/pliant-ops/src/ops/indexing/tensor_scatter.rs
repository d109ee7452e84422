//! The operator tensor_scatter, which writes new entries to the key-value cache of attention.

use pliant_ir::op::InferError;
use pliant_tensor::CheckFailure;

use super::index_bounds;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_integer, shared_dim};
use crate::size_proofs;
use crate::te::{self, Check, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.tensor_scatter",
    infer,
    "Updates a key-value cache: for each index `i` of the first dim, writes `updates[i]` to `data[i]` along the axis, from \
    position `starts[i]` on. With `circular`, positions wrap around at the end of the axis.",
)
.operands(&["data", "updates", "starts: index"])
.attrs(&[("axis", Default::Int(-2)), ("circular", Default::Bool(false))])
.te(Pattern::Injective, te_tensor_scatter)
.onnx(&["TensorScatter"])
.errors("updates do not fit, a start is out of range, `axis` is 0 or out of range, or other dims than the axis differ in size")
    .gradient_from_te()];

/// The axis of the cache along which updates are written. It must not be the first axis.
fn axis(ctx: &InferCtx<'_>, ndim: usize) -> Result<usize, InferError> {
    match ctx.axis("axis", ndim)? {
        0 => Err(ctx.error("axis must not be 0, the axis of the batch")),
        axis => Ok(axis),
    }
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, updates, starts) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    ctx.same_dtype(0, 1)?;
    require_integer(ctx, 2, &starts)?;
    ctx.bool("circular")?;
    if starts.ndim.is_some_and(|n| n != 1) {
        let types = operand_types(ctx);
        return Err(ctx.error(format!("starts must have 1 dim: {types}")));
    }
    if data.ndim.zip(updates.ndim).is_some_and(|(a, b)| a != b) {
        let types = operand_types(ctx);
        return Err(ctx.error(format!("updates must have as many dims as data: {types}")));
    }
    let Some(data_dims) = &data.dims else { return Ok(ctx.tensor_type_like(&data, data.dtype)) };
    let axis = axis(ctx, data_dims.len())?;
    if let Some(starts_dims) = &starts.dims
        && shared_dim(ctx, data_dims[0], starts_dims[0]).is_none()
    {
        let (batch, count) = (ctx.dim_text(data_dims[0]), ctx.dim_text(starts_dims[0]));
        let types = operand_types(ctx);
        return Err(ctx.error(format!(
            "starts must have one element for each of the {batch} sequences of data (dim 0), but has {count}: {types}"
        )));
    }
    if let Some(new) = &updates.dims {
        if size_proofs::at_most(ctx.func, new[axis], data_dims[axis]) == Some(false) {
            let text = operand_types(ctx);
            return Err(
                ctx.error(format!("updates are longer than data along axis {axis}: {text}"))
            );
        }
        for k in (0..data_dims.len()).filter(|&k| k != axis) {
            if shared_dim(ctx, data_dims[k], new[k]).is_none() {
                let (expected, actual) = (ctx.dim_text(data_dims[k]), ctx.dim_text(new[k]));
                let types = operand_types(ctx);
                return Err(ctx.error(format!(
                    "data and updates must have equal sizes in all dims except axis {axis}, but have the sizes {expected} and \
                     {actual} in dim {k}: {types}"
                )));
            }
        }
    }
    Ok(ctx.tensor_type_like(&data, data.dtype))
}

fn te_tensor_scatter(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (dims, new) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let (axis, circular) = (axis(&infer, dims.len())?, infer.bool("circular")?);
    let mut part = dims.clone();
    part[axis] = new[axis];
    let (x, updates) = (ctx.tensor(0)?, ctx.tensor_with_dims(1, &part)?);
    let starts = ctx.tensor_with_dims(2, &dims[..1])?;
    let (size, len) = (x.shape()[axis].clone(), updates.shape()[axis].clone());
    let start = |i: &Expr| index_bounds::as_int64(&starts.at(std::slice::from_ref(i)));
    let out = te::compute(x.shape().to_vec(), "T_tensor_scatter", |i| {
        let from = &i[axis] - start(&i[0]);
        let from = match circular {
            true => te::select(&te::lt(&from, &te::int(0)), &(&from + &size), &from),
            false => from,
        };
        let is_updated = te::and(&te::ge(&from, &te::int(0)), &te::lt(&from, &len));
        let mut at = i.to_vec();
        at[axis] = from;
        te::if_then_else(&is_updated, &updates.at(&at), &x.at(i))
    });
    let op = ctx.decl.name;
    let message =
        format!("{op}: {{1}} updates do not fit at position {{0}} of axis {axis} of size {{2}}");
    let fits = index_bounds::check_all(&x.shape()[..1], |i| {
        let start = start(&i[0]);
        // With circular, updates fit anywhere if they are not longer than the axis.
        let last = if circular { &size - 1 } else { &size - &len };
        let fits = te::and(&te::ge(&start, &te::int(0)), &te::le(&start, &last));
        let fits = te::or(&fits, &te::eq(&len, &te::int(0)));
        (
            te::explain(&fits, &[start, len.clone(), size.clone()]),
            CheckFailure::Index.mark(&message).into(),
        )
    });
    let short = te::explain(&te::le(&len, &size), &[len.clone(), size.clone()]);
    let message = format!("{op}: {{0}} updates do not fit along axis {axis} of size {{1}}").into();
    let out = out.with_check(Check { axes: Vec::new(), cond: short, message });
    Ok(vec![if ctx.trust_indices { out } else { out.with_check(fits) }])
}

//! Choosing elements: by index, by range.

use pliant_ir::Sym;
use pliant_ir::op::InferError;
use pliant_ir::relax::{Type, TypeData};

use crate::decl::{Default, OpDecl, Pattern};
use crate::infer::InferCtx;
use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::prove;
use crate::rules::require_integer;
use crate::te::{self, Check, Expr, IterVar, Tensor, Var};

type Inferred = Result<Type, InferError>;
type Outputs = Result<Vec<Tensor>, LegalizeError>;

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.take",
        infer_take,
        "Slices along an axis at given indices; negative ones count from the end.",
    )
    .operands(&["x", "indices"])
    .attrs(&[("axis", Default::None), ("mode", Default::Str("fast"))])
    .te(Pattern::Injective, te_take)
    .numpy("take")
    .onnx(&["Gather"]),
    OpDecl::new(
        "relax.strided_slice",
        infer_slice,
        "Every stride-th element from begin up to, but without, end.",
    )
    .operands(&["x", "axes", "begin", "end", "strides?"])
    .attrs(&[("assume_inbound", Default::Bool(false))])
    .te(Pattern::Injective, te_slice)
    .onnx(&["Slice"]),
];

// ---- take ----

/// The axis that is indexed; without one, the tensor must be a vector.
fn take_axis(ctx: &InferCtx<'_>, ndim: usize) -> Result<usize, InferError> {
    if !ctx.attr("axis").is_none() {
        return ctx.axis("axis", ndim);
    }
    if ndim == 1 {
        return Ok(0);
    }
    Err(ctx.error(format!("an axis is needed for a tensor of rank {ndim}")))
}

fn infer_take(ctx: &mut InferCtx<'_>) -> Inferred {
    let (x, indices) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_integer(ctx, 1, &indices)?;
    let mode = ctx.attr("mode");
    if !matches!(mode.as_str(), Some("fast" | "wrap" | "clip")) {
        return Err(ctx.error("mode must be \"fast\", \"wrap\" or \"clip\""));
    }
    let Some(ndim) = x.ndim else { return Ok(ctx.make(None, None, x.dtype)) };
    let axis = take_axis(ctx, ndim)?;
    let rank = indices.ndim.map(|n| ndim - 1 + n);
    let dims = x.dims.zip(indices.dims).map(|(x, i)| [&x[..axis], &i, &x[axis + 1..]].concat());
    Ok(ctx.make(dims, rank, x.dtype))
}

fn te_take(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let (x, indices) = (ctx.tensor(0)?, ctx.value(1)?);
    let infer = ctx.infer();
    let axis = take_axis(&infer, x.ndim())?;
    let mode = infer.attr("mode");
    let mode = mode.as_str().unwrap_or("fast");
    let size = x.shape()[axis].clone();
    let count = indices.shape().len();
    let shape = [&x.shape()[..axis], indices.shape(), &x.shape()[axis + 1..]].concat();
    let out = te::compute(shape, "T_take", |i| {
        let chosen = te::cast(&indices.at(&i[axis..axis + count]), te::Ty::I64);
        let chosen = inside(&chosen, &size, mode);
        x.at(&[&i[..axis], &[chosen], &i[axis + count..]].concat())
    });
    Ok(vec![out.with_check(take_check(&indices, &size, axis, mode))])
}

/// The index with what the mode makes of one outside, so that no read leaves the tensor. In the fast mode a check
/// has refused those before; the clamp keeps reads inside for whatever order later stages run things in.
fn inside(index: &Expr, size: &Expr, mode: &str) -> Expr {
    let zero = te::int(0);
    match mode {
        "wrap" => te::floormod(index, size),
        "clip" => te::maximum(&te::minimum(index, &(size - 1)), &zero),
        _ => {
            let index = te::select(&te::lt(index, &zero), &(index + size), index);
            te::maximum(&te::minimum(&index, &(size - 1)), &zero)
        }
    }
}

/// All indices must be in range; where the mode brings them into range, there must be a range.
fn take_check(indices: &Value, size: &Expr, axis: usize, mode: &str) -> Check {
    let axes = check_axes(indices.shape());
    let at: Vec<Expr> = axes.iter().map(|a| a.var.expr()).collect();
    let index = te::cast(&indices.at(&at), te::Ty::I64);
    let zero = te::int(0);
    if mode == "fast" {
        let cond = te::and(&te::ge(&index, &-size), &te::lt(&index, size));
        let message =
            format!("relax.take: an index is out of range for axis {axis} of size {size}");
        return Check { axes, cond, message: message.into() };
    }
    let message =
        format!("relax.take: axis {axis} of size {size} is empty, so no index is in range");
    Check { axes, cond: te::gt(size, &zero), message: message.into() }
}

/// Axes over a shape, for a check of all elements.
fn check_axes(shape: &[Expr]) -> Vec<IterVar> {
    let axis = |(k, extent): (usize, &Expr)| IterVar {
        var: Var::size(format!("c{k}")),
        min: te::int(0),
        extent: extent.clone(),
        kind: te::IterKind::Spatial,
    };
    shape.iter().enumerate().map(axis).collect()
}

// ---- strided_slice ----

/// One axis of a slice.
struct AxisSlice {
    axis: usize,
    begin: Sym,
    step: i64,
    len: Sym,
}

/// The slices over a tensor of known dims; `None` where a bound is not known.
fn slices(ctx: &mut InferCtx<'_>, dims: &[Sym]) -> Result<Option<Vec<AxisSlice>>, InferError> {
    let inbound = ctx.bool("assume_inbound")?;
    let lists = (ctx.sizes(1)?, ctx.sizes(2)?, ctx.sizes(3)?);
    let strides = if ctx.has(4) { Some(ctx.sizes(4)?) } else { None };
    let (Some(axes), Some(begins), Some(ends)) = (lists.0.dims, lists.1.dims, lists.2.dims) else {
        return Ok(None);
    };
    let one = ctx.func.syms.int(1);
    let strides = match strides {
        None => vec![one; axes.len()],
        Some(s) => match s.dims {
            Some(s) => s,
            None => return Ok(None),
        },
    };
    if [begins.len(), ends.len(), strides.len()].iter().any(|&n| n != axes.len()) {
        return Err(ctx.error("axes, begin, end and strides must be of one length"));
    }
    let mut out: Vec<AxisSlice> = Vec::with_capacity(axes.len());
    for (k, &axis) in axes.iter().enumerate() {
        let axis = ctx.func.syms.as_int(axis).ok_or_else(|| ctx.error("axes must be constants"))?;
        let axis = ctx.normal_axis(axis, dims.len())?;
        if out.iter().any(|s| s.axis == axis) {
            return Err(ctx.error(format!("axis {axis} appears twice in axes")));
        }
        let step = ctx.func.syms.as_int(strides[k]).filter(|&s| s != 0 && s != i64::MIN);
        let step = step.ok_or_else(|| ctx.error("strides must be constants other than 0"))?;
        out.push(axis_slice(ctx, axis, dims[axis], (begins[k], ends[k], step), inbound));
    }
    Ok(Some(out))
}

/// No tensor has as many elements.
const BEYOND: i64 = 1 << 62;

/// First index and length as NumPy finds them: negative bounds count from the end, and all are clipped.
fn axis_slice(
    ctx: &mut InferCtx<'_>,
    axis: usize,
    dim: Sym,
    (begin, end, step): (Sym, Sym, i64),
    inbound: bool,
) -> AxisSlice {
    let (low, high) = if step > 0 { (0, 0) } else { (-1, -1) };
    let mut bound = |b: Sym| {
        // "To the end" is written as an integer larger (or smaller) than any size: no sum with it may be formed.
        match ctx.func.syms.as_int(b) {
            Some(v) if v >= BEYOND => {
                let high = ctx.func.syms.int(high);
                return ctx.func.syms.add(dim, high);
            }
            Some(v) if v <= -BEYOND => return ctx.func.syms.int(low),
            _ => {}
        }
        let from_start = from_start(ctx, b, dim);
        if inbound { from_start } else { clip(ctx, from_start, dim, low, high) }
    };
    let (begin, end) = (bound(begin), bound(end));
    let syms = &mut ctx.func.syms;
    let span = if step > 0 { syms.sub(end, begin) } else { syms.sub(begin, end) };
    let size = syms.int(step.abs());
    let len = syms.ceildiv(span, size);
    let zero = syms.int(0);
    let len = if prove::at_most(ctx.func, zero, len) == Some(true) {
        len
    } else {
        ctx.func.syms.max(len, zero)
    };
    AxisSlice { axis, begin, step, len }
}

/// The bound counted from the start.
fn from_start(ctx: &mut InferCtx<'_>, b: Sym, dim: Sym) -> Sym {
    let zero = ctx.func.syms.int(0);
    match prove::at_most(ctx.func, zero, b) {
        Some(true) => b,
        Some(false) => ctx.func.syms.add(b, dim),
        None => {
            let (negative, moved) = (ctx.func.syms.lt(b, zero), ctx.func.syms.add(b, dim));
            ctx.func.syms.select(negative, moved, b)
        }
    }
}

/// The bound clipped to `low ..= dim + high`; what is proved to be inside stays as it is.
fn clip(ctx: &mut InferCtx<'_>, b: Sym, dim: Sym, low: i64, high: i64) -> Sym {
    let (low, high) = (ctx.func.syms.int(low), ctx.func.syms.int(high));
    let most = ctx.func.syms.add(dim, high);
    let upper = match prove::at_most(ctx.func, b, most) {
        Some(true) => b,
        Some(false) => most,
        None => ctx.func.syms.min(b, most),
    };
    match prove::at_most(ctx.func, low, upper) {
        Some(true) => upper,
        Some(false) => low,
        None => ctx.func.syms.max(upper, low),
    }
}

fn infer_slice(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    let Some(mut dims) = t.dims else { return Ok(ctx.make(None, t.ndim, t.dtype)) };
    let Some(slices) = slices(ctx, &dims)? else { return Ok(ctx.make(None, t.ndim, t.dtype)) };
    for s in slices {
        dims[s.axis] = s.len;
    }
    Ok(ctx.func.intern(TypeData::tensor(dims, t.dtype)))
}

fn te_slice(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let dims = ctx.dims(0)?;
    let slices = slices(&mut ctx.infer(), &dims)?;
    let slices = slices
        .ok_or_else(|| LegalizeError::unknown("relax.strided_slice: the bounds are not known"))?;
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    let from: Vec<(usize, Expr, i64)> =
        slices.iter().map(|s| (s.axis, ctx.size(s.begin), s.step)).collect();
    Ok(vec![te::compute(shape, "T_strided_slice", |i| {
        let mut at = i.to_vec();
        for (axis, begin, step) in &from {
            at[*axis] = &i[*axis] * *step + begin;
        }
        x.at(&at)
    })])
}

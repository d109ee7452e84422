//! Scattering with non-constant indices: scatter_elements, scatter_nd, index_put, slice_scatter.
//!
//! Updates are applied in row-major order of the indices. With the reduction `update`, the last one
//! of several updates of an element wins.

use pliant_ir::op::InferError;
use pliant_ir::relax::Type;
use pliant_ir::{DType, Sym};

use super::gather::{beside, beside_checks, index_dims, joined, tuple_len};
use super::safe;
use crate::broadcast::{Target, broadcast_dims};
use crate::decl::{Default, Numbers, OpDecl, Pattern};
use crate::infer::{InferCtx, TensorTy};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::prove;
use crate::rules::{operand_types, require_integer};
use crate::te::{self, Body, Expr, Tensor};

type Inferred = Result<Type, InferError>;
type Outputs = Result<Vec<Tensor>, LegalizeError>;

const REDUCTIONS: &[&str] = &["update", "add", "mul", "min", "max", "mean"];

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.scatter_elements",
        infer_scatter_elements,
        "data with each element of updates put at its own place but along the axis, where the index says; by \
         reduction \"update\", \"add\", \"mul\", \"min\", \"max\" or \"mean\" (of the element and all its updates). \
         Updates apply in order; negative indices count from the end.",
    )
    .operands(&["data", "indices: index", "updates"])
    .attrs(&[("axis", Default::Int(0)), ("reduction", Default::Str("update"))])
    .te(Pattern::Opaque, te_scatter_elements)
    .numpy("put_along_axis")
    .onnx(&["ScatterElements", "Scatter"]),
    OpDecl::new(
        "relax.scatter_nd",
        infer_scatter_nd,
        "data with slices of updates put at the index tuples along the last dim of indices; reductions as \
         scatter_elements.",
    )
    .operands(&["data", "indices: index", "updates"])
    .attrs(&[("reduction", Default::Str("update"))])
    .te(Pattern::Opaque, te_scatter_nd)
    .numbers(Numbers::Last(1))
    .onnx(&["ScatterND"]),
    OpDecl::new(
        "relax.index_put",
        infer_index_put,
        "data with values put where NumPy's indexing with arrays says, or added there.",
    )
    .operands(&["data", "indices: index", "values"])
    .attrs(&[("accumulate", Default::Bool(false))])
    .te(Pattern::Opaque, te_index_put),
    OpDecl::new(
        "relax.slice_scatter",
        infer_slice_scatter,
        "The first tensor with src in place of its slice from start up to, but without, end by step along the axis.",
    )
    .operands(&["input_tensor", "src", "start: size", "end: size", "step: size"])
    .attrs(&[("axis", Default::Int(0))])
    .te(Pattern::Injective, te_slice_scatter),
];

/// An update of one element.
fn apply(b: &mut Body, to: &Tensor, at: &[Expr], update: &Expr, reduction: &str) {
    let old = to.at(at);
    let update = te::cast(update, to.dtype());
    let new = match reduction {
        "add" | "mean" => &old + &update,
        "mul" if to.dtype().is_bool() => te::and(&old, &update),
        "mul" => te::binary(te::BinOp::Mul, &old, &update),
        "min" => te::minimum(&old, &update),
        "max" => te::maximum(&old, &update),
        _ => update,
    };
    b.store(to, at, &new);
}

/// The statements of a scatter: the checks, a copy of data, then each update. A mean is divided at
/// the end.
fn scatter(
    name: &str,
    data: &Tensor,
    reduction: &str,
    (updates, checks): (&[Expr], &[te::Check]),
    mut write: impl FnMut(&mut Body, &[Expr], &mut dyn FnMut(&mut Body, &[Expr], &Expr)),
) -> Vec<Tensor> {
    let (shape, dtype) = (data.shape().to_vec(), data.dtype());
    let mean = reduction == "mean";
    te::extern_(name, &[(shape.clone(), dtype)], |b, out| {
        for check in checks {
            b.assert(&check.cond, check.message.clone());
        }
        let counts = mean.then(|| b.alloc("counts", &shape, DType::Int64));
        // Half-precision sums would lose small addends to a large sum.
        let wide = super::super::statistical::accumulator(dtype);
        let sums = matches!(reduction, "mean" | "add" | "mul") && wide != dtype;
        let sums = sums.then(|| b.alloc("sums", &shape, wide));
        let to = sums.as_ref().unwrap_or(&out[0]);
        b.for_each(&shape, |b, i| {
            b.store(to, i, &data.at(i));
            if let Some(counts) = &counts {
                b.store(counts, i, &te::int(1));
            }
        });
        b.for_each(updates, |b, i| {
            write(b, i, &mut |b, at, update| {
                apply(b, to, at, update, reduction);
                if let Some(counts) = &counts {
                    b.store(counts, at, &(counts.at(at) + 1));
                }
            });
        });
        if let Some(counts) = &counts {
            b.for_each(&shape, |b, i| {
                let (sum, count) = (to.at(i), te::cast(&counts.at(i), wide));
                let mean = if dtype.is_float() { sum / count } else { te::floordiv(&sum, &count) };
                b.store(&out[0], i, &mean);
            });
        } else if let Some(sums) = &sums {
            b.for_each(&shape, |b, i| b.store(&out[0], i, &te::cast(&sums.at(i), dtype)));
        }
    })
}

fn reduction(ctx: &InferCtx<'_>) -> Result<&'static str, InferError> {
    let found = REDUCTIONS[ctx.choice("reduction", REDUCTIONS)?];
    if found != "update" && found != "mul" && ctx.tensor(0)?.dtype.is_some_and(DType::is_bool) {
        return Err(ctx.error(format!("the reduction {found:?} is not defined on bool")));
    }
    Ok(found)
}

/// Rejects a shape that provably differs from the required one.
fn same_dims(
    ctx: &mut InferCtx<'_>,
    i: usize,
    have: &TensorTy,
    want: &[Sym],
) -> Result<(), InferError> {
    let Some(have) = &have.dims else { return Ok(()) };
    let fits = have.len() == want.len()
        && have.iter().zip(want).all(|(&a, &b)| prove::equal(ctx.func, a, b) != Some(false));
    if fits {
        return Ok(());
    }
    let want: Vec<String> = want.iter().map(|&d| ctx.dim(d)).collect();
    let (name, ty) = (ctx.name(i), ctx.ty_text(i));
    Err(ctx.error(format!("{name} must be of shape ({}), but is {ty}", want.join(", "))))
}

// ---- scatter_elements ----

fn infer_scatter_elements(ctx: &mut InferCtx<'_>) -> Inferred {
    let (data, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    require_integer(ctx, 1, &indices)?;
    ctx.same_dtype(0, 2)?;
    reduction(ctx)?;
    beside(ctx, (&data, "data"), &indices)?;
    if let Some(want) = &indices.dims {
        same_dims(ctx, 2, &updates, want)?;
    }
    Ok(ctx.like(&data, data.dtype))
}

fn te_scatter_elements(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let (dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let (axis, reduction) = (infer.axis("axis", dims.len())?, reduction(&infer)?);
    let (x, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor_of_dims(2, &at)?);
    let (op, trusted) = (ctx.decl.name, ctx.trusted);
    let checks = beside_checks(ctx, &at, &dims, axis);
    let shape = indices.shape().to_vec();
    Ok(scatter("scatter_elements", &x, reduction, (&shape, &checks), |b, i, put| {
        let size = &x.shape()[axis];
        let place = safe::checked(b, op, trusted, (axis, &indices.at(i), size));
        let mut to: Vec<Expr> = i.iter().zip(x.shape()).map(|(i, d)| safe::clamp(i, d)).collect();
        to[axis] = place;
        put(b, &to, &updates.at(i));
    }))
}

// ---- scatter_nd ----

fn infer_scatter_nd(ctx: &mut InferCtx<'_>) -> Inferred {
    let (data, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    require_integer(ctx, 1, &indices)?;
    ctx.same_dtype(0, 2)?;
    reduction(ctx)?;
    let len = tuple_len(ctx, &indices, data.ndim)?;
    if let (Some(len), Some(x), Some(i)) = (len, &data.dims, &indices.dims) {
        let want = [&i[..i.len() - 1], &x[len..]].concat();
        same_dims(ctx, 2, &updates, &want)?;
    }
    Ok(ctx.like(&data, data.dtype))
}

fn te_scatter_nd(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let (dims, at) = (ctx.dims(0)?, ctx.dims(1)?);
    let infer = ctx.infer();
    let reduction = reduction(&infer)?;
    let len = infer.func.syms.as_int(at[at.len() - 1]).unwrap_or(0) as usize;
    let lead = at.len() - 1;
    let want = [&at[..lead], &dims[len..]].concat();
    let (x, indices, updates) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor_of_dims(2, &want)?);
    let (op, trusted) = (ctx.decl.name, ctx.trusted);
    let shape = updates.shape().to_vec();
    Ok(scatter("scatter_nd", &x, reduction, (&shape, &[]), |b, i, put| {
        let mut to = Vec::with_capacity(x.ndim());
        for k in 0..len {
            let index = indices.at(&[&i[..lead], &[te::int(k as i64)]].concat());
            to.push(safe::checked(b, op, trusted, (k, &index, &x.shape()[k])));
        }
        to.extend_from_slice(&i[lead..]);
        put(b, &to, &updates.at(i));
    }))
}

// ---- index_put ----

fn infer_index_put(ctx: &mut InferCtx<'_>) -> Inferred {
    let (data, values) = (ctx.tensor(0)?, ctx.tensor(2)?);
    let accumulate = ctx.bool("accumulate")?;
    ctx.same_dtype(0, 2)?;
    if accumulate && data.dtype.is_some_and(DType::is_bool) {
        return Err(ctx.error("accumulate is not defined on bool"));
    }
    if let Some(list) = joined(ctx, 1)?
        && let (Some(i), Some(x), Some(v)) = (index_dims(ctx, &list)?, &data.dims, values.dims)
    {
        let want = [&i[..], &x[list.len()..]].concat();
        if broadcast_dims(ctx, &want, &v, 0)?.len() > want.len() {
            return Err(ctx.error(format!("values has too many dims: {}", operand_types(ctx))));
        }
    }
    Ok(ctx.like(&data, data.dtype))
}

fn te_index_put(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let dims = ctx.dims(0)?;
    let mut infer = ctx.infer();
    let list = joined(&mut infer, 1)?.unwrap_or_default();
    let lead = index_dims(&mut infer, &list)?
        .ok_or_else(|| LegalizeError::unknown("relax.index_put: a shape is not known"))?;
    let accumulate = infer.bool("accumulate")?;
    let x = ctx.tensor(0)?;
    let mut joined = Target::new(&lead);
    let indices = joined.fields(ctx, 1)?;
    let whole = [&lead[..], &dims[list.len()..]].concat();
    let mut target = Target::new(&whole);
    let values = target.operand(ctx, 2)?;
    let shape = ctx.size_list(&whole);
    let (op, trusted, lead) = (ctx.decl.name, ctx.trusted, lead.len());
    let reduction = if accumulate { "add" } else { "update" };
    let checks = [joined.checks(ctx), target.checks(ctx)].concat();
    Ok(scatter("index_put", &x, reduction, (&shape, &checks), |b, i, put| {
        let mut to = Vec::with_capacity(x.ndim());
        for (k, (t, size)) in indices.iter().zip(x.shape()).enumerate() {
            to.push(safe::checked(b, op, trusted, (k, &t.at(&i[..lead]), size)));
        }
        to.extend_from_slice(&i[lead..]);
        put(b, &to, &values.at(i));
    }))
}

// ---- slice_scatter ----

/// The start, end and step of the slice that src replaces; `None` if one is unknown.
fn slice_bounds(ctx: &InferCtx<'_>) -> Result<Option<[Sym; 3]>, InferError> {
    let mut bounds = Vec::with_capacity(3);
    for i in 2..5 {
        match ctx.sizes(i)?.dims.as_deref() {
            Some(&[one]) => bounds.push(one),
            Some(_) => {
                let name = ctx.name(i);
                return Err(ctx.error(format!("{name} must be one integer")));
            }
            None => {}
        }
    }
    Ok(bounds.try_into().ok())
}

/// The slice that src replaces: its first index, step and length.
fn slice_of(ctx: &mut InferCtx<'_>, dim: Sym) -> Result<Option<super::AxisSlice>, InferError> {
    let axis = ctx.axis("axis", ctx.tensor(0)?.ndim.unwrap_or(usize::MAX))?;
    let Some([start, end, step]) = slice_bounds(ctx)? else { return Ok(None) };
    let step = ctx.func.syms.as_int(step).filter(|&s| s > 0);
    let step = step.ok_or_else(|| ctx.error("step must be a constant above 0"))?;
    Ok(Some(super::axis_slice(ctx, axis, dim, (start, end, step), false)))
}

fn infer_slice_scatter(ctx: &mut InferCtx<'_>) -> Inferred {
    let (data, src) = (ctx.tensor(0)?, ctx.tensor(1)?);
    ctx.same_dtype(0, 1)?;
    slice_bounds(ctx)?;
    if let Some(dims) = &data.dims {
        let axis = ctx.axis("axis", dims.len())?;
        if let Some(slice) = slice_of(ctx, dims[axis])? {
            let mut want = dims.clone();
            want[axis] = slice.len;
            same_dims(ctx, 1, &src, &want)?;
        }
    }
    Ok(ctx.like(&data, data.dtype))
}

fn te_slice_scatter(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let dims = ctx.dims(0)?;
    let mut infer = ctx.infer();
    let axis = infer.axis("axis", dims.len())?;
    let slice = slice_of(&mut infer, dims[axis])?
        .ok_or_else(|| LegalizeError::unknown("relax.slice_scatter: the bounds are not known"))?;
    let mut part = dims;
    part[axis] = slice.len;
    let (x, src) = (ctx.tensor(0)?, ctx.tensor_of_dims(1, &part)?);
    let (begin, len) = (ctx.size(slice.begin), ctx.size(slice.len));
    let step = te::int(slice.step);
    Ok(vec![te::compute(x.shape().to_vec(), "T_slice_scatter", |i| {
        let from = &i[axis] - &begin;
        let turn = te::floordiv(&from, &step);
        let hit = te::all([
            &te::ge(&from, &te::int(0)),
            &te::lt(&turn, &len),
            &te::eq(&te::floormod(&from, &step), &te::int(0)),
        ]);
        let mut at = i.to_vec();
        at[axis] = turn;
        te::if_then_else(&hit, &src.at(&at), &x.at(i))
    })])
}

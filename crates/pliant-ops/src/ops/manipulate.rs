//! Operators that move elements or change the shape: reshape (which infers a size of -1 and copies a dim for a size of 0),
//! flatten, expand_dims, squeeze, permute_dims (transpose), broadcast_to, repeat, tile.
//!
//! The type rule of `R.reshape` (`infer_reshape`) resolves the sizes -1 and 0. The ONNX converter of `Reshape`
//! (`pliant-onnx/src/ops/reshape_transpose.rs`) resolves them by ONNX's rules before it emits `R.reshape`.

pub mod collapse_sum;
pub mod concat_split;
pub mod layout_transform;
pub mod rearrange;

mod join_gradients;

use pliant_ir::Sym;
use pliant_ir::op::InferError;
use pliant_ir::relax::{ExprData, TensorShape, TypeData};

use crate::broadcast::{BroadcastTarget, may_broadcast_to};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{ConstantSizes, Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::numel;
use crate::size_proofs;
use crate::te::{self, Check, Expr};
use crate::type_inference::{InferCtx, Precision};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.reshape",
        infer_reshape,
        "The same elements in another shape. One size may be -1, which is inferred; 0 copies the size of the input dim.",
    )
    .operands(&["x", "shape: size"])
    .view(te_view)
    .numpy("reshape")
    .onnx(&["Reshape"])
    .errors("the numbers of elements differ, or the shape contains -1 twice or another negative size")
    .gradient(|g| g.reshaped()),
    OpDecl::new("relax.flatten", infer_flatten, "The elements as a vector, in row-major order.")
        .operands(&["x"])
        .view(te_view)
        .numpy("ravel")
    .gradient(|g| g.reshaped()),
    OpDecl::new(
        "relax.expand_dims",
        infer_expand_dims,
        "Inserts dims of size 1, which become the dims `axis` of the result.",
    )
    .operands(&["x"])
    .attrs(&[("axis", Default::Required)])
    .lists(&[("axis", 1)])
    .view(te_view)
    .numpy("expand_dims")
    .onnx(&["Unsqueeze"])
    .errors("an axis is out of range or occurs twice")
    .gradient(|g| g.reshaped()),
    OpDecl::new(
        "relax.squeeze",
        infer_squeeze,
        "Removes dims of size 1: those in `axis`, or by default all that are known to be 1.",
    )
    .operands(&["x"])
    .attrs(&[("axis", Default::None)])
    .lists(&[("axis", 1)])
    .view(te_squeeze)
    .constant_sizes(ConstantSizes::WhetherOne)
    .numpy("squeeze")
    .onnx(&["Squeeze"])
    .errors("an axis is out of range, occurs twice or has a size other than 1")
    .gradient(|g| g.reshaped()),
    OpDecl::new(
        "relax.permute_dims",
        infer_permute,
        "Transposes the dims: dim `i` of the result is dim `axes[i]` of the input. By default, the order is reversed.",
    )
    .operands(&["x"])
    .attrs(&[("axes", Default::None)])
    .lists(&[("axes", 1)])
    .te(Pattern::Injective, te_permute)
    .aliases(&["relax.transpose"])
    .numpy("transpose")
    .onnx(&["Transpose"])
    .errors("`axes` is not a permutation of the dims")
    .gradient(join_gradients::permute_dims),
    OpDecl::new("relax.broadcast_to", infer_broadcast_to, "Broadcasts a tensor to a shape.")
        .operands(&["x", "shape: size"])
        .te(Pattern::Broadcast, te_broadcast_to)
        .numpy("broadcast_to")
        .onnx(&["Expand"])
        .errors("`x` cannot be broadcast to the shape")
    .gradient(|g| g.first(g.dy().fit(g.arg(0)))),
    OpDecl::new(
        "relax.repeat",
        infer_repeat,
        "Repeats each element `repeats` times (one integer) along an axis, or in the flattened tensor if `axis` is None.",
    )
    .operands(&["x"])
    .attrs(&[("repeats", Default::Required), ("axis", Default::None)])
    .symbolic("repeats")
    .te(Pattern::Injective, te_repeat)
    .numpy("repeat")
    .errors("`repeats` is negative or not one integer, or the axis is out of range")
    .gradient_from_te(),
    OpDecl::new("relax.tile", infer_tile, "Repeats the whole tensor `repeats[k]` times along each axis `k`. Missing leading axes \
        of `x` have size 1, and missing leading repeats are 1.")
        .operands(&["x"])
        .attrs(&[("repeats", Default::Required)])
        .symbolic("repeats")
        .te(Pattern::Injective, te_tile)
        .numpy("tile")
        .onnx(&["Tile"])
        .errors("a number of repeats is negative")
    .gradient_from_te(),
];

// ---- views ----

fn infer_reshape(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if let ExprData::Var(v) = *ctx.func.expr(ctx.args[1])
        && matches!(ctx.operand_type(1), TypeData::Shape { dims: None, .. })
    {
        return Ok(ctx
            .func
            .intern(TypeData::Tensor { shape: TensorShape::Var(v), dtype: t.dtype }));
    }
    let sizes = ctx.sizes(1)?;
    if sizes.dims.is_none() {
        return Ok(ctx.tensor_type_of_sizes(1, sizes, t.dtype));
    }
    let mut dims = sizes.dims.unwrap_or_default();
    let int = |ctx: &InferCtx<'_>, d: Sym| ctx.func.syms.as_int(d);
    let old = t.dims;
    // For an empty tensor, 0 is an ordinary size. If a size is inferred, however, 0 copies the input's dim, as for symbolic sizes.
    let has_inferred_dim = dims.iter().any(|&d| int(ctx, d) == Some(-1));
    let empty = !has_inferred_dim && old.iter().flatten().any(|&d| int(ctx, d) == Some(0));
    let mut inferred_axis = None;
    for i in 0..dims.len() {
        match int(ctx, dims[i]) {
            Some(0) if !empty => match &old {
                Some(old) if i < old.len() => dims[i] = old[i],
                Some(_) => {
                    return Err(ctx.error(format!(
                        "element {i} of shape is 0, which copies dim {i} of x, but x has no dim {i}: x is {ty}",
                        ty = ctx.operand_type_text(0)
                    )));
                }
                None => return Ok(ctx.tensor_type(None, Some(dims.len()), t.dtype)),
            },
            Some(-1) if inferred_axis.is_some() => {
                return Err(ctx
                    .error("shape contains -1 more than once, but only one size can be inferred"));
            }
            Some(-1) => inferred_axis = Some(i),
            Some(v) if v < 0 => {
                return Err(ctx.error(format!("shape contains the negative size {v}")));
            }
            _ => {}
        }
    }
    let Some(old) = old else {
        if ctx.precision == Precision::Tvm && inferred_axis.is_some() {
            let x = ctx.operand_type_text(0);
            return Err(ctx.error(format!(
                "the size -1 in shape cannot be inferred, because the dims of x are unknown: x is {x}"
            )));
        }
        let known = inferred_axis.is_none().then_some(dims.clone());
        return Ok(ctx.tensor_type(known, Some(dims.len()), t.dtype));
    };
    infer_open_dim(ctx, &old, &mut dims, inferred_axis)?;
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

/// Infers the size of a reshape that is written as -1, and rejects provably incompatible shapes.
fn infer_open_dim(
    ctx: &mut InferCtx<'_>,
    old: &[Sym],
    dims: &mut [Sym],
    inferred_axis: Option<usize>,
) -> Result<(), InferError> {
    let total = numel(ctx, old);
    let Some(inferred_axis) = inferred_axis else {
        let new = numel(ctx, dims);
        if size_proofs::equal(ctx.func, total, new) == Some(false) {
            let (x, new) = (ctx.operand_type_text(0), ctx.dim_text(new));
            return Err(ctx.error(format!(
                "x is {x} with {} elements, but the new shape has {new} elements",
                ctx.dim_text(total)
            )));
        }
        return Ok(());
    };
    let others: Vec<Sym> =
        dims.iter().enumerate().filter(|(i, _)| *i != inferred_axis).map(|(_, &d)| d).collect();
    // Sizes that occur in both shapes cancel, even if they are 0.
    let (over, under) = ctx.func.syms.reduced_quotient(old, &others);
    let x = ctx.operand_type_text(0);
    if ctx.func.syms.as_int(under) == Some(0) {
        return Err(ctx.error(format!(
            "the size -1 in shape cannot be inferred, because another size is 0: x is {x}"
        )));
    }
    if size_proofs::divides(ctx.func, under, over) == Some(false) {
        let rest = numel(ctx, &others);
        let (total, rest) = (ctx.dim_text(total), ctx.dim_text(rest));
        return Err(ctx.error(format!(
            "the size -1 in shape cannot be inferred: x is {x} with {total} elements, which is \
             not a multiple of {rest}, the product of the other sizes"
        )));
    }
    dims[inferred_axis] = ctx.func.syms.floordiv(over, under);
    Ok(())
}

fn infer_flatten(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if t.ndim == Some(1) {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let dims = t.dims.map(|d| vec![numel(ctx, &d)]);
    Ok(ctx.tensor_type(dims, Some(1), t.dtype))
}

fn infer_expand_dims(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let bad = || ctx.error("axis must be an integer or a list of integers");
    let count = ctx.attr("axis").as_ints().ok_or_else(bad)?.len();
    if count == 0 {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let Some(ndim) = t.ndim else { return Ok(ctx.tensor_type(None, None, t.dtype)) };
    let rank = ndim + count;
    let axes = ctx.axes("axis", rank)?.unwrap_or_default();
    let one = ctx.func.syms.int(1);
    let dims = t.dims.map(|old| {
        let mut old = old.into_iter();
        (0..rank).map(|i| if axes.contains(&i) { one } else { old.next().unwrap_or(one) }).collect()
    });
    Ok(ctx.tensor_type(dims, Some(rank), t.dtype))
}

/// Whether a squeeze provably has no axes to remove.
fn removes_no_axis(ctx: &mut InferCtx<'_>) -> Result<bool, InferError> {
    if let Some(axes) = ctx.attr("axis").as_ints() {
        return Ok(axes.is_empty());
    }
    let dims = ctx.tensor_with_known_dims(0)?.dims;
    Ok(dims.is_some_and(|dims| {
        dims.iter().all(|&d| ctx.func.syms.as_int(d).is_some_and(|size| size != 1))
    }))
}

fn infer_squeeze(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if removes_no_axis(ctx)? {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let Some(ndim) = t.ndim else { return Ok(ctx.tensor_type(None, None, t.dtype)) };
    let one = |ctx: &InferCtx<'_>, d: Sym| ctx.func.syms.as_int(d);
    match (ctx.axes("axis", ndim)?, t.dims) {
        (Some(axes), dims) => {
            for &axis in &axes {
                let size = dims.as_ref().and_then(|d| one(ctx, d[axis]));
                if let Some(size) = size.filter(|&v| v != 1) {
                    let x = ctx.operand_type_text(0);
                    return Err(ctx.error(format!(
                        "axis {axis} has size {size}, but only axes of size 1 can be removed: \
                             x is {x}"
                    )));
                }
            }
            let keep = |(i, d): (usize, Sym)| (!axes.contains(&i)).then_some(d);
            let dims = dims.map(|d| d.into_iter().enumerate().filter_map(keep).collect());
            Ok(ctx.tensor_type(dims, Some(ndim - axes.len()), t.dtype))
        }
        // A symbolic dim may be 1.
        (None, Some(dims))
            if ctx.precision == Precision::Tvm && dims.iter().any(|&d| one(ctx, d).is_none()) =>
        {
            Ok(ctx.tensor_type(None, None, t.dtype))
        }
        (None, Some(dims)) => {
            let dims = dims.into_iter().filter(|&d| one(ctx, d) != Some(1)).collect();
            Ok(ctx.tensor_type(Some(dims), None, t.dtype))
        }
        (None, None) => Ok(ctx.tensor_type(None, None, t.dtype)),
    }
}

/// The axes to be squeezed that are not known to have size 1 and must be checked at run time.
pub fn squeezed_axes_to_check(ctx: &mut InferCtx<'_>) -> Result<Vec<usize>, InferError> {
    let Some(dims) = ctx.tensor(0)?.dims else { return Ok(Vec::new()) };
    let axes = ctx.axes("axis", dims.len())?.unwrap_or_default();
    Ok(axes.into_iter().filter(|&k| ctx.func.syms.as_int(dims[k]) != Some(1)).collect())
}

/// Lowers a squeeze to a view if all dropped dims are known to be 1. Otherwise, the loop function checks them.
fn te_squeeze(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let unproved = squeezed_axes_to_check(&mut ctx.infer())?;
    if unproved.is_empty() {
        return te_view(ctx);
    }
    let x = ctx.tensor(0)?;
    let axes = ctx.infer().axes("axis", x.ndim())?.unwrap_or_default();
    let shape = ctx.out_shape(0)?;
    let mut out = te::compute(shape, "T_squeeze", |i| {
        let mut rest = i.iter().cloned();
        let mut next_index = || rest.next().unwrap_or_else(|| te::int(0));
        let at: Vec<Expr> = (0..x.ndim())
            .map(|k| if axes.contains(&k) { te::int(0) } else { next_index() })
            .collect();
        x.at(&at)
    });
    for axis in unproved {
        let size = &x.shape()[axis];
        let cond = te::explain(&te::eq(size, &te::int(1)), std::slice::from_ref(size));
        let message = format!(
            "relax.squeeze: axis {axis} has size {}, but only axes of size 1 can be removed",
            te::size_text(size, 0)
        )
        .into();
        out = out.with_check(Check { axes: Vec::new(), cond, message });
    }
    Ok(vec![out])
}

/// Lowers a reshape, which keeps the elements in row-major order. Common leading dims keep their indices. The other indices are
/// computed from the linear index over the remaining dims.
pub(super) fn te_view(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (from, to) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let x = ctx.tensor(0)?;
    let shape = ctx.size_list(&to);
    if size_proofs::differ_only_in_unit_dims(ctx.func, &from, &to) {
        return Ok(vec![with_other_unit_dims(&x, shape)]);
    }
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let out = te::compute(shape.clone(), "T_reshape", |i| {
        let rest = i[common..].iter().zip(&shape[common..]);
        let mut position = rest.fold(te::int(0), |acc, (i, d)| acc * d + i);
        let mut at = i[..common].to_vec();
        let mut tail = Vec::new();
        for (k, dim) in x.shape()[common..].iter().enumerate().rev() {
            if dim.as_int() == Some(1) {
                tail.push(te::int(0));
            } else if k == 0 {
                tail.push(position.clone());
            } else {
                tail.push(te::floormod(&position, dim));
                position = te::floordiv(&position, dim);
            }
        }
        at.extend(tail.into_iter().rev());
        x.at(&at)
    });
    let (a, b) = (numel(&mut ctx.infer(), &from), numel(&mut ctx.infer(), &to));
    if size_proofs::equal(ctx.func, a, b) == Some(true) {
        return Ok(vec![out]);
    }
    let cond = te::eq(&ctx.size(a), &ctx.size(b));
    let message =
        format!("{op}: the new shape must have as many elements as x", op = ctx.decl.name).into();
    Ok(vec![out.with_check(Check { axes: Vec::new(), cond, message })])
}

/// Reshapes `x` to `shape`, which differs from the shape of `x` only in the number and positions of dims of size 1. The index of
/// each other dim stays the same, so that loops over these dims stay independent.
fn with_other_unit_dims(x: &te::Tensor, shape: Vec<Expr>) -> te::Tensor {
    let is_unit = |d: &Expr| d.as_int() == Some(1);
    te::compute(shape.clone(), "T_reshape", |i| {
        let mut long = i.iter().zip(&shape).filter(|(_, d)| !is_unit(d)).map(|(i, _)| i.clone());
        let index = |d: &Expr| if is_unit(d) { None } else { long.next() };
        let at: Vec<Expr> =
            x.shape().iter().map(index).map(|i| i.unwrap_or_else(|| te::int(0))).collect();
        x.at(&at)
    })
}

// ---- permute_dims, broadcast_to ----

fn permutation(ctx: &InferCtx<'_>, ndim: usize) -> Result<Vec<usize>, InferError> {
    let axes = ctx.axes("axes", ndim)?.unwrap_or_else(|| (0..ndim).rev().collect());
    if axes.len() == ndim {
        return Ok(axes);
    }
    Err(ctx.error(format!(
        "axes names {} dims, but must name each dim of x once: x is {}",
        axes.len(),
        ctx.operand_type_text(0)
    )))
}

fn infer_permute(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let Some(ndim) = t.ndim else {
        if ctx.precision == Precision::Tvm && !ctx.attr("axes").is_none() {
            return Err(ctx.error("axes requires that the rank of x is known"));
        }
        return Ok(ctx.tensor_type(None, None, t.dtype));
    };
    let axes = permutation(ctx, ndim)?;
    if axes.iter().enumerate().all(|(i, &axis)| i == axis) {
        return Ok(ctx.tensor_type_like(&t, t.dtype));
    }
    let dims = t.dims.map(|d| axes.iter().map(|&a| d[a]).collect());
    Ok(ctx.tensor_type(dims, Some(ndim), t.dtype))
}

fn te_permute(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    let axes = permutation(&ctx.infer(), x.ndim())?;
    let shape = axes.iter().map(|&a| x.shape()[a].clone()).collect();
    Ok(vec![te::compute(shape, "T_transpose", |i| {
        let mut at = i.to_vec();
        axes.iter().zip(i).for_each(|(&a, i)| at[a] = i.clone());
        x.at(&at)
    })])
}

fn infer_broadcast_to(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, sizes) = (ctx.tensor(0)?, ctx.result_sizes(1)?);
    if let (Some(from), Some(to)) = (t.ndim, sizes.ndim)
        && from > to
    {
        let x = ctx.operand_type_text(0);
        return Err(ctx.error(format!(
            "x must not have more dims than the target shape, which has {to} dims: x is {x}"
        )));
    }
    let (Some(from), Some(to)) = (t.dims, &sizes.dims) else {
        return Ok(ctx.tensor_type_of_sizes(1, sizes, t.dtype));
    };
    let skip = to.len() - from.len();
    for (i, &d) in from.iter().enumerate() {
        let target = to[i + skip];
        // Only the operand may be broadcast: a dim of 1 in the target shape remains 1.
        if !may_broadcast_to(ctx.func, d, target) {
            let (x, d, target) = (ctx.operand_type_text(0), ctx.dim_text(d), ctx.dim_text(target));
            return Err(ctx.error(format!(
                "a dim of size {d} does not broadcast to size {target}: x is {x}"
            )));
        }
    }
    Ok(ctx.tensor_type(sizes.dims, None, t.dtype))
}

fn te_broadcast_to(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let out = ctx.out_dims(0)?;
    let mut target = BroadcastTarget::new(&out);
    let x = target.operand(ctx, 0)?;
    let shape = ctx.size_list(&out);
    let result = te::compute(shape, "T_broadcast_to", |i| x.at(i));
    Ok(vec![target.checked(ctx, result)])
}

// ---- repeat, tile ----

/// The attribute `repeats`: the number of repetitions, either one number for each axis or one for
/// all. `None` if a number is unknown.
fn repeats(ctx: &mut InferCtx<'_>) -> Result<Option<Vec<Sym>>, InferError> {
    let bad = "repeats must be an integer or a list of integers, none of them negative";
    let repeats = ctx.sizes_attr("repeats").map_err(|_| ctx.error(bad))?;
    let repeats = repeats.ok_or_else(|| ctx.error(bad))?.known_sizes();
    let negative = |&n: &Sym| ctx.func.syms.as_int(n).is_some_and(|n| n < 0);
    if repeats.iter().flatten().any(negative) { Err(ctx.error(bad)) } else { Ok(repeats) }
}

fn infer_repeat(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let repeats = match repeats(ctx)?.as_deref() {
        Some(&[n]) => Some(n),
        None => None,
        Some(list) => {
            let text = format!("repeats must be a single integer, but has {} values", list.len());
            return Err(ctx.error(text));
        }
    };
    let flat = ctx.attr("axis").is_none();
    let Some(ndim) = t.ndim else { return Ok(ctx.tensor_type(None, flat.then_some(1), t.dtype)) };
    let axis = if flat { 0 } else { ctx.axis("axis", ndim)? };
    let dims = t.dims.zip(repeats).map(|(mut dims, repeats)| {
        if flat {
            dims = vec![numel(ctx, &dims)];
        }
        dims[axis] = ctx.func.syms.mul(dims[axis], repeats);
        dims
    });
    Ok(ctx.tensor_type(dims, Some(if flat { 1 } else { ndim }), t.dtype))
}

fn te_repeat(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let Some(&[n]) = repeats(&mut ctx.infer())?.as_deref() else {
        return Err(LegalizeError::unknown(
            "relax.repeat: repeats must be a constant or a symbolic size",
        ));
    };
    let n = ctx.size(n);
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    if ctx.attr("axis").is_none() {
        return Ok(vec![te::compute(shape, "T_repeat", |i| {
            let mut position = te::floordiv(&i[0], &n);
            let mut at = Vec::new();
            for (k, dim) in x.shape().iter().enumerate().rev() {
                at.push(if k == 0 { position.clone() } else { te::floormod(&position, dim) });
                position = te::floordiv(&position, dim);
            }
            at.reverse();
            x.at(&at)
        })]);
    }
    let axis = ctx.infer().axis("axis", x.ndim())?;
    Ok(vec![te::compute(shape, "T_repeat", |i| {
        let mut at = i.to_vec();
        at[axis] = te::floordiv(&i[axis], &n);
        x.at(&at)
    })])
}

fn infer_tile(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let Some(repeats) = repeats(ctx)? else {
        let count = ctx.sizes_attr("repeats")?.and_then(|s| s.count());
        return Ok(ctx.tensor_type(None, t.ndim.zip(count).map(|(a, b)| a.max(b)), t.dtype));
    };
    let Some(ndim) = t.ndim else { return Ok(ctx.tensor_type(None, None, t.dtype)) };
    let rank = ndim.max(repeats.len());
    let dims = t.dims.map(|dims| {
        let one = ctx.func.syms.int(1);
        (0..rank)
            .map(|i| {
                let dim = (i + ndim).checked_sub(rank).map_or(one, |k| dims[k]);
                let n = (i + repeats.len()).checked_sub(rank).map_or(one, |k| repeats[k]);
                ctx.func.syms.mul(dim, n)
            })
            .collect()
    });
    Ok(ctx.tensor_type(dims, Some(rank), t.dtype))
}

fn te_tile(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    let skip = shape.len() - x.ndim();
    Ok(vec![te::compute(shape, "T_tile", |i| {
        let at: Vec<Expr> =
            x.shape().iter().zip(&i[skip..]).map(|(d, i)| te::floormod(i, d)).collect();
        x.at(&at)
    })])
}

//! The inverse of broadcasting: collapse_sum_to, collapse_sum_like; and one_hot, which spreads indices out.

use pliant_ir::Sym;
use pliant_ir::op::InferError;
use pliant_ir::relax::Type;

use crate::decl::{Default, OpDecl, Pattern};
use crate::infer::InferCtx;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::ops::statistical::accumulator;
use crate::prove;
use crate::rules::require_integer;
use crate::te::{self, Expr, Tensor};

type Inferred = Result<Type, InferError>;
type Outputs = Result<Vec<Tensor>, LegalizeError>;

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.collapse_sum_to",
        infer_sum_to,
        "Sums over the dims that broadcasting the shape to that of data would add or stretch. A dim that is not known \
         to be 1 is taken to be that of data, which is checked when it runs.",
    )
    .operands(&["data", "shape"])
    .te(Pattern::CommReduce, te_sum_to),
    OpDecl::new(
        "relax.collapse_sum_like",
        infer_sum_like,
        "As collapse_sum_to, to the shape of another tensor.",
    )
    .operands(&["data", "collapse_target"])
    .te(Pattern::CommReduce, te_sum_to),
    OpDecl::new(
        "relax.one_hot",
        infer_one_hot,
        "A new axis of size depth: on_value at the index, off_value elsewhere; all off where the index is not in \
         0 .. depth.",
    )
    .operands(&["indices", "on_value", "off_value"])
    .attrs(&[("depth", Default::Required), ("axis", Default::Int(-1))])
    .te(Pattern::Broadcast, te_one_hot)
    .onnx(&["OneHot"]),
];

// ---- collapse_sum ----

/// Whether each dim of data is kept, aligned at the right.
fn kept(ctx: &mut InferCtx<'_>, from: &[Sym], to: &[Sym]) -> Result<Vec<bool>, InferError> {
    let Some(skip) = from.len().checked_sub(to.len()) else {
        let data = ctx.ty_text(0);
        return Err(ctx.error(format!("the shape has more dims, {}, than data: {data}", to.len())));
    };
    let mut keep = vec![false; from.len()];
    for (i, &want) in to.iter().enumerate() {
        let have = from[i + skip];
        let one = ctx.func.syms.as_int(want) == Some(1);
        if one && ctx.func.syms.as_int(have) != Some(1) {
            continue;
        }
        if prove::equal(ctx.func, have, want) == Some(false) {
            let (have, want) = (ctx.dim(have), ctx.dim(want));
            return Err(ctx.error(format!("a dim of size {have} does not collapse to {want}")));
        }
        keep[i + skip] = true;
    }
    Ok(keep)
}

fn infer_sum_to(ctx: &mut InferCtx<'_>) -> Inferred {
    let (t, sizes) = (ctx.tensor(0)?, ctx.sizes(1)?);
    if let (Some(from), Some(to)) = (&t.dims, &sizes.dims) {
        kept(ctx, from, to)?;
    }
    Ok(ctx.make(sizes.dims, sizes.ndim, t.dtype))
}

fn infer_sum_like(ctx: &mut InferCtx<'_>) -> Inferred {
    let (t, like) = (ctx.tensor(0)?, ctx.tensor(1)?);
    if let (Some(from), Some(to)) = (&t.dims, &like.dims) {
        kept(ctx, from, to)?;
    }
    Ok(ctx.like(&like, t.dtype))
}

fn te_sum_to(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let (from, to) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let keep = kept(&mut ctx.infer(), &from, &to)?;
    let skip = from.len() - to.len();
    let taken: Vec<Sym> =
        (0..from.len()).map(|i| if keep[i] { to[i - skip] } else { from[i] }).collect();
    let x = ctx.tensor_of_dims(0, &taken)?;
    let (wide, dtype) = (accumulator(x.dtype()), x.dtype());
    let axes: Vec<te::IterVar> = (0..from.len())
        .filter(|&i| !keep[i])
        .map(|i| te::reduce_axis(x.shape()[i].clone(), format!("k{i}")))
        .collect();
    let shape = ctx.size_list(&to);
    let sum = te::compute(shape.clone(), "T_collapse_sum", |out| {
        let mut reduced = axes.iter();
        let at: Vec<Expr> = (0..from.len())
            .map(|i| match keep[i] {
                true => out[i - skip].clone(),
                false => reduced.next().map_or_else(|| te::int(0), |a| a.var.expr()),
            })
            .collect();
        te::sum(&te::cast(&x.at(&at), wide), &axes)
    });
    if wide == dtype {
        return Ok(vec![sum]);
    }
    Ok(vec![te::compute(shape, "T_cast", |i| te::cast(&sum.at(i), dtype))])
}

// ---- one_hot ----

fn infer_one_hot(ctx: &mut InferCtx<'_>) -> Inferred {
    let t = ctx.tensor(0)?;
    require_integer(ctx, 0, &t)?;
    for i in [1, 2] {
        if ctx.tensor(i)?.ndim.is_some_and(|n| n != 0) {
            let (name, ty) = (ctx.name(i), ctx.ty_text(i));
            return Err(ctx.error(format!("{name} must be a scalar, but is {ty}")));
        }
    }
    let dtype = ctx.same_dtype(1, 2)?;
    let depth = ctx.int("depth")?;
    if depth < 0 {
        return Err(ctx.error(format!("depth must not be negative, but is {depth}")));
    }
    let Some(ndim) = t.ndim else { return Ok(ctx.make(None, None, dtype)) };
    let axis = ctx.axis("axis", ndim + 1)?;
    let depth = ctx.func.syms.int(depth);
    let dims = t.dims.map(|mut dims| {
        dims.insert(axis, depth);
        dims
    });
    Ok(ctx.make(dims, Some(ndim + 1), dtype))
}

fn te_one_hot(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let axis = ctx.infer().axis("axis", shape.len())?;
    let (indices, on, off) = (ctx.value(0)?, ctx.value(1)?, ctx.value(2)?);
    Ok(vec![te::compute(shape, "T_one_hot", |i| {
        let mut at = i.to_vec();
        let place = at.remove(axis);
        let hit = te::eq(&te::cast(&indices.at(&at), te::Ty::I64), &place);
        te::select(&hit, &te::cast(&on.at(&[]), dtype), &te::cast(&off.at(&[]), dtype))
    })])
}

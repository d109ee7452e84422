//! The operators pixel_shuffle, which moves channels of images to pixels, and batch_flatten.

use super::super::manipulate::te_view;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{numel, require_divisible};
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.pixel_shuffle",
        infer_shuffle,
        "Rearranges channels to pixels (Shi et al., 2016): (..., c * r * r, h, w) to (..., c, h * r, w * r).",
    )
    .operands(&["data"])
    .attrs(&[("upscale_factor", Default::Required)])
    .te(Pattern::Injective, te_shuffle)
    .onnx(&["DepthToSpace"])
    .errors("`data` has fewer than 3 dims, or the number of channels is not a multiple of the square of `upscale_factor`")
    .gradient_from_te(),
    OpDecl::new(
        "relax.nn.batch_flatten",
        infer_flatten,
        "Flattens all dims except the first, without a copy.",
    )
    .operands(&["data"])
    .view(te_view)
    .onnx(&["Flatten"])
    .errors("`data` is a scalar")
    .gradient(|g| g.reshaped()),
];

fn infer_shuffle(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, r) = (ctx.tensor(0)?, ctx.int("upscale_factor")?);
    ctx.check_range("upscale_factor", &[r], 1)?;
    if t.ndim.is_some_and(|n| n < 3) {
        return Err(ctx.error(format!(
            "data must have at least 3 dims, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    let Some(mut dims) = t.dims else { return Ok(ctx.tensor_type(None, t.ndim, t.dtype)) };
    let at = dims.len() - 3;
    let (factor, squared) = (ctx.func.syms.int(r), ctx.func.syms.int(r.saturating_mul(r)));
    require_divisible(
        ctx,
        dims[at],
        squared,
        "the number of channels of data",
        "the square of upscale_factor",
    )?;
    let syms = &mut ctx.func.syms;
    dims[at] = syms.floordiv(dims[at], squared);
    dims[at + 1] = syms.mul(dims[at + 1], factor);
    dims[at + 2] = syms.mul(dims[at + 2], factor);
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

fn te_shuffle(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let at = dims.len() - 3;
    let r = ctx.infer().int("upscale_factor")?;
    let squared = ctx.func.syms.int(r.saturating_mul(r));
    let infer = &mut ctx.infer();
    let check = require_divisible(
        infer,
        dims[at],
        squared,
        "the number of channels of data",
        "the square of upscale_factor",
    )?;
    let x = ctx.tensor(0)?;
    let shape = ctx.out_shape(0)?;
    let by = te::int(r);
    let out = te::compute(shape, "T_pixel_shuffle", |i| {
        let (c, y, x_at) = (&i[at], &i[at + 1], &i[at + 2]);
        let channel = (c * &by + te::floormod(y, &by)) * &by + te::floormod(x_at, &by);
        let source_indices: Vec<Expr> = i[..at]
            .iter()
            .cloned()
            .chain([channel, te::floordiv(y, &by), te::floordiv(x_at, &by)])
            .collect();
        x.at(&source_indices)
    });
    Ok(vec![check.map_or(out.clone(), |c| out.with_check(ctx.size_check(c)))])
}

fn infer_flatten(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if t.ndim == Some(0) {
        return Err(ctx.error("data must have at least 1 dim, but is a scalar"));
    }
    let dims = t.dims.map(|d| vec![d[0], numel(ctx, &d[1..])]);
    Ok(ctx.tensor_type(dims, Some(2), t.dtype))
}

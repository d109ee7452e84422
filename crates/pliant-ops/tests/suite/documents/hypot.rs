//! The length of the hypotenuse.

use pliant_ir::op::InferError;
use pliant_ir::relax::Type;

use pliant_ops::decl::{OpDecl, Pattern};
use pliant_ops::infer::InferCtx;
use pliant_ops::rules::{infer_broadcast, require_float, te_broadcast};
use pliant_ops::te;

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[OpDecl::new("relax.hypot", infer, "sqrt(x1 * x1 + x2 * x2).")
    .operands(&["x1", "x2"])
    .te(Pattern::Broadcast, |ctx| te_broadcast(ctx, "T_hypot", |a, b| te::sqrt(&(a * a + b * b))))
    .numpy("hypot")];

fn infer(ctx: &mut InferCtx<'_>) -> Result<Type, InferError> {
    let x1 = ctx.tensor(0)?;
    require_float(ctx, 0, &x1)?;
    infer_broadcast(ctx)
}

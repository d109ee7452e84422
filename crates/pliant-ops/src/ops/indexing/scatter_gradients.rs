//! Gradients of operators that write elements at non-constant indices.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// How the updates of a scatter are combined with the data.
#[derive(PartialEq, Eq)]
enum Reduction {
    Update,
    Add,
}

fn reduction(g: &GradientCtx<'_>) -> Result<Reduction, GradientError> {
    match g.attr("reduction").as_str() {
        Some("update") => Ok(Reduction::Update),
        Some("add") => Ok(Reduction::Add),
        other => {
            let other = other.unwrap_or("?");
            Err(g.error(format!(
                "the reduction \"{other}\" has no gradient, only \"update\" and \"add\""
            )))
        }
    }
}

/// The operator applied to the adjoint, with zeros as updates: the adjoint without the overwritten elements.
fn cleared<'g>(g: &GradientCtx<'g>, updates: usize) -> Term<'g> {
    let mut args: Vec<Expr> = g.args().to_vec();
    args[0] = g.dy().expr();
    args[updates] = g.arg(updates).zeros_like().expr();
    g.builder.term(g.builder.call_op(g.op(), &args, g.attrs().clone()))
}

/// The adjoints of the data and of the updates, given the adjoints at the indices.
fn scatter<'g>(
    g: &GradientCtx<'g>,
    updates: usize,
    adds: bool,
    gathered: impl FnOnce() -> Term<'g>,
) -> GradientResult<'g> {
    let mut adjoints = vec![None; g.args().len()];
    adjoints[0] = g.wants(0).then(|| if adds { g.dy() } else { cleared(g, updates) });
    adjoints[updates] = g.wants(updates).then(|| gathered().fit(g.arg(updates)));
    Ok(adjoints)
}

/// The gradient of `scatter_elements`.
pub fn scatter_elements<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let adds = reduction(g)? == Reduction::Add;
    let list = [("axis", g.attr("axis"))];
    scatter(g, 2, adds, || g.dy().call("relax.gather_elements", &[g.args()[1]], &list))
}

/// The gradient of `scatter_nd`.
pub fn scatter_nd<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let adds = reduction(g)? == Reduction::Add;
    scatter(g, 2, adds, || g.dy().call("relax.gather_nd", &[g.args()[1]], &[]))
}

/// The gradient of `index_put`.
pub fn index_put<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let adds = g.bool("accumulate")?;
    scatter(g, 2, adds, || g.dy().call("relax.index_tensor", &[g.args()[1]], &[]))
}

/// The gradient of `slice_scatter`.
pub fn slice_scatter<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let axis = g.axis("axis")?;
    let axes = g.builder.edit(|f| {
        let axis = f.syms.int(axis as i64);
        f.shape(&[axis])
    });
    let as_list = |i: usize| {
        let sizes = g.infer(|ctx| ctx.sizes(i))?.dims;
        let sizes = sizes.ok_or_else(|| g.error("the bounds must be known at compile time"))?;
        Ok::<Expr, GradientError>(g.builder.shape(&sizes))
    };
    let (begin, end, step) = (as_list(2)?, as_list(3)?, as_list(4)?);
    let slice = || {
        let args = [g.dy().expr(), axes, begin, end, step];
        g.builder.term(g.builder.call("relax.strided_slice", &args, Attrs::default()))
    };
    scatter(g, 1, false, slice)
}

/// The gradient of `take`: the adjoints, added at the indices.
pub fn take<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let args = [g.args()[0], g.args()[1]];
    let list: [(&str, AttrValue); 2] = [("axis", g.attr("axis")), ("mode", g.attr("mode"))];
    g.first(g.dy().call("relax.grad.take_backward", &args, &list))
}

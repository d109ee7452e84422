//! Gradients of activations over an axis, of normalizations and of losses.

use pliant_ir::relax::Expr;

use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// The gradient of `softmax`: `(dy - sum(dy * y)) * y`.
pub fn softmax<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (axis, y, dy) = (g.axis("axis")?, g.result(), g.dy());
    g.first((dy - (dy * y).sum(&[axis], true)) * y)
}

/// The gradient of `log_softmax`: `dy - sum(dy) * softmax(x)`.
pub fn log_softmax<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (axis, dy) = (g.axis("axis")?, g.dy());
    g.first(dy - dy.sum(&[axis], true) * g.result().exp())
}

/// A parameter with the dims `axes` of the data, as a tensor that broadcasts to the data.
fn aligned<'g>(parameter: Term<'g>, axes: &[usize], rank: usize) -> Term<'g> {
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|&k| axes[k]);
    let others: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let trailing = others.iter().enumerate().all(|(i, &a)| i == a);
    let sorted = parameter.permute(&order);
    if trailing { sorted } else { sorted.expand_dims(&others) }
}

/// The adjoint of a parameter with the dims `axes`, given the addends in the shape of the data.
fn of_parameter<'g>(
    addends: Term<'g>,
    axes: &[usize],
    rank: usize,
    parameter: Term<'g>,
) -> Term<'g> {
    let others: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    let place = |a: &usize| sorted.iter().position(|s| s == a).unwrap_or(0);
    let order: Vec<usize> = axes.iter().map(place).collect();
    addends.sum(&others, false).permute(&order).fit(parameter)
}

/// The axes of a normalization and the rank of the data.
fn normalized_axes(g: &GradientCtx<'_>) -> Result<(Vec<usize>, usize), GradientError> {
    Ok((g.axes("axes")?, g.rank(0)?))
}

/// The gradient of `layer_norm`.
pub fn layer_norm<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (axes, rank) = normalized_axes(g)?;
    let (x, dy) = (g.arg(0), g.dy());
    let centered = x - x.mean(&axes, true);
    let variance = centered.square().mean(&axes, true);
    let scale = (variance + g.float("epsilon")?).rsqrt();
    let normalized = centered * scale;
    let of_data = if g.wants(0) {
        let scaled = if g.bool("scale")? { dy * aligned(g.arg(1), &axes, rank) } else { dy };
        let along = normalized * (scaled * normalized).mean(&axes, true);
        Some((scaled - scaled.mean(&axes, true) - along) * scale)
    } else {
        None
    };
    let gamma = g.wants(1) && g.bool("scale")?;
    let beta = g.wants(2) && g.bool("center")?;
    Ok(vec![
        of_data,
        gamma.then(|| of_parameter(dy * normalized, &axes, rank, g.arg(1))),
        beta.then(|| of_parameter(dy, &axes, rank, g.arg(2))),
    ])
}

/// The gradient of `rms_norm`.
pub fn rms_norm<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (axes, rank) = normalized_axes(g)?;
    let (x, dy) = (g.arg(0), g.dy());
    let scale = (x.square().mean(&axes, true) + g.float("epsilon")?).rsqrt();
    let normalized = x * scale;
    let of_data = g.wants(0).then(|| {
        let scaled = dy * aligned(g.arg(1), &axes, rank);
        (scaled - normalized * (scaled * normalized).mean(&axes, true)) * scale
    });
    let of_weight = g.wants(1).then(|| of_parameter(dy * normalized, &axes, rank, g.arg(1)));
    Ok(vec![of_data, of_weight])
}

/// The gradient of `cross_entropy_with_logits`.
pub fn cross_entropy<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (predictions, labels) = (g.arg(0), g.arg(1));
    let rank = g.rank(0)?;
    let batch = match predictions.dims() {
        Some(dims) if rank > 1 => Some(predictions.size_value(dims[0])),
        None if rank > 1 => return Err(g.error("the gradient needs the shape of predictions")),
        _ => None,
    };
    let share = match batch {
        Some(batch) => -(g.dy() / batch),
        None => -g.dy(),
    };
    Ok(vec![g.wants(0).then(|| share * labels), g.wants(1).then(|| share * predictions)])
}

/// The gradient of `nll_loss` with respect to the predictions.
pub fn nll_loss<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    if g.wants(2) {
        return g.from_te();
    }
    let args: Vec<Expr> = g.args().to_vec();
    let list = [("reduction", g.attr("reduction")), ("ignore_index", g.attr("ignore_index"))];
    g.first(g.dy().call("relax.grad.nll_loss_backward", &args, &list))
}

/// The gradient of 2D pooling: `backward` is the operator that computes it.
pub fn pool2d<'g>(g: &GradientCtx<'g>, backward: &'static str) -> GradientResult<'g> {
    let list: Vec<_> = g.attrs().0.iter().map(|(k, v)| (&**k, v.clone())).collect();
    g.first(g.dy().call(backward, &[g.args()[0]], &list))
}

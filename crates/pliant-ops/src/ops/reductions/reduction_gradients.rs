//! Gradients of reductions, of cumulative sums and products, and of sorting operators.

use pliant_ir::{AttrValue, Sym};

use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// The axes of a reduction, sorted, and a value of the reduced shape with the reduced dims restored to size 1.
struct Reduced<'a, 'g> {
    g: &'a GradientCtx<'g>,
    axes: Vec<usize>,
    keepdims: bool,
}

impl<'a, 'g> Reduced<'a, 'g> {
    fn read(g: &'a GradientCtx<'g>) -> Result<Self, GradientError> {
        let (mut axes, keepdims) = (g.axes("axis")?, g.bool("keepdims")?);
        axes.sort_unstable();
        Ok(Reduced { g, axes, keepdims })
    }

    /// A value of the result's shape with the reduced dims as dims of size 1.
    fn restored(&self, value: Term<'g>) -> Term<'g> {
        if self.keepdims { value } else { value.expand_dims(&self.axes) }
    }

    /// A value of the result's shape, broadcast to the shape of the operand.
    fn broadcast(&self, value: Term<'g>) -> Term<'g> {
        self.restored(value).broadcast_to(self.g.arg(0).shape())
    }
}

/// The gradient of `sum`: the adjoint of the result for each addend.
pub fn sum<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let x = g.arg(0);
    let axis_is_none = g.attr("axis").is_none();
    if axis_is_none && !g.bool("keepdims")? {
        return g.first(g.dy().broadcast_to(x.shape()));
    }
    let reduced = Reduced::read(g)?;
    g.first(reduced.broadcast(g.dy()))
}

/// The gradient of `mean`: the adjoint of the result, divided by the number of elements.
pub fn mean<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, reduced) = (g.arg(0), Reduced::read(g)?);
    let share = reduced.restored(g.dy()) / x.count(&reduced.axes);
    g.first(share.broadcast_to(x.shape()))
}

/// The gradient of `variance`: `2 * (x - mean) / count` times the adjoint of the result.
pub fn variance<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, reduced) = (g.arg(0), Reduced::read(g)?);
    let centered = x - x.mean(&reduced.axes, true);
    g.first(centered * (reduced.restored(g.dy()) * 2.0 / x.count(&reduced.axes)))
}

/// The gradient of `std`: `(x - mean) / (count * std)` times the adjoint of the result.
pub fn std<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, reduced) = (g.arg(0), Reduced::read(g)?);
    let centered = x - x.mean(&reduced.axes, true);
    let slope = reduced.restored(g.dy() / g.result()) / x.count(&reduced.axes);
    g.first(centered * slope)
}

/// The gradient of `max` and `min`. Equal extremes share the adjoint of the result equally.
pub fn extreme<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, reduced) = (g.arg(0), Reduced::read(g)?);
    let is_extreme = x.equal(reduced.restored(g.result())).astype(x.dtype());
    let share = reduced.restored(g.dy()) / is_extreme.sum(&reduced.axes, true);
    g.first(is_extreme * share)
}

/// The gradient of `prod`: the product of all other elements, computed without a division, because elements may be 0.
pub fn prod<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, reduced) = (g.arg(0), Reduced::read(g)?);
    let Some(dims) = x.dims() else {
        return Err(g.error("the gradient needs the shape of x; declare it with R.match_cast"));
    };
    // All reduced dims become one dim at the end.
    let kept: Vec<usize> = (0..dims.len()).filter(|a| !reduced.axes.contains(a)).collect();
    let order: Vec<usize> = kept.iter().chain(&reduced.axes).copied().collect();
    let flat_dims: Vec<Sym> = g.builder.edit(|f| {
        let one = f.syms.int(1);
        let count = reduced.axes.iter().fold(one, |n, &a| f.syms.mul(n, dims[a]));
        kept.iter().map(|&a| dims[a]).chain([count]).collect()
    });
    let last = flat_dims.len() - 1;
    let flat = x.permute(&order).reshape(g.builder.shape(&flat_dims));
    let before = cumulative(flat, "relax.cumprod", last, true);
    let after = cumulative(flat.flip(last), "relax.cumprod", last, true).flip(last);
    let permuted: Vec<Sym> = order.iter().map(|&a| dims[a]).collect();
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &a)| inverse[a] = i);
    let others = (before * after).reshape(g.builder.shape(&permuted)).permute(&inverse);
    g.first(others * reduced.restored(g.dy()))
}

fn cumulative<'g>(x: Term<'g>, op: &'static str, axis: usize, exclusive: bool) -> Term<'g> {
    let list = [("axis", AttrValue::Int(axis as i64)), ("exclusive", AttrValue::Bool(exclusive))];
    x.call(op, &[], &list)
}

/// The operand of a cumulative operator, flattened if the attribute `axis` is absent, and its axis.
fn along_axis<'g>(g: &GradientCtx<'g>) -> Result<(Term<'g>, usize), GradientError> {
    match g.attr("axis").is_none() {
        true => Ok((g.arg(0).reshape_to(&[-1]), 0)),
        false => Ok((g.arg(0), g.axis("axis")?)),
    }
}

/// The gradient of `cumsum`: the cumulative sum of the adjoint in reverse order.
pub fn cumsum<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, axis) = along_axis(g)?;
    let exclusive = g.bool("exclusive")?;
    let dy = g.dy().astype(x.dtype());
    let sums = cumulative(dy.flip(axis), "relax.cumsum", axis, exclusive).flip(axis);
    g.first(sums.reshape_like(g.arg(0)))
}

/// The gradient of `cumprod`: the reverse cumulative sum of the adjoint times the result, divided by the operand. It is NaN where
/// the operand is 0.
pub fn cumprod<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, axis) = along_axis(g)?;
    let exclusive = g.bool("exclusive")?;
    let weighted = (g.dy() * g.result()).astype(x.dtype());
    let sums = cumulative(weighted.flip(axis), "relax.cumsum", axis, exclusive).flip(axis);
    g.first((sums / x).reshape_like(g.arg(0)))
}

/// Adds the adjoints of selected elements to zeros at the positions `indices` along `axis`.
fn scattered<'g>(x: Term<'g>, indices: Term<'g>, dy: Term<'g>, axis: usize) -> Term<'g> {
    let list = [("axis", AttrValue::Int(axis as i64)), ("reduction", AttrValue::str("add"))];
    x.zeros().call("relax.scatter_elements", &[indices.expr(), dy.expr()], &list)
}

/// The gradient of `sort`: the adjoints at the positions from which the elements came.
pub fn sort<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, axis) = (g.arg(0), g.axis("axis")?);
    let list = [
        ("axis", AttrValue::Int(axis as i64)),
        ("descending", g.attr("descending")),
        ("dtype", AttrValue::str("int64")),
    ];
    let indices = x.call("relax.argsort", &[], &list);
    g.first(scattered(x, indices, g.dy(), axis))
}

/// The gradient of `topk`: the adjoints at the positions of the selected elements.
pub fn topk<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x, axis) = (g.arg(0), g.axis("axis")?);
    let Some(dy) = g.dy_of(0) else { return Ok(vec![None; g.args().len()]) };
    let indices = match g.result_count() {
        1 => {
            let attrs = g.attrs().clone().with("ret_type", AttrValue::str("indices"));
            g.builder.term(g.builder.call_op(g.op(), g.args(), attrs))
        }
        _ => g.result().field(1),
    };
    g.first(scattered(x, indices, dy, axis))
}

/// The gradient of `median`: the adjoints at the positions of the medians.
pub fn median<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let x = g.arg(0);
    let Some(dy) = g.dy_of(0) else { return Ok(vec![None]) };
    if g.attr("axis").is_none() {
        let is_median = x.equal(g.result()).astype(x.dtype());
        return g.first(is_median * (dy / is_median.sum_all()));
    }
    let reduced = Reduced::read(g)?;
    let indices = reduced.restored(g.result().field(1));
    g.first(scattered(x, indices, reduced.restored(dy), reduced.axes[0]))
}

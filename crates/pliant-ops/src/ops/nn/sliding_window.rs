//! Parameters of sliding windows (strides, dilation and padding), and the number of windows along
//! an axis.

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use crate::size_proofs;
use crate::te::{self, Expr, Tensor};
use crate::type_inference::InferCtx;

/// The sliding window parameters of each spatial dim.
#[derive(Clone, Debug)]
pub struct Window {
    /// The distance between adjacent windows in elements.
    pub strides: Vec<i64>,
    /// The distance between adjacent elements of a window.
    pub dilation: Vec<i64>,
    /// The number of elements added before and after each spatial dim.
    pub pads: Vec<(i64, i64)>,
}

impl Window {
    /// Reads the attributes `strides`, `dilation` and `padding`.
    ///
    /// # Errors
    /// If the number of values of an attribute differs from the number of dims, a stride or
    /// dilation is not positive, or a padding is negative.
    pub fn read(ctx: &InferCtx<'_>, n: usize) -> Result<Window, InferError> {
        let strides = ctx.ints("strides", n, 1)?;
        let dilation = ctx.ints("dilation", n, 1)?;
        Ok(Window { strides, dilation, pads: padding(ctx, n)? })
    }

    /// The distance from the first to the last element of a window with `window_size` elements, including dilation.
    pub fn span(&self, ctx: &mut InferCtx<'_>, axis: usize, window_size: Sym) -> Sym {
        let syms = &mut ctx.func.syms;
        let (one, step) = (syms.int(1), syms.int(self.dilation[axis]));
        let gaps = syms.sub(window_size, one);
        syms.mul(gaps, step)
    }

    /// The number of windows along an axis. With `ceil`, windows that start in the data or its leading padding and end beyond the
    /// trailing padding are included.
    ///
    /// # Errors
    /// If a window is provably larger than the padded dim.
    pub fn window_count(
        &self,
        ctx: &mut InferCtx<'_>,
        axis: usize,
        dim: Sym,
        window_size: Sym,
        ceil: bool,
    ) -> Result<Sym, InferError> {
        let span = self.span(ctx, axis, window_size);
        let (before, after) = self.pads[axis];
        let (stride, pads) = (self.strides[axis], before + after);
        let syms = &mut ctx.func.syms;
        let (by, pads, one) = (syms.int(stride), syms.int(pads), syms.int(1));
        let padded = syms.add(dim, pads);
        let start_range = syms.sub(padded, span);
        let count = if ceil {
            // The number of start positions is rounded up to the stride. Windows must start before the end of the leading padding
            // and the data.
            let whole = syms.int(stride - 1);
            let start_range = syms.add(start_range, whole);
            let front = syms.int(before);
            let starts = syms.add(dim, front);
            let start_limit = match size_proofs::at_most(ctx.func, start_range, starts) {
                Some(true) => start_range,
                Some(false) => starts,
                None => ctx.func.syms.min(start_range, starts),
            };
            ctx.func.syms.ceildiv(start_limit, by)
        } else {
            let last = syms.sub(start_range, one);
            let count = syms.floordiv(last, by);
            syms.add(count, one)
        };
        let minus = ctx.func.syms.int(-1);
        if size_proofs::at_most(ctx.func, count, minus) == Some(true) {
            let (dim, window_size, span) =
                (ctx.dim_text(dim), ctx.dim_text(window_size), ctx.dim_text(span));
            return Err(ctx.error(format!(
                "a window of {window_size} elements, which spans {span}, is larger than a dim of \
                 {dim} with padding of {before} before and {after} after it"
            )));
        }
        Ok(count)
    }

    /// Pads the spatial axes of a tensor with `fill`, up to the last element that a window reads; `counts` contains the number of
    /// windows along each axis. In the padded tensor, window `i` starts at `i * stride`. Without padding, returns the tensor
    /// unchanged.
    pub fn padded(
        &self,
        x: &Tensor,
        axes: &[usize],
        counts: &[Expr],
        window_size: &[Expr],
        past_end: bool,
        fill: &Expr,
    ) -> Tensor {
        if !past_end && self.pads.iter().all(|p| *p == (0, 0)) {
            return x.clone();
        }
        let mut shape = x.shape().to_vec();
        for (k, &axis) in axes.iter().enumerate() {
            let span = (&window_size[k] - 1) * self.dilation[k];
            shape[axis] = &counts[k] * self.strides[k] + span;
        }
        te::compute(shape, "pad_temp", |i| {
            let mut at = i.to_vec();
            let mut inside = Vec::new();
            for (k, &axis) in axes.iter().enumerate() {
                let (before, after) = self.pads[k];
                at[axis] = &i[axis] - &te::int(before);
                if before > 0 {
                    inside.push(te::ge(&i[axis], &te::int(before)));
                }
                if before > 0 || after > 0 || past_end || self.strides[k] > 1 {
                    inside.push(te::lt(&at[axis], &x.shape()[axis]));
                }
            }
            te::if_then_else(&te::all(&inside), &x.at(&at), fill)
        })
    }
}

/// Reads the attribute `padding`: one value for all sides, one value per dim, or all leading paddings followed by all trailing
/// ones.
fn padding(ctx: &InferCtx<'_>, n: usize) -> Result<Vec<(i64, i64)>, InferError> {
    let list = ctx.attr("padding").as_ints();
    let list = list.ok_or_else(|| ctx.error("padding must be an integer or a list of integers"))?;
    ctx.check_range("padding", &list, 0)?;
    if list.len() == 1 {
        return Ok(vec![(list[0], list[0]); n]);
    }
    if list.len() == n {
        return Ok(list.iter().map(|&p| (p, p)).collect());
    }
    if list.len() == 2 * n {
        return Ok((0..n).map(|k| (list[k], list[n + k])).collect());
    }
    Err(ctx.error(format!("padding has {} values, but must have 1, {n} or {}", list.len(), 2 * n)))
}

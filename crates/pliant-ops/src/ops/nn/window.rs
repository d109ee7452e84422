//! Windows that move over images: strides, dilation and padding, and how many of them fit.

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use crate::infer::InferCtx;
use crate::prove;
use crate::te::{self, Expr, Tensor};

/// How windows move over each spatial dim.
#[derive(Clone, Debug)]
pub struct Window {
    /// Elements from one window to the next.
    pub strides: Vec<i64>,
    /// Elements from one element of a window to the next.
    pub dilation: Vec<i64>,
    /// Elements added before and after.
    pub pads: Vec<(i64, i64)>,
}

impl Window {
    /// The attributes `strides`, `dilation` and `padding`.
    ///
    /// # Errors
    /// When there are not as many as dims, a stride or dilation is 0 or less, or padding is negative.
    pub fn read(ctx: &InferCtx<'_>, n: usize) -> Result<Window, InferError> {
        let strides = ctx.ints("strides", n, 1)?;
        let dilation = ctx.ints("dilation", n, 1)?;
        Ok(Window { strides, dilation, pads: padding(ctx, n)? })
    }

    /// From the first to the last element of a window of this many elements.
    pub fn reach(&self, ctx: &mut InferCtx<'_>, axis: usize, kernel: Sym) -> Sym {
        let syms = &mut ctx.func.syms;
        let (one, step) = (syms.int(1), syms.int(self.dilation[axis]));
        let gaps = syms.sub(kernel, one);
        syms.mul(gaps, step)
    }

    /// How many windows fit; with `ceil`, also one that ends beyond the padding, if it starts before it.
    ///
    /// # Errors
    /// When a window is provably larger than the padded dim.
    pub fn count(
        &self,
        ctx: &mut InferCtx<'_>,
        axis: usize,
        dim: Sym,
        kernel: Sym,
        ceil: bool,
    ) -> Result<Sym, InferError> {
        let reach = self.reach(ctx, axis, kernel);
        let (before, after) = self.pads[axis];
        let (stride, pads) = (self.strides[axis], before + after);
        let syms = &mut ctx.func.syms;
        let (by, pads, one) = (syms.int(stride), syms.int(pads), syms.int(1));
        let padded = syms.add(dim, pads);
        let room = syms.sub(padded, reach);
        let count = if ceil {
            // Counting from the last place where a window may start: its end at the padding's, or its start before
            // the end of the data and the padding in front, which ever comes first.
            let whole = syms.int(stride - 1);
            let room = syms.add(room, whole);
            let front = syms.int(before);
            let starts = syms.add(dim, front);
            let least = match prove::at_most(ctx.func, room, starts) {
                Some(true) => room,
                Some(false) => starts,
                None => ctx.func.syms.min(room, starts),
            };
            ctx.func.syms.ceildiv(least, by)
        } else {
            let last = syms.sub(room, one);
            let count = syms.floordiv(last, by);
            syms.add(count, one)
        };
        let minus = ctx.func.syms.int(-1);
        if prove::at_most(ctx.func, count, minus) == Some(true) {
            let (dim, kernel, reach) = (ctx.dim(dim), ctx.dim(kernel), ctx.dim(reach));
            return Err(ctx.error(format!(
                "a window of {kernel} elements, {reach} from first to last, is larger than a dim of {dim} with padding \
                 {before} and {after}"
            )));
        }
        Ok(count)
    }

    /// The tensor with its spatial axes padded by `fill`, as far as `count` windows read; itself where there is no
    /// padding. Windows then start at `index * stride`.
    pub fn padded(
        &self,
        x: &Tensor,
        axes: &[usize],
        counts: &[Expr],
        kernel: &[Expr],
        past_end: bool,
        fill: &Expr,
    ) -> Tensor {
        if !past_end && self.pads.iter().all(|p| *p == (0, 0)) {
            return x.clone();
        }
        let mut shape = x.shape().to_vec();
        for (k, &axis) in axes.iter().enumerate() {
            let reach = (&kernel[k] - 1) * self.dilation[k];
            shape[axis] = &counts[k] * self.strides[k] + reach;
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

/// The attribute `padding`: one for all sides, one for both sides of each dim, or all in front and then all behind.
fn padding(ctx: &InferCtx<'_>, n: usize) -> Result<Vec<(i64, i64)>, InferError> {
    let list = ctx.attr("padding").as_ints();
    let list = list.ok_or_else(|| ctx.error("padding must be an integer or a list of integers"))?;
    ctx.in_range("padding", &list, 0)?;
    if list.len() == 1 {
        return Ok(vec![(list[0], list[0]); n]);
    }
    if list.len() == n {
        return Ok(list.iter().map(|&p| (p, p)).collect());
    }
    if list.len() == 2 * n {
        return Ok((0..n).map(|k| (list[k], list[n + k])).collect());
    }
    Err(ctx.error(format!("padding has {} values, but 1, {n} or {} are needed", list.len(), 2 * n)))
}

//! Cumulative sums and products of elements along an axis.

use pliant_ir::DType;
use pliant_ir::op::DimTrait;

use super::accumulator;
use super::reduction_gradients;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::parallel_row_loops::RowLoops;
use crate::shared_operator_rules::numel;
use crate::te::{self, Expr, Tensor};
use crate::type_inference::InferCtx;

const ATTRS: &[(&str, Default)] =
    &[("axis", Default::None), ("dtype", Default::None), ("exclusive", Default::Bool(false))];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.cumsum",
        infer,
        "Cumulative sums along an axis, or of the flattened tensor. With `exclusive`, a sum does not include the element at its \
        own index. The result has type `dtype`, by default that of `data`. float16 and bfloat16 are accumulated in float32.",
    )
    .operands(&["data"])
    .attrs(ATTRS)
    .dims(DimTrait::Named(&["axis"]))
    .te(Pattern::Opaque, |ctx| te_cumulative(ctx, "cumsum", 0.0, |a, b| a + b))
    .numpy("cumsum")
    .onnx(&["CumSum"])
    .errors("the axis is out of range, or the type of the result is bool")
    .gradient(reduction_gradients::cumsum),
    OpDecl::new("relax.cumprod", infer, "Cumulative products along an axis, with the attributes of cumsum.")
        .operands(&["data"])
        .attrs(ATTRS)
        .dims(DimTrait::Named(&["axis"]))
        .te(Pattern::Opaque, |ctx| te_cumulative(ctx, "cumprod", 1.0, |a, b| a * b))
        .numpy("cumprod")
        .onnx(&["CumProd"])
        .errors("the axis is out of range, or the type of the result is bool")
    .gradient(reduction_gradients::cumprod),
];

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?.or(t.dtype);
    if dtype.is_some_and(|d| d.is_bool()) {
        return Err(ctx
            .error("the data type of the result is bool, but the operator computes only numbers")
            .with_help("pass a numeric data type for the result, such as dtype=\"int64\""));
    }
    ctx.bool("exclusive")?;
    if ctx.attr("axis").is_none() {
        let dims = t.dims.map(|d| vec![numel(ctx, &d)]);
        return Ok(ctx.tensor_type(dims, Some(1), dtype));
    }
    if let Some(ndim) = t.ndim {
        ctx.axis("axis", ndim)?;
    }
    Ok(ctx.tensor_type_like(&t, dtype))
}

/// Lowers a cumulative sum or product.
fn te_cumulative(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    first: f64,
    combine: fn(&Expr, &Expr) -> Expr,
) -> TeResult {
    let (x, shape, dtype) = (ctx.tensor(0)?, ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let flat = infer.attr("axis").is_none();
    let axis = if flat { 0 } else { infer.axis("axis", x.ndim())? };
    let exclusive = infer.bool("exclusive")?;
    let acc_dtype = accumulator(dtype);
    let scan = CumulativeOp {
        x,
        axis,
        exclusive,
        acc_dtype,
        first: te::const_of(first, acc_dtype),
        combine,
    };
    Ok(te::extern_(name, &[(shape, dtype)], |b, out| match flat {
        true => scan.scan_flat(b, &out[0]),
        false => scan.scan_along_axis(b, &out[0]),
    }))
}

/// Parameters of a cumulative sum or product, along an axis or over the flattened tensor.
struct CumulativeOp {
    x: Tensor,
    axis: usize,
    exclusive: bool,
    /// The type in which totals are accumulated.
    acc_dtype: DType,
    /// The initial total: 0 for a sum, 1 for a product.
    first: Expr,
    combine: fn(&Expr, &Expr) -> Expr,
}

/// Adjacent cumulative sums or products (scans) that are computed together. Each is at another index of the last dim, and runs
/// along another axis.
struct Strip<'a> {
    /// The running total of each scan of the strip.
    totals: &'a Tensor,
    /// The number of scans (cumulative sums or products) in the strip, at most [`MAX_STRIP_WIDTH`].
    width: Expr,
}

/// Maximum number of adjacent cumulative sums or products (scans) that are computed together in a strip, so that their running
/// totals fit in the level-1 cache.
const MAX_STRIP_WIDTH: i64 = 1024;

impl CumulativeOp {
    fn scan_flat(&self, b: &mut te::Body, out: &Tensor) {
        let total = b.cell("total", &self.first);
        let (position, size) = (flat_position(&self.x), &out.shape()[0]);
        b.for_each(self.x.shape(), |b, i| {
            let at = b.let_("at", &te::minimum(&position(i), &(size - 1)));
            let value = te::cast(&self.x.at(i), self.acc_dtype);
            let next = b.let_("next", &(self.combine)(&total.get(), &value));
            b.store(out, &[at], &if self.exclusive { total.get() } else { next.clone() });
            b.set(&total, &next);
        });
    }

    /// Emits the cumulative sums or products (scans) along the axis. Scans at different indices of the other dims are independent.
    /// Scans at adjacent indices of the last dim are vectorized, and all others run in parallel.
    fn scan_along_axis(&self, b: &mut te::Body, out: &Tensor) {
        let shape = self.x.shape();
        let last = shape.len() - 1;
        if self.axis == last {
            let rows = RowLoops::new(shape, self.axis);
            rows.for_each_row(b, |_| (), |b, _, row| self.scan_row(b, out, &|k| rows.at(row, k)));
            return;
        }
        let width = &shape[last];
        let strips = te::maximum(&te::ceildiv(width, &te::int(MAX_STRIP_WIDTH)), &te::int(1));
        let mut rows = RowLoops::new(&[&shape[..last], &[strips]].concat(), self.axis);
        rows.len = &rows.len * te::minimum(width, &te::int(MAX_STRIP_WIDTH));
        // Totals of a wider type than the result's elements are kept beside them.
        let totals = |b: &mut te::Body| {
            let is_wider = self.acc_dtype != out.dtype();
            is_wider.then(|| b.alloc("totals", &[te::int(MAX_STRIP_WIDTH)], self.acc_dtype))
        };
        rows.for_each_row(b, totals, |b, totals, row| {
            let first = b.let_("first", &(&row[row.len() - 1] * MAX_STRIP_WIDTH));
            let width = te::minimum(&(width - &first), &te::int(MAX_STRIP_WIDTH));
            let at = |k: &Expr, i: &Expr| {
                let mut at = rows.at(row, k);
                at[last] = &first + i;
                at
            };
            match totals {
                Some(totals) => self.scan_strip(b, out, &Strip { totals, width }, &at),
                None => self.scan_strip_in_output(b, out, &width, &at),
            }
        });
    }

    /// Emits the cumulative sum or product of one row. `at` returns the indices of the `k`-th element of the row.
    fn scan_row(&self, b: &mut te::Body, out: &Tensor, at: &dyn Fn(&Expr) -> Vec<Expr>) {
        let total = b.cell("total", &self.first);
        b.for_("k", &self.x.shape()[self.axis], |b, k| {
            let value = te::cast(&self.x.at(&at(k)), self.acc_dtype);
            let next = b.let_("next", &(self.combine)(&total.get(), &value));
            b.store(out, &at(k), &if self.exclusive { total.get() } else { next.clone() });
            b.set(&total, &next);
        });
    }

    /// Emits the loops for a strip of `width` adjacent scans. The running total of each scan is the previous element of the output,
    /// so no memory for totals is needed. `at` returns the indices of the `k`-th element of the `i`-th scan.
    fn scan_strip_in_output(
        &self,
        b: &mut te::Body,
        out: &Tensor,
        width: &Expr,
        at: &dyn Fn(&Expr, &Expr) -> Vec<Expr>,
    ) {
        let (zero, size) = (te::int(0), &self.x.shape()[self.axis]);
        b.if_(&te::lt(&zero, size), |b| {
            b.for_("i", width, |b, i| {
                let value = te::cast(&self.x.at(&at(&zero, i)), self.acc_dtype);
                let first = (self.combine)(&self.first, &value);
                b.store(out, &at(&zero, i), if self.exclusive { &self.first } else { &first });
            });
        });
        b.for_("k", &(size - 1), |b, k| {
            let next = k + 1;
            b.for_("i", width, |b, i| {
                let position = if self.exclusive { k } else { &next };
                let value = te::cast(&self.x.at(&at(position, i)), self.acc_dtype);
                b.store(out, &at(&next, i), &(self.combine)(&out.at(&at(k, i)), &value));
            });
        });
    }

    /// Emits the loops for a strip of adjacent scans whose running totals are in a separate buffer, because they have a wider type
    /// than the output. `at` returns the indices of the `k`-th element of the `i`-th scan.
    fn scan_strip(
        &self,
        b: &mut te::Body,
        out: &Tensor,
        strip: &Strip<'_>,
        at: &dyn Fn(&Expr, &Expr) -> Vec<Expr>,
    ) {
        let Strip { totals, width } = strip;
        let total = |i: &Expr| totals.at(std::slice::from_ref(i));
        let set = |b: &mut te::Body, i: &Expr, value: &Expr| {
            b.store(totals, std::slice::from_ref(i), value);
        };
        b.for_("i", width, |b, i| set(b, i, &self.first));
        b.for_("k", &self.x.shape()[self.axis], |b, k| {
            let results = |b: &mut te::Body| {
                b.for_("i", width, |b, i| b.store(out, &at(k, i), &total(i)));
            };
            if self.exclusive {
                results(b);
            }
            b.for_("i", width, |b, i| {
                let value = te::cast(&self.x.at(&at(k, i)), self.acc_dtype);
                set(b, i, &(self.combine)(&total(i), &value));
            });
            if !self.exclusive {
                results(b);
            }
        });
    }
}

/// Returns a function from the indices of an element to its position in the flattened tensor, in
/// row-major order.
fn flat_position(x: &Tensor) -> impl Fn(&[Expr]) -> Expr {
    let shape = x.shape().to_vec();
    move |i: &[Expr]| i.iter().zip(&shape).fold(te::int(0), |acc, (i, d)| acc * d + i)
}

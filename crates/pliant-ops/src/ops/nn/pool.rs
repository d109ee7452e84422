//! Pooling over 1 to 3 spatial dims: the maximum or the mean of each window, and adaptive pooling.

use pliant_ir::Sym;
use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;

use super::super::reductions::accumulator;
use super::norm_gradients;
use super::sliding_window::Window;
use super::tensor_layouts::{self, Layout};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::require_float;
use crate::size_proofs;
use crate::te::{self, Expr, IterVar, Tensor};
use crate::type_inference::InferCtx;

macro_rules! pool {
    ($name:literal, $n:literal, $kind:expr, $pad:literal, $layout:literal, $doc:literal, $onnx:expr) => {
        OpDecl::new(concat!("relax.nn.", $name), |ctx| infer(ctx, $n, $kind), $doc)
            .operands(&["data"])
            .attrs(&[
                ("pool_size", Default::Ints(&[1; $n])),
                ("strides", Default::Ints(&[1; $n])),
                ("padding", Default::Ints(&[0; 2 * $n])),
                ("dilation", Default::Ints(&[1; $n])),
                ("ceil_mode", Default::Bool(false)),
                ("count_include_pad", Default::Bool($pad)),
                ("layout", Default::Str($layout)),
                ("out_layout", Default::None),
            ])
            .lists(&[("pool_size", $n), ("strides", $n), ("padding", 2 * $n), ("dilation", $n)])
            .dims(DimTrait::Layout("layout"))
            .te(Pattern::OutEWiseFusable, |ctx| te_pool(ctx, $n, $kind))
            .onnx($onnx)
            .errors(
                "the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the \
                result would be negative",
            )
            .limits(tensor_layouts::LAYOUT_LIMITS)
    };
}

macro_rules! adaptive_pool {
    ($name:literal, $n:literal, $layout:literal) => {
        OpDecl::new(
            concat!("relax.nn.", $name),
            |ctx| infer_adaptive(ctx, $n),
            "Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` \
            consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive).",
        )
        .operands(&["data"])
        .attrs(&[
            ("output_size", Default::None),
            ("layout", Default::Str($layout)),
            ("out_layout", Default::None),
        ])
        .lists(&[("output_size", $n)])
        .dims(DimTrait::Layout("layout"))
        .te(Pattern::OutEWiseFusable, |ctx| te_adaptive(ctx, $n))
        .onnx(&["GlobalAveragePool"])
        .errors("the layout is invalid or differs in rank from `data`, or a size is negative")
        .limits(tensor_layouts::LAYOUT_LIMITS)
    };
}

const MAX_POOL_DOC: &str = "The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start \
before the trailing padding and end beyond it are included.";
const AVG_POOL_DOC: &str = "The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not \
counted. Elements beyond the padding are never counted.";

macro_rules! max_pool {
    ($name:literal, $n:literal, $layout:literal) => {
        OpDecl {
            doc: MAX_POOL_DOC,
            ..pool!($name, $n, PoolKind::Max, false, $layout, "", &["MaxPool", "GlobalMaxPool"])
        }
    };
}

macro_rules! avg_pool {
    ($name:literal, $n:literal, $pad:literal, $layout:literal) => {
        OpDecl {
            doc: AVG_POOL_DOC,
            ..pool!($name, $n, PoolKind::Avg, $pad, $layout, "", &["AveragePool"])
        }
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    max_pool!("max_pool1d", 1, "NCW").gradient_from_te(),
    max_pool!("max_pool2d", 2, "NCHW")
        .gradient(|g| norm_gradients::pool2d(g, "relax.grad.max_pool2d_backward")),
    max_pool!("max_pool3d", 3, "NCDHW").gradient_from_te(),
    avg_pool!("avg_pool1d", 1, true, "NCW").gradient_from_te(),
    avg_pool!("avg_pool2d", 2, false, "NCHW")
        .gradient(|g| norm_gradients::pool2d(g, "relax.grad.avg_pool2d_backward")),
    avg_pool!("avg_pool3d", 3, true, "NCDHW").gradient_from_te(),
    adaptive_pool!("adaptive_avg_pool1d", 1, "NCW").gradient_from_te(),
    adaptive_pool!("adaptive_avg_pool2d", 2, "NCHW").gradient_from_te(),
    adaptive_pool!("adaptive_avg_pool3d", 3, "NCDHW").gradient_from_te(),
];

/// How a window is reduced to one element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PoolKind {
    Max,
    Avg,
}

/// The layouts of the data and of the result.
fn layouts(ctx: &InferCtx<'_>, n: usize) -> Result<(Layout, Layout), InferError> {
    let data = Layout::read(ctx, "layout", "NC", n)?;
    let out = Layout::of_output(ctx, &data, "NC", n)?;
    data.check(ctx, 0, &ctx.tensor(0)?)?;
    Ok((data, out))
}

/// Reads the parameters and the sizes of the pooling windows. Rejects padding that could fill a
/// whole window.
fn pool_windows(ctx: &InferCtx<'_>, n: usize) -> Result<(Window, Vec<i64>), InferError> {
    let (window, sizes) = (Window::read(ctx, n)?, ctx.ints("pool_size", n, 1)?);
    for (k, &size) in sizes.iter().enumerate() {
        let (before, after) = window.pads[k];
        let span = window.dilation[k].saturating_mul(size - 1) + 1;
        if before.max(after) >= span {
            return Err(ctx.error(format!(
                "padding {} must be smaller than the window, which spans {span} elements",
                before.max(after)
            )));
        }
    }
    Ok((window, sizes))
}

fn infer(ctx: &mut InferCtx<'_>, n: usize, kind: PoolKind) -> InferResult {
    let (data, out) = layouts(ctx, n)?;
    let (window, sizes) = pool_windows(ctx, n)?;
    let ceil = ctx.bool("ceil_mode")?;
    ctx.bool("count_include_pad")?;
    let t = ctx.tensor(0)?;
    if kind == PoolKind::Avg {
        require_float(ctx, 0, &t)?;
    }
    let Some(dims) = t.dims else {
        return Ok(ctx.tensor_type(None, Some(out.ndim()), t.dtype));
    };
    let spatial_dims = data.spatial_of(&dims);
    let mut counts = Vec::with_capacity(n);
    for k in 0..n {
        let size = ctx.func.syms.int(sizes[k]);
        counts.push(window.window_count(ctx, k, spatial_dims[k], size, ceil)?);
    }
    let dims = result_dims(ctx, (&data, &dims), &out, &counts);
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

fn te_pool(ctx: &mut LegalizeCtx<'_>, n: usize, kind: PoolKind) -> TeResult {
    let out_dims = ctx.out_dims(0)?;
    let infer = ctx.infer();
    let ((data, out), (window, sizes)) = (layouts(&infer, n)?, pool_windows(&infer, n)?);
    let (ceil, include) = (infer.bool("ceil_mode")?, infer.bool("count_include_pad")?);
    let x = ctx.tensor(0)?;
    let dtype = x.dtype();
    let shape = ctx.size_list(&out_dims);
    let counts = ctx.size_list(&out.spatial_of(&out_dims));
    let window_size: Vec<Expr> = sizes.iter().map(|&s| te::int(s)).collect();
    let fill = if kind == PoolKind::Max { te::min_value(dtype) } else { te::const_of(0.0, dtype) };
    let axes = data.spatial_axes();
    let padded = window.padded(&x, &axes, &counts, &window_size, ceil, &fill);
    let reduction =
        WindowReduction { window: &window, axes: &axes, window_size: &sizes, counts: &counts };
    if kind == PoolKind::Max {
        let maximum = reduction.run(&padded, "pool_max", &te::max);
        return Ok(vec![out_layout(&data, &out, maximum, shape)]);
    }
    let acc_dtype = accumulator(dtype);
    let sum = reduction.run(&padded, "pool_sum", &|e, axes| te::sum(&te::cast(e, acc_dtype), axes));
    let sum = out_layout(&data, &out, sum, shape.clone());
    Ok(vec![te::compute(shape, "pool_avg", |i| {
        let mut count = te::int(1);
        for (k, &a) in out.spatial_axes().iter().enumerate() {
            count = count
                * counted_elements(
                    &window,
                    k,
                    sizes[k],
                    &i[a],
                    &x.shape()[axes[k]],
                    (include, ceil),
                );
        }
        te::cast(&(sum.at(i) / te::cast(&count, acc_dtype)), dtype)
    })])
}

/// Reduces the windows of a pooling. Large windows are reduced along one spatial axis at a time, so
/// that a window of `a * b` elements needs `a + b` operations. The innermost axis is reduced last,
/// so that the earlier passes read adjacent elements for adjacent results at any stride.
struct WindowReduction<'a> {
    window: &'a Window,
    axes: &'a [usize],
    window_size: &'a [i64],
    counts: &'a [Expr],
}

impl WindowReduction<'_> {
    fn run(
        &self,
        padded: &Tensor,
        name: &str,
        reduce: &dyn Fn(&Expr, &[IterVar]) -> Expr,
    ) -> Tensor {
        let all: Vec<usize> = (0..self.axes.len()).collect();
        let elements = self.window_size.iter().fold(1i64, |n, &k| n.saturating_mul(k));
        let steps = self.window_size.iter().fold(0i64, |n, &k| n.saturating_add(k));
        if elements <= steps {
            return self.reduce_axes(padded, &all, name, reduce);
        }
        // A window of one element with stride 1 leaves its axis unchanged.
        let last = all.len() - 1;
        let counts =
            |k: &usize| self.window_size[*k] > 1 || self.window.strides[*k] > 1 || *k == last;
        all.into_iter().filter(counts).fold(padded.clone(), |done, k| {
            let name = if k == last { name } else { "pool_partial" };
            self.reduce_axes(&done, &[k], name, reduce)
        })
    }

    /// Creates the stage that reduces the windows of `t` along the spatial axes in `along`.
    fn reduce_axes(
        &self,
        t: &Tensor,
        along: &[usize],
        name: &str,
        reduce: &dyn Fn(&Expr, &[IterVar]) -> Expr,
    ) -> Tensor {
        let names = &["rz", "ry", "rx"][3 - self.axes.len()..];
        let steps: Vec<IterVar> = along
            .iter()
            .map(|&k| te::reduce_axis(te::int(self.window_size[k]), names[k]))
            .collect();
        let mut shape = t.shape().to_vec();
        along.iter().for_each(|&k| shape[self.axes[k]] = self.counts[k].clone());
        te::compute(shape, name, |i| {
            let mut at = i.to_vec();
            for (&k, step) in along.iter().zip(&steps) {
                let axis = self.axes[k];
                let (stride, dilation) = (self.window.strides[k], self.window.dilation[k]);
                at[axis] = &i[axis] * stride + step.var.expr() * dilation;
            }
            reduce(&t.at(&at), &steps)
        })
    }
}

/// Transposes the result of a pooling to the layout `out`, unless `data` is the same layout.
fn out_layout(data: &Layout, out: &Layout, result: Tensor, shape: Vec<Expr>) -> Tensor {
    let spatial_axes = out.spatial_axes();
    if data == out {
        return result;
    }
    te::compute(shape, "pool_layout", |i| {
        let spatial_indices: Vec<Expr> = spatial_axes.iter().map(|&a| i[a].clone()).collect();
        let (batch, channel) = (out.index_of(i, 'N'), out.index_of(i, 'C'));
        result.at(&data.indices(('N', batch), channel, &spatial_indices))
    })
}

/// The dims of the result in the layout `out`, with the spatial sizes `spatial` and the batch and channels of data with the layout
/// and the dims `data`.
fn result_dims(
    ctx: &mut InferCtx<'_>,
    (data, dims): (&Layout, &[Sym]),
    out: &Layout,
    spatial: &[Sym],
) -> Vec<Sym> {
    let syms = &mut ctx.func.syms;
    let (batch, channels) = (data.size_of(syms, dims, 'N'), data.size_of(syms, dims, 'C'));
    out.dims(syms, ('N', batch), channels, spatial)
}

/// The number of elements of window `i` along spatial axis `k` that average pooling counts in the
/// divisor. `dim` is the size of the axis in the data. With `include`, padding is counted, too.
/// With `ceil`, windows may extend beyond the padded data; elements there are never counted.
fn counted_elements(
    window: &Window,
    k: usize,
    size: i64,
    i: &Expr,
    dim: &Expr,
    (include, ceil): (bool, bool),
) -> Expr {
    let (before, after) = window.pads[k];
    let by = te::int(window.dilation[k]);
    let start = i * window.strides[k] - before;
    // The number of window elements before `end`.
    let until = |end: &Expr| te::minimum(&te::int(size), &te::ceildiv(&(end - &start), &by));
    if include {
        return if ceil { until(&(dim + after)) } else { te::int(size) };
    }
    let ends = ceil || after > 0;
    let last = if ends { until(dim) } else { te::int(size) };
    if before == 0 {
        return last;
    }
    let missing = te::maximum(&te::int(0), &te::ceildiv(&-&start, &by));
    last - missing
}

// ---- adaptive ----

/// The sizes of the result of an adaptive pooling: the requested sizes, or the sizes of the data by
/// default.
fn adaptive_sizes(
    ctx: &mut InferCtx<'_>,
    n: usize,
    data_sizes: &[Sym],
) -> Result<Vec<Sym>, InferError> {
    if ctx.attr("output_size").is_none() {
        return Ok(data_sizes.to_vec());
    }
    let sizes = ctx.ints("output_size", n, 0)?;
    Ok(sizes.into_iter().map(|s| ctx.func.syms.int(s)).collect())
}

fn infer_adaptive(ctx: &mut InferCtx<'_>, n: usize) -> InferResult {
    let (data, out) = layouts(ctx, n)?;
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    let Some(dims) = t.dims else {
        adaptive_sizes(ctx, n, &[])?;
        // Without sizes, the result has the size of the data.
        if ctx.attr("output_size").is_none() && data == out && t.ndim.is_some() {
            return Ok(ctx.tensor_type_like(&t, t.dtype));
        }
        return Ok(ctx.tensor_type(None, Some(out.ndim()), t.dtype));
    };
    let sizes = adaptive_sizes(ctx, n, &data.spatial_of(&dims))?;
    let dims = result_dims(ctx, (&data, &dims), &out, &sizes);
    Ok(ctx.tensor_type(Some(dims), None, t.dtype))
}

/// The parts into which adaptive pooling divides a dim, one for each element of the result.
struct AdaptiveParts {
    dim: Expr,
    parts: Expr,
    /// The size of each part, if all are equal.
    equal: Option<Expr>,
    axis: IterVar,
}

impl AdaptiveParts {
    fn new(ctx: &mut LegalizeCtx<'_>, dim: Sym, parts: Sym, name: &str) -> AdaptiveParts {
        // With 0 parts there are no results, and 1 avoids a division by 0.
        let parts = match ctx.func.syms.as_int(parts) {
            Some(0) => ctx.func.syms.int(1),
            _ => parts,
        };
        let even = size_proofs::divides(ctx.func, parts, dim) == Some(true);
        let part_size = ctx.func.syms.floordiv(dim, parts);
        let (dim, parts, part_size) = (ctx.size(dim), ctx.size(parts), ctx.size(part_size));
        let equal = even.then_some(part_size);
        // Rounding the bounds of a part outwards adds up to two elements.
        let max_size = equal.clone().unwrap_or_else(|| te::floordiv(&dim, &parts) + 2);
        AdaptiveParts { dim, parts, equal, axis: te::reduce_axis(max_size, name) }
    }

    /// The first element and the number of elements of part `i`.
    fn range(&self, i: &Expr) -> (Expr, Expr) {
        if let Some(part_size) = &self.equal {
            return (i * part_size, part_size.clone());
        }
        let start = te::floordiv(&(i * &self.dim), &self.parts);
        let end = te::ceildiv(&((i + 1) * &self.dim), &self.parts);
        let count = end - &start;
        (start, count)
    }
}

fn te_adaptive(ctx: &mut LegalizeCtx<'_>, n: usize) -> TeResult {
    let (dims, out_dims) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let (data, out) = layouts(&ctx.infer(), n)?;
    let (data_sizes, sizes) = (data.spatial_of(&dims), out.spatial_of(&out_dims));
    let parts: Vec<AdaptiveParts> = (0..n)
        .map(|k| AdaptiveParts::new(ctx, data_sizes[k], sizes[k], ["rz", "ry", "rx"][3 - n + k]))
        .collect();
    let x = ctx.tensor(0)?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let shape = ctx.size_list(&out_dims);
    let axes: Vec<IterVar> = parts.iter().map(|p| p.axis.clone()).collect();
    let spatial_axes = out.spatial_axes();
    let sum = te::compute(shape.clone(), "adaptive_pool_sum", |i| {
        let (mut at, mut inside) = (Vec::new(), Vec::new());
        for (p, &a) in parts.iter().zip(&spatial_axes) {
            let (start, count) = p.range(&i[a]);
            let k = p.axis.var.expr();
            at.push(start + &k);
            if p.equal.is_none() {
                inside.push(te::lt(&k, &count));
            }
        }
        let (batch, channel) = (out.index_of(i, 'N'), out.index_of(i, 'C'));
        let element = te::cast(&x.at(&data.indices(('N', batch), channel, &at)), acc_dtype);
        te::sum(
            &te::if_then_else(&te::all(&inside), &element, &te::const_of(0.0, acc_dtype)),
            &axes,
        )
    });
    Ok(vec![te::compute(shape, "adaptive_pool_avg", |i| {
        let count =
            parts.iter().zip(&spatial_axes).fold(te::int(1), |c, (p, &a)| c * p.range(&i[a]).1);
        te::cast(&(sum.at(i) / te::cast(&count, acc_dtype)), dtype)
    })])
}

//! Pooling of image regions to a fixed size: roi_align, roi_pool.
//!
//! A region is a row (batch, x1, y1, x2, y2) of the operand `rois`. The batch index of each region is checked at run time.

use pliant_ir::DType;
use pliant_ir::op::InferError;

use super::box_decoding::check_rank;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::ops::indexing::index_bounds;
use crate::ops::reductions::accumulator;
use crate::shared_operator_rules::{require_float, shared_dim};
use crate::te::{self, Body, Expr, Tensor};
use crate::type_inference::InferCtx;
use pliant_tensor::CheckFailure;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.vision.roi_align",
        infer,
        "RoI align (He et al., 2017): for each bin of each region, the mean or the maximum of bilinear samples. There are \
        `sample_ratio` samples along each side, or one per pixel of the bin if it is not positive. `aligned` shifts the \
        coordinates by half a pixel. A row of `rois` is (image, x1, y1, x2, y2).",
    )
    .operands(&["data", "rois"])
    .attrs(&[
        ("pooled_size", Default::Required),
        ("spatial_scale", Default::Required),
        ("sample_ratio", Default::Int(-1)),
        ("aligned", Default::Bool(false)),
        ("layout", Default::Str("NCHW")),
        ("mode", Default::Str("avg")),
    ])
    .te(Pattern::Opaque, te_align)
    .onnx(&["RoiAlign"])
    .errors(
        "`data` does not have 4 dims, `rois` does not have 5 columns, the image of a region is out of range, or `spatial_scale` \
        is not positive",
    ),
    OpDecl::new(
        "relax.vision.roi_pool",
        infer,
        "RoI max pooling (Girshick, 2015): the maximum of each bin of each region, whose corners are rounded to pixels. An empty \
        bin results in 0. A row of `rois` is (image, x1, y1, x2, y2).",
    )
    .operands(&["data", "rois"])
    .attrs(&[
        ("pooled_size", Default::Required),
        ("spatial_scale", Default::Required),
        ("layout", Default::Str("NCHW")),
    ])
    .te(Pattern::Opaque, te_pool)
    .onnx(&["MaxRoiPool"])
    .errors(
        "`data` does not have 4 dims, `rois` does not have 5 columns, the image of a region is out of range, or `spatial_scale` \
        is not positive",
    ),
];

/// The indices of the dims for channels, rows and columns.
#[derive(Clone, Copy)]
struct ImageDims {
    channel: usize,
    row: usize,
    column: usize,
}

fn image_dims(ctx: &InferCtx<'_>) -> Result<ImageDims, InferError> {
    Ok(match ctx.choice("layout", &["NCHW", "NHWC"])? {
        0 => ImageDims { channel: 1, row: 2, column: 3 },
        _ => ImageDims { channel: 3, row: 1, column: 2 },
    })
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, rois) = (check_rank(ctx, 0, 4)?, check_rank(ctx, 1, 2)?);
    require_float(ctx, 0, &data)?;
    ctx.same_dtype(0, 1)?;
    let (at, pooled) = (image_dims(ctx)?, ctx.ints("pooled_size", 2, 1)?);
    let scale = ctx.float("spatial_scale")?;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(ctx.error(format!("spatial_scale must be above 0, but is {scale}")));
    }
    if ctx.decl.attrs.iter().any(|(k, _)| *k == "mode") {
        ctx.choice("mode", &["avg", "max"])?;
        ctx.int("sample_ratio")?;
        ctx.bool("aligned")?;
    }
    let five = ctx.func.syms.int(5);
    if let Some(r) = &rois.dims
        && shared_dim(ctx, r[1], five).is_none()
    {
        return Err(ctx.error(format!(
            "rois must have 5 columns, but is {ty}",
            ty = ctx.operand_type_text(1)
        )));
    }
    let (Some(mut dims), Some(r)) = (data.dims, rois.dims) else {
        return Ok(ctx.tensor_type(None, Some(4), data.dtype));
    };
    dims[0] = r[0];
    dims[at.row] = ctx.func.syms.int(pooled[0]);
    dims[at.column] = ctx.func.syms.int(pooled[1]);
    Ok(ctx.tensor_type(Some(dims), None, data.dtype))
}

/// A bin: the part of a region that is pooled to one element per channel.
struct RegionBin {
    region: Expr,
    /// The index of the image that the region belongs to.
    image: Expr,
    row: Expr,
    column: Expr,
    /// The sum or the maximum of the bin's samples so far, for each channel.
    totals: Tensor,
}

/// The operands and attributes that roi_align and roi_pool share.
struct RoiPooling {
    x: Tensor,
    rois: Tensor,
    shape: Vec<Expr>,
    dims: ImageDims,
    pooled: Vec<i64>,
    scale: f64,
    acc_dtype: DType,
    op: &'static str,
}

impl RoiPooling {
    fn read(ctx: &mut LegalizeCtx<'_>) -> Result<RoiPooling, LegalizeError> {
        let rois = ctx.dims(1)?;
        let five = ctx.func.syms.int(5);
        let (x, rois) = (ctx.tensor(0)?, ctx.tensor_with_dims(1, &[rois[0], five])?);
        let shape = ctx.out_shape(0)?;
        let infer = ctx.infer();
        Ok(RoiPooling {
            dims: image_dims(&infer)?,
            pooled: infer.ints("pooled_size", 2, 1)?,
            scale: infer.float("spatial_scale")?,
            acc_dtype: accumulator(x.dtype()),
            op: ctx.decl.name,
            x,
            rois,
            shape,
        })
    }

    fn number(&self, v: f64) -> Expr {
        te::const_of(v, self.acc_dtype)
    }

    /// The element in column `k` of the row that describes region `r`.
    fn region_value(&self, r: &Expr, k: i64) -> Expr {
        te::cast(&self.rois.at(&[r.clone(), te::int(k)]), self.acc_dtype)
    }

    /// The index of the image that region `r` belongs to, checked at run time.
    fn image_index(&self, b: &mut Body, r: &Expr) -> Expr {
        let value = b.let_("image", &self.region_value(r, 0));
        let images = &self.x.shape()[0];
        let inside = te::all([
            &te::ge(&value, &self.number(0.0)),
            &te::lt(&value, &te::cast(images, self.acc_dtype)),
            &te::eq(&te::floor(&value), &value),
        ]);
        let index = te::cast(&te::select(&inside, &value, &self.number(-1.0)), te::Ty::I64);
        let message = format!(
            "{op}: index {{0}} of rois is out of range for axis 0 of size {{1}}",
            op = self.op
        );
        let message = CheckFailure::Index.mark(&message);
        b.assert(&te::explain(&inside, &[value, images.clone()]), message);
        b.let_("batch", &index_bounds::clamp(&index, images))
    }

    fn indices(&self, n: &Expr, c: &Expr, y: &Expr, x: &Expr) -> Vec<Expr> {
        let mut at = vec![n.clone(); 4];
        at[self.dims.channel] = c.clone();
        at[self.dims.row] = y.clone();
        at[self.dims.column] = x.clone();
        at
    }

    /// Emits a parallel loop over all regions, and loops over the bins of each region.
    fn for_each_bin(&self, b: &mut Body, mut write: impl FnMut(&mut Body, &RegionBin)) {
        let channels = self.axis_size(self.dims.channel);
        let (h, w) = (te::int(self.pooled[0]), te::int(self.pooled[1]));
        let (rows, columns) = (self.axis_size(self.dims.row), self.axis_size(self.dims.column));
        let message = format!(
            "{op}: regions cannot be read from an image of {{0}} rows and {{1}} columns",
            op = self.op
        );
        b.parallel("r", &self.shape[0], |b, region| {
            let pixels = te::and(&te::gt(&rows, &te::int(0)), &te::gt(&columns, &te::int(0)));
            b.assert(&te::explain(&pixels, &[rows.clone(), columns.clone()]), message.as_str());
            let image = self.image_index(b, region);
            let totals = b.alloc("totals", &[channels], self.acc_dtype);
            b.for_("ph", &h, |b, row| {
                b.for_("pw", &w, |b, column| {
                    let (region, image, totals) = (region.clone(), image.clone(), totals.clone());
                    write(
                        b,
                        &RegionBin {
                            region,
                            image,
                            row: row.clone(),
                            column: column.clone(),
                            totals,
                        },
                    );
                });
            });
        });
    }

    /// Emits the loop over channels that sets the total of each channel of a bin to `value(total, channel)`, where `total` is the
    /// previous total.
    fn each_channel(&self, b: &mut Body, bin: &RegionBin, value: impl Fn(&Expr, &Expr) -> Expr) {
        b.for_("c", &self.axis_size(self.dims.channel), |b, c| {
            let at = std::slice::from_ref(c);
            b.store(&bin.totals, at, &value(&bin.totals.at(at), c));
        });
    }

    /// Emits the loop that writes `value(total)` to the result for each channel of a bin.
    fn write_bin(
        &self,
        b: &mut Body,
        bin: &RegionBin,
        out: &Tensor,
        value: impl Fn(&Expr) -> Expr,
    ) {
        b.for_("c", &self.axis_size(self.dims.channel), |b, c| {
            let to = self.indices(&bin.region, c, &bin.row, &bin.column);
            b.store(out, &to, &value(&bin.totals.at(std::slice::from_ref(c))));
        });
    }

    fn axis_size(&self, axis: usize) -> Expr {
        self.x.shape()[axis].clone()
    }
}

// ---- roi_align ----

/// The maximum number of samples of a bin along one axis (rows or columns). Its square fits in an int64.
const MAX_SAMPLES: i64 = 1 << 30;

/// The position of a sample along one axis of the image (rows or columns): the pixels before and after it, the weight of the pixel
/// after it, and whether the sample is inside the image.
struct SamplePosition {
    low: Expr,
    high: Expr,
    weight: Expr,
    inside: Expr,
}

impl RoiPooling {
    fn sample_position(&self, b: &mut Body, at: &Expr, size: &Expr) -> SamplePosition {
        let acc_dtype = self.acc_dtype;
        let last = te::cast(&(size - 1), acc_dtype);
        let inside =
            te::and(&te::ge(at, &self.number(-1.0)), &te::le(at, &te::cast(size, acc_dtype)));
        let inside = b.let_("inside", &inside);
        let at = te::maximum(&te::minimum(at, &last), &self.number(0.0));
        let at = b.let_("at", &te::select(&inside, &at, &self.number(0.0)));
        let low =
            b.let_("low", &index_bounds::clamp(&te::cast(&te::floor(&at), te::Ty::I64), size));
        let high = b.let_("high", &index_bounds::clamp(&(&low + 1), size));
        let weight = b.let_("weight", &(&at - te::cast(&low, acc_dtype)));
        SamplePosition { low, high, weight, inside }
    }

    /// The first sample of a bin along one axis (rows or columns) that may lie in the image, and the number of such samples.
    /// Samples outside of the image are 0 and are skipped, so that the run time depends on the size of the image instead of the
    /// size of the region.
    fn samples_in_image(
        &self,
        b: &mut Body,
        (from, length, samples): (&Expr, &Expr, &Expr),
        pixels: &Expr,
    ) -> (Expr, Expr) {
        // The number of samples by which rounding errors can move both ends.
        const ROUNDING_SLACK: f64 = 2.0;
        let count = te::cast(samples, self.acc_dtype);
        let sample = |at: &Expr| (at - from) * &count / length;
        let within = |at: &Expr| {
            let at = te::maximum(&te::minimum(at, &count), &self.number(0.0));
            te::minimum(&te::cast(&at, te::Ty::I64), samples)
        };
        let (one, slack) = (self.number(1.0), self.number(ROUNDING_SLACK));
        let low = te::floor(&sample(&-one)) - &slack;
        let high = te::ceil(&sample(&te::cast(pixels, self.acc_dtype))) + slack;
        // A reversed region only has samples if `sample_ratio` is positive. All of them are visited.
        let forward = te::gt(length, &self.number(0.0));
        let low = b.let_("low_sample", &te::select(&forward, &within(&low), &te::int(0)));
        let high = te::select(&forward, &within(&high), samples);
        let number = te::maximum(&(high - &low), &te::int(0));
        let number = b.let_("seen", &number);
        (low, number)
    }

    /// The bilinear sample of a channel at the positions `y` and `x`, which are inside the image.
    fn sample(&self, n: &Expr, c: &Expr, y: &SamplePosition, x: &SamplePosition) -> Expr {
        let read =
            |y: &Expr, x: &Expr| te::cast(&self.x.at(&self.indices(n, c, y, x)), self.acc_dtype);
        let one = self.number(1.0);
        let row = |at: &Expr| read(at, &x.low) * (&one - &x.weight) + read(at, &x.high) * &x.weight;
        row(&y.low) * (&one - &y.weight) + row(&y.high) * &y.weight
    }
}

fn te_align(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let p = RoiPooling::read(ctx)?;
    let infer = ctx.infer();
    let (ratio, aligned) = (infer.int("sample_ratio")?, infer.bool("aligned")?);
    let mean = infer.choice("mode", &["avg", "max"])? == 0;
    let (dtype, acc_dtype) = (p.x.dtype(), p.acc_dtype);
    let offset = p.number(if aligned { 0.5 } else { 0.0 });
    Ok(te::extern_("roi_align", &[(p.shape.clone(), dtype)], |b, out| {
        p.for_each_bin(b, |b, bin| {
            let r = &bin.region;
            let mut side = |low: i64, bin: &Expr, count: i64, name: &str| {
                let scale = p.number(p.scale);
                let start = b.let_(name, &(p.region_value(r, low) * &scale - &offset));
                let mut length = p.region_value(r, low + 2) * scale - &offset - &start;
                if !aligned {
                    length = te::maximum(&length, &p.number(1.0));
                }
                let size = b.let_("bin", &(length / p.number(count as f64)));
                let samples = match ratio > 0 {
                    true => te::int(ratio),
                    // A region that is not finite or is far larger than any image has the mean 0 for any number of samples.
                    false => te::cast(
                        &te::minimum(
                            &te::maximum(&te::ceil(&size), &p.number(0.0)),
                            &p.number(MAX_SAMPLES as f64),
                        ),
                        te::Ty::I64,
                    ),
                };
                let samples = b.let_("samples", &samples);
                let start = b.let_("from", &(start + te::cast(bin, acc_dtype) * &size));
                let pixels = p.axis_size(if low == 2 { p.dims.row } else { p.dims.column });
                let samples_in_image = p.samples_in_image(b, (&start, &size, &samples), &pixels);
                (start, size, samples, samples_in_image)
            };
            let (y0, h, rows, (row, row_count)) = side(2, &bin.row, p.pooled[0], "y");
            let (x0, w, columns, (column, column_count)) = side(1, &bin.column, p.pooled[1], "x");
            let step = |size: &Expr, i: &Expr, n: &Expr| {
                (te::cast(i, acc_dtype) + p.number(0.5)) * size / te::cast(n, acc_dtype)
            };
            let zero = p.number(0.0);
            let whole = te::and(&te::eq(&row_count, &rows), &te::eq(&column_count, &columns));
            let lowest = te::select(&whole, &p.number(f64::NEG_INFINITY), &zero);
            let first = if mean { zero.clone() } else { b.let_("first", &lowest) };
            p.each_channel(b, bin, |_, _| first.clone());
            b.for_("iy", &row_count, |b, iy| {
                let y = p.sample_position(
                    b,
                    &(&y0 + step(&h, &(iy + &row), &rows)),
                    &p.axis_size(p.dims.row),
                );
                b.for_("ix", &column_count, |b, ix| {
                    let at = &x0 + step(&w, &(ix + &column), &columns);
                    let x = p.sample_position(b, &at, &p.axis_size(p.dims.column));
                    let inside = te::and(&y.inside, &x.inside);
                    let sample = |total: &Expr, c: &Expr| {
                        let value = p.sample(&bin.image, c, &y, &x);
                        if mean { total + value } else { te::maximum(total, &value) }
                    };
                    // A sample outside of the image is 0.
                    let outside = |total: &Expr, _: &Expr| te::maximum(total, &zero);
                    match mean {
                        true => b.if_(&inside, |b| p.each_channel(b, bin, sample)),
                        false => b.if_else(
                            &inside,
                            |b| p.each_channel(b, bin, sample),
                            |b| p.each_channel(b, bin, outside),
                        ),
                    }
                });
            });
            let count = b.let_("count", &(&rows * &columns));
            p.write_bin(b, bin, &out[0], |total| match mean {
                true => total / te::cast(&te::maximum(&count, &te::int(1)), acc_dtype),
                false => te::select(&te::gt(&count, &te::int(0)), total, &zero),
            });
        });
    }))
}

// ---- roi_pool ----

fn te_pool(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let p = RoiPooling::read(ctx)?;
    let (dtype, acc_dtype) = (p.x.dtype(), p.acc_dtype);
    Ok(te::extern_("roi_pool", &[(p.shape.clone(), dtype)], |b, out| {
        p.for_each_bin(b, |b, bin| {
            let r = &bin.region;
            // Corners are rounded half up. Distant corners are clamped, because they would not fit in an integer.
            let corner = |k: i64| {
                let at = te::floor(&(p.region_value(r, k) * p.number(p.scale) + p.number(0.5)));
                te::maximum(&te::minimum(&at, &p.number(1e9)), &p.number(-1e9))
            };
            let mut side = |low: i64, bin: &Expr, count: i64, size: &Expr| {
                let start = b.let_("start", &corner(low));
                let length =
                    te::maximum(&(corner(low + 2) - &start + p.number(1.0)), &p.number(1.0));
                let width = b.let_("width", &(length / p.number(count as f64)));
                let bin = te::cast(bin, acc_dtype);
                let from = te::floor(&(&bin * &width)) + &start;
                let to = te::ceil(&((bin + p.number(1.0)) * width)) + start;
                let inside = |e: &Expr| {
                    let e =
                        te::maximum(&te::minimum(e, &te::cast(size, acc_dtype)), &p.number(0.0));
                    te::cast(&e, te::Ty::I64)
                };
                (b.let_("from", &inside(&from)), b.let_("to", &inside(&to)))
            };
            let (height, breadth) = (p.axis_size(p.dims.row), p.axis_size(p.dims.column));
            let (y0, y1) = side(2, &bin.row, p.pooled[0], &height);
            let (x0, x1) = side(1, &bin.column, p.pooled[1], &breadth);
            p.each_channel(b, bin, |_, _| p.number(f64::NEG_INFINITY));
            b.for_("iy", &(&y1 - &y0), |b, iy| {
                b.for_("ix", &(&x1 - &x0), |b, ix| {
                    let y = b.let_("row", &index_bounds::clamp(&(&y0 + iy), &height));
                    let x = b.let_("column", &index_bounds::clamp(&(&x0 + ix), &breadth));
                    p.each_channel(b, bin, |maximum, c| {
                        let at = p.indices(&bin.image, c, &y, &x);
                        te::maximum(maximum, &te::cast(&p.x.at(&at), acc_dtype))
                    });
                });
            });
            let any = b.let_("any", &te::and(&te::gt(&y1, &y0), &te::gt(&x1, &x0)));
            p.write_bin(b, bin, &out[0], |maximum| te::select(&any, maximum, &p.number(0.0)));
        });
    }))
}

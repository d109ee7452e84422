//! Operators that sample images at the positions of a grid, and that create affine grids.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::super::reductions::accumulator;
use super::cubic_weights;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_float, shared_dim};
use crate::te::{self, Expr, Tensor};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.image.grid_sample",
        infer_sample,
        "Samples images of shape (n, c, h, w) or (n, c, d, h, w) at the coordinates in a grid of shape (n, 2, ...) or (n, 3, \
        ...), which holds x, y and z for each element of the result. The coordinates -1 and 1 are the centres of the outermost \
        pixels with `align_corners`, and their outer edges otherwise; with `pixel_coordinates`, they are \
        positions in pixels, where 0 is the centre of the first pixel, and `align_corners` only matters for reflection. Outside of an image are zeros, the border pixels, or the mirrored image (\"reflection\").",
    )
    .operands(&["data", "grid"])
    .attrs(&[
        ("method", Default::Str("bilinear")),
        ("layout", Default::Str("NCHW")),
        ("padding_mode", Default::Str("zeros")),
        ("align_corners", Default::Bool(false)),
        ("pixel_coordinates", Default::Bool(false)),
    ])
    .te(Pattern::Injective, te_sample)
    .onnx(&["GridSample"])
    .errors("the operands differ in rank or batch size, have neither 4 nor 5 dims, or have 3 spatial dims with \"bicubic\"")
    .gradient_from_te(),
    OpDecl::new(
        "relax.image.affine_grid",
        infer_affine,
        "Creates the grid for grid_sample, of shape (n, 2, h, w) or (n, 3, d, h, w), by applying the affine maps `data`, of \
        shape (n, 2, 3) or (n, 3, 4), to the coordinates of each pixel.",
    )
    .operands(&["data", "size: size"])
    .attrs(&[("align_corners", Default::Bool(true))])
    .te(Pattern::Injective, te_affine)
    .onnx(&["AffineGrid"])
    .errors("a size is negative, or `data` does not have the shape for the number of sizes")
    .gradient_from_te(),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Bilinear,
    Nearest,
    Bicubic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PaddingMode {
    Zeros,
    Border,
    Reflection,
}

struct SampleAttrs {
    method: Interpolation,
    padding_mode: PaddingMode,
    align: bool,
    /// Whether the grid holds pixel positions, which need no mapping from -1 to 1.
    pixel_coordinates: bool,
}

fn sample_attrs(ctx: &InferCtx<'_>) -> Result<SampleAttrs, InferError> {
    ctx.choice("layout", &["NCHW", "NCDHW"])?;
    let method = ctx.choice("method", &["bilinear", "nearest", "bicubic"])?;
    let padding_mode = ctx.choice("padding_mode", &["zeros", "border", "reflection"])?;
    Ok(SampleAttrs {
        method: [Interpolation::Bilinear, Interpolation::Nearest, Interpolation::Bicubic][method],
        padding_mode: [PaddingMode::Zeros, PaddingMode::Border, PaddingMode::Reflection]
            [padding_mode],
        align: ctx.bool("align_corners")?,
        pixel_coordinates: ctx.bool("pixel_coordinates")?,
    })
}

fn infer_sample(ctx: &mut InferCtx<'_>) -> InferResult {
    let sample_attrs = sample_attrs(ctx)?;
    let (t, g) = (ctx.tensor(0)?, ctx.tensor(1)?);
    require_float(ctx, 0, &t)?;
    require_float(ctx, 1, &g)?;
    for (i, x) in [(0, &t), (1, &g)] {
        if x.ndim.is_some_and(|n| n != 4 && n != 5) {
            return Err(ctx.error(format!(
                "{operand} must have 4 or 5 dims, but is {ty}",
                operand = ctx.operand_name(i),
                ty = ctx.operand_type_text(i)
            )));
        }
    }
    if t.ndim.zip(g.ndim).is_some_and(|(a, b)| a != b) {
        return Err(ctx.error(format!(
            "data and grid must have the same rank: {types}",
            types = operand_types(ctx)
        )));
    }
    if sample_attrs.method == Interpolation::Bicubic && t.ndim == Some(5) {
        return Err(
            ctx.error("method \"bicubic\" supports only images of 2 spatial dims, but data has 3")
        );
    }
    let (Some(dims), Some(grid)) = (t.dims, g.dims) else {
        return Ok(ctx.tensor_type(None, t.ndim.or(g.ndim), t.dtype));
    };
    let batch = sample_batch(ctx, &dims, &grid)?;
    let out = [&[batch, dims[1]], &grid[2..]].concat();
    Ok(ctx.tensor_type(Some(out), None, t.dtype))
}

/// The common batch size of data and grid. Also checks that the grid has one coordinate per spatial
/// dim.
fn sample_batch(ctx: &mut InferCtx<'_>, dims: &[Sym], grid: &[Sym]) -> Result<Sym, InferError> {
    let n = ctx.func.syms.int(dims.len() as i64 - 2);
    if shared_dim(ctx, grid[1], n).is_none() {
        let (n, count) = (ctx.dim_text(n), ctx.dim_text(grid[1]));
        return Err(ctx.error(format!(
            "dim 1 of grid, the coordinates, has size {count}, but the images have {n} spatial dims"
        )));
    }
    shared_dim(ctx, dims[0], grid[0]).ok_or_else(|| {
        ctx.error(format!(
            "data and grid must have the same batch size, their first dim: {types}",
            types = operand_types(ctx)
        ))
    })
}

/// The position of a pixel, and its weight; `None` stands for the weight 1.
type WeightedPosition = (Expr, Option<Expr>);

/// Maps grid coordinates to pixel positions along one axis of the image.
struct GridAxis<'a> {
    sample_attrs: &'a SampleAttrs,
    size: Expr,
    dtype: DType,
}

impl GridAxis<'_> {
    fn constant(&self, v: f64) -> Expr {
        te::const_of(v, self.dtype)
    }

    fn float(&self, e: &Expr) -> Expr {
        te::cast(e, self.dtype)
    }

    /// The position along the axis, in pixels, for the grid coordinate `g`, which is between -1 and 1 inside the image unless the
    /// grid holds pixel positions.
    fn pixel_position(&self, g: &Expr) -> Expr {
        if self.sample_attrs.pixel_coordinates {
            return g.clone();
        }
        if self.sample_attrs.align {
            return (g + self.constant(1.0)) * self.constant(0.5) * self.float(&(&self.size - 1));
        }
        ((g + self.constant(1.0)) * self.float(&self.size) - self.constant(1.0))
            * self.constant(0.5)
    }

    fn clip(&self, x: &Expr) -> Expr {
        te::maximum(&te::minimum(x, &self.float(&(&self.size - 1))), &self.constant(0.0))
    }

    /// The pixel position that results from reflecting the position `x` at the borders of the image until it lies inside.
    fn reflect(&self, x: &Expr) -> Expr {
        let (low, span) = match self.sample_attrs.align {
            true => (self.constant(0.0), self.float(&(&self.size - 1))),
            false => (self.constant(-0.5), self.float(&self.size)),
        };
        let distance = te::abs(&(x - &low));
        // An image of one pixel is constant.
        let by = te::maximum(&span, &self.constant(1.0));
        let reflections = te::floor(&(&distance / &by));
        let rest = te::fmod(&distance, &by);
        let odd = te::ne(&te::fmod(&reflections, &self.constant(2.0)), &self.constant(0.0));
        let reflected = te::select(&odd, &(&by - &rest), &rest) + low;
        self.clip(&reflected)
    }

    /// The pixel position `x`, moved into the image as the padding mode (border or reflection) states. With zero padding, the
    /// position is unchanged.
    fn apply_padding_mode(&self, x: &Expr) -> Expr {
        match self.sample_attrs.padding_mode {
            PaddingMode::Zeros => x.clone(),
            PaddingMode::Border => self.clip(x),
            PaddingMode::Reflection => self.reflect(x),
        }
    }

    /// The pixels, as float positions, that contribute to the sample at coordinate `g`, with their weights.
    fn pixels(&self, g: &Expr) -> Vec<WeightedPosition> {
        let x = self.pixel_position(g);
        match self.sample_attrs.method {
            Interpolation::Nearest => vec![(te::round(&self.apply_padding_mode(&x)), None)],
            Interpolation::Bilinear => {
                let x = self.apply_padding_mode(&x);
                let first = te::floor(&x);
                let fraction = &x - &first;
                vec![
                    (first.clone(), Some(self.constant(1.0) - &fraction)),
                    (first + self.constant(1.0), Some(fraction)),
                ]
            }
            Interpolation::Bicubic => {
                let first = te::floor(&x);
                let weights = cubic_weights::weights(&(&x - &first), -0.75, self.dtype);
                weights
                    .into_iter()
                    .enumerate()
                    .map(|(j, w)| {
                        (
                            self.apply_padding_mode(&(&first + self.constant(j as f64 - 1.0))),
                            Some(w),
                        )
                    })
                    .collect()
            }
        }
    }
}

fn te_sample(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (mut dims, mut grid_dims) = (ctx.dims(0)?, ctx.dims(1)?);
    let sample_attrs = sample_attrs(&ctx.infer())?;
    let batch = sample_batch(&mut ctx.infer(), &dims, &grid_dims)?;
    let n = dims.len() - 2;
    (dims[0], grid_dims[0]) = (batch, batch);
    grid_dims[1] = ctx.func.syms.int(n as i64);
    let (x, grid) = (ctx.tensor_with_dims(0, &dims)?, ctx.tensor_with_dims(1, &grid_dims)?);
    let (dtype, acc_dtype) = (x.dtype(), accumulator(x.dtype()));
    let shape = ctx.out_shape(0)?;
    let axes: Vec<Vec<Pixel>> =
        (0..n).map(|k| pixels(&sample_attrs, (&x, &grid), k, acc_dtype)).collect();
    // A corner combines one pixel of each axis.
    let mut corners: Vec<Vec<&Pixel>> = vec![Vec::new()];
    for axis in &axes {
        let mut longer = Vec::with_capacity(corners.len() * axis.len());
        for corner in &corners {
            longer.extend(axis.iter().map(|pixel| [&corner[..], &[pixel]].concat()));
        }
        corners = longer;
    }
    let is_nonempty = x.shape()[2..].iter().map(|size| te::gt(size, &te::int(0)));
    let is_nonempty =
        is_nonempty.reduce(|a, b| te::and(&a, &b)).unwrap_or_else(|| te::bool_const(true));
    Ok(vec![te::compute(shape, "grid_sample", |i| {
        let zero = te::const_of(0.0, acc_dtype);
        let at = [&i[..1], &i[2..]].concat();
        let sum = corners.iter().map(|corner| {
            let positions =
                corner.iter().enumerate().map(|(k, p)| p.clamped_index(&at, &x.shape()[2 + k]));
            let positions: Vec<Expr> = i[..2].iter().cloned().chain(positions).collect();
            let weights = corner.iter().filter_map(|p| p.weight.as_ref()).map(|w| w.at(&at));
            let inside = corner.iter().map(|p| p.inside.at(&at)).reduce(|a, b| te::and(&a, &b));
            let value = te::cast(&x.at(&positions), acc_dtype);
            let value = weights.reduce(|a, b| a * b).map_or(value.clone(), |w| value * w);
            te::select(&inside.unwrap_or_else(|| te::bool_const(true)), &value, &zero)
        });
        let sum = sum.reduce(|a, b| a + b).unwrap_or_else(|| zero.clone());
        // The result is 0 if the image has no pixels.
        te::cast(&te::if_then_else(&is_nonempty, &sum, &zero), dtype)
    })])
}

/// A pixel position along one image axis that contributes to an element of the result, with its
/// weight. Each field is a tensor with one element per grid position, which all channels share.
struct Pixel {
    index: Tensor,
    /// Whether the index of the pixel is inside the image.
    inside: Tensor,
    weight: Option<Tensor>,
}

impl Pixel {
    /// The index of the pixel for the grid position `at`, clamped to the image, whose axis has `size` pixels. The clamp
    /// is part of the expression that reads the pixel, so that bounds checks are not needed although the index is
    /// loaded from memory.
    fn clamped_index(&self, at: &[Expr], size: &Expr) -> Expr {
        te::maximum(&te::int(0), &te::minimum(&self.index.at(at), &(size - 1)))
    }
}

/// The pixel positions along axis `k` of the image that contribute to each element of the result.
fn pixels(
    sample_attrs: &SampleAttrs,
    (x, grid): (&Tensor, &Tensor),
    k: usize,
    acc_dtype: DType,
) -> Vec<Pixel> {
    let n = x.ndim() - 2;
    let axis = GridAxis { sample_attrs, size: x.shape()[2 + k].clone(), dtype: acc_dtype };
    let last = te::cast(&(&axis.size - 1), acc_dtype);
    let shape = [&grid.shape()[..1], &grid.shape()[2..]].concat();
    let candidates = |i: &[Expr]| {
        // x, the last dim of the image, is the first coordinate.
        let coordinate = te::int((n - 1 - k) as i64);
        let at = [&i[..1], &[coordinate], &i[1..]].concat();
        axis.pixels(&te::cast(&grid.at(&at), acc_dtype))
    };
    let (count, weighted) = match sample_attrs.method {
        Interpolation::Nearest => (1, false),
        Interpolation::Bilinear => (2, true),
        Interpolation::Bicubic => (4, true),
    };
    let stage = |what: &str, j: usize, of: &dyn Fn(&WeightedPosition) -> Expr| {
        te::compute(shape.clone(), format!("{what}_{k}{j}"), |i| of(&candidates(i)[j]))
    };
    (0..count)
        .map(|j| Pixel {
            index: stage("index", j, &|p| te::cast(&p.0, DType::Int64)),
            inside: stage("inside", j, &|(p, _)| {
                te::and(&te::ge(p, &te::const_of(0.0, acc_dtype)), &te::le(p, &last))
            }),
            weight: weighted.then(|| {
                stage("weight", j, &|p| p.1.clone().unwrap_or_else(|| te::const_of(1.0, acc_dtype)))
            }),
        })
        .collect()
}

// ---- affine_grid ----

fn infer_affine(ctx: &mut InferCtx<'_>) -> InferResult {
    let (t, sizes) = (ctx.tensor(0)?, ctx.result_sizes(1)?);
    require_float(ctx, 0, &t)?;
    ctx.bool("align_corners")?;
    if t.ndim.is_some_and(|n| n != 3) {
        return Err(
            ctx.error(format!("data must have 3 dims, but is {ty}", ty = ctx.operand_type_text(0)))
        );
    }
    let Some(m) = sizes.ndim else { return Ok(ctx.tensor_type(None, None, t.dtype)) };
    let n = if m == 1 { 2 } else { m };
    if n != 2 && n != 3 {
        return Err(ctx.error(format!("operand 'size' has {m} values, but must have 1, 2 or 3")));
    }
    let (Some(dims), Some(size)) = (t.dims, sizes.dims) else {
        return Ok(ctx.tensor_type(None, Some(n + 2), t.dtype));
    };
    let rows = ctx.func.syms.int(n as i64);
    let cols = ctx.func.syms.int(n as i64 + 1);
    if shared_dim(ctx, dims[1], rows).is_none() || shared_dim(ctx, dims[2], cols).is_none() {
        return Err(ctx.error(format!(
            "data must have the shape (batch, {n}, {columns}), but is {ty}",
            columns = n + 1,
            ty = ctx.operand_type_text(0)
        )));
    }
    let size = if m == 1 { vec![size[0]; 2] } else { size };
    let out = [&[dims[0], rows], &size[..]].concat();
    Ok(ctx.tensor_type(Some(out), None, t.dtype))
}

fn te_affine(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (mut dims, out) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let n = out.len() - 2;
    dims[1] = ctx.func.syms.int(n as i64);
    dims[2] = ctx.func.syms.int(n as i64 + 1);
    let align = ctx.infer().bool("align_corners")?;
    let map = ctx.tensor_with_dims(0, &dims)?;
    let (dtype, acc_dtype) = (map.dtype(), accumulator(map.dtype()));
    let shape = ctx.size_list(&out);
    Ok(vec![te::compute(shape.clone(), "affine_grid", |i| {
        let at = |k: usize| {
            te::cast(&map.at(&[i[0].clone(), i[1].clone(), te::int(k as i64)]), acc_dtype)
        };
        let one = te::const_of(1.0, acc_dtype);
        let mut value = at(n);
        for k in 0..n {
            let (pixel, size) = (&i[2 + k], &shape[2 + k]);
            let coordinate = if align {
                // A single pixel is at the centre.
                let gaps = te::maximum(&(size - 1), &te::int(1));
                let coordinate_of_gap =
                    te::cast(&(pixel * 2), acc_dtype) / te::cast(&gaps, acc_dtype) - &one;
                te::select(
                    &te::eq(size, &te::int(1)),
                    &te::const_of(0.0, acc_dtype),
                    &coordinate_of_gap,
                )
            } else {
                te::cast(&(pixel * 2 + 1), acc_dtype) / te::cast(size, acc_dtype) - &one
            };
            value = value + at(n - 1 - k) * coordinate;
        }
        te::cast(&value, dtype)
    })])
}

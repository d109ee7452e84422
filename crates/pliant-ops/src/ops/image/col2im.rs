//! Sums patches at their positions in an image: the adjoint of im2col.

use super::super::nn::sliding_window::Window;
use super::super::parallel_row_loops::RowLoops;
use super::super::reductions::accumulator;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::te::{self, Body, Expr, Tensor};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[OpDecl::new(
    "relax.image.col2im",
    infer,
    "The inverse of im2col: sums patches of shape (planes, patch dims..., patch positions...) at their positions in images of \
    shape (planes, size...), for any number of spatial dims. Elements outside of an image are dropped.",
)
.operands(&["data", "size: size"])
.attrs(&[
    ("strides", Default::Ints(&[1])),
    ("padding", Default::Ints(&[0])),
    ("dilation", Default::Ints(&[1])),
])
.te(Pattern::Opaque, te_col2im)
.onnx(&["Col2Im"])
.errors("a size is negative, or `data` does not have one dim plus two for each spatial size")];

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let (data, sizes) = (ctx.tensor(0)?, ctx.result_sizes(1)?);
    if data.dtype.is_some_and(|d| d.is_bool()) {
        return Err(ctx.error("data must be a tensor of numbers, but is bool"));
    }
    let Some(n) = sizes.ndim else { return Ok(ctx.tensor_type(None, None, data.dtype)) };
    if n == 0 || data.ndim.is_some_and(|ndim| ndim != 2 * n + 1) {
        let ty = ctx.operand_type_text(0);
        return Err(ctx.error(format!(
            "data must have {} dims for images of {n} spatial dims, but is {ty}",
            2 * n + 1
        )));
    }
    Window::read(ctx, n)?;
    let dims = data.dims.zip(sizes.dims).map(|(data, sizes)| [&data[..1], &sizes].concat());
    Ok(ctx.tensor_type(dims, Some(n + 1), data.dtype))
}

fn te_col2im(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (x, shape, dtype) = (ctx.tensor(0)?, ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let n = shape.len() - 1;
    let window = Window::read(&ctx.infer(), n)?;
    let acc_dtype = accumulator(dtype);
    Ok(te::extern_("col2im", &[(shape.clone(), dtype)], |b, out| {
        let mut planes = RowLoops::new(&[shape[0].clone(), te::int(1)], 1);
        planes.len = x.shape()[1..].iter().fold(te::int(1), |len, d| len * d);
        // Sums in half precision would round away small addends.
        let image =
            |b: &mut Body| (acc_dtype != dtype).then(|| b.alloc("image", &shape[1..], acc_dtype));
        planes.for_each_row(b, image, |b, image, plane| {
            let at = |i: &[Expr]| [plane, i].concat();
            let index = |i: &[Expr]| if image.is_some() { i.to_vec() } else { at(i) };
            let sums = image.as_ref().unwrap_or(&out[0]);
            b.for_each(&shape[1..], |b, i| b.store(sums, &index(i), &te::const_of(0.0, acc_dtype)));
            let patches = Patches { x: &x, window: &window, size: &shape[1..], plane };
            b.for_each(&x.shape()[1..=n], |b, within| {
                patches.add(b, within, &mut Vec::new(), &mut Vec::new(), &|b, i, value| {
                    let i = index(i);
                    b.store(sums, &i, &(sums.at(&i) + te::cast(value, acc_dtype)));
                });
            });
            if let Some(image) = image {
                b.for_each(&shape[1..], |b, i| b.store(&out[0], &at(i), &image.at(i)));
            }
        });
    }))
}

/// The patches of all images, with the parameters that determine to which elements of one image
/// they are added.
struct Patches<'a> {
    /// The tensor with the patches of all images.
    x: &'a Tensor,
    window: &'a Window,
    /// The size of the image in each spatial dim.
    size: &'a [Expr],
    /// The index of the image along the leading dims (batch and channel) of `x`.
    plane: &'a [Expr],
}

impl Patches<'_> {
    /// Emits loops over the patches whose element at index `within` lies inside of the image. For
    /// each such patch, calls `add` with the position of this element in the image and the value of
    /// the element. Recurses over the spatial dims. For the dims processed so far, `positions`
    /// contains the indices of the patch, and `index` the indices of its element in the image.
    fn add(
        &self,
        b: &mut Body,
        within: &[Expr],
        positions: &mut Vec<Expr>,
        index: &mut Vec<Expr>,
        add: &dyn Fn(&mut Body, &[Expr], &Expr),
    ) {
        let k = positions.len();
        if k == self.size.len() {
            let at = [self.plane, within, positions].concat();
            return add(b, index, &self.x.at(&at));
        }
        let (stride, size) = (self.window.strides[k], &self.size[k]);
        let shift = &within[k] * self.window.dilation[k] - self.window.pads[k].0;
        let shift = b.let_("shift", &shift);
        // The first position whose element is inside of the image, and the number of such positions.
        let first = te::maximum(&te::ceildiv(&-&shift, &te::int(stride)), &te::int(0));
        let first = b.let_("first", &first);
        let start = b.let_("start", &(&first * stride + &shift));
        b.assert(&te::ge(&start, &te::int(0)), "a patch lies outside of its image");
        let left = &self.x.shape()[1 + self.size.len() + k] - &first;
        let fits = te::ceildiv(&(size - &start), &te::int(stride));
        b.for_("i", &te::maximum(&te::minimum(&left, &fits), &te::int(0)), |b, i| {
            positions.push(&first + i);
            index.push(&start + i * stride);
            self.add(b, within, positions, index, add);
            positions.pop();
            index.pop();
        });
    }
}

//! Gradients of convolutions and transposed convolutions. All are convolutions, so that kernels compute them.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Sym};

use super::conv::Layouts;
use super::sliding_window::Window;
use super::tensor_layouts::{Layout, spatial};
use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// A differentiated convolution over `n` spatial dims, with all tensors in the default layouts: channels before spatial dims, and
/// filters with the output channels first (convolution) or the input channels first (transposed convolution).
struct Convolution<'g> {
    n: usize,
    layouts: Layouts,
    window: Window,
    groups: i64,
    data: Term<'g>,
    filter: Term<'g>,
    dy: Term<'g>,
}

/// The order of dims that moves the dims of a layout to the order of `letters`.
fn order(layout: &Layout, letters: &str) -> Vec<usize> {
    letters.chars().map(|c| layout.axis(c)).collect()
}

/// The inverse of a permutation.
fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(i, &a)| inverse[a] = i);
    inverse
}

impl<'g> Convolution<'g> {
    fn read(g: &GradientCtx<'g>, n: usize, filter_letters: &str) -> Result<Self, GradientError> {
        let (layouts, window) =
            g.infer(|ctx| Ok((Layouts::read(ctx, n)?, Window::read(ctx, n)?)))?;
        let groups = g.attr("groups").as_int().unwrap_or(1);
        let images = format!("NC{}", spatial(n));
        let filters = format!("{filter_letters}{}", spatial(n));
        let data = g.arg(0).permute(&order(&layouts.data, &images));
        let filter = g.arg(1).permute(&order(&layouts.filter, &filters));
        let dy = g.dy().astype(g.arg(0).dtype()).permute(&order(&layouts.out, &images));
        if data.dims().is_none() || filter.dims().is_none() || dy.dims().is_none() {
            return Err(g.error(
                "the gradient needs the shapes of data and weight; declare them with R.match_cast",
            ));
        }
        Ok(Convolution { n, layouts, window, groups, data, filter, dy })
    }

    /// The adjoint of the data in the layout of the data.
    fn restore_data(&self, adjoint: Term<'g>) -> Term<'g> {
        let images = format!("NC{}", spatial(self.n));
        adjoint.permute(&inverse(&order(&self.layouts.data, &images)))
    }

    /// The adjoint of the filter in the layout of the filter.
    fn restore_filter(&self, adjoint: Term<'g>, letters: &str) -> Term<'g> {
        let filters = format!("{letters}{}", spatial(self.n));
        adjoint.permute(&inverse(&order(&self.layouts.filter, &filters)))
    }

    fn op(&self, transposed: bool) -> &'static str {
        match (self.n, transposed) {
            (1, false) => "relax.nn.conv1d",
            (2, false) => "relax.nn.conv2d",
            (_, false) => "relax.nn.conv3d",
            (1, true) => "relax.nn.conv1d_transpose",
            (2, true) => "relax.nn.conv2d_transpose",
            (_, true) => "relax.nn.conv3d_transpose",
        }
    }

    fn padding(&self) -> AttrValue {
        let pads = &self.window.pads;
        AttrValue::ints(pads.iter().map(|p| p.0).chain(pads.iter().map(|p| p.1)))
    }

    /// A convolution of default layouts with the padding of this one.
    fn convolve(
        &self,
        data: Term<'g>,
        filter: Term<'g>,
        (strides, dilation): (&[i64], &[i64]),
        transposed: bool,
    ) -> Term<'g> {
        let ints = |list: &[i64]| AttrValue::ints(list.iter().copied());
        let mut list = vec![
            ("strides", ints(strides)),
            ("padding", self.padding()),
            ("dilation", ints(dilation)),
            ("groups", AttrValue::Int(self.groups)),
        ];
        if transposed {
            // The last windows may end before the last element, so the result may be too long but never too short.
            let extra: Vec<i64> = strides.iter().map(|s| s - 1).collect();
            list.push(("output_padding", ints(&extra)));
        }
        data.call(self.op(transposed), &[filter.expr()], &list)
    }

    /// The first elements of a result along the spatial dims, in the sizes of `target`.
    fn cut(&self, x: Term<'g>, sizes: &[Sym]) -> Term<'g> {
        let Some(dims) = x.dims() else { return x };
        let builder = x.builder();
        let mut cut = dims.clone();
        cut[2..].copy_from_slice(sizes);
        let equal = |(&a, &b): (&Sym, &Sym)| {
            a == b || builder.edit(|f| crate::size_proofs::equal(f, a, b)) == Some(true)
        };
        if dims[2..].iter().zip(sizes).all(equal) {
            return x;
        }
        let shape = |values: Vec<Sym>| builder.shape(&values);
        let (zero, one) = builder.edit(|f| (f.syms.int(0), f.syms.int(1)));
        let axes = builder.edit(|f| (2..self.n + 2).map(|a| f.syms.int(a as i64)).collect());
        let args: [Expr; 4] = [
            shape(axes),
            shape(vec![zero; self.n]),
            shape(sizes.to_vec()),
            shape(vec![one; self.n]),
        ];
        x.call("relax.strided_slice", &args, &[]).reshape(builder.shape(&cut))
    }

    /// The adjoint of the filter of a convolution of `images` with the result adjoint `results`. It has the shape (channels of
    /// `results`, channels of `images` per group, filter sizes).
    fn filter_adjoint(&self, images: Term<'g>, results: Term<'g>) -> Term<'g> {
        let spatial_axes: Vec<usize> = (2..self.n + 2).collect();
        let swapped: Vec<usize> = [1, 0].into_iter().chain(spatial_axes.iter().copied()).collect();
        let (Some(dims), Some(filter)) = (images.dims(), self.filter.dims()) else { return images };
        // The batch becomes the channels, and the channels of a group become the batch.
        let images = match self.groups {
            1 => images.permute(&swapped),
            groups => {
                let builder = images.builder();
                let (split, merged) = builder.edit(|f| {
                    let groups = f.syms.int(groups);
                    let channels = f.syms.floordiv(dims[1], groups);
                    let batches = f.syms.mul(groups, dims[0]);
                    let split: Vec<Sym> =
                        [dims[0], groups, channels].into_iter().chain(dims[2..].to_vec()).collect();
                    let merged: Vec<Sym> =
                        [channels, batches].into_iter().chain(dims[2..].to_vec()).collect();
                    (split, merged)
                });
                let order: Vec<usize> = [2, 1, 0].into_iter().chain(3..self.n + 3).collect();
                images
                    .reshape(builder.shape(&split))
                    .permute(&order)
                    .reshape(builder.shape(&merged))
            }
        };
        let results = results.permute(&swapped);
        let windows = (&self.window.dilation[..], &self.window.strides[..]);
        let product = self.convolve(images, results, windows, false);
        self.cut(product, &filter[2..]).permute(&swapped)
    }
}

/// The gradient of a convolution over `n` spatial dims.
pub fn conv<'g>(g: &GradientCtx<'g>, n: usize) -> GradientResult<'g> {
    let c = Convolution::read(g, n, "OI")?;
    let windows = (&c.window.strides[..], &c.window.dilation[..]);
    let of_data = g.wants(0).then(|| {
        let full = c.convolve(c.dy, c.filter, windows, true);
        let sizes = c.data.dims().unwrap_or_default();
        c.restore_data(c.cut(full, &sizes[2..]))
    });
    let of_filter = g.wants(1).then(|| c.restore_filter(c.filter_adjoint(c.data, c.dy), "OI"));
    Ok(vec![of_data, of_filter])
}

/// The gradient of a transposed convolution over `n` spatial dims.
pub fn conv_transpose<'g>(g: &GradientCtx<'g>, n: usize) -> GradientResult<'g> {
    let c = Convolution::read(g, n, "IO")?;
    let windows = (&c.window.strides[..], &c.window.dilation[..]);
    let of_data = g.wants(0).then(|| {
        let full = c.convolve(c.dy, c.filter, windows, false);
        let sizes = c.data.dims().unwrap_or_default();
        c.restore_data(c.cut(full, &sizes[2..]))
    });
    let of_filter = g.wants(1).then(|| c.restore_filter(c.filter_adjoint(c.dy, c.data), "IO"));
    Ok(vec![of_data, of_filter])
}

//! Views of tensors as operands of library kernels.

use pliant_ir::relax::kernel_call::NEW_AXIS;
use pliant_ir::tir::{Intrin, WHOLE_BUFFER};

use super::expr::Expr;
use super::expr_builders::{call, int};
use super::tensor::Tensor;

/// A view of the elements of a tensor with its own dims and strides.
#[derive(Clone)]
pub struct TensorView<'a> {
    tensor: &'a Tensor,
    offset: Expr,
    dims: Vec<Expr>,
    /// The strides of the view's dims, in elements.
    strides: Vec<Expr>,
    /// Whether the view has the dims and strides of the tensor itself.
    whole: bool,
}

impl<'a> From<&'a Tensor> for TensorView<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        let dims = tensor.shape().to_vec();
        let mut step = int(1);
        let mut strides: Vec<Expr> = dims
            .iter()
            .rev()
            .map(|dim| {
                let stride = step.clone();
                step = &step * dim;
                stride
            })
            .collect();
        strides.reverse();
        TensorView { tensor, offset: int(0), dims, strides, whole: true }
    }
}

impl TensorView<'_> {
    /// The sizes of the view's dims.
    pub fn dims(&self) -> &[Expr] {
        &self.dims
    }

    /// A view whose dim `i` is dim `axes[i]` of this view.
    pub fn permute(mut self, axes: &[usize]) -> Self {
        self.dims = axes.iter().map(|&axis| self.dims[axis].clone()).collect();
        self.strides = axes.iter().map(|&axis| self.strides[axis].clone()).collect();
        self.whole = false;
        self
    }

    /// A view with one dim per entry of `axes`: the dim of this view with that index, or a new dim
    /// of size 1 for -1 ([`pliant_ir::relax::kernel_call`]).
    pub fn with_axes(self, axes: &[i64]) -> Self {
        let view_axes: Vec<usize> =
            axes.iter().filter_map(|&axis| usize::try_from(axis).ok()).collect();
        let new = axes.iter().enumerate().filter(|&(_, &axis)| axis == NEW_AXIS);
        new.fold(self.permute(&view_axes), |view, (at, _)| view.unsqueeze(at))
    }

    /// A view with an additional dim of size 1 at `axis`.
    pub fn unsqueeze(mut self, axis: usize) -> Self {
        self.dims.insert(axis, int(1));
        self.strides.insert(axis, int(0));
        self.whole = false;
        self
    }

    /// A view in which dim `axis` is restricted to the range `start..start + outer * inner` and split into two dims of sizes
    /// `outer` and `inner`. The range must lie inside the dim.
    pub fn split_part(mut self, axis: usize, start: i64, outer: i64, inner: i64) -> Self {
        let step = self.strides[axis].clone();
        self.offset = &self.offset + &(int(start) * &step);
        self.dims.splice(axis..=axis, [int(outer), int(inner)]);
        self.strides.splice(axis..=axis, [int(inner) * &step, step]);
        self.whole = false;
        self
    }

    /// A view of `size` elements of dim `axis`: the elements at `first`, `first + step`, and so on.
    pub fn slice(mut self, axis: usize, first: i64, step: i64, size: Expr) -> Self {
        self.offset = &self.offset + &(int(first) * &self.strides[axis]);
        self.strides[axis] = &self.strides[axis] * int(step);
        self.dims[axis] = size;
        self.whole = false;
        self
    }

    /// A view of a whole tensor as one dim.
    ///
    /// # Panics
    /// If this view does not have the dims of the tensor itself.
    pub fn flatten(mut self) -> Self {
        assert!(self.whole, "only the view of a whole tensor can be flattened");
        if self.dims.len() != 1 {
            self.dims = vec![self.dims.iter().fold(int(1), |all, dim| all * dim)];
            self.strides = vec![int(1)];
            self.whole = false;
        }
        self
    }

    /// A view of a whole tensor as rows along `axis`. The view has these dims: the product of the
    /// dims before the axis; the product of the dims after the axis, if there are any; the axis;
    /// and the last `inner` dims, which are not merged.
    ///
    /// # Panics
    /// In the same cases as [`Self::flatten`].
    pub fn rows(mut self, axis: usize, inner: usize) -> Self {
        assert!(self.whole, "only the view of a whole tensor can be divided into rows");
        let product = |dims: &[Expr]| dims.iter().fold(int(1), |all, dim| all * dim);
        let (dims, strides) = (&self.dims, &self.strides);
        let end = dims.len() - inner;
        let mut list = vec![(product(&dims[..axis]), &dims[axis] * &strides[axis])];
        if axis + 1 < end {
            list.push((product(&dims[axis + 1..end]), strides[end - 1].clone()));
        }
        list.push((dims[axis].clone(), strides[axis].clone()));
        list.extend(dims[end..].iter().cloned().zip(strides[end..].iter().cloned()));
        (self.dims, self.strides) = list.into_iter().unzip();
        self.whole = false;
        self
    }

    /// A view of overlapping windows along dim `axis`, which becomes two dims: `count` windows, whose starts are `step` elements
    /// apart, and the `size` elements of a window. The windows must lie inside the dim.
    pub fn windows(mut self, axis: usize, (count, step): (&Expr, &Expr), size: &Expr) -> Self {
        let stride = self.strides[axis].clone();
        self.dims.splice(axis..=axis, [count.clone(), size.clone()]);
        self.strides.splice(axis..=axis, [step * &stride, stride]);
        self.whole = false;
        self
    }

    /// A view of the first element, without dims.
    pub fn scalar(mut self) -> Self {
        (self.dims, self.strides) = (Vec::new(), Vec::new());
        self.whole = self.tensor.ndim() == 0;
        self
    }

    /// A view broadcast to `dims`. The dims of this view become the last ones. If `repeated[i]` is
    /// set, the `i`-th dim from the end, counted from 0, has one element that is repeated.
    pub fn broadcast(mut self, dims: &[Expr], repeated: &[bool]) -> Self {
        for (stride, &repeated) in self.strides.iter_mut().rev().zip(repeated) {
            if repeated {
                *stride = int(0);
            }
        }
        let missing = dims.len() - self.dims.len();
        self.strides.splice(0..0, std::iter::repeat_n(int(0), missing));
        self.dims = dims.to_vec();
        self.whole = false;
        self
    }

    /// The arguments for this operand in a call, in the order of [`pliant_ir::tir::KernelCall`].
    pub(super) fn into_arguments(self) -> Vec<Expr> {
        let first = self.tensor.at(&vec![int(0); self.tensor.ndim()]);
        let address = call(Intrin::AddressOf, vec![first]);
        if self.whole {
            return vec![address, int(WHOLE_BUFFER)];
        }
        let mut arguments = vec![address, int(self.dims.len() as i64), self.offset];
        arguments.extend(self.dims);
        arguments.extend(self.strides);
        arguments
    }
}

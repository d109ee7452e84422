//! Layouts: the meaning of a tensor's dims, as letters (`NCHW`, `OIHW`).

use pliant_ir::Sym;
use pliant_ir::op::InferError;

use crate::type_inference::{InferCtx, TensorTy};

/// The unsupported features of all operators that have a layout attribute, for their documentation.
pub const LAYOUT_LIMITS: &str = "blocked layouts such as `NCHW16c`: a layout only orders the dims, and schedules block the loops \
instead";

/// The letters of the spatial dims of `n`-dimensional images.
pub fn spatial(n: usize) -> &'static str {
    &"DHW"[3 - n..]
}

/// The order of a tensor's dims, as one letter per dim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    letters: String,
}

impl Layout {
    /// Reads a layout from an attribute. The layout consists of the letters in `first` (such as `NC`) and the spatial letters, in
    /// any order.
    ///
    /// # Errors
    /// If the layout does not consist of these letters.
    pub fn read(
        ctx: &InferCtx<'_>,
        key: &str,
        first: &str,
        n: usize,
    ) -> Result<Layout, InferError> {
        let value = ctx.attr(key);
        let actual = value.as_str().unwrap_or_default();
        let wanted = format!("{first}{}", spatial(n));
        let fits = actual.len() == wanted.len() && wanted.chars().all(|c| actual.contains(c));
        if fits {
            return Ok(Layout { letters: actual.into() });
        }
        Err(ctx.error(format!(
            "{key} {actual:?} is not supported: it must have the letters of {wanted:?}, each once"
        )))
    }

    /// The layout of the result: the attribute `out_layout`, or the layout of the data by default.
    ///
    /// # Errors
    /// The same errors as [`read`](Self::read).
    pub fn of_output(
        ctx: &InferCtx<'_>,
        data: &Layout,
        first: &str,
        n: usize,
    ) -> Result<Layout, InferError> {
        let value = ctx.attr("out_layout");
        if value.is_none() || value.as_str() == Some("") {
            return Ok(data.clone());
        }
        Layout::read(ctx, "out_layout", first, n)
    }

    /// The index of the dim with this letter.
    pub fn axis(&self, letter: char) -> usize {
        self.letters.find(letter).unwrap_or(0)
    }

    /// The indices of the spatial dims: depth, height, width.
    pub fn spatial_axes(&self) -> Vec<usize> {
        spatial(self.letters.len() - 2).chars().map(|c| self.axis(c)).collect()
    }

    /// Arranges values, one per dim, in the order of the layout: `first` for the dim with the
    /// letter `a`, `spatial` for the spatial dims, and `second` for the remaining dim.
    pub fn arrange<T: Clone>(&self, (a, first): (char, T), second: T, spatial: &[T]) -> Vec<T> {
        let axes = self.spatial_axes();
        (0..self.letters.len())
            .map(|i| match axes.iter().position(|&s| s == i) {
                Some(k) => spatial[k].clone(),
                None if i == self.axis(a) => first.clone(),
                None => second.clone(),
            })
            .collect()
    }

    /// Checks that operand `i` has as many dims as the layout has letters.
    ///
    /// # Errors
    /// If the rank is known to be different.
    pub fn check(&self, ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
        match t.ndim {
            Some(ndim) if ndim != self.letters.len() => Err(ctx.error(format!(
                "{operand} must have {} dims ({}), but is {ty}",
                self.letters.len(),
                self.letters,
                operand = ctx.operand_name(i),
                ty = ctx.operand_type_text(i)
            ))),
            _ => Ok(()),
        }
    }

    /// The spatial dims among `dims`, which are in the order of the layout.
    pub fn spatial_of(&self, dims: &[Sym]) -> Vec<Sym> {
        self.spatial_axes().iter().map(|&a| dims[a]).collect()
    }
}

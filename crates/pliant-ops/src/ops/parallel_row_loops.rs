//! Parallel loops over the rows of a tensor, for operators that process rows along one axis.

use crate::te::{self, Body, Expr};

/// Minimum number of elements in a chunk of a parallel loop.
pub(super) const MIN_CHUNK_ELEMENTS: i64 = 2048;

/// The rows of a tensor, and the loops over them. A row consists of the elements along `axis` at
/// fixed indices of the other dims.
pub(super) struct RowLoops {
    /// The dims of the tensor except the axis.
    other_dims: Vec<Expr>,
    axis: usize,
    /// The number of elements of a row.
    pub(super) len: Expr,
}

impl RowLoops {
    /// Splits a tensor of the given shape into rows along `axis`.
    pub(super) fn new(shape: &[Expr], axis: usize) -> RowLoops {
        let mut other_dims = shape.to_vec();
        let len = other_dims.remove(axis);
        RowLoops { other_dims, axis, len }
    }

    /// The indices of element `k` of a row. `row` contains the row's indices in the other dims.
    pub(super) fn at(&self, row: &[Expr], k: &Expr) -> Vec<Expr> {
        [&row[..self.axis], std::slice::from_ref(k), &row[self.axis..]].concat()
    }

    /// Emits a parallel loop over all rows. `scratch` allocates the buffers of each chunk of rows. `body` receives these buffers
    /// and the indices of a row in the other dims.
    pub(super) fn for_each_row<S>(
        &self,
        b: &mut Body,
        scratch: impl FnOnce(&mut Body) -> S,
        body: impl FnOnce(&mut Body, &S, &[Expr]),
    ) {
        let total = self.other_dims.iter().fold(te::int(1), |n, d| n * d);
        let total = b.let_("total", &total);
        let nonzero_len = te::maximum(&self.len, &te::int(1));
        let rows_per_chunk =
            te::maximum(&te::floordiv(&te::int(MIN_CHUNK_ELEMENTS), &nonzero_len), &te::int(1));
        let size = b.let_("rows", &rows_per_chunk);
        b.parallel("chunk", &te::ceildiv(&total, &size), |b, chunk| {
            let first = b.let_("first", &(chunk * &size));
            let scratch = scratch(b);
            b.for_("row", &te::minimum(&size, &(&total - &first)), |b, row| {
                let mut remaining = first + row;
                let mut at = Vec::with_capacity(self.other_dims.len());
                for (k, dim) in self.other_dims.iter().enumerate().rev() {
                    at.push(match k {
                        _ if is_trivial(dim) => te::int(0),
                        _ if self.other_dims[..k].iter().all(is_trivial) => remaining.clone(),
                        _ => te::floormod(&remaining, dim),
                    });
                    if !is_trivial(dim) {
                        remaining = te::floordiv(&remaining, dim);
                    }
                }
                let at: Vec<Expr> = at.iter().rev().map(|i| b.let_("at", i)).collect();
                // Asserted once per row rather than for each of its elements.
                for (i, dim) in at.iter().zip(&self.other_dims) {
                    let inside = te::and(&te::le(&te::int(0), i), &te::lt(i, dim));
                    b.assert(&inside, "a row lies outside of its tensor");
                }
                body(b, &scratch, &at);
            });
        });
    }
}

/// Whether a dim is known to be 0 or 1, so that its index is always 0 and needs no division. For a dim of size 0, there are no
/// rows, and a division by the dim must not be generated.
fn is_trivial(dim: &Expr) -> bool {
    dim.is_const(0) || dim.is_const(1)
}

/// Emits a parallel loop nest over all indices of a shape. The innermost loop runs over the last dim.
pub(super) fn for_each_element(
    b: &mut Body,
    shape: &[Expr],
    write: impl FnOnce(&mut Body, &[Expr]),
) {
    if let [len] = shape {
        let size = te::int(8 * MIN_CHUNK_ELEMENTS);
        return b.parallel("chunk", &te::ceildiv(len, &size), |b, chunk| {
            let first = b.let_("first", &(chunk * &size));
            b.for_("i", &te::minimum(&size, &(len - &first)), |b, i| write(b, &[first + i]));
        });
    }
    if shape.is_empty() {
        return write(b, &[]);
    }
    // Computing the indices of a row takes about as long as copying 16 elements. If there are more than 3 dims, a row consists of
    // the last two.
    let (outer, inner) = shape.split_at(shape.len() - if shape.len() > 3 { 2 } else { 1 });
    let mut rows = RowLoops::new(&[outer, &[te::int(1)]].concat(), outer.len());
    rows.len = inner.iter().fold(te::int(1), |len, d| len * d);
    rows.for_each_row(
        b,
        |_| (),
        |b, (), row| b.for_each(inner, |b, i| write(b, &[row, i].concat())),
    );
}

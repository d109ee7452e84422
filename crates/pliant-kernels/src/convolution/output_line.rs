//! An output row, or a part of an output row, for convolutions with channels last that skip filter
//! taps in the padding.

use std::ops::Range;

use super::Convolution;
use super::shape_and_strides::Sizes;
use crate::epilogue::{ClipEpilogue, EpilogueTile, Position, TileEpilogue};
use crate::matmul::work_partition::even_part;
use pliant_machine::isa::Isa;

/// Maximum number of results of a part of an output row. Long output rows are divided into parts so
/// that threads can share them. The number is a multiple of the results of a tile.
pub(super) const PART: usize = 480;

/// An output row, or adjacent results of an output row. Dims with one element may have arbitrary
/// strides, so addresses are computed with wrapping arithmetic.
pub(super) struct Line<'a> {
    pub c: &'a Convolution,
    pub s: &'a Sizes,
    pub batch: usize,
    pub z: usize,
    pub y: usize,
    /// The range of positions of the results in the output row.
    pub xs: Range<usize>,
}

/// The number of parts into which the output rows of all images are divided.
pub(super) fn parts(s: &Sizes) -> usize {
    s.batch * s.output[0] * s.output[1] * s.output[2].div_ceil(PART)
}

impl<'a> Line<'a> {
    /// Returns the output row with index `index` among the output rows of all images.
    pub fn nth(c: &'a Convolution, s: &'a Sizes, index: usize) -> Line<'a> {
        let lines = s.output[0] * s.output[1];
        let (batch, line) = (index / lines, index % lines);
        Line { c, s, batch, z: line / s.output[1], y: line % s.output[1], xs: 0..s.output[2] }
    }

    /// Returns the part with index `index` among the parts of all output rows ([`parts`]).
    pub fn nth_part(c: &'a Convolution, s: &'a Sizes, index: usize) -> Line<'a> {
        let count = s.output[2].div_ceil(PART);
        let xs = even_part(s.output[2], 1, index % count, count);
        Line { xs, ..Line::nth(c, s, index / count) }
    }

    /// The address of the result at position `x`, for filter 0.
    pub fn out(&self, x: usize) -> *mut f32 {
        let o = &self.c.out;
        o.data.wrapping_offset(o.offset(self.batch, [self.z, self.y, x]))
    }

    /// Returns the offset, along dim `d`, of the input for filter tap 0 of the result at
    /// `position`, in elements. It may be outside of the input.
    pub fn input_offset(&self, d: usize, position: usize) -> isize {
        let input = position as i64 * self.s.stride[d] as i64 - self.s.before[d] as i64;
        input.wrapping_mul(self.c.x.pixel[d]) as isize
    }

    /// Returns the address of the input for filter tap 0 and channel 0 of the result at position
    /// `x`. It may be outside of the input.
    pub fn input_address(&self, x: usize) -> *const f32 {
        let image = (self.batch as i64).wrapping_mul(self.c.x.batch) as isize;
        let dims =
            [self.input_offset(0, self.z), self.input_offset(1, self.y), self.input_offset(2, x)];
        self.c.x.data.wrapping_offset(dims.into_iter().fold(image, isize::wrapping_add))
    }

    /// Returns the distance, in elements, between the inputs of adjacent filter taps along dim `d`.
    pub fn tap_stride(&self, d: usize) -> isize {
        (self.s.dilation[d] as i64).wrapping_mul(self.c.x.pixel[d]) as isize
    }

    /// Returns the distance, in elements, from the input of filter tap 0 to the input of the tap
    /// `tap`.
    pub fn tap_offset(&self, tap: [usize; 3]) -> isize {
        let dims = (0..3).map(|d| (tap[d] as isize).wrapping_mul(self.tap_stride(d)));
        dims.fold(0, isize::wrapping_add)
    }

    /// Returns the distance, in elements, between the inputs of adjacent results, for the same
    /// filter tap.
    pub fn input_step(&self) -> isize {
        (self.s.stride[2] as isize).wrapping_mul(self.c.x.pixel[2] as isize)
    }

    /// Returns the epilogue of this output row (bias, residual, clip), if it can be applied to sums
    /// in registers; otherwise `None`.
    pub fn clip(&self) -> Option<TileEpilogue> {
        let clip = self.c.epilogue.as_ref().and_then(ClipEpilogue::of);
        clip.map(|clip| clip.at(self.position()))
    }

    /// Returns the position of the output row's first result for the epilogue, which numbers the
    /// pixels of an image as rows and the filters as columns.
    fn position(&self) -> Position {
        let s = self.s;
        let row = (self.z * s.output[1] + self.y) * s.output[2] + self.xs.start;
        Position { batch: self.batch, row, column: 0 }
    }

    /// Applies the epilogue of the convolution to the results of this output row, for all filters.
    ///
    /// # Safety
    /// The machine has `isa`. The sums are complete, and no other thread accesses them. The operands of the epilogue are valid.
    pub unsafe fn finish(&self, isa: Isa) {
        let Some(epilogue) = &self.c.epilogue else { return };
        let tile = EpilogueTile {
            data: self.out(self.xs.start),
            row_stride: self.c.out.pixel[2] as isize,
            rows: self.xs.len(),
            columns: self.s.filters,
            position: self.position(),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { epilogue.finish(isa, &tile) };
    }
}

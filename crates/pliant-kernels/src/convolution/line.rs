//! A part of a line of results of a convolution whose input and results have channels last, and whose padding is skipped.

use std::ops::Range;

use super::Convolution;
use super::shape::Sizes;
use crate::epilogue::{ClipEpilogue, EpilogueTile, Position, TileEpilogue};
use crate::product::parallel::even_part;
use pliant_machine::isa::Isa;

/// Maximum number of results of a part of a line, so that threads share long lines: a multiple of the results of a tile.
pub(super) const PART: usize = 480;

/// Results along a line. Strides of dims with one element may be any numbers, so that addresses wrap.
pub(super) struct Line<'a> {
    pub c: &'a Convolution,
    pub s: &'a Sizes,
    pub batch: usize,
    pub z: usize,
    pub y: usize,
    pub along: Range<usize>,
}

/// The number of parts of all lines.
pub(super) fn parts(s: &Sizes) -> usize {
    s.batch * s.output[0] * s.output[1] * s.output[2].div_ceil(PART)
}

impl<'a> Line<'a> {
    /// The line with this index among the lines of all images.
    pub fn of(c: &'a Convolution, s: &'a Sizes, index: usize) -> Line<'a> {
        let (batch, at) =
            (index / (s.output[0] * s.output[1]), index % (s.output[0] * s.output[1]));
        Line { c, s, batch, z: at / s.output[1], y: at % s.output[1], along: 0..s.output[2] }
    }

    /// The part with this index among those of all lines ([`parts`]).
    pub fn part_of(c: &'a Convolution, s: &'a Sizes, index: usize) -> Line<'a> {
        let count = s.output[2].div_ceil(PART);
        let along = even_part(s.output[2], 1, index % count, count);
        Line { along, ..Line::of(c, s, index / count) }
    }

    /// The address of a pixel's results.
    pub fn out(&self, x: usize) -> *mut f32 {
        let o = &self.c.out;
        o.data.wrapping_offset(o.offset(self.batch, [self.z, self.y, x]))
    }

    /// The offset of the input of tap 0 of result `at` along a dim, which may be outside of the input.
    pub fn input(&self, d: usize, at: usize) -> isize {
        let place = at as i64 * self.s.stride[d] as i64 - self.s.before[d] as i64;
        place.wrapping_mul(self.c.x.pixel[d]) as isize
    }

    /// The address of the input of tap 0 of result `x`, channel 0, which may be outside of the input.
    pub fn first_input(&self, x: usize) -> *const f32 {
        let image = (self.batch as i64).wrapping_mul(self.c.x.batch) as isize;
        let dims = [self.input(0, self.z), self.input(1, self.y), self.input(2, x)];
        self.c.x.data.wrapping_offset(dims.into_iter().fold(image, isize::wrapping_add))
    }

    /// The distance between the inputs of adjacent taps of a dim.
    pub fn next_tap(&self, d: usize) -> isize {
        (self.s.dilation[d] as i64).wrapping_mul(self.c.x.pixel[d]) as isize
    }

    /// The distance between the inputs of a tap and of tap 0.
    pub fn to_tap(&self, tap: [usize; 3]) -> isize {
        let dims = (0..3).map(|d| (tap[d] as isize).wrapping_mul(self.next_tap(d)));
        dims.fold(0, isize::wrapping_add)
    }

    /// The distance between the inputs of adjacent results.
    pub fn next_result(&self) -> isize {
        (self.s.stride[2] as isize).wrapping_mul(self.c.x.pixel[2] as isize)
    }

    /// The epilogue of this line, if kernels can apply it to sums in registers.
    pub fn clip(&self) -> Option<TileEpilogue> {
        let clip = self.c.epilogue.as_ref().and_then(ClipEpilogue::of);
        clip.map(|clip| clip.at(self.position()))
    }

    /// The position of the first result.
    fn position(&self) -> Position {
        let s = self.s;
        let row = (self.z * s.output[1] + self.y) * s.output[2] + self.along.start;
        Position { batch: self.batch, row, column: 0 }
    }

    /// Finishes the results of all filters.
    ///
    /// # Safety
    /// The machine has `isa`. The results are complete, and not accessed by others; the operands of
    /// the epilogue are valid.
    pub unsafe fn finish(&self, isa: Isa) {
        let Some(epilogue) = &self.c.epilogue else { return };
        let tile = EpilogueTile {
            data: self.out(self.along.start),
            row_stride: self.c.out.pixel[2] as isize,
            rows: self.along.len(),
            columns: self.s.filters,
            position: self.position(),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { epilogue.finish(isa, &tile) };
    }
}

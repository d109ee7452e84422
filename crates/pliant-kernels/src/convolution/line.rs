//! A line of results of a convolution whose input and results have channels last, and whose padding is skipped.

use super::Convolution;
use super::shape::Sizes;
use crate::epilogue::{Epilogue, Place, finish};

/// A line of results.
pub(super) struct Line<'a> {
    pub c: &'a Convolution,
    pub s: &'a Sizes,
    pub batch: usize,
    pub z: usize,
    pub y: usize,
}

impl<'a> Line<'a> {
    /// The line with this index among the lines of all images.
    pub fn of(c: &'a Convolution, s: &'a Sizes, index: usize) -> Line<'a> {
        let (batch, at) =
            (index / (s.output[0] * s.output[1]), index % (s.output[0] * s.output[1]));
        Line { c, s, batch, z: at / s.output[1], y: at % s.output[1] }
    }

    /// The address of a pixel's results.
    pub fn out(&self, x: usize) -> *mut f32 {
        let o = &self.c.out;
        o.data.wrapping_offset(o.offset(self.batch, [self.z, self.y, x]))
    }

    /// The offset of the input of tap 0 of result `at` along a dim, which may be outside of the input.
    pub fn input(&self, d: usize, at: usize) -> isize {
        let place = at as i64 * self.s.stride[d] as i64 - self.s.before[d] as i64;
        (place * self.c.x.pixel[d]) as isize
    }

    /// The address of the input of tap 0 of result `x`, channel 0, which may be outside of the input.
    pub fn first_input(&self, x: usize) -> *const f32 {
        let image = (self.batch as i64 * self.c.x.batch) as isize;
        let offset = image + self.input(0, self.z) + self.input(1, self.y) + self.input(2, x);
        self.c.x.data.wrapping_offset(offset)
    }

    /// The distance between the inputs of adjacent taps of a dim.
    pub fn next_tap(&self, d: usize) -> isize {
        (self.s.dilation[d] as i64 * self.c.x.pixel[d]) as isize
    }

    /// The distance between the inputs of adjacent results.
    pub fn next_result(&self) -> isize {
        self.s.stride[2] as isize * self.c.x.pixel[2] as isize
    }

    /// Finishes the results of all filters. Returns a kernel status.
    ///
    /// # Safety
    /// The results are complete, and not accessed by others; the epilogue accepts its operands.
    pub unsafe fn finish(&self, epilogue: Option<&Epilogue>) -> i64 {
        let (s, row) = (self.s, (self.z * self.s.output[1] + self.y) * self.s.output[2]);
        let place = Place { batch: self.batch, row, column: 0 };
        let size = (s.output[2], s.filters);
        // SAFETY: guaranteed by the caller.
        unsafe { finish(epilogue, self.out(0), self.c.out.pixel[2] as isize, size, place) }
    }
}

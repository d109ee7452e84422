//! im2col: copies the inputs under the filter (the patch) to a row of a matrix, for each result.

use std::ops::Range;

use crate::convolution::shape_and_strides::Sizes;
use crate::simd::{Lanes, for_isa};
use pliant_machine::isa::Isa;

/// The input of one group of a convolution, from which im2col copies patches. A patch consists of
/// the inputs under the filter for one result.
pub(super) struct Patches<'a> {
    s: &'a Sizes,
    /// The address of the first pixel's element for the group's first channel.
    x: *const u8,
    /// The 8-bit integer to store for padding: the zero point of the input.
    zero: u8,
    /// The number of channels of the group.
    group_channels: usize,
    /// Whether the inputs under a filter row are contiguous in memory.
    rows_are_contiguous: bool,
}

impl<'a> Patches<'a> {
    pub fn new(x: *const u8, s: &'a Sizes, group: usize, zero: u8) -> Patches<'a> {
        let group_channels = s.group_channels();
        let rows_are_contiguous = s.groups == 1 && s.dilation[2] == 1;
        Patches {
            s,
            x: x.wrapping_add(group * group_channels),
            zero,
            group_channels,
            rows_are_contiguous,
        }
    }

    /// Copies the patch (the inputs under the filter) of each result in a range to one row of a
    /// matrix. The rows are `row_stride` bytes apart. The results of all images are numbered
    /// consecutively.
    ///
    /// # Safety
    /// The machine has `isa`; the input is readable, and `to` has room for the rows.
    pub unsafe fn copy(&self, isa: Isa, results: Range<usize>, (to, row_stride): (*mut u8, usize)) {
        if self.group_channels == 0 {
            // There may be any number of taps, so return early.
            return;
        }
        let rows = (to, row_stride);
        let run =
            for_isa!(isa, copy(p: &Patches<'_>, results: Range<usize>, rows: (*mut u8, usize)));
        // SAFETY: guaranteed by the caller.
        unsafe { run.0(self, results, rows) }
    }

    /// Copies the inputs under one filter row to `to`, for the result at `x` in its output row.
    /// `line` is the input row.
    ///
    /// # Safety
    /// The conditions of [`Patches::copy`] hold.
    #[inline(always)]
    unsafe fn row(&self, line: *const u8, x: usize, to: *mut u8) {
        let (s, group_channels) = (self.s, self.group_channels);
        let (first, taps) = (x * s.stride[2], s.kernel[2]);
        let (before, after) = (s.before[2], s.before[2] + s.input[2]);
        // SAFETY: guaranteed by the caller; all reads are inside the line.
        unsafe {
            if self.rows_are_contiguous {
                let start = before.saturating_sub(first).min(taps);
                let end = after.saturating_sub(first).min(taps).max(start);
                if start > 0 {
                    to.write_bytes(self.zero, start * group_channels);
                }
                if end > start {
                    let from = line.add((first + start - before) * group_channels);
                    copy_bytes(
                        from,
                        to.add(start * group_channels),
                        (end - start) * group_channels,
                    );
                }
                if taps > end {
                    to.add(end * group_channels)
                        .write_bytes(self.zero, (taps - end) * group_channels);
                }
                return;
            }
            for tap in 0..taps {
                let (at, to) = (first + tap * s.dilation[2], to.add(tap * group_channels));
                if (before..after).contains(&at) {
                    copy_bytes(line.add((at - before) * s.channels), to, group_channels);
                } else {
                    to.write_bytes(self.zero, group_channels);
                }
            }
        }
    }
}

/// Implements [`Patches::copy`] for the instructions of `L`: copies the inputs under the filter, for each result of a range, to one
/// row of a matrix.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The conditions of
/// [`Patches::copy`] hold.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
unsafe fn copy<L: Lanes<Elem = f32>>(
    p: &Patches<'_>,
    results: Range<usize>,
    (to, row_stride): (*mut u8, usize),
) {
    let s = p.s;
    let [_, height, width] = s.output;
    let input_index = |at: usize, d: usize| at.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let bytes = s.kernel[2] * p.group_channels;
    for (index, result) in results.enumerate() {
        let (line, x) = (result / width, result % width);
        let (plane, y) = (line / height, line % height);
        let (batch, z) = (plane / s.output[0], plane % s.output[0]);
        let mut to = to.wrapping_add(index * row_stride);
        for kz in 0..s.kernel[0] {
            let z = input_index(z * s.stride[0] + kz * s.dilation[0], 0);
            for ky in 0..s.kernel[1] {
                let y = input_index(y * s.stride[1] + ky * s.dilation[1], 1);
                // SAFETY: guaranteed by the caller; the line is one of the input.
                unsafe {
                    if let (Some(z), Some(y)) = (z, y) {
                        let line = ((batch * s.input[0] + z) * s.input[1] + y) * s.input[2];
                        p.row(p.x.wrapping_add(line * s.channels), x, to);
                    } else {
                        to.write_bytes(p.zero, bytes);
                    }
                }
                to = to.wrapping_add(bytes);
            }
        }
    }
}

/// Copies a few bytes without a function call.
///
/// # Safety
/// The bytes are readable and writable, and do not overlap.
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match len {
            64.. => chunks::<64>(from, to, len),
            32.. => chunks::<32>(from, to, len),
            16.. => chunks::<16>(from, to, len),
            8.. => chunks::<8>(from, to, len),
            4.. => chunks::<4>(from, to, len),
            _ => {
                for i in 0..len {
                    to.add(i).write(*from.add(i));
                }
            }
        }
    }
}

/// Copies `len` bytes (at least `N`) in chunks of `N` bytes. The last chunk may overlap the
/// previous chunk.
///
/// # Safety
/// The conditions of [`copy_bytes`] hold.
#[inline(always)]
unsafe fn chunks<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    let copy = |at: usize| unsafe {
        to.add(at)
            .cast::<[u8; N]>()
            .write_unaligned(from.add(at).cast::<[u8; N]>().read_unaligned());
    };
    (0..len - N).step_by(N).for_each(copy);
    copy(len - N);
}

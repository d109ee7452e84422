//! Pads inputs with zeros and moves channels last, before the tiles are computed.

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::shape::Sizes;
use super::{Convolution, Image};
use crate::product::Element;
use crate::product::share::share;
use crate::rules::convolution::copied_unit;
use pliant_machine::isa::Isa;

/// Copies all images into `padded`, line by line.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the images do not overlap.
pub(super) unsafe fn make(
    isa: Isa,
    runtime: &KernelRuntime,
    c: &Convolution,
    s: &Sizes,
    padded: &Image<*const f32>,
) -> i64 {
    let lines = s.padded[0] * s.padded[1];
    let line = |index: usize| {
        let (batch, at) = (index / lines, index % lines);
        let (z, y) = (at / s.padded[1], at % s.padded[1]);
        let to = padded.data.cast_mut().wrapping_offset(padded.offset(batch, [z, y, 0]));
        // SAFETY: guaranteed by the caller; each line is one piece's.
        unsafe { one(isa, c, s, to, batch, [z, y]) };
        STATUS_OK
    };
    let units = s.padded[2] * s.channels / copied_unit();
    // SAFETY: guaranteed by the caller.
    unsafe { share(runtime, s.batch * lines, units, &line) }
}

/// One line.
///
/// # Safety
/// As for [`make`].
unsafe fn one(
    isa: Isa,
    c: &Convolution,
    s: &Sizes,
    to: *mut f32,
    batch: usize,
    [z, y]: [usize; 2],
) {
    let inside = |at: usize, d: usize| at.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let all = s.padded[2] * s.channels;
    let (Some(z), Some(y)) = (inside(z, 0), inside(y, 1)) else {
        // SAFETY: guaranteed by the caller.
        unsafe { to.write_bytes(0, all) };
        return;
    };
    let before = s.before[2].min(s.padded[2]);
    let count = s.input[2].min(s.padded[2] - before);
    let from = c.x.data.wrapping_offset(c.x.offset(batch, [z, y, 0]));
    // SAFETY: guaranteed by the caller; the parts of the line are disjoint.
    unsafe {
        to.write_bytes(0, before * s.channels);
        to.add((before + count) * s.channels).write_bytes(0, all - (before + count) * s.channels);
        let to = to.add(before * s.channels);
        let (pixel, channel) = (c.x.pixel[2] as isize, c.x.channel as isize);
        if channel == 1 && pixel == s.channels as isize {
            std::ptr::copy_nonoverlapping(from, to, count * s.channels);
        } else if pixel == 1 {
            let to = (to, s.channels as isize);
            f32::kernels(isa).turn((from, channel), to, s.channels, count);
        } else {
            for p in 0..count {
                for q in 0..s.channels {
                    let x = from.offset(p as isize * pixel + q as isize * channel);
                    to.add(p * s.channels + q).write(x.read_unaligned());
                }
            }
        }
    }
}

//! Copies inputs with channels first to padded images with channels last, as input of the implicit
//! GEMM.

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::shape_and_strides::Sizes;
use super::{Convolution, Image};
use crate::algorithm_selection::partition::copied_unit;
use crate::matmul::Element;
use crate::matmul::work_partition::parallel_for;
use pliant_machine::isa::Isa;

/// Copies all input images to `padded`, row by row, in parallel. Returns a kernel status: 0 on
/// success.
///
/// # Safety
/// The machine has `isa`. All elements of the input and of `padded` are valid, and the two do not
/// overlap.
pub(super) unsafe fn copy_padded(
    isa: Isa,
    runtime: &KernelRuntime,
    c: &Convolution,
    s: &Sizes,
    padded: &Image<*const f32>,
) -> i64 {
    let lines = s.padded[0] * s.padded[1];
    let line = |index: usize| {
        let (batch, line) = (index / lines, index % lines);
        let (z, y) = (line / s.padded[1], line % s.padded[1]);
        let to = padded.data.cast_mut().wrapping_offset(padded.offset(batch, [z, y, 0]));
        // SAFETY: guaranteed by the caller; each piece writes another line.
        unsafe { copy_line(isa, c, s, to, batch, [z, y]) };
        STATUS_OK
    };
    let micros = s.padded[2] * s.channels / copied_unit();
    // SAFETY: guaranteed by the caller.
    unsafe { parallel_for(runtime, s.batch * lines, micros, &line) }
}

/// Copies one row of an image to `to`, with padding.
///
/// # Safety
/// The conditions of [`copy_padded`] hold.
unsafe fn copy_line(
    isa: Isa,
    c: &Convolution,
    s: &Sizes,
    to: *mut f32,
    batch: usize,
    [z, y]: [usize; 2],
) {
    let input_position =
        |padded: usize, d: usize| padded.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let line_elements = s.padded[2] * s.channels;
    let (Some(z), Some(y)) = (input_position(z, 0), input_position(y, 1)) else {
        // SAFETY: guaranteed by the caller.
        unsafe { to.write_bytes(0, line_elements) };
        return;
    };
    let before = s.before[2].min(s.padded[2]);
    let count = s.input[2].min(s.padded[2] - before);
    let from = c.x.data.wrapping_offset(c.x.offset(batch, [z, y, 0]));
    // SAFETY: guaranteed by the caller; the parts of the line are disjoint.
    unsafe {
        to.write_bytes(0, before * s.channels);
        let end = (before + count) * s.channels;
        to.add(end).write_bytes(0, line_elements - end);
        let to = to.add(before * s.channels);
        let (pixel, channel) = (c.x.pixel[2] as isize, c.x.channel as isize);
        if channel == 1 && pixel == s.channels as isize {
            std::ptr::copy_nonoverlapping(from, to, count * s.channels);
        } else if pixel == 1 {
            let to = (to, s.channels as isize);
            f32::kernels(isa).transpose((from, channel), to, s.channels, count);
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

//! The inner part of an output row of a depthwise convolution, where all taps are inside the input.
//! Weights stay in registers.
//!
//! The implementation, called a sweep, processes one vector of channels after the other, [`STEP`]
//! results at a time. The last step overlaps the previous step, so that all steps have the same
//! size.
//!
//! [`crate::algorithm_selection::convolution::sweeps`] states when a sweep is faster than the loop
//! of `depthwise`, which loads an input for each tap, with measurements.

use std::ops::Range;

use super::output_line::Line;
use crate::algorithm_selection::convolution::{SWEPT_TAPS as TAPS, sweeps};
use crate::epilogue::TileEpilogue;
use crate::simd::{Lanes, MathLanes};

/// Number of adjacent results of an output row that are computed together, so that they share the loaded inputs.
const STEP: usize = 4;
/// Number of adjacent inputs of an image row from which [`STEP`] adjacent results are computed.
const INPUTS: usize = STEP - 1 + TAPS;

/// Returns the range of results within an output row that [`run`] can compute; empty if [`run`]
/// does not support the filter. `first` and `second` are the ranges of filter taps, in the two
/// outer dims, that are inside the input.
#[inline(always)]
pub(super) fn range(l: &Line<'_>, first: &Range<usize>, second: &Range<usize>) -> Range<usize> {
    let s = l.s;
    let is_swept = sweeps(s.kernel[2], s.stride[2], s.dilation[2]);
    if !is_swept || first.len() != 1 || !matches!(second.len(), 1..=3) {
        return 0..0;
    }
    let low = s.before[2];
    let high = match (s.input[2] + s.before[2]).checked_sub(TAPS) {
        Some(last) => (last + 1).min(s.output[2]),
        None => 0,
    };
    if high >= low.saturating_add(STEP) { low..high } else { 0..0 }
}

/// Computes the results at the positions `xs` of an output row, for all whole vectors of channels.
/// `input` is the address of the input for filter tap 0 of the first result. `z` is the index of
/// the filter tap in the first dim, and `rows` is the range of filter taps in the second dim.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid. `xs` is the result of [`range`].
#[inline(always)]
pub(super) unsafe fn run<L: MathLanes<Elem = f32>>(
    l: &Line<'_>,
    input: *const f32,
    (z, rows): (usize, Range<usize>),
    xs: Range<usize>,
    clip: Option<&TileEpilogue>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match rows.len() {
            1 => sweep_rows::<L, 1>(l, input, (z, rows.start), xs, clip),
            2 => sweep_rows::<L, 2>(l, input, (z, rows.start), xs, clip),
            _ => sweep_rows::<L, 3>(l, input, (z, rows.start), xs, clip),
        }
    }
}

/// Computes the results at the positions `xs` of an output row, for filters of which `ROWS` rows, starting at row `y`, are inside
/// the input. Covers all whole vectors of channels. `z` is the index of the filter tap in the first dim.
///
/// # Safety
/// The conditions of [`run`] hold.
#[inline(always)]
unsafe fn sweep_rows<L: MathLanes<Elem = f32>, const ROWS: usize>(
    l: &Line<'_>,
    input: *const f32,
    (z, y): (usize, usize),
    xs: Range<usize>,
    clip: Option<&TileEpilogue>,
) {
    let (channels, pixel) = (l.s.channels, l.c.x.pixel[2] as isize);
    let next_row = l.tap_stride(1);
    let input =
        input.wrapping_offset(z as isize * l.tap_stride(0)).wrapping_offset(y as isize * next_row);
    let taps = (z * l.s.kernel[1] + y) * TAPS;
    let (out, next_out) = (l.out(xs.start), l.c.out.pixel[2] as isize);
    for channel in (0..channels / L::N * L::N).step_by(L::N) {
        // SAFETY: guaranteed by the caller; steps start where a whole step fits.
        unsafe {
            let mut weights = [[L::zero(); TAPS]; ROWS];
            for (at, weight) in weights.as_flattened_mut().iter_mut().enumerate() {
                *weight = L::load(l.c.weights.wrapping_add((taps + at) * channels + channel));
            }
            let mut done = 0;
            while done < xs.len() {
                let at = done.min(xs.len() - STEP);
                let from = input.wrapping_offset(at as isize * pixel).wrapping_add(channel);
                let sums = step::<L, ROWS>(from, (next_row, pixel), &weights);
                let to = out.wrapping_offset(at as isize * next_out).wrapping_add(channel);
                for p in 0..STEP {
                    let mut sum = sums[p];
                    if let Some(clip) = clip {
                        let at = (xs.start + at + p, channel);
                        sum = clip.apply::<L, true>(sum, at, L::N);
                    }
                    sum.store(to.wrapping_offset(p as isize * next_out));
                }
                done += STEP;
            }
        }
    }
}

/// Returns the sums over `ROWS` filter rows for [`STEP`] adjacent results. `from` is the address of
/// the first input, `next_row` the distance between the inputs of adjacent filter rows, and `pixel`
/// the distance between adjacent pixels.
///
/// # Safety
/// The conditions of [`run`] hold.
#[inline(always)]
unsafe fn step<L: Lanes<Elem = f32>, const ROWS: usize>(
    from: *const f32,
    (next_row, pixel): (isize, isize),
    weights: &[[L; TAPS]; ROWS],
) -> [L; STEP] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [L::zero(); STEP];
        for (row, weights) in weights.iter().enumerate() {
            let line = from.wrapping_offset(row as isize * next_row);
            let mut inputs = [L::zero(); INPUTS];
            for (at, x) in inputs.iter_mut().enumerate() {
                *x = L::load(line.wrapping_offset(at as isize * pixel));
            }
            for (tap, weight) in weights.iter().enumerate() {
                for (p, sum) in sums.iter_mut().enumerate() {
                    *sum = inputs[p + tap].mul_add(*weight, *sum);
                }
            }
        }
        sums
    }
}

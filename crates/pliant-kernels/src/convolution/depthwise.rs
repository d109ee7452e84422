//! Depthwise convolution: vectors of channels, [`STEP`] results along a line at a time.
//!
//! Taps outside of the input are skipped, so the first and last results of a line are computed one
//! by one. For filters of width 3 with stride 1, the inner results are computed by a sweep along
//! the line, one vector of channels after the other (`depthwise_interior`). In a sweep, weights
//! stay in registers, and each input is loaded once for all taps of a filter row. Both
//! implementations sum in the same order.
//!
//! Recipe: direct convolution, without a matrix product. Measured: "depthwise" under "Convolution"
//! in `docs/internals/measurements/convolution.md`.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::output_line::Line;
use super::shape_and_strides::Sizes;
use super::{Convolution, depthwise_interior};
use crate::algorithm_selection::convolution::depthwise_unit;
use crate::epilogue::TileEpilogue;
use crate::matmul::work_partition::parallel_for;
use crate::simd::{MathLanes, for_isa, load};
use pliant_machine::isa::Isa;

/// Number of adjacent results that share each loaded weight.
pub(super) const STEP: usize = 4;

/// Computes a depthwise convolution, one line of results per piece. Input and results have channels last. Returns a kernel
/// status.
///
/// # Safety
/// The machine has `isa`. All elements are valid, and the results overlap no operand.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let lines = s.output[0] * s.output[1];
    let run = for_isa!(isa, compute_line(l: &Line<'_>, clip: Option<TileEpilogue>)).0;
    let piece = |index: usize| {
        let line = Line::nth(c, s, index);
        // SAFETY: guaranteed by the caller; each piece writes another line.
        unsafe {
            let clip = line.clip();
            run(&line, clip);
            if clip.is_none() {
                line.finish(isa);
            }
        }
        STATUS_OK
    };
    let taps: usize = s.kernel.iter().product();
    let micros = taps.saturating_mul(s.output[2]).saturating_mul(s.channels) / depthwise_unit();
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, s.batch * lines, micros, &piece) }
}

/// The parameters for computing some adjacent results along a line, which are the same for all
/// vectors of channels.
struct Step {
    /// For each dim, the range of filter taps that are inside the input.
    taps: [Range<usize>; 3],
    /// The address of the input for filter tap 0 and channel 0 of the first result. It may be
    /// outside of the image.
    input: *const f32,
    /// For each dim, the distance in elements between the inputs of adjacent filter taps.
    tap_stride: [isize; 3],
    /// The distance in elements between the inputs of adjacent results, for the same tap.
    input_step: isize,
    /// The address of the first result, for channel 0, and the distance between results in elements.
    out: (*mut f32, isize),
    /// The position of the first result within the line.
    first: usize,
    /// The epilogue of the line (bias, residual, clip), if it is applied to sums in registers;
    /// otherwise `None`.
    clip: Option<TileEpilogue>,
}

/// Computes a line of results, and applies the epilogue `clip` if it is present.
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn compute_line<L: MathLanes<Elem = f32>>(l: &Line<'_>, clip: Option<TileEpilogue>) {
    let (c, width, all_taps) = (l.c, l.s.output[2], 0..l.s.kernel[2]);
    let image = (l.batch as i64 * c.x.batch) as isize;
    let line = image + l.input_offset(0, l.z) + l.input_offset(1, l.y);
    let (first, second) = (l.s.taps(0, l.z), l.s.taps(1, l.y));
    let swept = depthwise_interior::range(l, &first, &second);
    let whole_channels = l.s.channels / L::N * L::N;
    if !swept.is_empty() {
        let input = c.x.data.wrapping_offset(line + l.input_offset(2, swept.start));
        let taps = (first.start, second.clone());
        // SAFETY: guaranteed by the caller; all taps of these results exist.
        unsafe { depthwise_interior::run::<L>(l, input, taps, swept.clone(), clip.as_ref()) };
    }
    let mut x = 0;
    while x < width {
        let from = if swept.contains(&x) { whole_channels } else { 0 };
        if from == l.s.channels {
            x = swept.end;
            continue;
        }
        let taps = l.s.taps(2, x);
        let is_full_step =
            x + STEP <= width && taps == all_taps && l.s.taps(2, x + STEP - 1) == all_taps;
        let step = Step {
            taps: [first.clone(), second.clone(), taps],
            input: c.x.data.wrapping_offset(line + l.input_offset(2, x)),
            tap_stride: [0, 1, 2].map(|d| l.tap_stride(d)),
            input_step: l.s.stride[2] as isize * c.x.pixel[2] as isize,
            out: (l.out(x), c.out.pixel[2] as isize),
            first: x,
            clip,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if is_full_step {
                compute_pixels::<L, STEP>(l, &step, from);
                x += STEP;
            } else {
                compute_pixels::<L, 1>(l, &step, from);
                x += 1;
            }
        }
    }
}

/// Computes `P` adjacent results that use the same taps, for all channels from `from` on. `from` is
/// a multiple of the vector length.
///
/// # Safety
/// As for [`compute_line`].
#[inline(always)]
unsafe fn compute_pixels<L: MathLanes<Elem = f32>, const P: usize>(
    l: &Line<'_>,
    step: &Step,
    from: usize,
) {
    let channels = l.s.channels;
    let whole_channels = channels / L::N * L::N;
    let has_three_taps = step.taps[2] == (0..3);
    // SAFETY: guaranteed by the caller.
    unsafe {
        for channel in (from..whole_channels).step_by(L::N) {
            if has_three_taps {
                compute_vector::<L, P, 3, true>(l, step, channel, L::N);
            } else {
                compute_vector::<L, P, 0, true>(l, step, channel, L::N);
            }
        }
        if whole_channels < channels {
            compute_vector::<L, P, 0, false>(l, step, whole_channels, channels - whole_channels);
        }
    }
}

/// Computes `P` results for one vector of channels. `TAPS` is the number of taps of a filter row,
/// or 0 if this number is not a compile-time constant. With `WHOLE`, all lanes of the vector are
/// channels; otherwise only the first `count` lanes are.
///
/// # Safety
/// As for [`compute_line`].
#[inline(always)]
unsafe fn compute_vector<
    L: MathLanes<Elem = f32>,
    const P: usize,
    const TAPS: usize,
    const WHOLE: bool,
>(
    l: &Line<'_>,
    step: &Step,
    channel: usize,
    count: usize,
) {
    let ([_, height, width], channels) = (l.s.kernel, l.s.channels);
    let [first, second, third] = &step.taps;
    let input = step.input.wrapping_add(channel);
    // SAFETY: guaranteed by the caller; the taps are inside the input.
    unsafe {
        let mut sums = [L::zero(); P];
        for z in first.clone() {
            let plane = input.wrapping_offset(z as isize * step.tap_stride[0]);
            for y in second.clone() {
                let line = plane.wrapping_offset(y as isize * step.tap_stride[1]);
                let mut from = line.wrapping_offset(third.start as isize * step.tap_stride[2]);
                let at = ((z * height + y) * width + third.start) * channels + channel;
                let mut weights = l.c.weights.wrapping_add(at);
                for _ in 0..if TAPS > 0 { TAPS } else { third.len() } {
                    let weight = load::<L, WHOLE>(weights, count);
                    for (p, sum) in sums.iter_mut().enumerate() {
                        let x = from.wrapping_offset(p as isize * step.input_step);
                        *sum = load::<L, WHOLE>(x, count).mul_add(weight, *sum);
                    }
                    from = from.wrapping_offset(step.tap_stride[2]);
                    weights = weights.wrapping_add(channels);
                }
            }
        }
        for p in 0..sums.len() {
            let mut sum = sums[p];
            if let Some(clip) = &step.clip {
                sum = clip.apply::<L, WHOLE>(sum, (step.first + p, channel), count);
            }
            let to = step.out.0.wrapping_offset(p as isize * step.out.1).add(channel);
            if WHOLE { sum.store(to) } else { sum.store_first(to, count) }
        }
    }
}

//! Depthwise convolution: vectors of channels, [`STEP`] results along a line at a time.
//!
//! Taps outside the input are skipped, so the first and last results of a line are computed one by
//! one. For filters of width 3 with stride 1, the results between them are computed by a sweep
//! along the line, one vector of channels after the other (`sweep`): weights stay in registers, and
//! each input is loaded once for all taps of a row that read it. Both sum in the same order.
//!
//! Recipe: direct convolution, without a matrix product. Measured: "each channel alone" under
//! "Convolution" in `docs/performance.md`.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::line::Line;
use super::shape::Sizes;
use super::{Convolution, sweep};
use crate::epilogue::TileEpilogue;
use crate::lanes::{MathLanes, for_isa, load};
use crate::product::parallel::parallel_for;
use crate::rules::convolution::depthwise_unit;
use pliant_machine::isa::Isa;

/// Number of results that share each weight.
pub(super) const STEP: usize = 4;

/// The convolution; input and results have channels last.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the results overlap no operand.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let lines = s.output[0] * s.output[1];
    let run = for_isa!(isa, whole_line(l: &Line<'_>, clip: Option<TileEpilogue>)).0;
    let piece = |index: usize| {
        let line = Line::of(c, s, index);
        // SAFETY: guaranteed by the caller; each line is one piece's.
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
    let units = taps.saturating_mul(s.output[2]).saturating_mul(s.channels) / depthwise_unit();
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, s.batch * lines, units, &piece) }
}

/// What the results of a step share, computed once for all vectors of channels.
struct Step {
    /// The taps whose inputs exist.
    taps: [Range<usize>; 3],
    /// The input of tap 0 of the first result, channel 0.
    input: *const f32,
    /// The tap strides, for each dim.
    next: [isize; 3],
    /// The distance between the inputs of adjacent results.
    result: isize,
    /// The first result, channel 0, and the stride between results.
    out: (*mut f32, isize),
    /// The position of the first result in the line.
    first: usize,
    /// The epilogue of the line, if it is applied to sums in registers.
    clip: Option<TileEpilogue>,
}

/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn whole_line<L: MathLanes<Elem = f32>>(l: &Line<'_>, clip: Option<TileEpilogue>) {
    let (c, width, all) = (l.c, l.s.output[2], 0..l.s.kernel[2]);
    let image = (l.batch as i64 * c.x.batch) as isize;
    let line = image + l.input(0, l.z) + l.input(1, l.y);
    let (first, second) = (l.s.taps(0, l.z), l.s.taps(1, l.y));
    let swept = sweep::range(l, &first, &second);
    let whole_channels = l.s.channels / L::N * L::N;
    if !swept.is_empty() {
        let input = c.x.data.wrapping_offset(line + l.input(2, swept.start));
        let taps = (first.start, second.clone());
        // SAFETY: guaranteed by the caller; all taps of these results exist.
        unsafe { sweep::run::<L>(l, input, taps, swept.clone(), clip.as_ref()) };
    }
    let mut x = 0;
    while x < width {
        let from = if swept.contains(&x) { whole_channels } else { 0 };
        if from == l.s.channels {
            x = swept.end;
            continue;
        }
        let taps = l.s.taps(2, x);
        let whole = x + STEP <= width && taps == all && l.s.taps(2, x + STEP - 1) == all;
        let step = Step {
            taps: [first.clone(), second.clone(), taps],
            input: c.x.data.wrapping_offset(line + l.input(2, x)),
            next: [0, 1, 2].map(|d| l.next_tap(d)),
            result: l.s.stride[2] as isize * c.x.pixel[2] as isize,
            out: (l.out(x), c.out.pixel[2] as isize),
            first: x,
            clip,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if whole {
                pixels::<L, STEP>(l, &step, from);
                x += STEP;
            } else {
                pixels::<L, 1>(l, &step, from);
                x += 1;
            }
        }
    }
}

/// `P` results for the channels from `from`, which starts a vector; all have the taps of the first.
///
/// # Safety
/// As for [`whole_line`].
#[inline(always)]
unsafe fn pixels<L: MathLanes<Elem = f32>, const P: usize>(l: &Line<'_>, step: &Step, from: usize) {
    let channels = l.s.channels;
    let whole = channels / L::N * L::N;
    let three = step.taps[2] == (0..3);
    // SAFETY: guaranteed by the caller.
    unsafe {
        for channel in (from..whole).step_by(L::N) {
            if three {
                vectors::<L, P, 3, true>(l, step, channel, L::N);
            } else {
                vectors::<L, P, 0, true>(l, step, channel, L::N);
            }
        }
        if whole < channels {
            vectors::<L, P, 0, false>(l, step, whole, channels - whole);
        }
    }
}

/// One vector of channels of `P` results. `TAPS` is the number of taps of a row if it is known at
/// compile time, otherwise 0.
///
/// # Safety
/// As for [`whole_line`].
#[inline(always)]
unsafe fn vectors<
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
            let plane = input.wrapping_offset(z as isize * step.next[0]);
            for y in second.clone() {
                let line = plane.wrapping_offset(y as isize * step.next[1]);
                let mut from = line.wrapping_offset(third.start as isize * step.next[2]);
                let at = ((z * height + y) * width + third.start) * channels + channel;
                let mut weights = l.c.weights.wrapping_add(at);
                for _ in 0..if TAPS > 0 { TAPS } else { third.len() } {
                    let weight = load::<L, WHOLE>(weights, count);
                    for (p, sum) in sums.iter_mut().enumerate() {
                        let x = from.wrapping_offset(p as isize * step.result);
                        *sum = load::<L, WHOLE>(x, count).mul_add(weight, *sum);
                    }
                    from = from.wrapping_offset(step.next[2]);
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

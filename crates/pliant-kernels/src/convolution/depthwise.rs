//! Depthwise convolution: vectors of channels, several results along an output row at a time.
//!
//! Taps outside of the input are skipped. An output row is divided into ranges of results with the
//! same taps inside the input: the inner results, and single results at the borders. Inner results
//! are computed in steps of [`STEP`], which share each loaded weight. The last step overlaps the
//! previous one. Single results are computed for [`VECTORS`] vectors of channels at a time. In both
//! cases there are enough independent sums: a multiply-add takes 4 cycles, and two start per cycle.
//!
//! For filters of width 3 with stride 1, the inner results are computed by a sweep along the output
//! row, one vector of channels after the other (`depthwise_interior`). In a sweep, weights stay in
//! registers, and each input is loaded once for all taps of a filter row. All implementations sum
//! in the same order.
//!
//! Method: direct convolution, without a matrix product. For measurements, see the case "depthwise"
//! under "Convolution" in `docs/internals/measurements/convolution.md`.

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
const STEP: usize = 8;
/// Number of adjacent results in a step of a range that is too short for [`STEP`].
const SHORT_STEP: usize = 4;
/// Number of vectors of channels that are computed together for a single result.
const VECTORS: usize = 4;

/// Computes a depthwise convolution. Each piece of work is one output row. Input and results have
/// channels last. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. All elements of the operands and the results are valid, and the results
/// overlap no operand.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let lines = s.output[0] * s.output[1];
    let run = for_isa!(isa, compute_line(l: &Line<'_>, clip: Option<&TileEpilogue>)).0;
    let piece = |index: usize| {
        let line = Line::nth(c, s, index);
        // SAFETY: guaranteed by the caller; each piece writes another line.
        unsafe {
            let clip = line.clip();
            run(&line, clip.as_ref());
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

/// Adjacent results of an output row that use the same filter taps.
struct SameTaps<'a> {
    line: &'a Line<'a>,
    /// The positions of the results in the output row.
    xs: Range<usize>,
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
    /// The epilogue of the output row (bias, residual, clip), if it is applied to sums in
    /// registers; otherwise `None`.
    clip: Option<&'a TileEpilogue>,
}

/// Computes an output row, and applies the epilogue `clip` if it is present.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
unsafe fn compute_line<L: MathLanes<Elem = f32>>(l: &Line<'_>, clip: Option<&TileEpilogue>) {
    let (c, width) = (l.c, l.s.output[2]);
    let image = (l.batch as i64 * c.x.batch) as isize;
    let line = image + l.input_offset(0, l.z) + l.input_offset(1, l.y);
    let (first, second) = (l.s.taps(0, l.z), l.s.taps(1, l.y));
    let swept = depthwise_interior::range(l, &first, &second);
    if !swept.is_empty() {
        let input = c.x.data.wrapping_offset(line + l.input_offset(2, swept.start));
        let taps = (first.start, second.clone());
        // SAFETY: guaranteed by the caller; all taps of these results exist.
        unsafe { depthwise_interior::run::<L>(l, input, taps, swept.clone(), clip) };
    }
    let mut x = 0;
    while x < width {
        let taps = l.s.taps(2, x);
        let end = l.s.same_taps_end(x, &taps, width);
        // A sweep has computed the whole vectors of channels.
        let (end, first_channel) = match () {
            () if swept.contains(&x) => (end.min(swept.end), l.s.channels / L::N * L::N),
            () if x < swept.start => (end.min(swept.start), 0),
            () => (end, 0),
        };
        let results = SameTaps {
            line: l,
            xs: x..end,
            taps: [first.clone(), second.clone(), taps],
            input: c.x.data.wrapping_offset(line + l.input_offset(2, x)),
            tap_stride: [0, 1, 2].map(|d| l.tap_stride(d)),
            input_step: l.s.stride[2] as isize * c.x.pixel[2] as isize,
            out: (l.out(x), c.out.pixel[2] as isize),
            clip,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match end - x {
                STEP.. => results.compute::<L, STEP, 1>(first_channel),
                SHORT_STEP.. => results.compute::<L, SHORT_STEP, 1>(first_channel),
                _ => results.compute::<L, 1, VECTORS>(first_channel),
            }
        }
        x = end;
    }
}

impl SameTaps<'_> {
    /// Computes the results in steps of `P` adjacent results, for the channels from `from` on, with `C` vectors of channels at a
    /// time. There are at least `P` results. `from` is a multiple of the vector length. The outer loop iterates over the channels,
    /// so that inputs that several results share stay in the first-level cache.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn compute<L: MathLanes<Elem = f32>, const P: usize, const C: usize>(
        &self,
        from: usize,
    ) {
        let channels = self.line.s.channels;
        if from == channels {
            return;
        }
        let mut channel = from;
        // SAFETY: guaranteed by the caller.
        unsafe {
            while channel + C * L::N <= channels {
                self.compute_channels::<L, P, C, true>(channel, L::N);
                channel += C * L::N;
            }
            while channel + L::N <= channels {
                self.compute_channels::<L, P, 1, true>(channel, L::N);
                channel += L::N;
            }
            if channel < channels {
                self.compute_channels::<L, P, 1, false>(channel, channels - channel);
            }
        }
    }

    /// Computes the results in steps of `P` for `C` vectors of channels. With `WHOLE`, all lanes of
    /// a vector are channels; otherwise only the first `count` lanes are.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn compute_channels<
        L: MathLanes<Elem = f32>,
        const P: usize,
        const C: usize,
        const WHOLE: bool,
    >(
        &self,
        channel: usize,
        count: usize,
    ) {
        let mut done = 0;
        while done < self.xs.len() {
            let first = done.min(self.xs.len() - P);
            // SAFETY: guaranteed by the caller.
            unsafe { self.compute_tile::<L, P, C, WHOLE>(first, channel, count) };
            done += P;
        }
    }

    /// Computes `P` adjacent results from index `first` on, for `C` vectors of channels from `channel` on. If `WHOLE` is set, all
    /// lanes of a vector are channels; otherwise only the first `count` lanes are.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn compute_tile<
        L: MathLanes<Elem = f32>,
        const P: usize,
        const C: usize,
        const WHOLE: bool,
    >(
        &self,
        first: usize,
        channel: usize,
        count: usize,
    ) {
        let l = self.line;
        let ([_, height, width], channels) = (l.s.kernel, l.s.channels);
        let [planes, rows, columns] = &self.taps;
        let input = self.input.wrapping_offset(first as isize * self.input_step);
        let input = input.wrapping_add(channel);
        // SAFETY: guaranteed by the caller; the taps are inside the input.
        unsafe {
            let mut sums = [[L::zero(); P]; C];
            for z in planes.clone() {
                let plane = input.wrapping_offset(z as isize * self.tap_stride[0]);
                for y in rows.clone() {
                    let line = plane.wrapping_offset(y as isize * self.tap_stride[1]);
                    let mut from =
                        line.wrapping_offset(columns.start as isize * self.tap_stride[2]);
                    let at = ((z * height + y) * width + columns.start) * channels + channel;
                    let mut weights = l.c.weights.wrapping_add(at);
                    for _ in 0..columns.len() {
                        for (c, sums) in sums.iter_mut().enumerate() {
                            let weight = load::<L, WHOLE>(weights.wrapping_add(c * L::N), count);
                            for (p, sum) in sums.iter_mut().enumerate() {
                                let x = from.wrapping_offset(p as isize * self.input_step);
                                let x = load::<L, WHOLE>(x.wrapping_add(c * L::N), count);
                                *sum = x.mul_add(weight, *sum);
                            }
                        }
                        from = from.wrapping_offset(self.tap_stride[2]);
                        weights = weights.wrapping_add(channels);
                    }
                }
            }
            for (c, sums) in sums.iter().enumerate() {
                let channel = channel + c * L::N;
                for (p, &sum) in sums.iter().enumerate() {
                    let sum = match self.clip {
                        Some(clip) => {
                            let at = (self.xs.start + first + p, channel);
                            clip.apply::<L, WHOLE>(sum, at, count)
                        }
                        None => sum,
                    };
                    let to = self.out.0.wrapping_offset((first + p) as isize * self.out.1);
                    let to = to.wrapping_add(channel);
                    if WHOLE { sum.store(to) } else { sum.store_first(to, count) }
                }
            }
        }
    }
}

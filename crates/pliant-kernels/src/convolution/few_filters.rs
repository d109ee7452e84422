//! Convolution by one to four filters: dot products of vectors of channels, and sums of the lanes at the end.
//!
//! A panel has 16 filters, so the tiles of the other kernels would multiply by zeros for most of them. Here, each vector of
//! inputs is loaded once for all filters and each vector of weights for [`PIXELS`] results, whose sums stay in registers over all
//! taps and channels. Inputs are read in place: taps outside of the input are skipped.
//!
//! Recipe: the tiles of a product whose inner dimension is in the lanes. Measured: "Convolution" in
//! `docs/performance.md`.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_machine::isa::Isa;

use super::Convolution;
use super::line::{Line, PART, parts};
use super::shape::Sizes;
use crate::lanes::for_isa;
use crate::lanes::reduce::Reduce;
use crate::product::parallel::{parallel_for, unit_work};
use crate::rules::convolution::{FEW_FILTERS, few_filters_pay};

/// Results along a line that share each vector of weights.
const PIXELS: usize = 4;

/// Whether this kernel computes a convolution.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    let last = c.x.channel == 1 && c.out.channel == 1;
    last && s.groups == 1 && few_filters_pay(s.filters, s.channels, s.kernel.iter().product())
}

/// The argument of the kernels.
struct Work<'a> {
    line: Line<'a>,
    /// The weights `[filters, taps, channels]`.
    weights: *const f32,
}

/// Some results along a line that have the same taps.
struct Results<'a> {
    taps: [Range<usize>; 3],
    /// The address that tap 0 of the first result reads, channel 0. It may be outside of the image.
    input: *const f32,
    out: *mut f32,
    work: &'a Work<'a>,
}

/// The convolution; input and results have channels last.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the results overlap no operand. [`applies`] holds.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let taps: usize = s.kernel.iter().product();
    let depth = taps * s.channels;
    // SAFETY: the runtime is valid; the block is freed below, on this thread.
    let block = unsafe { (runtime.alloc_workspace)((s.filters * depth * size_of::<f32>()) as u64) };
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let weights = block.cast::<f32>();
    // SAFETY: the block has room for all weights.
    unsafe { unpack(c, s, weights) };
    let run = for_isa!(isa, whole_line(work: &Work<'_>)).0;
    let piece = |index: usize| {
        let work = Work { line: Line::part_of(c, s, index), weights };
        // SAFETY: guaranteed by the caller; each line is one piece's.
        unsafe {
            run(&work);
            work.line.finish(isa);
        }
        STATUS_OK
    };
    let each = depth.saturating_mul(s.output[2].min(PART)).saturating_mul(s.filters);
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    let status = unsafe { parallel_for(runtime, parts(s), each / unit_work(), &piece) };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}

/// Copies the taps that are used from a panel, filter by filter.
///
/// # Safety
/// The panel is readable, and `to` has room for the weights.
unsafe fn unpack(c: &Convolution, s: &Sizes, to: *mut f32) {
    let (width, [depth, height, row]) = (c.width as usize, s.kernel);
    let each = depth * height * row * s.channels;
    let mut at = 0;
    for z in 0..depth {
        for y in 0..height {
            for x in 0..row {
                let first = s.weight_row([z, y, x]);
                for channel in 0..s.channels {
                    for filter in 0..s.filters {
                        // SAFETY: guaranteed by the caller.
                        unsafe {
                            let weight = c.weights.add((first + channel) * width + filter);
                            to.add(filter * each + at).write(*weight);
                        }
                    }
                    at += 1;
                }
            }
        }
    }
}

/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn whole_line<L: Reduce>(work: &Work<'_>) {
    let (line, s) = (&work.line, work.line.s);
    let mut x = line.along.start;
    while x < line.along.end {
        let taps = s.taps(2, x);
        let whole = x + PIXELS <= line.along.end && s.taps(2, x + PIXELS - 1) == taps;
        let results = Results {
            taps: [s.taps(0, line.z), s.taps(1, line.y), taps],
            input: line.first_input(x),
            out: line.out(x),
            work,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if whole {
                results.compute::<L, PIXELS>();
            } else {
                results.compute::<L, 1>();
            }
        }
        x += if whole { PIXELS } else { 1 };
    }
}

impl Results<'_> {
    /// # Safety
    /// As for [`whole_line`].
    #[inline(always)]
    unsafe fn compute<L: Reduce, const P: usize>(&self) {
        const { assert!(FEW_FILTERS == 4, "the arms below") };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.work.line.s.filters {
                1 => self.tile::<L, P, 1>(),
                2 => self.tile::<L, P, 2>(),
                3 => self.tile::<L, P, 3>(),
                _ => self.tile::<L, P, 4>(),
            }
        }
    }

    /// `P` results of `F` filters.
    ///
    /// # Safety
    /// As for [`whole_line`].
    #[inline(always)]
    unsafe fn tile<L: Reduce, const P: usize, const F: usize>(&self) {
        let (l, s) = (&self.work.line, self.work.line.s);
        let each = s.kernel.iter().product::<usize>() * s.channels;
        let result = l.next_result();
        let [first, second, third] = &self.taps;
        // Taps of a row with adjacent inputs are one run.
        let adjacent = l.next_tap(2) == s.channels as isize;
        let (runs, length) = match adjacent {
            true => (usize::from(!third.is_empty()), third.len() * s.channels),
            false => (third.len(), s.channels),
        };
        // SAFETY: guaranteed by the caller; the taps are inside the input.
        unsafe {
            let mut sums = [[L::zero(); F]; P];
            for z in first.clone() {
                for y in second.clone() {
                    for run in 0..runs {
                        let x = third.start + run;
                        let input = self.input.wrapping_offset(l.to_tap([z, y, x]));
                        let tap = (z * s.kernel[1] + y) * s.kernel[2] + x;
                        let weights = self.work.weights.wrapping_add(tap * s.channels);
                        let (inputs, weights) = ((input, result), (weights, each));
                        add_run::<L, P, F>(&mut sums, inputs, weights, length);
                    }
                }
            }
            for p in 0..P {
                let out = self.out.wrapping_offset(p as isize * l.c.out.pixel[2] as isize);
                for f in 0..F {
                    out.add(f).write(sums[p][f].sum_lanes());
                }
            }
        }
    }
}

/// Adds the products of a run of adjacent inputs of each result and of adjacent weights of each filter, which are `result`
/// and `each` elements apart.
///
/// # Safety
/// As for [`whole_line`].
#[inline(always)]
unsafe fn add_run<L: Reduce, const P: usize, const F: usize>(
    sums: &mut [[L; F]; P],
    (input, result): (*const f32, isize),
    (weights, each): (*const f32, usize),
    length: usize,
) {
    let whole = length / L::N * L::N;
    // SAFETY: guaranteed by the caller.
    unsafe {
        for k in (0..whole).step_by(L::N) {
            let mut w = [L::zero(); F];
            for f in 0..F {
                w[f] = L::load(weights.add(f * each + k));
            }
            for p in 0..P {
                let x = L::load(input.offset(p as isize * result).add(k));
                for f in 0..F {
                    sums[p][f] = x.mul_add(w[f], sums[p][f]);
                }
            }
        }
        if whole < length {
            let rest = length - whole;
            let mut w = [L::zero(); F];
            for f in 0..F {
                w[f] = L::load_first(weights.add(f * each + whole), rest);
            }
            for p in 0..P {
                let x = L::load_first(input.offset(p as isize * result).add(whole), rest);
                for f in 0..F {
                    sums[p][f] = x.mul_add(w[f], sums[p][f]);
                }
            }
        }
    }
}

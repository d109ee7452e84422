//! Convolution by one to four filters: dot products of vectors of channels, whose lanes are summed
//! at the end.
//!
//! The other implementations compute panels of 16 filters, which would mostly be padding here.
//! Here, each vector of inputs is loaded once for all filters, and each vector of weights once for
//! [`PIXELS`] results. The sums stay in registers over all taps and channels. Inputs are read in
//! place. Taps outside of the input are skipped.
//!
//! Method: register tiles of a matrix product, with the inner dimension (channels) in the vector
//! lanes. For measurements, see "Convolution" in `docs/internals/measurements/convolution.md`.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_machine::isa::Isa;

use super::Convolution;
use super::output_line::{Line, PART, parts};
use super::shape_and_strides::Sizes;
use crate::algorithm_selection::convolution::{FEW_FILTERS, few_filters_are_faster};
use crate::matmul::work_partition::{parallel_for, unit_work};
use crate::simd::for_isa;
use crate::simd::horizontal_reduce::Reduce;

/// Number of adjacent results along an output row that share each loaded vector of weights.
const PIXELS: usize = 4;

/// Whether this implementation supports the convolution and is faster than the other
/// implementations of convolution.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    let last = c.x.channel == 1 && c.out.channel == 1;
    last && s.groups == 1
        && few_filters_are_faster(s.filters, s.channels, s.kernel.iter().product())
}

/// The arguments of [`compute_line`]: the position of an output row, and the weights.
struct LineArgs<'a> {
    line: Line<'a>,
    /// The unpacked weights, `[filters, taps, channels]`.
    weights: *const f32,
}

/// Adjacent results along an output row. The same filter taps are inside the input for all of them.
struct Results<'a> {
    taps: [Range<usize>; 3],
    /// The address of the input for filter tap 0 and channel 0 of the first result. It may be
    /// outside of the image.
    input: *const f32,
    out: *mut f32,
    args: &'a LineArgs<'a>,
}

/// Computes a convolution. Input and results have channels last. Returns a kernel status: 0 on
/// success.
///
/// # Safety
/// The machine has `isa`. All elements of the operands and the results are valid, and the results
/// overlap no operand. [`applies`] holds.
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
    let run = for_isa!(isa, compute_line(args: &LineArgs<'_>)).0;
    let piece = |index: usize| {
        let args = LineArgs { line: Line::nth_part(c, s, index), weights };
        // SAFETY: guaranteed by the caller; each piece writes another part of a line.
        unsafe {
            run(&args);
            args.line.finish(isa);
        }
        STATUS_OK
    };
    let piece_work = depth.saturating_mul(s.output[2].min(PART)).saturating_mul(s.filters);
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    let status = unsafe { parallel_for(runtime, parts(s), piece_work / unit_work(), &piece) };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}

/// Copies the weights from a packed panel to `to`, filter by filter, without the filter positions
/// that read only padding.
unsafe fn unpack(c: &Convolution, s: &Sizes, to: *mut f32) {
    let (width, [depth, height, row]) = (c.width as usize, s.kernel);
    let filter_size = depth * height * row * s.channels;
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
                            to.add(filter * filter_size + at).write(*weight);
                        }
                    }
                    at += 1;
                }
            }
        }
    }
}

/// Computes an output row of a convolution for all filters.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
unsafe fn compute_line<L: Reduce>(args: &LineArgs<'_>) {
    let (line, s) = (&args.line, args.line.s);
    let mut x = line.xs.start;
    while x < line.xs.end {
        let taps = s.taps(2, x);
        let is_full_tile = x + PIXELS <= line.xs.end && s.taps(2, x + PIXELS - 1) == taps;
        let results = Results {
            taps: [s.taps(0, line.z), s.taps(1, line.y), taps],
            input: line.input_address(x),
            out: line.out(x),
            args,
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if is_full_tile {
                results.compute::<L, PIXELS>();
            } else {
                results.compute::<L, 1>();
            }
        }
        x += if is_full_tile { PIXELS } else { 1 };
    }
}

impl Results<'_> {
    /// Computes `P` adjacent results of an output row, for all filters.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn compute<L: Reduce, const P: usize>(&self) {
        const { assert!(FEW_FILTERS == 4, "the arms below") };
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.args.line.s.filters {
                1 => self.tile::<L, P, 1>(),
                2 => self.tile::<L, P, 2>(),
                3 => self.tile::<L, P, 3>(),
                _ => self.tile::<L, P, 4>(),
            }
        }
    }

    /// Computes `P` adjacent results of an output row for each of `F` filters, with all sums in registers.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn tile<L: Reduce, const P: usize, const F: usize>(&self) {
        let (l, s) = (&self.args.line, self.args.line.s);
        let filter_size = s.kernel.iter().product::<usize>() * s.channels;
        let input_step = l.input_step();
        let [first, second, third] = &self.taps;
        // A run is a sequence of adjacent inputs. If adjacent taps read adjacent pixels, all taps of a filter row read one run.
        // Otherwise, each tap reads a run of its own.
        let adjacent = l.tap_stride(2) == s.channels as isize;
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
                        let input = self.input.wrapping_offset(l.tap_offset([z, y, x]));
                        let tap = (z * s.kernel[1] + y) * s.kernel[2] + x;
                        let weights = self.args.weights.wrapping_add(tap * s.channels);
                        let (inputs, weights) = ((input, input_step), (weights, filter_size));
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

/// For each result and each filter, adds the dot product of `length` adjacent inputs and `length`
/// adjacent weights to the sum. `input_step` is the distance between the inputs of adjacent
/// results, `filter_size` the distance between the weights of adjacent filters.
///
/// # Safety
/// The conditions of [`compute_line`] hold.
#[inline(always)]
unsafe fn add_run<L: Reduce, const P: usize, const F: usize>(
    sums: &mut [[L; F]; P],
    (input, input_step): (*const f32, isize),
    (weights, filter_size): (*const f32, usize),
    length: usize,
) {
    let whole = length / L::N * L::N;
    // SAFETY: guaranteed by the caller.
    unsafe {
        for k in (0..whole).step_by(L::N) {
            let mut w = [L::zero(); F];
            for f in 0..F {
                w[f] = L::load(weights.add(f * filter_size + k));
            }
            for p in 0..P {
                let x = L::load(input.offset(p as isize * input_step).add(k));
                for f in 0..F {
                    sums[p][f] = x.mul_add(w[f], sums[p][f]);
                }
            }
        }
        if whole < length {
            let rest = length - whole;
            let mut w = [L::zero(); F];
            for f in 0..F {
                w[f] = L::load_first(weights.add(f * filter_size + whole), rest);
            }
            for p in 0..P {
                let x = L::load_first(input.offset(p as isize * input_step).add(whole), rest);
                for f in 0..F {
                    sums[p][f] = x.mul_add(w[f], sums[p][f]);
                }
            }
        }
    }
}

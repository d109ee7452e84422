//! Register tiles of a grouped convolution: adjacent results along an output row for one or two
//! vectors of filters, with sums in registers over all taps and channels.
//!
//! Method: register tiles as in matrix products, but for direct convolution. For measurements, see
//! the cases with groups under "Convolution" in `docs/internals/measurements/convolution.md`.

use std::ops::Range;

use super::line_buffer::{CELL, LineBuffer};
use crate::algorithm_selection::convolution::{SWEPT_TAPS as TAPS, sweeps};
use crate::simd::Lanes;

/// The parameters of an output row, which all its register tiles share.
pub(super) struct Line<'a> {
    /// The layout of the line buffer.
    pub buffer: &'a LineBuffer,
    /// The address of the contents of the line buffer.
    pub inputs: *const f32,
    /// The index of the line buffer row for the first filter row.
    pub first_row: usize,
    /// For depth and height, the range of filter taps that are inside the input.
    pub taps: [Range<usize>; 2],
    /// The sizes of the filter in depth, height and width.
    pub kernel: [usize; 3],
    /// The dilations in height and width.
    pub dilation: [usize; 2],
    /// The stride of the convolution along an image row, in pixels of the input.
    pub stride: usize,
    /// The number of channels of a group.
    pub channels: usize,
    /// The address of the weights of the first tap.
    pub weights: *const f32,
    /// The distance between rows of weights, in elements.
    pub weight_row_stride: usize,
    /// The address of the first result of the output row.
    pub out: *mut f32,
    /// The distance between adjacent results, in elements.
    pub result_stride: isize,
    /// The number of filters of the block.
    pub filters: usize,
}

/// Returns the maximum number of results of a tile with `vectors` vectors of filters. The sums take
/// all vector registers except those for weights and an input.
pub(super) const fn max_results(lanes: usize, vectors: usize) -> usize {
    match (lanes, vectors) {
        (16, 1) => 14,
        (16, _) | (_, 1) => 12,
        _ => 6,
    }
}

/// Computes the results `from..from + count` of an output row in one register tile. `count` is at
/// most [`max_results`].
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The line buffer
/// contains the inputs; weights and results are valid.
#[inline(always)]
pub(super) unsafe fn compute_tile<L: Lanes<Elem = f32>, const V: usize, const SPREAD: bool>(
    l: &Line<'_>,
    from: usize,
    count: usize,
) {
    macro_rules! of {
        ($($count:literal)*) => {
            match count {
                // The condition is constant, so that only the variants for this vector type are
                // compiled. SAFETY: guaranteed by the caller.
                $($count if const { $count <= max_results(L::N, V) } => unsafe {
                    tile::<L, $count, V, SPREAD>(l, from);
                },)*
                _ => {}
            }
        };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// Computes a register tile: `P` adjacent results of an output row for `V` vectors of filters.
///
/// # Safety
/// The conditions of [`compute_tile`] hold.
#[inline(always)]
unsafe fn tile<L: Lanes<Elem = f32>, const P: usize, const V: usize, const SPREAD: bool>(
    l: &Line<'_>,
    from: usize,
) {
    let (cell, buffer) = (if SPREAD { L::N } else { CELL }, l.buffer);
    let is_swept = sweeps(l.kernel[2], l.stride, l.dilation[1]);
    // SAFETY: guaranteed by the caller.
    let mut sums = unsafe { [[L::zero(); V]; P] };
    for z in l.taps[0].clone() {
        let mut row = l.first_row;
        for y in l.taps[1].clone() {
            let inputs = l
                .inputs
                .wrapping_add((z * buffer.rows + row) * buffer.row_elements() + from * cell);
            let tap = (z * l.kernel[1] + y) * l.kernel[2];
            let weights = l.weights.wrapping_add(tap * l.channels * l.weight_row_stride);
            // SAFETY: guaranteed by the caller.
            unsafe {
                if is_swept {
                    add_swept_row::<L, P, V, SPREAD>(&mut sums, l, inputs, weights);
                } else {
                    add_row::<L, P, V, SPREAD>(&mut sums, l, inputs, weights);
                }
            }
            row += l.dilation[0];
            if row >= buffer.rows {
                row -= buffer.rows;
            }
        }
    }
    let out = l.out.wrapping_offset(from as isize * l.result_stride);
    for p in 0..P {
        let out = out.wrapping_offset(p as isize * l.result_stride);
        for v in 0..V {
            let sum = sums[p][v];
            let (to, left) = (out.wrapping_add(v * L::N), l.filters - v * L::N);
            // SAFETY: guaranteed by the caller.
            unsafe { if left >= L::N { sum.store(to) } else { sum.store_first(to, left) } }
        }
    }
}

/// Adds the products of inputs and weights for one filter row of [`TAPS`] taps, for stride and
/// dilation 1. Each input is loaded once for all taps.
///
/// # Safety
/// The conditions of [`compute_tile`] hold.
#[inline(always)]
#[allow(clippy::eq_op, clippy::identity_op, reason = "numbers of the macro meet each other")]
unsafe fn add_swept_row<
    L: Lanes<Elem = f32>,
    const P: usize,
    const V: usize,
    const SPREAD: bool,
>(
    sums: &mut [[L; V]; P],
    l: &Line<'_>,
    inputs: *const f32,
    mut weights: *const f32,
) {
    let tap_weights = l.channels * l.weight_row_stride;
    for plane in 0..l.buffer.planes {
        let x = inputs.wrapping_add(plane * l.buffer.plane);
        let channels = if SPREAD { 1 } else { CELL.min(l.channels - plane * CELL) };
        for channel in 0..channels {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut w = [[L::zero(); V]; TAPS];
                for (tap, w) in w.iter_mut().enumerate() {
                    for (v, w) in w.iter_mut().enumerate() {
                        *w = L::load(weights.add(tap * tap_weights + v * L::N));
                    }
                }
                let x = x.add(channel);
                // Unrolled by a macro: the compiler does not unroll a loop with conditions, and would keep its sums in memory.
                macro_rules! of {
                    ($($at:literal)*) => { $(
                        if $at < P + TAPS - 1 {
                            let x = input::<L, SPREAD>(x, $at);
                            of!(x $at, 0);
                            of!(x $at, 1);
                            of!(x $at, 2);
                        }
                    )* };
                    ($x:ident $at:literal, $tap:literal) => {
                        if $at >= $tap && $at - $tap < P {
                            let sums = &mut sums[$at - $tap];
                            for v in 0..V {
                                sums[v] = $x.mul_add(w[$tap][v], sums[v]);
                            }
                        }
                    };
                }
                of!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
            weights = weights.wrapping_add(l.weight_row_stride);
        }
    }
}

/// Adds the products of inputs and weights for one filter row, tap by tap.
///
/// # Safety
/// The conditions of [`compute_tile`] hold.
#[inline(always)]
unsafe fn add_row<L: Lanes<Elem = f32>, const P: usize, const V: usize, const SPREAD: bool>(
    sums: &mut [[L; V]; P],
    l: &Line<'_>,
    inputs: *const f32,
    mut weights: *const f32,
) {
    let (cell, buffer) = (if SPREAD { L::N } else { CELL }, l.buffer);
    let (mut phase, mut at) = (0, 0);
    for _ in 0..l.kernel[2] {
        for plane in 0..buffer.planes {
            let x = inputs
                .wrapping_add(plane * buffer.plane + (phase * buffer.phase_cells + at) * cell);
            let channels = if SPREAD { 1 } else { CELL.min(l.channels - plane * CELL) };
            for channel in 0..channels {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let mut w = [L::zero(); V];
                    for (v, w) in w.iter_mut().enumerate() {
                        *w = L::load(weights.add(v * L::N));
                    }
                    for (p, sums) in sums.iter_mut().enumerate() {
                        let x = input::<L, SPREAD>(x.add(channel), p);
                        for v in 0..V {
                            sums[v] = x.mul_add(w[v], sums[v]);
                        }
                    }
                }
                weights = weights.wrapping_add(l.weight_row_stride);
            }
        }
        (phase, at) = (phase + l.dilation[1] % l.stride, at + l.dilation[1] / l.stride);
        if phase >= l.stride {
            (phase, at) = (phase - l.stride, at + 1);
        }
    }
}

/// Loads the inputs for the result with index `at` in the register tile. If `SPREAD` is set, the
/// filters of a vector belong to several groups, and each lane gets the channel of its group.
/// Otherwise, all lanes belong to the same group, and one input is broadcast to all lanes.
///
/// # Safety
/// The conditions of [`compute_tile`] hold.
#[inline(always)]
unsafe fn input<L: Lanes<Elem = f32>, const SPREAD: bool>(x: *const f32, at: usize) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if SPREAD { L::load(x.add(at * L::N)) } else { L::splat(*x.add(at * CELL)) } }
}

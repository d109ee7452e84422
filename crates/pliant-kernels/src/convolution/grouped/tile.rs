//! The sums of some results along a line for one or two vectors of filters, in registers over all
//! taps and channels.
//!
//! Recipe: results by filters in registers as for products, but over the taps of a direct
//! convolution. Measured as a whole: the cases in groups under "Convolution" in
//! `docs/performance.md`.

use std::ops::Range;

use super::ring::{CELL, Ring};
use crate::lanes::Lanes;
use crate::rules::convolution::{SWEPT as TAPS, sweeps};

/// What the tiles of a line of results share.
pub(super) struct Line<'a> {
    pub ring: &'a Ring,
    /// The line buffer, and the row of the first tap in it.
    pub inputs: *const f32,
    pub first: usize,
    /// The taps of the outer dims whose inputs exist.
    pub taps: [Range<usize>; 2],
    /// The filter size, and the tap strides of the inner dims.
    pub kernel: [usize; 3],
    pub dilation: [usize; 2],
    /// The stride along the line, in pixels of the input.
    pub stride: usize,
    /// Channels of a group.
    pub channels: usize,
    /// The weights of the first tap, and their row stride.
    pub weights: *const f32,
    pub next: usize,
    /// The first result, the stride between results, and the number of filters.
    pub out: *mut f32,
    pub pixel: isize,
    pub filters: usize,
}

/// Maximum number of results of a tile: as many as there are registers besides those for weights
/// and an input.
pub(super) const fn most(lanes: usize, vectors: usize) -> usize {
    match (lanes, vectors) {
        (16, 1) => 14,
        (16, _) | (_, 1) => 12,
        _ => 6,
    }
}

/// Results `from` to `from + count` of a line, at most [`most`].
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. The line buffer contains the
/// inputs; weights and results are valid.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes<Elem = f32>, const V: usize, const SPREAD: bool>(
    l: &Line<'_>,
    from: usize,
    count: usize,
) {
    macro_rules! of {
        ($($count:literal)*) => {
            match count {
                // A constant condition, so that only the variants for this kind of vector are
                // compiled. SAFETY: guaranteed by the caller.
                $($count if const { $count <= most(L::N, V) } => unsafe {
                    tile::<L, $count, V, SPREAD>(l, from);
                },)*
                _ => {}
            }
        };
    }
    of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn tile<L: Lanes<Elem = f32>, const P: usize, const V: usize, const SPREAD: bool>(
    l: &Line<'_>,
    from: usize,
) {
    let (cell, ring) = (if SPREAD { L::N } else { CELL }, l.ring);
    let near = sweeps(l.kernel[2], l.stride, l.dilation[1]);
    // SAFETY: guaranteed by the caller.
    let mut sums = unsafe { [[L::zero(); V]; P] };
    for z in l.taps[0].clone() {
        let mut row = l.first;
        for y in l.taps[1].clone() {
            let inputs = l.inputs.wrapping_add((z * ring.rows + row) * ring.row() + from * cell);
            let tap = (z * l.kernel[1] + y) * l.kernel[2];
            let weights = l.weights.wrapping_add(tap * l.channels * l.next);
            // SAFETY: guaranteed by the caller.
            unsafe {
                if near {
                    swept::<L, P, V, SPREAD>(&mut sums, l, inputs, weights);
                } else {
                    each::<L, P, V, SPREAD>(&mut sums, l, inputs, weights);
                }
            }
            row += l.dilation[0];
            if row >= ring.rows {
                row -= ring.rows;
            }
        }
    }
    let out = l.out.wrapping_offset(from as isize * l.pixel);
    for p in 0..P {
        let out = out.wrapping_offset(p as isize * l.pixel);
        for v in 0..V {
            let sum = sums[p][v];
            let (to, left) = (out.wrapping_add(v * L::N), l.filters - v * L::N);
            // SAFETY: guaranteed by the caller.
            unsafe { if left >= L::N { sum.store(to) } else { sum.store_first(to, left) } }
        }
    }
}

/// A row of the filter with [`TAPS`] taps whose taps and results are adjacent: an input is loaded
/// once for all of them.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
#[allow(clippy::eq_op, clippy::identity_op, reason = "numbers of the macro meet each other")]
unsafe fn swept<L: Lanes<Elem = f32>, const P: usize, const V: usize, const SPREAD: bool>(
    sums: &mut [[L; V]; P],
    l: &Line<'_>,
    inputs: *const f32,
    mut weights: *const f32,
) {
    let next_tap = l.channels * l.next;
    for plane in 0..l.ring.planes {
        let x = inputs.wrapping_add(plane * l.ring.plane);
        let channels = if SPREAD { 1 } else { CELL.min(l.channels - plane * CELL) };
        for channel in 0..channels {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let mut w = [[L::zero(); V]; TAPS];
                for (tap, w) in w.iter_mut().enumerate() {
                    for (v, w) in w.iter_mut().enumerate() {
                        *w = L::load(weights.add(tap * next_tap + v * L::N));
                    }
                }
                let x = x.add(channel);
                // Unrolled by hand: the compiler does not unroll a loop with conditions, and its
                // sums would be in memory.
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
            weights = weights.wrapping_add(l.next);
        }
    }
}

/// A row of the filter, tap by tap.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn each<L: Lanes<Elem = f32>, const P: usize, const V: usize, const SPREAD: bool>(
    sums: &mut [[L; V]; P],
    l: &Line<'_>,
    inputs: *const f32,
    mut weights: *const f32,
) {
    let (cell, ring) = (if SPREAD { L::N } else { CELL }, l.ring);
    let (mut phase, mut at) = (0, 0);
    for _ in 0..l.kernel[2] {
        for plane in 0..ring.planes {
            let x = inputs.wrapping_add(plane * ring.plane + (phase * ring.count + at) * cell);
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
                weights = weights.wrapping_add(l.next);
            }
        }
        (phase, at) = (phase + l.dilation[1] % l.stride, at + l.dilation[1] / l.stride);
        if phase >= l.stride {
            (phase, at) = (phase - l.stride, at + 1);
        }
    }
}

/// The input of cell `at`.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn input<L: Lanes<Elem = f32>, const SPREAD: bool>(x: *const f32, at: usize) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if SPREAD { L::load(x.add(at * L::N)) } else { L::splat(*x.add(at * CELL)) } }
}

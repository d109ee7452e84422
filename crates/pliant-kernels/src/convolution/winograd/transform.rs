//! Winograd's transforms of one tile: `B^T d B` of its inputs and `A^T m A` of its sums.

use std::ops::Range;

use pliant_tensor::Winograd;

use crate::lanes::{MathLanes, for_isa};
use pliant_machine::isa::Isa;

/// The inputs of a tile and the destination of its transformed numbers.
pub(super) struct Inputs {
    /// The first channel of the first pixel, which may be outside of the input.
    pub x: *const f32,
    /// The pixel and line strides.
    pub pixel: isize,
    pub line: isize,
    /// The lines and pixels inside the input.
    pub lines: Range<usize>,
    pub pixels: Range<usize>,
    pub channels: usize,
    /// The first number, and the stride between numbers.
    pub to: *mut f32,
    pub step: usize,
}

/// The sums of a tile and the destination of its results.
pub(super) struct Outputs {
    /// The first sum, and the stride between sums.
    pub from: *const f32,
    pub step: usize,
    pub columns: usize,
    /// The first filter of the first result, and the pixel and line strides.
    pub out: *mut f32,
    pub pixel: isize,
    pub line: isize,
    /// The number of lines and pixels inside the results.
    pub lines: usize,
    pub pixels: usize,
}

/// The transform of a tile's inputs with the instructions of `isa`.
pub(super) fn inputs(isa: Isa, form: Winograd) -> unsafe fn(&Inputs) {
    match form {
        Winograd::Two => for_isa!(isa, inputs_2(t: &Inputs)).0,
        Winograd::Four => for_isa!(isa, inputs_4(t: &Inputs)).0,
    }
}

/// The transform from sums to results with the instructions of `isa`.
pub(super) fn outputs(isa: Isa, form: Winograd) -> unsafe fn(&Outputs) {
    match form {
        Winograd::Two => for_isa!(isa, outputs_2(t: &Outputs)).0,
        Winograd::Four => for_isa!(isa, outputs_4(t: &Outputs)).0,
    }
}

/// # Safety
/// As for [`turn_inputs`].
#[inline(always)]
unsafe fn inputs_2<L: MathLanes<Elem = f32>>(t: &Inputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { turn_inputs::<L, Two, 4, 2>(t) }
}

/// # Safety
/// As for [`turn_outputs`].
#[inline(always)]
unsafe fn outputs_2<L: MathLanes<Elem = f32>>(t: &Outputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { turn_outputs::<L, Two, 4, 2>(t) }
}

/// # Safety
/// As for [`turn_inputs`].
#[inline(always)]
unsafe fn inputs_4<L: MathLanes<Elem = f32>>(t: &Inputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { turn_inputs::<L, Four, 6, 4>(t) }
}

/// # Safety
/// As for [`turn_outputs`].
#[inline(always)]
unsafe fn outputs_4<L: MathLanes<Elem = f32>>(t: &Outputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { turn_outputs::<L, Four, 6, 4>(t) }
}

/// The transforms of a line of `N` numbers, which has `M` results. Everything that computes with
/// vectors is in one function with the target features enabled: closures passed to the array
/// functions of the standard library would not have them.
trait Form<const N: usize, const M: usize> {
    /// A line of `B^T d`.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn turned<L: MathLanes>(d: [L; N]) -> [L; N];

    /// A line of `A^T m`.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn summed<L: MathLanes>(m: [L; N]) -> [L; M];
}

/// F(2x2, 3x3).
struct Two;

impl Form<4, 2> for Two {
    /// `d0 - d2, d1 + d2, d2 - d1, d1 - d3`.
    #[inline(always)]
    unsafe fn turned<L: MathLanes>(d: [L; 4]) -> [L; 4] {
        // SAFETY: guaranteed by the caller.
        unsafe { [d[0].sub(d[2]), d[1].add(d[2]), d[2].sub(d[1]), d[1].sub(d[3])] }
    }

    /// `m0 + m1 + m2, m1 - m2 - m3`.
    #[inline(always)]
    unsafe fn summed<L: MathLanes>(m: [L; 4]) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [m[0].add(m[1]).add(m[2]), m[1].sub(m[2]).sub(m[3])] }
    }
}

/// F(4x4, 3x3).
struct Four;

impl Form<6, 4> for Four {
    /// `4 d0 - 5 d2 + d4`, the sum and the difference of `d4 - 4 d2` and `d3 - 4 d1`, those of `d4 - d2` and `2 (d3 - d1)`, and
    /// `4 d1 - 5 d3 + d5`.
    #[inline(always)]
    unsafe fn turned<L: MathLanes>(d: [L; 6]) -> [L; 6] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (two, four) = (L::constant(2.0), L::constant(4.0));
            let (minus_four, minus_five) = (L::constant(-4.0), L::constant(-5.0));
            let (even, odd) = (d[2].mul_add(minus_four, d[4]), d[1].mul_add(minus_four, d[3]));
            let (near, far) = (d[4].sub(d[2]), d[3].sub(d[1]).mul(two));
            [
                d[0].mul_add(four, d[2].mul_add(minus_five, d[4])),
                even.add(odd),
                even.sub(odd),
                near.add(far),
                near.sub(far),
                d[1].mul_add(four, d[3].mul_add(minus_five, d[5])),
            ]
        }
    }

    /// Of the sums `s` and differences `d` of `m1` and `m2`, and `t` and `e` of `m3` and `m4`: `m0 + s + t, d + 2 e, s + 4 t,
    /// d + 8 e + m5`.
    #[inline(always)]
    unsafe fn summed<L: MathLanes>(m: [L; 6]) -> [L; 4] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (two, four, eight) = (L::constant(2.0), L::constant(4.0), L::constant(8.0));
            let (s, d) = (m[1].add(m[2]), m[1].sub(m[2]));
            let (t, e) = (m[3].add(m[4]), m[3].sub(m[4]));
            [
                m[0].add(s).add(t),
                e.mul_add(two, d),
                t.mul_add(four, s),
                e.mul_add(eight, d).add(m[5]),
            ]
        }
    }
}

/// Computes `B^T d B` of a tile, for each channel.
///
/// # Safety
/// The machine has the instructions. The inputs that exist are readable; the numbers are writable.
#[inline(always)]
unsafe fn turn_inputs<L: MathLanes<Elem = f32>, F: Form<N, M>, const N: usize, const M: usize>(
    t: &Inputs,
) {
    for channel in (0..t.channels).step_by(L::N) {
        let count = L::N.min(t.channels - channel);
        // SAFETY: guaranteed by the caller; of a partial vector, only the existing lanes are read
        // and written.
        unsafe {
            let mut rows = [[L::zero(); N]; N];
            for y in t.lines.clone() {
                let mut d = [L::zero(); N];
                for x in t.pixels.clone() {
                    let at = y as isize * t.line + x as isize * t.pixel + channel as isize;
                    let from = t.x.wrapping_offset(at);
                    d[x] = if count == L::N { L::load(from) } else { L::load_first(from, count) };
                }
                rows[y] = F::turned(d);
            }
            for x in std::array::from_fn::<usize, N, _>(|x| x) {
                let mut d = [L::zero(); N];
                for y in 0..N {
                    d[y] = rows[y][x];
                }
                let column = F::turned(d);
                for y in 0..N {
                    let v = column[y];
                    let to = t.to.add((N * y + x) * t.step + channel);
                    if count == L::N { v.store(to) } else { v.store_first(to, count) }
                }
            }
        }
    }
}

/// Computes `A^T m A` of a tile, for each filter.
///
/// # Safety
/// The machine has the instructions. The sums are readable up to whole vectors; the results that exist are writable.
#[inline(always)]
unsafe fn turn_outputs<L: MathLanes<Elem = f32>, F: Form<N, M>, const N: usize, const M: usize>(
    t: &Outputs,
) {
    for column in (0..t.columns).step_by(L::N) {
        let count = L::N.min(t.columns - column);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut rows = [[L::zero(); M]; N];
            for (y, row) in rows.iter_mut().enumerate() {
                let mut m = [L::zero(); N];
                for (x, m) in m.iter_mut().enumerate() {
                    *m = L::load(t.from.add((N * y + x) * t.step + column));
                }
                *row = F::summed(m);
            }
            for x in (0..M).take(t.pixels) {
                let mut m = [L::zero(); N];
                for y in 0..N {
                    m[y] = rows[y][x];
                }
                let sums = F::summed(m);
                for y in 0..M.min(t.lines) {
                    let v = sums[y];
                    let at = y as isize * t.line + x as isize * t.pixel + column as isize;
                    let to = t.out.wrapping_offset(at);
                    if count == L::N { v.store(to) } else { v.store_first(to, count) }
                }
            }
        }
    }
}

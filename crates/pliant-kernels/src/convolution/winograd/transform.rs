//! The Winograd transforms of one tile: the input transform `B^T d B` and the output transform `A^T m A`.

use std::ops::Range;

use pliant_tensor::Winograd;

use crate::simd::{MathLanes, for_isa};
use pliant_machine::isa::Isa;

/// The arguments of the input transform of a tile.
pub(super) struct Inputs {
    /// The address of the first channel of the tile's first pixel. It may be outside of the input.
    pub x: *const f32,
    /// The distance between adjacent pixels of an input row, in elements.
    pub pixel: isize,
    /// The distance between input rows, in elements.
    pub line: isize,
    /// The range of rows of the tile that are inside the input.
    pub lines: Range<usize>,
    /// The range of columns of the tile that are inside the input.
    pub pixels: Range<usize>,
    pub channels: usize,
    /// The address to which the first element of the transformed tile is written.
    pub to: *mut f32,
    /// The distance between elements of the transformed tile in memory, in floats.
    pub element_stride: usize,
}

/// The arguments of the output transform of a tile.
pub(super) struct Outputs {
    /// The address of the transformed results for the first element of the tile.
    pub from: *const f32,
    /// The distance between elements of the transformed tile in memory, in floats.
    pub element_stride: usize,
    /// The number of filters for which the output transform runs; each filter is a column of the transformed results.
    pub columns: usize,
    /// The address of the first result of the first filter.
    pub out: *mut f32,
    /// The distance between adjacent pixels of the results, in elements.
    pub pixel: isize,
    /// The distance between output rows, in elements.
    pub line: isize,
    /// The number of rows of the tile that are inside the output.
    pub lines: usize,
    /// The number of columns of the tile that are inside the output.
    pub pixels: usize,
}

/// Selects the input transform of an algorithm, compiled for the instructions of `isa`.
pub(super) fn input_transform(isa: Isa, algorithm: Winograd) -> unsafe fn(&Inputs) {
    match algorithm {
        Winograd::Two => for_isa!(isa, inputs_2(t: &Inputs)).0,
        Winograd::Four => for_isa!(isa, inputs_4(t: &Inputs)).0,
    }
}

/// Selects the output transform of an algorithm, compiled for the instructions of `isa`.
pub(super) fn output_transform(isa: Isa, algorithm: Winograd) -> unsafe fn(&Outputs) {
    match algorithm {
        Winograd::Two => for_isa!(isa, outputs_2(t: &Outputs)).0,
        Winograd::Four => for_isa!(isa, outputs_4(t: &Outputs)).0,
    }
}

/// Applies the input transform of F(2x2, 3x3) to one tile.
///
/// # Safety
/// The conditions of [`transform_inputs`] hold.
#[inline(always)]
unsafe fn inputs_2<L: MathLanes<Elem = f32>>(t: &Inputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { transform_inputs::<L, F2x2, 4, 2>(t) }
}

/// Applies the output transform of F(2x2, 3x3) to one tile.
///
/// # Safety
/// The conditions of [`transform_outputs`] hold.
#[inline(always)]
unsafe fn outputs_2<L: MathLanes<Elem = f32>>(t: &Outputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { transform_outputs::<L, F2x2, 4, 2>(t) }
}

/// Applies the input transform of F(4x4, 3x3) to one tile.
///
/// # Safety
/// The conditions of [`transform_inputs`] hold.
#[inline(always)]
unsafe fn inputs_4<L: MathLanes<Elem = f32>>(t: &Inputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { transform_inputs::<L, F4x4, 6, 4>(t) }
}

/// Applies the output transform of F(4x4, 3x3) to one tile.
///
/// # Safety
/// The conditions of [`transform_outputs`] hold.
#[inline(always)]
unsafe fn outputs_4<L: MathLanes<Elem = f32>>(t: &Outputs) {
    // SAFETY: guaranteed by the caller.
    unsafe { transform_outputs::<L, F4x4, 6, 4>(t) }
}

/// The one-dimensional transforms of a Winograd algorithm with `N` inputs and `M` results per tile
/// and dim. The implementations avoid array functions of the standard library with closures (such
/// as `map`), because closures would be compiled without the target features of the caller.
trait Transforms<const N: usize, const M: usize> {
    /// Applies the input transform `B^T d` to one row or column of a tile.
    ///
    /// # Safety
    /// The machine has the instructions of `L`.
    unsafe fn input<L: MathLanes>(d: [L; N]) -> [L; N];

    /// Applies the output transform `A^T m` to one row or column of a tile.
    ///
    /// # Safety
    /// The machine has the instructions of `L`.
    unsafe fn output<L: MathLanes>(m: [L; N]) -> [L; M];
}

/// The one-dimensional Winograd transforms of F(2x2, 3x3).
struct F2x2;

impl Transforms<4, 2> for F2x2 {
    /// The input transform of F(2x2, 3x3) in one dim: returns `d0 - d2, d1 + d2, d2 - d1, d1 - d3`.
    #[inline(always)]
    unsafe fn input<L: MathLanes>(d: [L; 4]) -> [L; 4] {
        // SAFETY: guaranteed by the caller.
        unsafe { [d[0].sub(d[2]), d[1].add(d[2]), d[2].sub(d[1]), d[1].sub(d[3])] }
    }

    /// The output transform of F(2x2, 3x3) in one dim: returns `m0 + m1 + m2, m1 - m2 - m3`.
    #[inline(always)]
    unsafe fn output<L: MathLanes>(m: [L; 4]) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [m[0].add(m[1]).add(m[2]), m[1].sub(m[2]).sub(m[3])] }
    }
}

/// The one-dimensional Winograd transforms of F(4x4, 3x3).
struct F4x4;

impl Transforms<6, 4> for F4x4 {
    /// The input transform of F(4x4, 3x3) in one dim. Returns `4 d0 - 5 d2 + d4`, then the sum and
    /// the difference of `d4 - 4 d2` and `d3 - 4 d1`, then the sum and the difference of `d4 - d2`
    /// and `2 (d3 - d1)`, then `4 d1 - 5 d3 + d5`.
    #[inline(always)]
    unsafe fn input<L: MathLanes>(d: [L; 6]) -> [L; 6] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (two, four) = (L::constant(2.0), L::constant(4.0));
            let (minus_four, minus_five) = (L::constant(-4.0), L::constant(-5.0));
            let (even, odd) = (d[2].mul_add(minus_four, d[4]), d[1].mul_add(minus_four, d[3]));
            let (even_diff, odd_diff) = (d[4].sub(d[2]), d[3].sub(d[1]).mul(two));
            [
                d[0].mul_add(four, d[2].mul_add(minus_five, d[4])),
                even.add(odd),
                even.sub(odd),
                even_diff.add(odd_diff),
                even_diff.sub(odd_diff),
                d[1].mul_add(four, d[3].mul_add(minus_five, d[5])),
            ]
        }
    }

    /// The output transform of F(4x4, 3x3) in one dim. Returns `m0 + s + t, d + 2 e, s + 4 t, d + 8
    /// e + m5`, where `s = m1 + m2`, `d = m1 - m2`, `t = m3 + m4` and `e = m3 - m4`.
    #[inline(always)]
    unsafe fn output<L: MathLanes>(m: [L; 6]) -> [L; 4] {
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

/// Computes the input transform `B^T d B` of a tile, for each channel. Inputs outside of the image
/// are 0.
///
/// # Safety
/// The machine has the instructions of `L`. The inputs inside the image are readable, and the
/// elements of the transformed tile are writable.
#[inline(always)]
unsafe fn transform_inputs<
    L: MathLanes<Elem = f32>,
    F: Transforms<N, M>,
    const N: usize,
    const M: usize,
>(
    t: &Inputs,
) {
    for channel in (0..t.channels).step_by(L::N) {
        let count = L::N.min(t.channels - channel);
        // SAFETY: guaranteed by the caller; only the first `count` lanes of a partial vector are read and written.
        unsafe {
            let mut rows = [[L::zero(); N]; N];
            for y in t.lines.clone() {
                let mut d = [L::zero(); N];
                for x in t.pixels.clone() {
                    let offset = y as isize * t.line + x as isize * t.pixel + channel as isize;
                    let from = t.x.wrapping_offset(offset);
                    d[x] = if count == L::N { L::load(from) } else { L::load_first(from, count) };
                }
                rows[y] = F::input(d);
            }
            for x in std::array::from_fn::<usize, N, _>(|x| x) {
                let mut d = [L::zero(); N];
                for y in 0..N {
                    d[y] = rows[y][x];
                }
                let column = F::input(d);
                for y in 0..N {
                    let v = column[y];
                    let to = t.to.add((N * y + x) * t.element_stride + channel);
                    if count == L::N { v.store(to) } else { v.store_first(to, count) }
                }
            }
        }
    }
}

/// Computes the output transform `A^T m A` of a tile, for each filter.
///
/// # Safety
/// The machine has the instructions of `L`. The sums are readable up to whole vectors, and the
/// results inside the output are writable.
#[inline(always)]
unsafe fn transform_outputs<
    L: MathLanes<Elem = f32>,
    F: Transforms<N, M>,
    const N: usize,
    const M: usize,
>(
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
                    *m = L::load(t.from.add((N * y + x) * t.element_stride + column));
                }
                *row = F::output(m);
            }
            for x in (0..M).take(t.pixels) {
                let mut m = [L::zero(); N];
                for y in 0..N {
                    m[y] = rows[y][x];
                }
                let sums = F::output(m);
                for y in 0..M.min(t.lines) {
                    let v = sums[y];
                    let offset = y as isize * t.line + x as isize * t.pixel + column as isize;
                    let to = t.out.wrapping_offset(offset);
                    if count == L::N { v.store(to) } else { v.store_first(to, count) }
                }
            }
        }
    }
}

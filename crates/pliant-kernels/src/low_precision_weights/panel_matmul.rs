//! Matrix products of few rows by a panel in its low-precision format, and conversion of a slice of
//! a panel to float32.
//!
//! Even and odd rows of B have separate sums, so that a tile of one row by four vectors has eight
//! independent sums. Zero points are subtracted from each weight. Subtracting `z * sum(a)` from the
//! sum of a group instead would cause cancellation, and NaN if an element of A is infinite.
//!
//! Method: for few rows, stored bits are converted to float32 in registers and multiplied there.
//! For many rows, the converted weights are written to memory for the float32 micro-kernel. For
//! measurements, see "Weights of 4, 8 and 16 bits" in
//! `docs/internals/measurements/low-precision-weights.md`, which also states the cost of zero
//! points.

use std::ops::Range;

use super::storage_format::{BFloat16, Bytes, Format, Nibbles, StorageFormat};
use crate::simd::widen_to_float32::Widen;

/// The arguments for multiplying some rows of A by one panel of B.
pub(super) struct Panel {
    pub rows: usize,
    /// Number of columns of the panel without padding.
    pub columns: usize,
    pub k: usize,
    pub width: usize,
    /// Number of adjacent rows of B, along the inner dimension `k`, that share a scale.
    pub group: usize,
    pub a: *const f32,
    pub a_row: isize,
    pub b: *const u8,
    /// The address of the scales of this panel, or null if absent.
    pub scales: *const f32,
    /// The address of the zero points of this panel, or null if absent.
    pub zeros: *const f32,
    pub c: *mut f32,
    pub c_row: isize,
}

/// Loads a vector of the scales or zero points of a group. Returns `default` in every lane if `p` is null.
///
/// # Safety
/// The machine has the instructions of `L`; if `p` is not null, the elements are readable.
#[inline(always)]
unsafe fn load_group<L: Widen>(p: *const f32, at: usize, default: f32) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if p.is_null() { L::splat(default) } else { L::load(p.add(at)) } }
}

/// Computes a tile of results: `R` rows from `row` on, by `V` vectors of columns from `column` on. Subtracts zero
/// points if `ZEROS` is true.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All addressed elements
/// are valid, including the whole panel.
#[inline(always)]
unsafe fn tile<L: Widen, S: StorageFormat, const ZEROS: bool, const R: usize, const V: usize>(
    p: &Panel,
    row: usize,
    column: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let a = p.a.offset(row as isize * p.a_row);
        let mut sums = [[L::zero(); V]; R];
        for first in (0..p.k).step_by(p.group) {
            let (end, at) = ((first + p.group).min(p.k), first / p.group * p.width + column);
            let mut partial_sums = [[[L::zero(); V]; R]; 2];
            let mut zeros = [L::zero(); V];
            if ZEROS {
                for (v, zero) in zeros.iter_mut().enumerate() {
                    *zero = L::load(p.zeros.add(at + v * L::N));
                }
            }
            let mut k = first;
            while k + 2 <= end {
                pair::<L, S, ZEROS, R, V>(p, (a, k, column), true, &zeros, &mut partial_sums);
                k += 2;
            }
            if k < end {
                pair::<L, S, ZEROS, R, V>(p, (a, k, column), false, &zeros, &mut partial_sums);
            }
            for v in 0..V {
                let scale = load_group::<L>(p.scales, at + v * L::N, 1.0);
                for r in 0..R {
                    let sum = partial_sums[0][r][v].add(partial_sums[1][r][v]);
                    sums[r][v] = scale.mul_add(sum, sums[r][v]);
                }
            }
        }
        for r in 0..R {
            let c = p.c.offset((row + r) as isize * p.c_row).add(column);
            for v in 0..V {
                let remaining = p.columns - column - v * L::N;
                sums[r][v].store_first(c.add(v * L::N), remaining.min(L::N));
            }
        }
    }
}

/// Multiplies two adjacent rows of B, or only the last row if `both` is false, by the corresponding
/// columns of A, and adds the products to the sums of a tile. Subtracts zero points if `ZEROS` is
/// true.
#[inline(always)]
unsafe fn pair<L: Widen, S: StorageFormat, const ZEROS: bool, const R: usize, const V: usize>(
    p: &Panel,
    (a, k, column): (*const f32, usize, usize),
    both: bool,
    zeros: &[L; V],
    partial_sums: &mut [[[L; V]; R]; 2],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut b = [[L::zero(); V]; 2];
        for v in 0..V {
            let from = p.b.add(S::offset(k, column + v * L::N, p.width));
            let [x, y] = S::pair::<L>(from, p.width, both);
            [b[0][v], b[1][v]] = if ZEROS { [x.sub(zeros[v]), y.sub(zeros[v])] } else { [x, y] };
        }
        for (odd, partial_sums) in
            partial_sums.iter_mut().enumerate().take(if both { 2 } else { 1 })
        {
            for (r, sums) in partial_sums.iter_mut().enumerate() {
                let x = L::splat(a.offset(r as isize * p.a_row).add(k + odd).read_unaligned());
                for v in 0..V {
                    sums[v] = x.mul_add(b[odd][v], sums[v]);
                }
            }
        }
    }
}

/// Multiplies all rows of A by one panel of B: two rows of A at a time, in tiles of four, two and
/// one vectors of columns.
///
/// # Safety
/// The conditions of [`tile`] hold.
#[inline(always)]
unsafe fn rows<L: Widen, S: StorageFormat, const ZEROS: bool>(p: &Panel) {
    let mut row = 0;
    while row < p.rows {
        let two_rows = row + 2 <= p.rows;
        let mut column = 0;
        while column < p.columns {
            let vectors = (p.columns - column).div_ceil(L::N);
            // SAFETY: guaranteed by the caller; vectors are inside the panel, because its width is a multiple of the
            // lanes.
            let done = unsafe {
                match (two_rows, vectors) {
                    (false, 4..) => (tile::<L, S, ZEROS, 1, 4>(p, row, column), 4).1,
                    (false, 2..) => (tile::<L, S, ZEROS, 1, 2>(p, row, column), 2).1,
                    (false, _) => (tile::<L, S, ZEROS, 1, 1>(p, row, column), 1).1,
                    (true, 4..) if L::N == 16 => (tile::<L, S, ZEROS, 2, 4>(p, row, column), 4).1,
                    (true, 2..) => (tile::<L, S, ZEROS, 2, 2>(p, row, column), 2).1,
                    (true, _) => (tile::<L, S, ZEROS, 2, 1>(p, row, column), 1).1,
                }
            };
            column += done * L::N;
        }
        row += if two_rows { 2 } else { 1 };
    }
}

/// Multiplies all rows of A by one panel, converting the weights in registers. If A has few rows,
/// this is faster than first converting the panel to float32 in memory.
///
/// # Safety
/// The conditions of [`tile`] hold.
#[inline(always)]
pub(super) unsafe fn few_rows<L: Widen>(p: &Panel, format: Format) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match format {
            Format::Bytes if p.zeros.is_null() => rows::<L, Bytes, false>(p),
            Format::Bytes => rows::<L, Bytes, true>(p),
            Format::Nibbles if p.zeros.is_null() => rows::<L, Nibbles, false>(p),
            Format::Nibbles => rows::<L, Nibbles, true>(p),
            // bfloat16 has neither scales nor zero points.
            Format::BFloat16 => rows::<L, BFloat16, false>(p),
        }
    }
}

/// Converts a range of rows of a panel to float32. The range starts at an even row. Writes the rows
/// to `to` with the width of the panel.
///
/// # Safety
/// The conditions of [`tile`] hold; the rows are writable.
#[inline(always)]
pub(super) unsafe fn widen<L: Widen>(p: &Panel, format: Format, rows: Range<usize>, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match format {
            Format::Bytes => slice::<L, Bytes>(p, rows, to),
            Format::Nibbles => slice::<L, Nibbles>(p, rows, to),
            // bfloat16 has neither scales nor zero points.
            Format::BFloat16 => scaled_slice::<L, BFloat16, false, false>(p, rows, to),
        }
    }
}

/// Converts a range of rows of a panel to float32, for an integer format with scales and zero
/// points. Writes the rows to `to` with the width of the panel.
///
/// # Safety
/// The conditions of [`widen`] hold.
#[inline(always)]
unsafe fn slice<L: Widen, S: StorageFormat>(p: &Panel, rows: Range<usize>, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (p.scales.is_null(), p.zeros.is_null()) {
            (true, true) => scaled_slice::<L, S, false, false>(p, rows, to),
            (false, true) => scaled_slice::<L, S, true, false>(p, rows, to),
            _ => scaled_slice::<L, S, true, true>(p, rows, to),
        }
    }
}

/// Implements [`slice`], the conversion of rows of a panel to float32, with scales if `SCALES` is true, and with zero points if
/// `ZEROS` is true. Loops over groups, whose scale and zero point stay in registers.
///
/// # Safety
/// The conditions of [`widen`] hold.
#[inline(always)]
unsafe fn scaled_slice<L: Widen, S: StorageFormat, const SCALES: bool, const ZEROS: bool>(
    p: &Panel,
    rows: Range<usize>,
    to: *mut f32,
) {
    for column in (0..p.width).step_by(L::N) {
        let mut k = rows.start;
        while k < rows.end {
            let group = k / p.group;
            let (end, at) = (((group + 1) * p.group).min(rows.end), group * p.width + column);
            // SAFETY: guaranteed by the caller.
            let (scale, zero) = unsafe {
                let scales = if SCALES { p.scales } else { std::ptr::null() };
                let zeros = if ZEROS { p.zeros } else { std::ptr::null() };
                (load_group::<L>(scales, at, 1.0), load_group::<L>(zeros, at, 0.0))
            };
            let value = |x: L| {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let x = if ZEROS { x.sub(zero) } else { x };
                    if SCALES { x.mul(scale) } else { x }
                }
            };
            // Both rows of a pair belong to the same group.
            while k < end {
                let both = k + 1 < end;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let [x, y] =
                        S::pair::<L>(p.b.add(S::offset(k, column, p.width)), p.width, both);
                    let to = to.add((k - rows.start) * p.width + column);
                    value(x).store(to);
                    if both {
                        value(y).store(to.add(p.width));
                    }
                }
                k += 2;
            }
        }
    }
}

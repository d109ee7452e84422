//! Products of few rows by one panel in its storage format, and conversion of a slice of a panel to
//! float32.
//!
//! Each of two rows of k has separate sums, so that one row by four vectors has eight independent
//! sums. Zero points are subtracted from each element. Subtracting them from the sum of a group, as
//! `z * sum(a)`, would leave the rounding errors of sums that are far larger than the result, and
//! NaN if an element of A is infinite.
//!
//! Recipe: for few rows, stored bits are converted to float32 in registers and multiplied there;
//! for many, they are written to memory for the float32 micro-kernel. Measured: "Weights of 4, 8
//! and 16 bits" in `docs/performance.md`, with the cost of zero points.

use std::ops::Range;

use super::format::{BFloat16, Bytes, Format, Nibbles, Stored};
use crate::lanes::widen::Widen;

/// Some rows of one panel.
pub(super) struct Panel {
    pub rows: usize,
    /// The number of columns that have results.
    pub columns: usize,
    pub k: usize,
    pub width: usize,
    /// Rows of k that share a scale.
    pub group: usize,
    pub a: *const f32,
    pub a_row: isize,
    pub b: *const u8,
    /// The scales of this panel, or null.
    pub scales: *const f32,
    /// The zero points of this panel, or null.
    pub zeros: *const f32,
    pub c: *mut f32,
    pub c_row: isize,
}

/// One vector of scales or zero points of a group; `other` if `p` is null.
///
/// # Safety
/// The machine has the instructions; if `p` is not null, the elements are readable.
#[inline(always)]
unsafe fn of_group<L: Widen>(p: *const f32, at: usize, other: f32) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if p.is_null() { L::splat(other) } else { L::load(p.add(at)) } }
}

/// `R` rows from `row` on by `V` vectors from `column` on, with zero points if `Z`.
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. All addressed elements are
/// valid, including the whole panel.
#[inline(always)]
unsafe fn tile<L: Widen, S: Stored, const Z: bool, const R: usize, const V: usize>(
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
            let mut part = [[[L::zero(); V]; R]; 2];
            let mut zeros = [L::zero(); V];
            if Z {
                for (v, zero) in zeros.iter_mut().enumerate() {
                    *zero = L::load(p.zeros.add(at + v * L::N));
                }
            }
            let mut k = first;
            while k + 2 <= end {
                pair::<L, S, Z, R, V>(p, (a, k, column), true, &zeros, &mut part);
                k += 2;
            }
            if k < end {
                pair::<L, S, Z, R, V>(p, (a, k, column), false, &zeros, &mut part);
            }
            for v in 0..V {
                let scale = of_group::<L>(p.scales, at + v * L::N, 1.0);
                for r in 0..R {
                    let sum = part[0][r][v].add(part[1][r][v]);
                    sums[r][v] = scale.mul_add(sum, sums[r][v]);
                }
            }
        }
        for r in 0..R {
            let c = p.c.offset((row + r) as isize * p.c_row).add(column);
            for v in 0..V {
                let left = p.columns - column - v * L::N;
                sums[r][v].store_first(c.add(v * L::N), left.min(L::N));
            }
        }
    }
}

/// Adds the products of two rows of k, or of one, minus the zero points if `Z`.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn pair<L: Widen, S: Stored, const Z: bool, const R: usize, const V: usize>(
    p: &Panel,
    (a, k, column): (*const f32, usize, usize),
    both: bool,
    zeros: &[L; V],
    part: &mut [[[L; V]; R]; 2],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut b = [[L::zero(); V]; 2];
        for v in 0..V {
            let from = p.b.add(S::place(k, column + v * L::N, p.width));
            let [x, y] = S::pair::<L>(from, p.width, both);
            [b[0][v], b[1][v]] = if Z { [x.sub(zeros[v]), y.sub(zeros[v])] } else { [x, y] };
        }
        for (odd, part) in part.iter_mut().enumerate().take(if both { 2 } else { 1 }) {
            for (r, sums) in part.iter_mut().enumerate() {
                let x = L::splat(a.offset(r as isize * p.a_row).add(k + odd).read_unaligned());
                for v in 0..V {
                    sums[v] = x.mul_add(b[odd][v], sums[v]);
                }
            }
        }
    }
}

/// All rows, two at a time, in tiles of four, two and one vectors.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn rows<L: Widen, S: Stored, const Z: bool>(p: &Panel) {
    let mut row = 0;
    while row < p.rows {
        let two = row + 2 <= p.rows;
        let mut column = 0;
        while column < p.columns {
            let vectors = (p.columns - column).div_ceil(L::N);
            // SAFETY: guaranteed by the caller; vectors are inside the panel, whose width is a
            // multiple of theirs.
            let done = unsafe {
                match (two, vectors) {
                    (false, 4..) => (tile::<L, S, Z, 1, 4>(p, row, column), 4).1,
                    (false, 2..) => (tile::<L, S, Z, 1, 2>(p, row, column), 2).1,
                    (false, _) => (tile::<L, S, Z, 1, 1>(p, row, column), 1).1,
                    (true, 4..) if L::N == 16 => (tile::<L, S, Z, 2, 4>(p, row, column), 4).1,
                    (true, 2..) => (tile::<L, S, Z, 2, 2>(p, row, column), 2).1,
                    (true, _) => (tile::<L, S, Z, 2, 1>(p, row, column), 1).1,
                }
            };
            column += done * L::N;
        }
        row += if two { 2 } else { 1 };
    }
}

/// Computes all rows of a panel.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
pub(super) unsafe fn few<L: Widen>(p: &Panel, format: Format) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match format {
            Format::Bytes if p.zeros.is_null() => rows::<L, Bytes, false>(p),
            Format::Bytes => rows::<L, Bytes, true>(p),
            Format::Nibbles if p.zeros.is_null() => rows::<L, Nibbles, false>(p),
            Format::Nibbles => rows::<L, Nibbles, true>(p),
            // It has neither scales nor zero points.
            Format::BFloat16 => rows::<L, BFloat16, false>(p),
        }
    }
}

/// Writes some rows of k of a panel, which start at an even one, as float32 rows of the
/// panel's width.
///
/// # Safety
/// As for [`tile`]; the rows are writable.
#[inline(always)]
pub(super) unsafe fn widen<L: Widen>(p: &Panel, format: Format, rows: Range<usize>, to: *mut f32) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match format {
            Format::Bytes => slice::<L, Bytes>(p, rows, to),
            Format::Nibbles => slice::<L, Nibbles>(p, rows, to),
            // It has neither scales nor zero points.
            Format::BFloat16 => scaled_slice::<L, BFloat16, false, false>(p, rows, to),
        }
    }
}

/// See [`widen`].
///
/// # Safety
/// As for [`widen`].
#[inline(always)]
unsafe fn slice<L: Widen, S: Stored>(p: &Panel, rows: Range<usize>, to: *mut f32) {
    // Absent scales and zero points cost nothing. SAFETY: guaranteed by the caller.
    unsafe {
        match (p.scales.is_null(), p.zeros.is_null()) {
            (true, true) => scaled_slice::<L, S, false, false>(p, rows, to),
            (false, true) => scaled_slice::<L, S, true, false>(p, rows, to),
            _ => scaled_slice::<L, S, true, true>(p, rows, to),
        }
    }
}

/// [`slice`] with scales if `M` and zero points if `Z`: group by group, with the scale and zero
/// point in registers.
///
/// # Safety
/// As for [`widen`].
#[inline(always)]
unsafe fn scaled_slice<L: Widen, S: Stored, const M: bool, const Z: bool>(
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
                let scales = if M { p.scales } else { std::ptr::null() };
                let zeros = if Z { p.zeros } else { std::ptr::null() };
                (of_group::<L>(scales, at, 1.0), of_group::<L>(zeros, at, 0.0))
            };
            let value = |x: L| {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let x = if Z { x.sub(zero) } else { x };
                    if M { x.mul(scale) } else { x }
                }
            };
            // Both rows of a pair belong to the same group.
            while k < end {
                let both = k + 1 < end;
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let [x, y] = S::pair::<L>(p.b.add(S::place(k, column, p.width)), p.width, both);
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

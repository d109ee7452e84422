//! Subtracts zero points from the sums of a tile:
//! `sum((a - x) * (b - y)) = sum(a * b) - x * sum(b) - y * (sum(a) - k * x)`.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::Work;
use crate::lanes::Lanes;

/// Sums of products of bytes as they were read, with any offset.
pub(super) struct ReadTile {
    /// Sums of the true values of the rows of A; not read if columns have no zero points.
    pub totals: *const i32,
    /// The index of the first row.
    pub row: usize,
    /// The sums, with contiguous rows.
    pub c: *mut i32,
    /// Their row stride.
    pub c_row: isize,
    /// Rows and columns.
    pub size: (usize, usize),
    /// The index of the first column.
    pub first: usize,
}

/// The sums of rows of A with a row stride of `apart` bytes and `k` bytes each, which are signed or
/// unsigned.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The bytes are readable, the totals writable.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "says which instructions the compiler may use"
)]
#[inline(always)]
pub(super) unsafe fn add_rows<L: Lanes<Elem = f32>>(
    (a, apart): (*const u8, isize),
    (k, signed): (usize, bool),
    totals: &mut [i32],
) {
    if k == 0 {
        // The address may be invalid.
        return totals.fill(0);
    }
    for (i, total) in totals.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        let row = unsafe { from_raw_parts(a.offset(i as isize * apart), k) };
        let sum = |value: fn(u8) -> i32| row.iter().fold(0i32, |t, &x| t.wrapping_add(value(x)));
        *total = if signed { sum(|x| i32::from(x.cast_signed())) } else { sum(i32::from) };
    }
}

/// Corrects the sums to those of the true values.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them; as for [`super::run`].
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "says which instructions the compiler may use"
)]
#[inline(always)]
pub(super) unsafe fn take_zeros<L: Lanes<Elem = f32>>(w: &Work, t: &ReadTile) {
    let g = w.g;
    let (rows, columns) = t.size;
    for i in 0..rows {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let zero = match g.a_zeros.is_null() {
                true => 0,
                false => *g.a_zeros.offset(((t.row + i) as i64 * g.a_zeros_step) as isize),
            };
            let c = from_raw_parts_mut(t.c.offset(i as isize * t.c_row), columns);
            let sums = from_raw_parts(g.sums.add(t.first), columns);
            let read = zero.wrapping_add(w.added());
            if read != 0 {
                for (c, sum) in c.iter_mut().zip(sums) {
                    *c = c.wrapping_sub(read.wrapping_mul(*sum));
                }
            }
            if g.b_zeros.is_null() {
                continue;
            }
            let rest = (*t.totals.add(i)).wrapping_sub((w.k as i32).wrapping_mul(zero));
            let zeros = from_raw_parts(g.b_zeros.add(t.first), columns);
            for (c, b_zero) in c.iter_mut().zip(zeros) {
                *c = c.wrapping_sub(rest.wrapping_mul(*b_zero));
            }
        }
    }
}

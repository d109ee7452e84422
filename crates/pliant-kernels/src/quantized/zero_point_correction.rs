//! Subtracts zero points from the sums of a tile: `sum((a - x) * (b - y)) = sum(a * b) - x * sum(b) - y * (sum(a) - k *
//! x)`.

use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::CheckedGemm;
use crate::simd::Lanes;

/// A tile of int32 sums before the subtraction of zero points.
pub(super) struct RawTile {
    /// The sum of each row of A, before the highest bits of its bytes are flipped. Not read if the
    /// columns of B have no zero points.
    pub row_sums: *const i32,
    /// The index of the tile's first row.
    pub row: usize,
    /// The address of the sums, whose rows are contiguous.
    pub c: *mut i32,
    /// The stride between rows of sums, in elements.
    pub c_row: isize,
    /// The numbers of rows and columns of the tile.
    pub size: (usize, usize),
    /// The index of the tile's first column.
    pub first: usize,
}

/// Computes the sum of each row of A. Rows have `k` bytes, signed or unsigned, and are `row_stride` bytes apart.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The bytes are readable.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
pub(super) unsafe fn sum_rows<L: Lanes<Elem = f32>>(
    (a, row_stride): (*const u8, isize),
    (k, signed): (usize, bool),
    row_sums: &mut [i32],
) {
    if k == 0 {
        // The address of A may be invalid.
        return row_sums.fill(0);
    }
    for (i, row_sum) in row_sums.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller.
        let row = unsafe { from_raw_parts(a.offset(i as isize * row_stride), k) };
        let sum = |value: fn(u8) -> i32| row.iter().fold(0i32, |t, &x| t.wrapping_add(value(x)));
        *row_sum = if signed { sum(|x| i32::from(x.cast_signed())) } else { sum(i32::from) };
    }
}

/// Subtracts the contribution of zero points from the sums of a tile. Also subtracts the
/// contribution of the 128 that is added to each byte of a signed A.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
pub(super) unsafe fn subtract_zero_points<L: Lanes<Elem = f32>>(w: &CheckedGemm, t: &RawTile) {
    let g = w.g;
    let (rows, columns) = t.size;
    for i in 0..rows {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let zero = match g.a_zeros.is_null() {
                true => 0,
                false => *g.a_zeros.offset(((t.row + i) as i64 * g.a_zeros_stride) as isize),
            };
            let c = from_raw_parts_mut(t.c.offset(i as isize * t.c_row), columns);
            let sums = from_raw_parts(g.sums.add(t.first), columns);
            let a_zero = zero.wrapping_add(w.a_offset());
            if a_zero != 0 {
                for (c, sum) in c.iter_mut().zip(sums) {
                    *c = c.wrapping_sub(a_zero.wrapping_mul(*sum));
                }
            }
            if g.b_zeros.is_null() {
                continue;
            }
            let b_zero_factor = (*t.row_sums.add(i)).wrapping_sub((w.k as i32).wrapping_mul(zero));
            let zeros = from_raw_parts(g.b_zeros.add(t.first), columns);
            for (c, b_zero) in c.iter_mut().zip(zeros) {
                *c = c.wrapping_sub(b_zero_factor.wrapping_mul(*b_zero));
            }
        }
    }
}

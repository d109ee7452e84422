//! Transposes blocks of a matrix in registers. Used for packing an operand whose contiguous dim
//! differs from the contiguous dim of the packed layout.

use std::mem::MaybeUninit;

use super::Lanes;

/// Vectors that transpose blocks of `N` by `N` elements, where `N` is the number of lanes.
pub trait Transpose: Lanes {
    /// Transposes a block of `N` by `N` elements, where `N` is the number of lanes. Rows are contiguous; `row` and
    /// `to_row` are the row strides of source and destination, in elements.
    ///
    /// # Safety
    /// The machine has the instructions of this vector type. The elements of the source are
    /// readable, those of the destination writable; the two blocks do not overlap.
    #[inline(always)]
    unsafe fn transpose(from: *const Self::Elem, row: isize, to: *mut Self::Elem, to_row: isize) {
        for i in 0..Self::N {
            for j in 0..Self::N {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let x = from.offset(i as isize * row).add(j).read_unaligned();
                    to.offset(j as isize * to_row).add(i).write_unaligned(x);
                }
            }
        }
    }
}

impl Transpose for super::portable_vectors::Array<f32, 4> {}
impl Transpose for super::portable_vectors::Array<f64, 2> {}

#[cfg(target_arch = "aarch64")]
impl Transpose for super::neon_vectors::F32x4 {}
#[cfg(target_arch = "aarch64")]
impl Transpose for super::neon_vectors::F64x2 {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86_vectors::{F32x8, F32x16, F64x4, F64x8};
    use super::Transpose;

    impl Transpose for F64x8 {}
    impl Transpose for F64x4 {}

    impl Transpose for F32x16 {
        #[inline(always)]
        unsafe fn transpose(from: *const f32, row: isize, to: *mut f32, to_row: isize) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                // Four rows at a time: 128-bit lane l of `quads[c][g]` has column 4l + c of rows 4g to 4g + 3.
                let mut quads = [[_mm512_setzero_ps(); 4]; 4];
                for g in 0..4 {
                    let at = from.offset(4 * g as isize * row);
                    let r0 = _mm512_loadu_ps(at);
                    let r1 = _mm512_loadu_ps(at.offset(row));
                    let r2 = _mm512_loadu_ps(at.offset(2 * row));
                    let r3 = _mm512_loadu_ps(at.offset(3 * row));
                    let low01 = _mm512_castps_pd(_mm512_unpacklo_ps(r0, r1));
                    let high01 = _mm512_castps_pd(_mm512_unpackhi_ps(r0, r1));
                    let low23 = _mm512_castps_pd(_mm512_unpacklo_ps(r2, r3));
                    let high23 = _mm512_castps_pd(_mm512_unpackhi_ps(r2, r3));
                    quads[0][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
                    quads[1][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
                    quads[2][g] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
                    quads[3][g] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
                }
                for c in 0..4 {
                    let [a, b, d, e] = quads[c];
                    let (even, more) =
                        (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(d, e));
                    let (odd, rest) =
                        (_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(d, e));
                    let to = to.offset(c as isize * to_row);
                    _mm512_storeu_ps(to, _mm512_shuffle_f32x4::<0x88>(even, more));
                    _mm512_storeu_ps(
                        to.offset(4 * to_row),
                        _mm512_shuffle_f32x4::<0x88>(odd, rest),
                    );
                    _mm512_storeu_ps(
                        to.offset(8 * to_row),
                        _mm512_shuffle_f32x4::<0xdd>(even, more),
                    );
                    _mm512_storeu_ps(
                        to.offset(12 * to_row),
                        _mm512_shuffle_f32x4::<0xdd>(odd, rest),
                    );
                }
            }
        }
    }

    impl Transpose for F32x8 {
        #[inline(always)]
        unsafe fn transpose(from: *const f32, row: isize, to: *mut f32, to_row: isize) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                // 128-bit lane l of `quads[c][g]` has column 4l + c of rows 4g to 4g + 3.
                let mut quads = [[_mm256_setzero_ps(); 2]; 4];
                for g in 0..2 {
                    let at = from.offset(4 * g as isize * row);
                    let r0 = _mm256_loadu_ps(at);
                    let r1 = _mm256_loadu_ps(at.offset(row));
                    let r2 = _mm256_loadu_ps(at.offset(2 * row));
                    let r3 = _mm256_loadu_ps(at.offset(3 * row));
                    let (low01, high01) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
                    let (low23, high23) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
                    quads[0][g] = _mm256_shuffle_ps::<0x44>(low01, low23);
                    quads[1][g] = _mm256_shuffle_ps::<0xee>(low01, low23);
                    quads[2][g] = _mm256_shuffle_ps::<0x44>(high01, high23);
                    quads[3][g] = _mm256_shuffle_ps::<0xee>(high01, high23);
                }
                for c in 0..4 {
                    let [a, b] = quads[c];
                    let to = to.offset(c as isize * to_row);
                    _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(a, b));
                    _mm256_storeu_ps(to.offset(4 * to_row), _mm256_permute2f128_ps::<0x31>(a, b));
                }
            }
        }
    }
}

/// Number of elements of the buffers in which partial blocks are padded: the size of a block of `N`
/// by `N` elements with the maximum number of lanes, 16.
const BLOCK: usize = 256;

/// Transposes a partial block of `rows` by `columns` elements, as [`Transpose::transpose`] does for a whole block.
///
/// # Safety
/// The conditions of [`Transpose::transpose`] hold, and the caller has enabled the instructions of
/// `L`. `rows` and `columns` are at most `N`.
#[inline(always)]
unsafe fn transpose_part<L: Transpose>(
    (from, row): (*const L::Elem, isize),
    (to, to_row): (*mut L::Elem, isize),
    rows: usize,
    columns: usize,
) {
    // SAFETY: guaranteed by the caller; the arrays hold a block each.
    unsafe {
        let mut blocks = [[MaybeUninit::<L::Elem>::uninit(); BLOCK]; 2];
        let [whole, transposed] = &mut blocks;
        let (whole, transposed) =
            (whole.as_mut_ptr().cast::<L::Elem>(), transposed.as_mut_ptr().cast::<L::Elem>());
        for i in 0..L::N {
            let x = if i < rows {
                L::load_first(from.offset(i as isize * row), columns)
            } else {
                L::zero()
            };
            x.store(whole.add(i * L::N));
        }
        L::transpose(whole, L::N as isize, transposed, L::N as isize);
        for j in 0..columns {
            L::load(transposed.add(j * L::N)).store_first(to.offset(j as isize * to_row), rows);
        }
    }
}

/// Transposes a matrix of `rows` by `columns` elements, block by block. The rows are contiguous.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The elements are readable and writable;
/// the matrices do not overlap.
#[inline(always)]
pub unsafe fn transpose_matrix<L: Transpose>(
    (from, row): (*const L::Elem, isize),
    (to, to_row): (*mut L::Elem, isize),
    rows: usize,
    columns: usize,
) {
    for i in (0..rows).step_by(L::N) {
        for j in (0..columns).step_by(L::N) {
            // SAFETY: guaranteed by the caller; offsets stay inside the matrices.
            unsafe {
                let from = from.offset(i as isize * row).add(j);
                let to = to.offset(j as isize * to_row).add(i);
                let (rows, columns) = ((rows - i).min(L::N), (columns - j).min(L::N));
                if rows == L::N && columns == L::N {
                    L::transpose(from, row, to, to_row);
                } else {
                    transpose_part::<L>((from, row), (to, to_row), rows, columns);
                }
            }
        }
    }
}

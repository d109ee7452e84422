//! The micro-kernel of 8-bit matrix products. It multiplies a sliver (a few rows of A) by a panel
//! (columns of B) and keeps the sums in registers over all of k.
//!
//! Method: as in the float32 micro-kernel ([`crate::matmul::micro_kernel`]), each vector lane
//! computes one sum. A lane is 32 bits wide and adds the products of four adjacent values of k at a
//! time. With AVX-512 VNNI, a tile has 6 rows and 4 vectors of 16 sums; with AVX2, 6 rows and 2
//! vectors of 8 sums. The AVX2 kernel splits the four bytes into even and odd bytes and multiplies
//! them as 16-bit integers, because the instruction that multiplies bytes saturates. Other machines
//! use scalar code.
//!
//! For measurements, see "8-bit integers" in `docs/internals/measurements/quantized.md`. On machines
//! with AMX, this micro-kernel computes only the matmuls with few rows; on other machines, it
//! computes all matmuls of that page.

use crate::matmul::micro_kernel::ROWS;
use pliant_machine::isa::{Isa, Vectors};

/// The operands of one tile of an 8-bit matrix product: `c[rows, columns] = a[rows, k] * b[k,
/// columns]`. Strides count elements.
pub struct Tile {
    /// The inner dim: the number of multiplications for each sum.
    pub k: usize,
    /// The address of the first byte of A, whose rows are contiguous.
    pub a: *const u8,
    /// The stride between rows of A, in elements.
    pub a_row: isize,
    /// The bit mask by which each 32-bit word of A is XORed, to convert between signed and unsigned
    /// bytes.
    pub flip: u32,
    /// The address of the first byte of B. Four adjacent values of k of a column are adjacent in
    /// memory.
    pub b: *const i8,
    /// The distance in bytes from four rows of B (adjacent values of k) to the next four rows.
    pub b_row: usize,
    /// The address of the first element of C, whose rows are contiguous.
    pub c: *mut i32,
    /// The stride between rows of C, in elements.
    pub c_row: isize,
    /// The number of elements of C in the last vector of a row. The other lanes of this vector are
    /// not written.
    pub last: usize,
}

type TileFn = unsafe fn(&Tile);

/// The micro-kernels of one instruction set.
pub struct Kernels {
    lanes: usize,
    /// The micro-kernels for all tile sizes, indexed by the number of rows minus one, then by the
    /// number of vectors minus one.
    table: [&'static [TileFn]; ROWS],
}

impl Kernels {
    /// Returns the number of columns of the widest tile for which there is a micro-kernel.
    pub fn columns(&self) -> usize {
        self.lanes * self.table[0].len()
    }

    /// Computes a tile of `rows` by `columns`; sets the tile's field `last`.
    ///
    /// # Safety
    /// The machine has the instructions of these kernels. `1 <= rows <= ROWS` and `1 <= columns <=
    /// self.columns()`. The elements of A and C are valid. The elements of B are readable up to the
    /// end of the last vector. C overlaps neither A nor B.
    pub unsafe fn run(&self, rows: usize, columns: usize, tile: &mut Tile) {
        let vectors = columns.div_ceil(self.lanes);
        tile.last = columns - (vectors - 1) * self.lanes;
        // SAFETY: guaranteed by the caller.
        unsafe { self.table[rows - 1][vectors - 1](tile) }
    }
}

/// A vector of 32-bit sums, with the operations that the micro-kernel needs.
///
/// # Safety of the methods
/// The machine has the instructions of this vector type; the addressed bytes of B are readable, and
/// the addressed sums are writable.
trait Sums: Copy {
    /// The number of sums in the vector.
    const N: usize;
    /// Four unsigned bytes of a row of A, in the form that [`Sums::dot`] needs.
    type Word: Copy;
    /// Four signed bytes of B for each sum, in the form that [`Sums::dot`] needs.
    type Quads: Copy;
    /// Returns a vector of zeros.
    unsafe fn zero() -> Self;
    /// Converts four bytes of a row of A to the form that [`Sums::dot`] needs.
    unsafe fn word(bytes: u32) -> Self::Word;
    /// Loads four bytes of B for each sum, in the form that [`Sums::dot`] needs.
    unsafe fn quads(from: *const i8) -> Self::Quads;
    /// Adds to each sum the dot product of the four bytes of A and the sum's four bytes of B.
    unsafe fn dot(self, word: Self::Word, quads: Self::Quads) -> Self;
    /// Stores the first `count` sums.
    unsafe fn store_first(self, to: *mut i32, count: usize);
}

/// A vector of 8 sums, for machines without a vector implementation.
#[derive(Clone, Copy)]
struct Scalar([i32; 8]);

impl Sums for Scalar {
    const N: usize = 8;
    type Word = [u8; 4];
    type Quads = [[i8; 4]; 8];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Scalar([0; 8])
    }

    #[inline(always)]
    unsafe fn word(bytes: u32) -> [u8; 4] {
        bytes.to_le_bytes()
    }

    #[inline(always)]
    unsafe fn quads(from: *const i8) -> [[i8; 4]; 8] {
        // SAFETY: guaranteed by the caller.
        unsafe { from.cast::<[[i8; 4]; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn dot(self, word: [u8; 4], quads: [[i8; 4]; 8]) -> Self {
        let mut sums = self.0;
        for (sum, quad) in sums.iter_mut().zip(quads) {
            for (a, b) in word.iter().zip(quad) {
                *sum = sum.wrapping_add(i32::from(*a) * i32::from(b));
            }
        }
        Scalar(sums)
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut i32, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, count) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Sums;

    /// A vector of 16 sums in 512 bits, for AVX-512 VNNI.
    #[derive(Clone, Copy)]
    pub struct Vnni(__m512i);

    impl Sums for Vnni {
        const N: usize = 16;
        type Word = __m512i;
        type Quads = __m512i;

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: guaranteed by the caller, here and below.
            unsafe { Vnni(_mm512_setzero_si512()) }
        }

        #[inline(always)]
        unsafe fn word(bytes: u32) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_set1_epi32(bytes as i32) }
        }

        #[inline(always)]
        unsafe fn quads(from: *const i8) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_loadu_si512(from.cast()) }
        }

        #[inline(always)]
        unsafe fn dot(self, word: __m512i, quads: __m512i) -> Self {
            // SAFETY: as above.
            unsafe { Vnni(_mm512_dpbusd_epi32(self.0, word, quads)) }
        }

        #[inline(always)]
        unsafe fn store_first(self, to: *mut i32, count: usize) {
            // SAFETY: as above; lanes that the mask excludes are not accessed.
            unsafe { _mm512_mask_storeu_epi32(to, ((1u32 << count) - 1) as __mmask16, self.0) }
        }
    }

    /// A vector of 8 sums in 256 bits, for AVX2. The bytes of A and B are split into even and odd
    /// bytes, as 16-bit integers.
    #[derive(Clone, Copy)]
    pub struct Avx2(__m256i);

    impl Sums for Avx2 {
        const N: usize = 8;
        type Word = [__m256i; 2];
        type Quads = [__m256i; 2];

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: guaranteed by the caller, here and below.
            unsafe { Avx2(_mm256_setzero_si256()) }
        }

        #[inline(always)]
        unsafe fn word(bytes: u32) -> [__m256i; 2] {
            // SAFETY: as above.
            unsafe {
                let word = _mm256_set1_epi32(bytes as i32);
                [_mm256_and_si256(word, _mm256_set1_epi16(0xff)), _mm256_srli_epi16::<8>(word)]
            }
        }

        #[inline(always)]
        unsafe fn quads(from: *const i8) -> [__m256i; 2] {
            // SAFETY: as above.
            unsafe {
                let quads = _mm256_loadu_si256(from.cast());
                let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(quads));
                [even, _mm256_srai_epi16::<8>(quads)]
            }
        }

        #[inline(always)]
        unsafe fn dot(self, word: [__m256i; 2], quads: [__m256i; 2]) -> Self {
            // SAFETY: as above.
            unsafe {
                let even = _mm256_madd_epi16(word[0], quads[0]);
                let odd = _mm256_madd_epi16(word[1], quads[1]);
                Avx2(_mm256_add_epi32(self.0, _mm256_add_epi32(even, odd)))
            }
        }

        #[inline(always)]
        unsafe fn store_first(self, to: *mut i32, count: usize) {
            // SAFETY: as above; lanes that the mask excludes are not accessed.
            unsafe {
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes);
                _mm256_maskstore_epi32(to, mask, self.0);
            }
        }
    }
}

/// Computes a tile of `R` rows by `V` vectors.
///
/// # Safety
/// The conditions of [`Kernels::run`] hold.
#[inline(always)]
unsafe fn tile<S: Sums, const R: usize, const V: usize>(t: &Tile) {
    // SAFETY: guaranteed by the caller; the addresses after the last row are computed, but not used.
    unsafe {
        let mut sums = [[S::zero(); V]; R];
        let (mut a, mut b) = (t.a, t.b);
        for _ in 0..t.k / 4 {
            step::<S, R, V, 4>(&mut sums, a, t, b);
            (a, b) = (a.wrapping_add(4), b.wrapping_add(t.b_row));
        }
        match t.k % 4 {
            1 => step::<S, R, V, 1>(&mut sums, a, t, b),
            2 => step::<S, R, V, 2>(&mut sums, a, t, b),
            3 => step::<S, R, V, 3>(&mut sums, a, t, b),
            _ => {}
        }
        for r in 0..R {
            let c = t.c.wrapping_offset(r as isize * t.c_row);
            for v in 0..V {
                let count = if v + 1 == V { t.last } else { S::N };
                sums[r][v].store_first(c.wrapping_add(v * S::N), count);
            }
        }
    }
}

/// For each row of A and each column of B, adds the products of `COUNT` (1 to 4) adjacent values of
/// k to the sum.
///
/// # Safety
/// The conditions of [`Kernels::run`] hold.
#[inline(always)]
unsafe fn step<S: Sums, const R: usize, const V: usize, const COUNT: usize>(
    sums: &mut [[S; V]; R],
    a: *const u8,
    t: &Tile,
    b: *const i8,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut quads = [S::quads(b); V];
        for v in 1..V {
            quads[v] = S::quads(b.add(v * S::N * 4));
        }
        for r in 0..R {
            let from = a.offset(r as isize * t.a_row);
            let bytes = if COUNT == 4 {
                from.cast::<u32>().read_unaligned()
            } else {
                let mut bytes = [0u8; 4];
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), COUNT);
                u32::from_ne_bytes(bytes)
            };
            // Missing bytes are multiplied by zeros of B, so their values do not matter.
            let word = S::word(bytes.to_le() ^ t.flip);
            for v in 0..V {
                sums[r][v] = sums[r][v].dot(word, quads[v]);
            }
        }
    }
}

/// Defines the table of micro-kernels for one vector type, for tiles of up to the given number of
/// vectors per row.
macro_rules! kernels {
    ($sums:ty $(, $feature:literal)?; $($v:literal)*) => {{
        /// Computes a tile with the vectors of one instruction set.
        ///
        /// # Safety
        /// The conditions of [`Kernels::run`] hold.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run<const R: usize, const V: usize>(t: &Tile) {
            // SAFETY: guaranteed by the caller.
            unsafe { tile::<$sums, R, V>(t) }
        }
        static KERNELS: Kernels = Kernels {
            lanes: <$sums as Sums>::N,
            table: [
                &[$(run::<1, $v>),*],
                &[$(run::<2, $v>),*],
                &[$(run::<3, $v>),*],
                &[$(run::<4, $v>),*],
                &[$(run::<5, $v>),*],
                &[$(run::<6, $v>),*],
            ],
        };
        &KERNELS
    }};
}

/// Returns the 8-bit micro-kernels for an instruction set.
pub fn kernels(isa: Isa) -> &'static Kernels {
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 if std::arch::is_x86_feature_detected!("avx512vnni") => {
            kernels!(x86::Vnni, "avx512f,avx512vnni"; 1 2 3 4)
        }
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 | Vectors::Avx2 => kernels!(x86::Avx2, "avx2,fma"; 1 2),
        _ => kernels!(Scalar; 1 2),
    }
}

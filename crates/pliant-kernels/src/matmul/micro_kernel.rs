//! The micro-kernel of all float32 and float64 matrix products. It multiplies a sliver (up to 12
//! rows of A) by a panel (columns of B) and keeps the sums in registers over all of k.
//!
//! Recipe: register tiles of 6 rows by 4 vectors with 32 registers (24 sums, 4 vectors of B, one
//! broadcast element of A), and of 6 rows by 2 vectors with 16 registers. Narrower tiles have up to
//! 12 rows. The micro-kernel reads A in place through its strides, and B row by row. k may consist
//! of several segments, as in a convolution. A tile with few sums splits k: a multiply-add takes 4
//! cycles and two start per cycle, so at least 8 sums must be independent. Manual unrolling gained
//! nothing. The hardware prefetcher covers the operands of the tile itself; the tile prefetches the
//! data that the caller reads next ([`Prefetch`]).
//!
//! Measured: "Products with packed weights" in `docs/internals/measurements/products.md`. The cases
//! of 64 to 256 rows by 384 x 384 show the speed of the micro-kernel best.

use crate::simd::register_transpose::transpose_matrix;
use crate::simd::{Lanes, portable_vectors::Array};
use pliant_machine::isa::{Isa, Vectors};

/// Maximum number of rows of the widest tile.
pub const ROWS: usize = 6;
/// Maximum number of rows of any tile.
pub const MAX_ROWS: usize = 12;

/// A segment of the inner dimension `k` of a matrix product: adjacent columns of A, and the
/// corresponding rows of B.
#[derive(Clone, Copy, Debug, Default)]
pub struct KSegment {
    /// The offset of the segment's first column from the start of A, in elements.
    pub a_offset: isize,
    /// The offset of the segment's first row from the start of B, in elements.
    pub b_offset: usize,
    /// The number of columns of A, equal to the number of rows of B, in the segment.
    pub k: usize,
}

impl KSegment {
    /// Returns the segment that consists of the first `k` columns of A and rows of B.
    pub const fn leading(k: usize) -> KSegment {
        KSegment { a_offset: 0, b_offset: 0, k }
    }
}

/// The operands of one tile: `c[rows, columns] (+)= a[rows, k] * b[k, columns]`. Strides count elements.
pub struct Tile<'a, T> {
    /// The segments of `k`, in the order of summation. An empty segment must be the only one.
    /// Without segments, or with an empty segment, all sums are 0.
    pub segments: &'a [KSegment],
    /// The address of the first element of A.
    pub a: *const T,
    /// The stride between rows of A, in elements.
    pub a_row: isize,
    /// The stride between columns of A, in elements.
    pub a_col: isize,
    /// The address of the first element of B, whose rows are contiguous.
    pub b: *const T,
    /// The stride between rows of B, in elements.
    pub b_row: isize,
    /// The address of the first element of C, whose rows are contiguous.
    pub c: *mut T,
    /// The stride between rows of C, in elements.
    pub c_row: isize,
    /// Whether the matrix product is added to the contents of C instead of replacing them.
    pub accumulate: bool,
    /// The number of elements of C in the last vector of a row. [`MicroKernels::run`] sets it.
    pub tail_lanes: usize,
    /// The memory that the tile prefetches, because the caller reads it next.
    pub prefetch: Prefetch,
}

/// Memory that a tile prefetches into the second-level cache: some bytes whenever the tile reads a
/// row of B.
#[derive(Clone, Copy, Debug)]
pub struct Prefetch {
    /// The start of the memory, which need not be readable.
    pub address: *const u8,
    /// Number of bytes to prefetch for each row of B; 0 to prefetch nothing.
    pub step_bytes: usize,
}

/// Number of bytes of a cache line.
pub const LINE: usize = 64;
/// Minimum number of tiles that share the prefetching of a slice. Each prefetch occupies one of
/// about 16 fill buffers of the core until the memory responds. The operands of the tile need the
/// same buffers, so prefetching faster costs more than it gains.
const MIN_PREFETCHING_TILES: usize = 2;

impl Prefetch {
    /// The prefetch that does nothing.
    pub const NONE: Prefetch = Prefetch { address: std::ptr::null(), step_bytes: 0 };

    /// Returns the part of a slice of B that tile `index` of `count` tiles prefetches. The slice
    /// has `depth` rows of `row_bytes` bytes. Each tile reads `depth` rows of B and prefetches an
    /// equal part. Returns [`Prefetch::NONE`] if there are too few tiles.
    pub fn nth_part(
        slice: *const u8,
        row_bytes: usize,
        depth: usize,
        index: usize,
        count: usize,
    ) -> Prefetch {
        if count < MIN_PREFETCHING_TILES {
            return Prefetch::NONE;
        }
        let step_bytes = row_bytes.div_ceil(count);
        Prefetch { address: slice.wrapping_add(index * step_bytes * depth), step_bytes }
    }

    /// Prefetches the bytes for one row of B.
    #[inline(always)]
    fn step(&mut self) {
        let mut offset = 0;
        while offset < self.step_bytes {
            prefetch_line(self.address.wrapping_add(offset));
            offset += LINE;
        }
        self.address = self.address.wrapping_add(self.step_bytes);
    }
}

/// Prefetches a cache line into the second-level cache. Does nothing on machines other than x86-64. The address need not be
/// readable.
#[inline(always)]
pub fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and every x86-64 machine has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A micro-kernel that computes tiles of one size.
pub type TileFn<T> = unsafe fn(&Tile<'_, T>);

/// Micro-kernels for all tile sizes, indexed by the number of vectors minus one, then by the number
/// of rows minus one.
type Table<T> = &'static [&'static [TileFn<T>]];

/// The micro-kernels of one instruction set.
pub struct MicroKernels<T: 'static> {
    /// Number of lanes of a vector.
    pub lanes: usize,
    /// The micro-kernels without prefetching, which ignore [`Tile::prefetch`].
    table: Table<T>,
    /// The micro-kernels that also prefetch the memory [`Tile::prefetch`].
    prefetching_table: Table<T>,
    /// The function that transposes a matrix.
    transpose: TransposeFn<T>,
}

/// A function that writes element `(i, j)` of a matrix to element `(j, i)` of another matrix. The
/// parameters are the address of the first element and the row stride of each matrix, and the
/// numbers of rows and columns of the source.
type TransposeFn<T> = unsafe fn((*const T, isize), (*mut T, isize), usize, usize);

impl<T> MicroKernels<T> {
    /// Returns the number of columns of the widest tile.
    pub fn columns(&self) -> usize {
        self.lanes * self.table.len()
    }

    /// Returns the maximum number of rows of a tile with `columns` columns. Narrow tiles may have
    /// more rows, so that there are enough independent sums.
    ///
    /// # Panics
    /// If `columns` is 0 or more than [`MicroKernels::columns`].
    pub fn rows(&self, columns: usize) -> usize {
        self.table[columns.div_ceil(self.lanes) - 1].len()
    }

    /// Computes a tile of `rows` by `columns`, and sets [`Tile::tail_lanes`].
    ///
    /// # Safety
    /// The machine has the instructions. `1 <= columns <= self.columns()` and `1 <= rows <=
    /// self.rows(columns)`. The elements of A and C are valid, and the elements of B up to the end
    /// of the last vector. C overlaps neither A nor B.
    #[inline]
    pub unsafe fn run(&self, rows: usize, columns: usize, tile: &mut Tile<'_, T>) {
        let vectors = columns.div_ceil(self.lanes);
        tile.tail_lanes = columns - (vectors - 1) * self.lanes;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let prefetches = tile.prefetch.step_bytes > 0;
            let table = if prefetches { self.prefetching_table } else { self.table };
            table[vectors - 1][rows - 1](tile)
        }
    }

    /// Transposes a matrix of `rows` by `columns` elements: writes element `(i, j)` of `from` to
    /// `(j, i)` of `to`. The parameters are the first element and the row stride of each matrix.
    /// Rows are contiguous.
    ///
    /// # Safety
    /// The machine has the instructions. The elements of `from` are readable and the elements of
    /// `to` are writable. The matrices do not overlap.
    pub unsafe fn transpose(
        &self,
        from: (*const T, isize),
        to: (*mut T, isize),
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.transpose)(from, to, rows, columns) }
    }
}

/// An element type of matrix products: float32 or float64.
pub trait Element: Copy + Send + Sync + 'static {
    /// The number 0 of the element type.
    const ZERO: Self;

    /// Returns the micro-kernels for an instruction set, even if the machine does not support it.
    fn kernels(isa: Isa) -> &'static MicroKernels<Self>;
}

/// Minimum number of sums that are computed independently, so that multiply-adds do not wait for
/// each other: the latency of a multiply-add in cycles times the number of multiply-adds per cycle.
const MIN_INDEPENDENT_SUMS: usize = 8;
/// Maximum number of interleaved parts into which `k` is split.
pub const MAX_K_SPLITS: usize = 4;

/// The number of interleaved parts into which `k` is split in tiles of `rows` rows. `max_vectors`
/// is the width of the widest tile. Narrower tiles, at the right edge, use the same order of
/// additions, so that equal columns of B give equal columns of C.
const fn k_splits(rows: usize, max_vectors: usize) -> usize {
    if rows * max_vectors >= MIN_INDEPENDENT_SUMS {
        1
    } else if 2 * rows * max_vectors >= MIN_INDEPENDENT_SUMS {
        2
    } else {
        MAX_K_SPLITS
    }
}

/// Computes a tile of `R` rows by `V` vectors; the widest tile has `W` vectors. Tiles that do not prefetch have separate instances
/// (`PREFETCH` is false), since compilers keep sums in memory if one function contains both loops.
///
/// # Safety
/// As for [`MicroKernels::run`].
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const V: usize, const W: usize, const PREFETCH: bool>(
    t: &Tile<'_, L::Elem>,
) {
    let splits = const { k_splits(R, W) };
    // SAFETY: guaranteed by the caller; the addresses after the last row are computed, but not used.
    unsafe {
        let mut sums = [[[L::zero(); V]; R]; MAX_K_SPLITS];
        let mut prefetch = t.prefetch;
        let segments = if let [KSegment { k: 0, .. }] = t.segments { &[] } else { t.segments };
        for segment in segments {
            let mut a = t.a.wrapping_offset(segment.a_offset);
            let mut b = t.b.wrapping_add(segment.b_offset);
            let mut k = segment.k;
            if splits > 1 {
                while k >= splits {
                    for set in sums.iter_mut().take(splits) {
                        if PREFETCH {
                            prefetch.step();
                        }
                        step(set, a, t.a_row, b);
                        (a, b) = (a.wrapping_offset(t.a_col), b.wrapping_offset(t.b_row));
                    }
                    k -= splits;
                }
                while k > 0 {
                    step(&mut sums[0], a, t.a_row, b);
                    (a, b) = (a.wrapping_offset(t.a_col), b.wrapping_offset(t.b_row));
                    k -= 1;
                }
                continue;
            }
            // No segment is empty, so the loop checks k at its end. A branch around the loop would merge two sets of sums, which
            // compilers copy.
            loop {
                if PREFETCH {
                    prefetch.step();
                }
                step(&mut sums[0], a, t.a_row, b);
                (a, b) = (a.wrapping_offset(t.a_col), b.wrapping_offset(t.b_row));
                k -= 1;
                if k == 0 {
                    break;
                }
            }
        }
        for r in 0..R {
            let c = t.c.wrapping_offset(r as isize * t.c_row);
            for v in 0..V {
                let mut sum = sums[0][r][v];
                for set in &sums[1..splits] {
                    sum = sum.add(set[r][v]);
                }
                write(sum, c.wrapping_add(v * L::N), t, v + 1 == V);
            }
        }
    }
}

/// Adds the outer product of one column of A and one row of B to the sums of a tile.
///
/// # Safety
/// As for [`MicroKernels::run`].
#[inline(always)]
unsafe fn step<L: Lanes, const R: usize, const V: usize>(
    sums: &mut [[L; V]; R],
    a: *const L::Elem,
    a_row: isize,
    b: *const L::Elem,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut row = [L::zero(); V];
        for (v, x) in row.iter_mut().enumerate() {
            *x = L::load(b.add(v * L::N));
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let x = L::splat(a.offset(r as isize * a_row).read_unaligned());
            for v in 0..V {
                sums[v] = x.mul_add(row[v], sums[v]);
            }
        }
    }
}

/// Writes one vector of sums to C. The last vector of a row may be partial.
///
/// # Safety
/// As for [`MicroKernels::run`].
#[inline(always)]
unsafe fn write<L: Lanes>(sum: L, c: *mut L::Elem, t: &Tile<'_, L::Elem>, last: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if last && t.tail_lanes < L::N {
            let sum = if t.accumulate { sum.add(L::load_first(c, t.tail_lanes)) } else { sum };
            sum.store_first(c, t.tail_lanes);
        } else {
            let sum = if t.accumulate { sum.add(L::load(c)) } else { sum };
            sum.store(c);
        }
    }
}

/// Defines the tables of micro-kernels for one vector type. Each entry states the number of vectors
/// of a tile row, then the supported numbers of rows.
///
/// Of 32 registers, at most 24 contain sums; of 16 registers, at most 12. The other registers
/// contain vectors of B and an element of A.
macro_rules! kernels {
    ($lanes:ty $(, $feature:literal)?; 32 registers) => {
        kernels!($lanes $(, $feature)?;
            1: 1 2 3 4 5 6 7 8 9 10 11 12;
            2: 1 2 3 4 5 6 7 8 9 10 11 12;
            3: 1 2 3 4 5 6 7 8;
            4: 1 2 3 4 5 6;
        )
    };
    ($lanes:ty $(, $feature:literal)?; 16 registers) => {
        kernels!($lanes $(, $feature)?;
            1: 1 2 3 4 5 6 7 8 9 10 11 12;
            2: 1 2 3 4 5 6;
        )
    };
    ($lanes:ty $(, $feature:literal)?; $($v:literal: $($r:literal)*;)*) => {{
        /// Computes a tile of `R` rows by `V` vectors, compiled for one instruction set.
        ///
        /// # Safety
        /// As for [`MicroKernels::run`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn run<const R: usize, const V: usize, const PREFETCH: bool>(t: &Tile<'_, <$lanes as Lanes>::Elem>) {
            // SAFETY: guaranteed by the caller.
            unsafe { tile::<$lanes, R, V, { [$($v),*].len() }, PREFETCH>(t) }
        }
        /// Transposes a matrix with the vectors of one instruction set.
        ///
        /// # Safety
        /// As for [`MicroKernels::transpose`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn transpose(
            from: (*const <$lanes as Lanes>::Elem, isize),
            to: (*mut <$lanes as Lanes>::Elem, isize),
            rows: usize,
            columns: usize,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { transpose_matrix::<$lanes>(from, to, rows, columns) }
        }
        static KERNELS: MicroKernels<<$lanes as Lanes>::Elem> = MicroKernels {
            transpose,
            lanes: <$lanes as Lanes>::N,
            table: &[$(&[$(run::<$r, $v, false>),*]),*],
            prefetching_table: &[$(&[$(run::<$r, $v, true>),*]),*],
        };
        &KERNELS
    }};
}

impl Element for f32 {
    const ZERO: f32 = 0.0;

    fn kernels(isa: Isa) -> &'static MicroKernels<f32> {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => kernels!(crate::simd::x86_vectors::F32x16, "avx512f"; 32 registers),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => kernels!(crate::simd::x86_vectors::F32x8, "avx2,fma"; 16 registers),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => kernels!(crate::simd::neon_vectors::F32x4; 32 registers),
            _ => kernels!(Array<f32, 4>; 16 registers),
        }
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;

    fn kernels(isa: Isa) -> &'static MicroKernels<f64> {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => kernels!(crate::simd::x86_vectors::F64x8, "avx512f"; 32 registers),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => kernels!(crate::simd::x86_vectors::F64x4, "avx2,fma"; 16 registers),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => kernels!(crate::simd::neon_vectors::F64x2; 32 registers),
            _ => kernels!(Array<f64, 2>; 16 registers),
        }
    }
}

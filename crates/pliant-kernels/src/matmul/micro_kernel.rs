//! The micro-kernel of all float32 and float64 matrix products. It multiplies a sliver (up to 12
//! rows of A) by a panel (columns of B) and keeps the sums in registers over all of k.
//!
//! Method: register tiles of 6 rows by 4 vectors with 32 registers (24 sums, 4 vectors of B, one
//! broadcast element of A), and of 6 rows by 2 vectors with 16 registers. Narrower tiles have up to
//! 12 rows. The micro-kernel reads A in place through its strides, and B row by row. k may consist
//! of several segments, as in a convolution. A tile with few sums splits k: a multiply-add takes 4
//! cycles and two start per cycle, so at least 8 sums must be independent. Manual unrolling gained
//! nothing. The hardware prefetcher covers the operands of the tile itself; the tile prefetches the
//! data that the caller reads next ([`Prefetch`]).
//!
//! For measurements, see "Products with packed weights" in
//! `docs/internals/measurements/products.md`. The cases of 64 to 256 rows by 384 x 384 show the
//! speed of the micro-kernel best.

use crate::epilogue::BiasAndClip;
use crate::simd::portable_vectors::Array;
use crate::simd::register_transpose::transpose_matrix;
use crate::simd::{Lanes, MathLanes, load};
use pliant_machine::isa::{Isa, Vectors};

/// Maximum number of rows of a register tile that has the maximum number of columns.
pub const ROWS: usize = 6;
/// Maximum number of rows of a register tile of any width.
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
    /// The segments of the inner dimension `k`, in the order of summation. An empty segment must be the only one.
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
    /// The epilogue that is applied to complete sums in registers, before they are stored.
    pub epilogue: Option<&'a BiasAndClip<T>>,
}

/// Memory that a tile prefetches into the second-level cache: some bytes whenever the tile reads a
/// row of B.
#[derive(Clone, Copy, Debug)]
pub struct Prefetch {
    /// The start of the memory to prefetch, which need not be readable.
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

    /// Prefetches the next [`Prefetch::step_bytes`] bytes. The tile calls this method whenever it reads a row of B.
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

/// A micro-kernel: a function that computes register tiles of one size.
pub type TileFn<T> = unsafe fn(&Tile<'_, T>);

/// Micro-kernels for all tile sizes, indexed by the number of vectors minus one, then by the number
/// of rows minus one.
type Table<T> = &'static [&'static [TileFn<T>]];

/// The micro-kernels of one instruction set.
pub struct MicroKernels<T: 'static> {
    /// Number of lanes of a vector.
    pub lanes: usize,
    /// The micro-kernels, indexed by whether they prefetch the memory [`Tile::prefetch`], then by
    /// whether they apply [`Tile::epilogue`]. The other micro-kernels ignore these fields.
    tables: [[Table<T>; 2]; 2],
    /// The function that transposes a matrix with the vectors of this instruction set.
    transpose: TransposeFn<T>,
}

/// A function that writes element `(i, j)` of a matrix to element `(j, i)` of another matrix. The
/// parameters are the address of the first element and the row stride of each matrix, and the
/// numbers of rows and columns of the source.
type TransposeFn<T> = unsafe fn((*const T, isize), (*mut T, isize), usize, usize);

impl<T> MicroKernels<T> {
    /// Returns the number of columns of the widest register tile for which there is a micro-kernel.
    pub fn columns(&self) -> usize {
        self.lanes * self.tables[0][0].len()
    }

    /// Returns the maximum number of rows of a tile with `columns` columns. Narrow tiles may have
    /// more rows, so that there are enough independent sums.
    ///
    /// # Panics
    /// `columns` is 0 or more than [`MicroKernels::columns`].
    pub fn rows(&self, columns: usize) -> usize {
        self.tables[0][0][columns.div_ceil(self.lanes) - 1].len()
    }

    /// Computes the results of a tile of `rows` rows and `columns` columns with the micro-kernel for this size. Sets
    /// [`Tile::tail_lanes`] for it.
    ///
    /// # Safety
    /// The machine has the instructions of these kernels. `1 <= columns <= self.columns()` and `1
    /// <= rows <= self.rows(columns)`. The elements of A and C are valid. The elements of B are
    /// readable up to the end of the last vector. C overlaps neither A nor B.
    #[inline]
    pub unsafe fn run(&self, rows: usize, columns: usize, tile: &mut Tile<'_, T>) {
        let vectors = columns.div_ceil(self.lanes);
        tile.tail_lanes = columns - (vectors - 1) * self.lanes;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let prefetches = usize::from(tile.prefetch.step_bytes > 0);
            let finishes = usize::from(tile.epilogue.is_some());
            self.tables[prefetches][finishes][vectors - 1][rows - 1](tile)
        }
    }

    /// Transposes a matrix of `rows` by `columns` elements: writes element `(i, j)` of `from` to
    /// `(j, i)` of `to`. The parameters are the first element and the row stride of each matrix.
    /// Rows are contiguous.
    ///
    /// # Safety
    /// The machine has the instructions of these kernels. The elements of `from` are readable and
    /// the elements of `to` are writable. The matrices do not overlap.
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
/// Maximum number of interleaved parts into which the inner dimension `k` is split.
pub const MAX_K_SPLITS: usize = 4;

/// The number of interleaved parts into which the inner dimension `k` is split in tiles of `rows` rows. `max_vectors`
/// is the width of the widest tile. Narrower tiles, at the right edge, use the same order of additions, so that equal
/// columns of B give equal columns of C.
const fn k_splits(rows: usize, max_vectors: usize) -> usize {
    if rows * max_vectors >= MIN_INDEPENDENT_SUMS {
        1
    } else if 2 * rows * max_vectors >= MIN_INDEPENDENT_SUMS {
        2
    } else {
        MAX_K_SPLITS
    }
}

/// Repeats a block for each row of a tile of `$count` rows, at most [`MAX_ROWS`]. Compilers unroll a loop only if its body is small
/// enough, and would otherwise keep all sums of the tile in memory.
macro_rules! for_each_row {
    ($count:expr, |$r:ident| $body:block) => {
        for_each_row!(@ $count, $r, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $count:expr, $r:ident, $body:block, $($index:literal)*) => {
        $(if $index < $count {
            let $r: usize = $index;
            $body
        })*
    };
}

/// Computes a tile of `R` rows by `V` vectors; the widest tile has `W` vectors. Tiles that do not prefetch and tiles without
/// epilogue have separate instances (`PREFETCH` or `EPILOGUE` is false), since compilers keep sums in memory if one function
/// contains both loops.
///
/// # Safety
/// The conditions of [`MicroKernels::run`] hold.
#[inline(always)]
unsafe fn tile<
    L: MathLanes,
    const R: usize,
    const V: usize,
    const W: usize,
    const PREFETCH: bool,
    const EPILOGUE: bool,
>(
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
        let finish = match t.epilogue {
            Some(epilogue) if EPILOGUE => Some(FinishRow::<L, V>::of(epilogue, t.tail_lanes)),
            _ => None,
        };
        for_each_row!(R, |r| {
            let c = t.c.wrapping_offset(r as isize * t.c_row);
            for v in 0..V {
                let mut sum = sums[0][r][v];
                for set in &sums[1..splits] {
                    sum = sum.add(set[r][v]);
                }
                write(sum, c.wrapping_add(v * L::N), t, (v, v + 1 == V), &finish);
            }
        });
    }
}

/// The bias and the clip bounds of an epilogue, loaded in registers for one row of a tile.
struct FinishRow<L, const V: usize> {
    bias: [L; V],
    low: L,
    high: L,
}

impl<L: MathLanes, const V: usize> FinishRow<L, V> {
    /// Loads the bias and the clip bounds for a row of `V` vectors. The last vector has
    /// `tail_lanes` elements.
    ///
    /// # Safety
    /// The conditions of [`MicroKernels::run`] hold.
    #[inline(always)]
    unsafe fn of(epilogue: &BiasAndClip<L::Elem>, tail_lanes: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Adding -0 changes no number, not even a zero.
            let mut bias = [L::constant(-0.0); V];
            if !epilogue.bias.is_null() {
                for (v, bias) in bias.iter_mut().enumerate() {
                    let from = epilogue.bias.wrapping_add(v * L::N);
                    *bias = match v + 1 == V && tail_lanes < L::N {
                        true => load::<L, false>(from, tail_lanes),
                        false => L::load(from),
                    };
                }
            }
            FinishRow { bias, low: L::splat(epilogue.low), high: L::splat(epilogue.high) }
        }
    }

    /// Applies the epilogue to `sums`, the sums of vector `v` of a row, and returns the results.
    /// NaN propagates.
    ///
    /// # Safety
    /// The conditions of [`MicroKernels::run`] hold.
    #[inline(always)]
    unsafe fn value(&self, sums: L, v: usize) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { self.high.min2(self.low.max2(sums.add(self.bias[v]))) }
    }
}

/// Adds the outer product of one column of A and one row of B to the sums of a tile.
///
/// # Safety
/// The conditions of [`MicroKernels::run`] hold.
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

/// Writes vector `v` of a row of sums to C, or adds it to C if the tile accumulates, and applies the epilogue. The last vector of a
/// row may be partial.
///
/// # Safety
/// The conditions of [`MicroKernels::run`] hold.
#[inline(always)]
unsafe fn write<L: MathLanes, const V: usize>(
    sum: L,
    c: *mut L::Elem,
    t: &Tile<'_, L::Elem>,
    (v, last): (usize, bool),
    finish: &Option<FinishRow<L, V>>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if last && t.tail_lanes < L::N {
            let sum = if t.accumulate { sum.add(L::load_first(c, t.tail_lanes)) } else { sum };
            let sum = finish.as_ref().map_or(sum, |finish| finish.value(sum, v));
            sum.store_first(c, t.tail_lanes);
        } else {
            let sum = if t.accumulate { sum.add(L::load(c)) } else { sum };
            let sum = finish.as_ref().map_or(sum, |finish| finish.value(sum, v));
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
        /// The conditions of [`MicroKernels::run`] hold.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run<const R: usize, const V: usize, const PREFETCH: bool, const EPILOGUE: bool>(
            t: &Tile<'_, <$lanes as Lanes>::Elem>,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { tile::<$lanes, R, V, { [$($v),*].len() }, PREFETCH, EPILOGUE>(t) }
        }
        /// Transposes a matrix with the vectors of one instruction set.
        ///
        /// # Safety
        /// The conditions of [`MicroKernels::transpose`] hold.
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
            tables: [
                [
                    &[$(&[$(run::<$r, $v, false, false>),*]),*],
                    &[$(&[$(run::<$r, $v, false, true>),*]),*],
                ],
                [
                    &[$(&[$(run::<$r, $v, true, false>),*]),*],
                    &[$(&[$(run::<$r, $v, true, true>),*]),*],
                ],
            ],
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

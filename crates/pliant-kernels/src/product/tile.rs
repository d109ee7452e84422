//! The micro-kernel of all products: one sliver of rows by one panel of columns, in registers over
//! all of k.
//!
//! Recipe: 6 rows by 4 vectors with 32 registers (24 sums, 4 vectors of B, one broadcast of A), 6
//! by 2 with 16; products of fewer columns have up to 12 rows. A is read in place through its strides, B row by row. The sums may
//! continue over several runs of k, as those of a convolution do. A tile with few sums splits
//! k, since a multiply-add takes 4 cycles and two start per cycle: at least 8 sums must be
//! independent. Manual unrolling gained nothing. The hardware prefetcher handles what the tile
//! itself reads; the tile prefetches what the caller reads next ([`Ahead`]).
//!
//! Measured: "Products with packed weights" in `docs/performance.md`; 64 to 256 rows by 384 x 384
//! show the tile best.

use crate::lanes::transpose::transpose_matrix;
use crate::lanes::{Lanes, portable::Array};
use pliant_machine::isa::{Isa, Vectors};

/// Maximum number of rows of a tile of the greatest width.
pub const ROWS: usize = 6;
/// Maximum number of rows of any tile.
pub const MAX_ROWS: usize = 12;

/// Adjacent columns of A and rows of B: a part of the products of each sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// The first column, in elements from the start of A.
    pub a: isize,
    /// The first row, in elements from the start of B.
    pub b: usize,
    /// The number of products.
    pub k: usize,
}

impl Run {
    /// The first `k` columns and rows.
    pub const fn first(k: usize) -> Run {
        Run { a: 0, b: 0, k }
    }
}

/// `c[rows, columns] (+)= a[rows, k] * b[k, columns]`; strides in elements.
pub struct Tile<'a, T> {
    /// The products of each sum, in order: one run, or several that are not empty, or none to write zeros.
    pub runs: &'a [Run],
    /// First element of A.
    pub a: *const T,
    /// The row stride of A.
    pub a_row: isize,
    /// The column stride of A.
    pub a_col: isize,
    /// First element of B, whose rows are contiguous.
    pub b: *const T,
    /// The row stride of B.
    pub b_row: isize,
    /// First element of C, whose rows are contiguous.
    pub c: *mut T,
    /// The row stride of C.
    pub c_row: isize,
    /// Whether to add to the contents of C.
    pub accumulate: bool,
    /// The number of elements of C in the last vector of a row.
    pub last: usize,
    /// Memory that is read soon.
    pub ahead: Ahead,
}

/// Memory to prefetch into the second-level cache while a tile is computed, some bytes per
/// step of k.
#[derive(Clone, Copy, Debug)]
pub struct Ahead {
    /// The start of the memory. It need not be readable.
    pub from: *const u8,
    /// Bytes per step; 0 for nothing.
    pub pace: usize,
}

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Minimum number of tiles that share a slice. Each prefetch occupies one of about 16 fill buffers
/// until the memory responds, and the tile's own operands need them, too: faster prefetching costs
/// more than it gains.
const AHEAD_TILES: usize = 2;

impl Ahead {
    /// Nothing.
    pub const NONE: Ahead = Ahead { from: std::ptr::null(), pace: 0 };

    /// Share `index` of `count` in prefetching a slice of `depth` rows of `row` bytes: consecutive
    /// tiles of that depth together prefetch all of it, evenly. Nothing if there are too few tiles.
    pub fn share(from: *const u8, row: usize, depth: usize, index: usize, count: usize) -> Ahead {
        if count < AHEAD_TILES {
            return Ahead::NONE;
        }
        let pace = row.div_ceil(count);
        Ahead { from: from.wrapping_add(index * pace * depth), pace }
    }

    /// Prefetches the bytes of one step.
    #[inline(always)]
    fn step(&mut self) {
        let mut at = 0;
        while at < self.pace {
            fetch(self.from.wrapping_add(at));
            at += LINE;
        }
        self.from = self.from.wrapping_add(self.pace);
    }
}

/// Prefetches a cache line into the second-level cache, if the machine has such an instruction. The
/// address need not be readable.
#[inline(always)]
pub fn fetch(from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless, and every machine of this kind has the
    // instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// A kernel for tiles of one size.
pub type TileFn<T> = unsafe fn(&Tile<'_, T>);

/// Kernels for all sizes of tiles.
type Table<T> = &'static [&'static [TileFn<T>]];

/// The kernels of one instruction set.
pub struct Kernels<T: 'static> {
    /// Lanes of a vector.
    pub lanes: usize,
    /// Indexed by vectors minus one, then by rows minus one.
    table: Table<T>,
    /// The same for tiles that prefetch memory.
    ahead: Table<T>,
    /// Transposes a matrix.
    turn: TurnFn<T>,
}

/// Writes element `(i, j)` of a matrix with the given rows and columns to `(j, i)` of another. Each
/// matrix is given by its first element and row stride.
type TurnFn<T> = unsafe fn((*const T, isize), (*mut T, isize), usize, usize);

impl<T> Kernels<T> {
    /// Columns of the widest tile.
    pub fn columns(&self) -> usize {
        self.lanes * self.table.len()
    }

    /// Maximum number of rows of tiles of `columns` columns: narrow tiles may be taller, so that there are enough independent sums.
    /// At least one column, and at most [`Kernels::columns`].
    pub fn rows(&self, columns: usize) -> usize {
        self.table[columns.div_ceil(self.lanes) - 1].len()
    }

    /// Computes a tile of `rows` by `columns`; sets the tile's field `last`.
    ///
    /// # Safety
    /// The machine has the instructions. `1 <= columns <= self.columns()` and `1 <= rows <= self.rows(columns)`. The elements of A
    /// and C are valid, and those of B up to the end of the last vector; C overlaps neither.
    #[inline]
    pub unsafe fn run(&self, rows: usize, columns: usize, tile: &mut Tile<'_, T>) {
        let vectors = columns.div_ceil(self.lanes);
        tile.last = columns - (vectors - 1) * self.lanes;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let table = if tile.ahead.pace == 0 { self.table } else { self.ahead };
            table[vectors - 1][rows - 1](tile)
        }
    }

    /// Transposes: writes element `(i, j)` of `rows` by `columns` elements to `(j, i)`. Both
    /// matrices have contiguous rows with the given strides.
    ///
    /// # Safety
    /// The machine has the instructions. The elements are readable and writable; the matrices do
    /// not overlap.
    pub unsafe fn turn(
        &self,
        from: (*const T, isize),
        to: (*mut T, isize),
        rows: usize,
        columns: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.turn)(from, to, rows, columns) }
    }
}

/// An element type that products exist for.
pub trait Element: Copy + Send + Sync + 'static {
    /// The number zero.
    const ZERO: Self;

    /// The kernels of an instruction set, which the machine need not have.
    fn kernels(isa: Isa) -> &'static Kernels<Self>;
}

/// Number of sums that must be independent: the latency of a multiply-add times the number that
/// start per cycle.
const OPEN_SUMS: usize = 8;
/// Maximum number of parts that k is split into.
pub const SPLITS: usize = 4;

/// The number of parts that k is split into in tiles of `rows` rows, of which the widest has
/// `widest` vectors. Narrower tiles, at the right edge, add in the same order, so that equal
/// columns of B give equal columns of C.
const fn splits(rows: usize, widest: usize) -> usize {
    if rows * widest >= OPEN_SUMS {
        1
    } else if 2 * rows * widest >= OPEN_SUMS {
        2
    } else {
        SPLITS
    }
}

/// `R` rows by `V` vectors; the widest tile has `W` vectors. Tiles that do not prefetch (`AHEAD`) have functions of their own,
/// since compilers keep sums in memory if both loops are in one.
///
/// # Safety
/// As for [`Kernels::run`].
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const V: usize, const W: usize, const AHEAD: bool>(
    t: &Tile<'_, L::Elem>,
) {
    let splits = const { splits(R, W) };
    // SAFETY: guaranteed by the caller; the addresses after the last row are computed, but not used.
    unsafe {
        let mut sums = [[[L::zero(); V]; R]; SPLITS];
        let mut ahead = t.ahead;
        let runs = if let [Run { k: 0, .. }] = t.runs { &[] } else { t.runs };
        for run in runs {
            let (mut a, mut b) = (t.a.wrapping_offset(run.a), t.b.wrapping_add(run.b));
            let mut k = run.k;
            if splits > 1 {
                while k >= splits {
                    for set in sums.iter_mut().take(splits) {
                        if AHEAD {
                            ahead.step();
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
            // No run is empty: a way around the loop would merge two sets of sums, and compilers would copy them.
            loop {
                if AHEAD {
                    ahead.step();
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

/// Adds one row of B, multiplied by each row's element of A.
///
/// # Safety
/// As for [`Kernels::run`].
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

/// Writes one vector of C; the last one in a row may be partial.
///
/// # Safety
/// As for [`Kernels::run`].
#[inline(always)]
unsafe fn write<L: Lanes>(sum: L, c: *mut L::Elem, t: &Tile<'_, L::Elem>, last: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if last && t.last < L::N {
            let sum = if t.accumulate { sum.add(L::load_first(c, t.last)) } else { sum };
            sum.store_first(c, t.last);
        } else {
            let sum = if t.accumulate { sum.add(L::load(c)) } else { sum };
            sum.store(c);
        }
    }
}

/// The table of kernels for one vector type. Each entry has a number of vectors in a row and the numbers of rows.
///
/// With 32 registers, at most 24 are sums: the others are vectors of B and an element of A; with 16, at most 12.
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
        /// # Safety
        /// As for [`Kernels::run`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn run<const R: usize, const V: usize, const AHEAD: bool>(t: &Tile<'_, <$lanes as Lanes>::Elem>) {
            // SAFETY: guaranteed by the caller.
            unsafe { tile::<$lanes, R, V, { [$($v),*].len() }, AHEAD>(t) }
        }
        /// # Safety
        /// As for [`Kernels::turn`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn turn(
            from: (*const <$lanes as Lanes>::Elem, isize),
            to: (*mut <$lanes as Lanes>::Elem, isize),
            rows: usize,
            columns: usize,
        ) {
            // SAFETY: guaranteed by the caller.
            unsafe { transpose_matrix::<$lanes>(from, to, rows, columns) }
        }
        static KERNELS: Kernels<<$lanes as Lanes>::Elem> = Kernels {
            turn,
            lanes: <$lanes as Lanes>::N,
            table: &[$(&[$(run::<$r, $v, false>),*]),*],
            ahead: &[$(&[$(run::<$r, $v, true>),*]),*],
        };
        &KERNELS
    }};
}

impl Element for f32 {
    const ZERO: f32 = 0.0;

    fn kernels(isa: Isa) -> &'static Kernels<f32> {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => kernels!(crate::lanes::x86::F32x16, "avx512f"; 32 registers),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => kernels!(crate::lanes::x86::F32x8, "avx2,fma"; 16 registers),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => kernels!(crate::lanes::neon::F32x4; 32 registers),
            _ => kernels!(Array<f32, 4>; 16 registers),
        }
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;

    fn kernels(isa: Isa) -> &'static Kernels<f64> {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => kernels!(crate::lanes::x86::F64x8, "avx512f"; 32 registers),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => kernels!(crate::lanes::x86::F64x4, "avx2,fma"; 16 registers),
            #[cfg(target_arch = "aarch64")]
            Vectors::Neon => kernels!(crate::lanes::neon::F64x2; 32 registers),
            _ => kernels!(Array<f64, 2>; 16 registers),
        }
    }
}

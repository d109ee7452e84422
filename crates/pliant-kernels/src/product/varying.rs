//! Products of two operands that both vary, of any strides, on the calling thread.
//!
//! Recipe: as for packed operands, but B is read in place where its rows are contiguous and few slivers share them;
//! otherwise each panel is packed first, k by k, into a scratch panel that stays in the second-level cache.

use std::cell::RefCell;

use super::rows::slivers;
use super::tile::{Element, Kernels, Tile};
use crate::gemm::Gemm;
use crate::isa::Isa;

/// Block of k.
const K_BLOCK: usize = 512;
/// k up to which few rows take all of it at once.
const K_WHOLE: usize = 2048;
/// How many rows are few.
const FEW_ROWS: usize = 64;
/// Rows up to which reading B in place is cheaper than packing it.
const PACK_ROWS: usize = 48;
/// Rows from which turning B into panels pays where its rows are not contiguous.
pub const TRANSPOSE_ROWS: usize = 4;

/// Whether [`run`] takes a product: C has contiguous rows or columns, and B need not be turned for a few rows.
pub fn applies<T>(g: &Gemm<T>) -> bool {
    if g.c.2 == 1 {
        g.b.2 == 1 || g.m >= TRANSPOSE_ROWS
    } else {
        // The transposed product has contiguous rows.
        g.c.1 == 1 && (g.a.1 == 1 || g.n >= TRANSPOSE_ROWS)
    }
}

/// One product.
///
/// # Safety
/// The machine has `isa`. [`applies`] says yes. All addressed elements are valid; C overlaps neither A nor B.
pub unsafe fn run<T: Element + Scratch>(isa: Isa, g: &Gemm<T>) {
    let turned = if g.c.2 == 1 { *g } else { transposed(g) };
    T::with_scratch(|packed| {
        // SAFETY: the caller's promise; the transposed product has the same elements.
        unsafe { blocks(T::kernels(isa), &turned, packed) }
    });
}

fn transposed<T: Copy>(g: &Gemm<T>) -> Gemm<T> {
    let flip = |(p, row, col)| (p, col, row);
    Gemm {
        m: g.n,
        n: g.m,
        k: g.k,
        a: flip(g.b),
        b: flip(g.a),
        c: (g.c.0, g.c.2, g.c.1),
        accumulate: g.accumulate,
    }
}

/// An element type with a scratch panel for each thread.
pub trait Scratch: Sized {
    /// Calls `f` with the panel of this thread.
    fn with_scratch(f: impl FnOnce(&mut Vec<Self>));
}

macro_rules! scratch {
    ($ty:ty) => {
        impl Scratch for $ty {
            fn with_scratch(f: impl FnOnce(&mut Vec<$ty>)) {
                thread_local! {
                    static PANEL: RefCell<Vec<$ty>> = const { RefCell::new(Vec::new()) };
                }
                PANEL.with_borrow_mut(f);
            }
        }
    };
}

scratch!(f32);
scratch!(f64);

/// # Safety
/// As for [`run`], with contiguous rows of C.
unsafe fn blocks<T: Element>(kernels: &Kernels<T>, g: &Gemm<T>, packed: &mut Vec<T>) {
    let whole = g.m <= FEW_ROWS && g.k <= K_WHOLE;
    let k_block = if whole { g.k.max(1) } else { K_BLOCK };
    let mut k = 0;
    loop {
        let depth = k_block.min(g.k - k);
        for column in (0..g.n).step_by(kernels.columns()) {
            let columns = kernels.columns().min(g.n - column);
            let width = columns.next_multiple_of(kernels.lanes);
            // SAFETY: the offsets stay inside the matrices.
            unsafe {
                let b = g.b.0.offset(k as isize * g.b.1 + column as isize * g.b.2);
                let in_place = g.b.2 == 1 && columns == width && g.m <= PACK_ROWS;
                let (b, b_row) = if in_place {
                    (b, g.b.1)
                } else {
                    pack(b, g.b.1, g.b.2, depth, columns, width, packed);
                    (packed.as_ptr(), width as isize)
                };
                panel(kernels, g, (column, columns), (k, depth), (b, b_row));
            }
        }
        k += depth;
        if k >= g.k {
            return;
        }
    }
}

/// All rows of C under one panel.
///
/// # Safety
/// As for [`run`]; `b` holds `depth` rows of whole vectors.
unsafe fn panel<T: Element>(
    kernels: &Kernels<T>,
    g: &Gemm<T>,
    (column, columns): (usize, usize),
    (k, depth): (usize, usize),
    (b, b_row): (*const T, isize),
) {
    for (row, height) in slivers(g.m) {
        let row = row as isize;
        // SAFETY: the caller's promise.
        unsafe {
            let mut tile = Tile {
                k: depth,
                a: g.a.0.offset(row * g.a.1 + k as isize * g.a.2),
                a_row: g.a.1,
                a_col: g.a.2,
                b,
                b_row,
                c: g.c.0.offset(row * g.c.1).add(column),
                c_row: g.c.1,
                accumulate: g.accumulate || k > 0,
                last: 0,
            };
            kernels.run(height, columns, &mut tile);
        }
    }
}

/// Copies a panel of B, row by row, with zeros right of its columns.
///
/// # Safety
/// `depth` by `columns` elements are valid.
unsafe fn pack<T: Element>(
    b: *const T,
    row: isize,
    col: isize,
    depth: usize,
    columns: usize,
    width: usize,
    packed: &mut Vec<T>,
) {
    if packed.len() < depth * width {
        packed.resize(depth * width, T::ZERO);
    }
    if columns < width {
        packed.chunks_exact_mut(width).take(depth).for_each(|row| row[columns..].fill(T::ZERO));
    }
    // SAFETY: the caller's promise for reads; writes are inside `packed`.
    unsafe {
        if col == 1 {
            for p in 0..depth {
                let from = b.offset(p as isize * row);
                let to = packed[p * width..p * width + columns].as_mut_ptr();
                std::ptr::copy_nonoverlapping(from, to, columns);
            }
            return;
        }
        // Blocks of 8 rows keep both the strided reads and the writes in the first-level cache.
        for p0 in (0..depth).step_by(8) {
            for j in 0..columns {
                let from = b.offset(j as isize * col);
                for p in p0..depth.min(p0 + 8) {
                    *packed.get_unchecked_mut(p * width + j) =
                        from.offset(p as isize * row).read_unaligned();
                }
            }
        }
    }
}

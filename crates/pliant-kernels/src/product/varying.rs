//! Products of two non-constant operands with any strides, on the calling thread.
//!
//! Recipe: as for packed operands, but B is read in place if its rows are contiguous and few
//! slivers share them. Otherwise each panel is first packed, block by block of k, into a scratch
//! panel that stays in the second-level cache. If B is transposed, packing transposes blocks within
//! the registers.
//!
//! [`crate::rules::varying`] decides which of these runs. Measured: "Products of two operands that
//! vary" in `docs/performance.md`.

use pliant_exec::abi::STATUS_OK;

use super::rows::even;
use super::tile::{Ahead, Element, Kernels, Run, Tile};
use crate::gemm::Gemm;
use crate::rules::varying::{depth, is_in_place, turns};
use crate::scratch::Scratch;
use pliant_machine::isa::Isa;

/// Whether [`run`] supports a product: C has contiguous rows or columns, and B need not be
/// transposed where that costs too much.
pub fn applies<T>(g: &Gemm<T>) -> bool {
    if g.c.2 == 1 {
        g.b.2 == 1 || turns(g.m, g.k)
    } else {
        // The transposed product has contiguous rows.
        g.c.1 == 1 && (g.a.1 == 1 || turns(g.n, g.k))
    }
}

thread_local! {
    /// Its rows start at cache lines: vectors that straddle lines halve the speed of a product.
    static PANEL: Scratch = const { Scratch::new() };
}

/// One product. Returns a kernel status: out of memory, or 0.
///
/// # Safety
/// The machine has `isa`. [`applies`] is true. All addressed elements are valid; C overlaps neither
/// A nor B.
pub unsafe fn run<T: Element>(isa: Isa, g: &Gemm<T>) -> i64 {
    let kernels = T::kernels(isa);
    let g = if g.c.2 == 1 { *g } else { transposed(g) };
    let in_place = reads_in_place(&g) && g.n.is_multiple_of(kernels.lanes);
    let room = if in_place { 0 } else { depth(kernels.columns()).min(g.k) * kernels.columns() };
    let all = |packed: *mut T| {
        // SAFETY: guaranteed by the caller; the transposed product has the same elements.
        unsafe { blocks(kernels, &g, packed) };
        STATUS_OK
    };
    PANEL.with(|memory| memory.with(room, all))
}

/// Whether whole vectors of B are read in place.
fn reads_in_place<T>(g: &Gemm<T>) -> bool {
    g.b.2 == 1 && is_in_place(g.m, g.b.1.unsigned_abs().saturating_mul(size_of::<T>()))
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

/// # Safety
/// As for [`run`], with contiguous rows of C; `packed` has room for the widest panel unless all of B is read in place.
unsafe fn blocks<T: Element>(kernels: &Kernels<T>, g: &Gemm<T>, packed: *mut T) {
    let most = depth(kernels.columns());
    for k in (0..g.k.max(1)).step_by(most) {
        let depth = most.min(g.k - k);
        for column in (0..g.n).step_by(kernels.columns()) {
            let columns = kernels.columns().min(g.n - column);
            let width = columns.next_multiple_of(kernels.lanes);
            // SAFETY: the offsets stay inside the matrices.
            unsafe {
                let b = g.b.0.offset(k as isize * g.b.1 + column as isize * g.b.2);
                let (b, b_row) = if reads_in_place(g) && columns == width {
                    (b, g.b.1)
                } else {
                    pack(kernels, (b, g.b.1, g.b.2), depth, (columns, width), packed);
                    (packed.cast_const(), width as isize)
                };
                panel(kernels, g, (column, columns), (k, depth), (b, b_row));
            }
        }
    }
}

/// All rows of C for one panel.
///
/// # Safety
/// As for [`run`]; `b` has `depth` rows of whole vectors.
unsafe fn panel<T: Element>(
    kernels: &Kernels<T>,
    g: &Gemm<T>,
    (column, columns): (usize, usize),
    (k, depth): (usize, usize),
    (b, b_row): (*const T, isize),
) {
    for (row, height) in even(g.m, kernels.rows(g.n.min(kernels.columns()))) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut tile = Tile {
                runs: &[Run::first(depth)],
                a: g.a.0.offset(row as isize * g.a.1 + k as isize * g.a.2),
                a_row: g.a.1,
                a_col: g.a.2,
                b,
                b_row,
                c: g.c.0.offset(row as isize * g.c.1).add(column),
                c_row: g.c.1,
                accumulate: g.accumulate || k > 0,
                last: 0,
                ahead: Ahead::NONE,
            };
            kernels.run(height, columns, &mut tile);
        }
    }
}

/// Copies a panel of B, row by row, padded with zeros on the right.
///
/// # Safety
/// `depth` by `columns` elements are valid, and `packed` has room for rows of `width`.
unsafe fn pack<T: Element>(
    kernels: &Kernels<T>,
    (b, row, col): (*const T, isize, isize),
    depth: usize,
    (columns, width): (usize, usize),
    packed: *mut T,
) {
    // SAFETY: guaranteed by the caller for reads; writes stay inside the panel.
    unsafe {
        if columns < width {
            for p in 0..depth {
                (columns..width).for_each(|j| packed.add(p * width + j).write(T::ZERO));
            }
        }
        if col == 1 {
            for p in 0..depth {
                let from = b.offset(p as isize * row);
                std::ptr::copy_nonoverlapping(from, packed.add(p * width), columns);
            }
        } else if row == 1 {
            kernels.turn((b, col), (packed, width as isize), columns, depth);
        } else {
            for p in 0..depth {
                for j in 0..columns {
                    let from = b.offset(p as isize * row).offset(j as isize * col);
                    packed.add(p * width + j).write(from.read_unaligned());
                }
            }
        }
    }
}

//! Matrix products of two non-constant operands with any strides, on the calling thread.
//!
//! Method: the same as for packed operands, but B is read in place if its rows are contiguous and
//! only few slivers (groups of rows of A) read them. Otherwise each panel is packed before it is
//! multiplied, block by block of k, into scratch memory that stays in the second-level cache. If B
//! is transposed, packing transposes blocks in registers. The last vector of a row may be partly
//! filled: its other lanes then hold the start of the next row of B, and their sums are not stored.
//! Only the last rows of B, whose vectors would cross the end of B, are packed.
//!
//! [`crate::algorithm_selection::non_constant_operands`] decides whether B is packed. For
//! measurements, see "Products of two non-constant operands" in
//! `docs/internals/measurements/products.md`.

use pliant_exec::abi::STATUS_OK;

use super::micro_kernel::{Element, KSegment, MicroKernels, Prefetch, Tile};
use super::row_tiling::split_evenly;
use crate::algorithm_selection::non_constant_operands::{
    depth, in_place_is_faster, transposing_is_faster,
};
use crate::batched_gemm::Gemm;
use crate::scratch_memory::Scratch;
use pliant_machine::isa::Isa;

/// Whether [`run`] supports a matrix product: C has contiguous rows or columns, and B need not be
/// transposed, or transposing B is profitable.
pub fn applies<T>(g: &Gemm<T>) -> bool {
    if g.c.2 == 1 {
        g.b.2 == 1 || transposing_is_faster(g.m, g.k)
    } else {
        // The transposed product has contiguous rows.
        g.c.1 == 1 && (g.a.1 == 1 || transposing_is_faster(g.n, g.k))
    }
}

thread_local! {
    /// Memory for a packed panel. The rows of the panel start at cache lines, because loads across
    /// cache lines would halve the speed.
    static PANEL: Scratch = const { Scratch::new() };
}

/// Computes one matrix product. Returns a kernel status: out of memory, or 0.
///
/// # Safety
/// The machine has `isa`. [`applies`] is true. All addressed elements are valid. C overlaps neither
/// A nor B.
pub unsafe fn run<T: Element>(isa: Isa, g: &Gemm<T>) -> i64 {
    let kernels = T::kernels(isa);
    let g = if g.c.2 == 1 { *g } else { transposed(g) };
    let panel_size = match rows_in_place(&g, kernels.lanes) == g.k {
        true => 0,
        false => depth(kernels.columns()).min(g.k) * kernels.columns(),
    };
    let compute = |packed: *mut T| {
        // SAFETY: guaranteed by the caller; the transposed product has the same elements.
        unsafe { add_blocks(kernels, &g, packed) };
        STATUS_OK
    };
    PANEL.with(|memory| memory.with(panel_size, compute))
}

/// The number of leading rows of B of which all panels are read in place, including the last panel if its last vector is partly
/// filled. Of the other rows, panels of whole vectors are read in place if [`reads_in_place`] is true, and the rest is packed.
fn rows_in_place<T>(g: &Gemm<T>, lanes: usize) -> usize {
    if !reads_in_place(g) {
        return 0;
    }
    let beyond_row = g.n.next_multiple_of(lanes) - g.n;
    if beyond_row == 0 {
        return g.k;
    }
    // The gaps between rows that are not adjacent may belong to other tensors.
    if g.b.1 != g.n as isize {
        return 0;
    }
    g.k.saturating_sub(beyond_row.div_ceil(g.n))
}

/// Whether panels of B are read in place where that is possible. Otherwise all panels are packed.
fn reads_in_place<T>(g: &Gemm<T>) -> bool {
    g.b.2 == 1 && in_place_is_faster(g.m, g.b.1.unsigned_abs().saturating_mul(size_of::<T>()))
}

/// Returns the transposed problem `C^T = B^T A^T`: swaps and transposes the operands.
fn transposed<T: Copy>(g: &Gemm<T>) -> Gemm<T> {
    let transpose = |(p, row, col)| (p, col, row);
    Gemm {
        m: g.n,
        n: g.m,
        k: g.k,
        a: transpose(g.b),
        b: transpose(g.a),
        c: (g.c.0, g.c.2, g.c.1),
        accumulate: g.accumulate,
    }
}

/// Adds the matrix product to C: loops over blocks of the inner dimension `k` and over panels.
///
/// # Safety
/// The conditions of [`run`] hold, with contiguous rows of C. `packed` has room for the widest
/// panel unless all of B is read in place.
unsafe fn add_blocks<T: Element>(kernels: &MicroKernels<T>, g: &Gemm<T>, packed: *mut T) {
    let max_depth = depth(kernels.columns());
    let in_place = reads_in_place(g);
    let leading_rows = rows_in_place(g, kernels.lanes);
    let mut k = 0;
    loop {
        // All columns have the same blocks of k, so that equal columns of B give equal columns of C.
        let end = if k < leading_rows { leading_rows } else { g.k };
        let depth = max_depth.min(end - k);
        for column in (0..g.n).step_by(kernels.columns()) {
            let columns = kernels.columns().min(g.n - column);
            let width = columns.next_multiple_of(kernels.lanes);
            // SAFETY: the offsets stay inside the matrices. The last vectors of the leading rows end inside B, because
            // `rows_in_place` leaves out the rows whose vectors would end behind it; other partly filled vectors are packed.
            unsafe {
                let b = g.b.0.offset(k as isize * g.b.1 + column as isize * g.b.2);
                let (b, b_row) = if (in_place && columns == width) || k < leading_rows {
                    (b, g.b.1)
                } else {
                    pack(kernels, (b, g.b.1, g.b.2), depth, (columns, width), packed);
                    (packed.cast_const(), width as isize)
                };
                add_panel(kernels, g, (column, columns), (k, depth), (b, b_row));
            }
        }
        k += depth;
        if k >= g.k {
            break;
        }
    }
}

/// Multiplies all rows of A by one panel of B over one block of `k`, and adds the results to C.
///
/// # Safety
/// The conditions of [`run`] hold; `b` has `depth` rows of whole vectors.
unsafe fn add_panel<T: Element>(
    kernels: &MicroKernels<T>,
    g: &Gemm<T>,
    (column, columns): (usize, usize),
    (k, depth): (usize, usize),
    (b, b_row): (*const T, isize),
) {
    for (row, height) in split_evenly(g.m, kernels.rows(g.n.min(kernels.columns()))) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut tile = Tile {
                segments: &[KSegment::leading(depth)],
                a: g.a.0.offset(row as isize * g.a.1 + k as isize * g.a.2),
                a_row: g.a.1,
                a_col: g.a.2,
                b,
                b_row,
                c: g.c.0.offset(row as isize * g.c.1).add(column),
                c_row: g.c.1,
                accumulate: g.accumulate || k > 0,
                tail_lanes: 0,
                prefetch: Prefetch::NONE,
                epilogue: None,
            };
            kernels.run(height, columns, &mut tile);
        }
    }
}

/// Packs `depth` rows and `columns` columns of B into rows of `width` elements, padded with zeros on the right.
///
/// # Safety
/// The elements of B are valid, and `packed` has room for `depth` rows of `width` elements.
unsafe fn pack<T: Element>(
    kernels: &MicroKernels<T>,
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
            kernels.transpose((b, col), (packed, width as isize), columns, depth);
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

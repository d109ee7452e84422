//! Parallel loops on the worker team, and the partition of matrix products into the pieces of work
//! of a parallel loop.

use std::ffi::c_void;
use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};

use crate::algorithm_selection::partition::{
    MAX_PIECES, MEMORY_BOUND_ROWS, MIN_BLOCK_ROWS, MIN_PIECE_UNITS, cuts_rows_first, panels_suffice,
};
pub use crate::algorithm_selection::partition::{pieces, unit_work};

struct Context<'a, F> {
    runtime: &'a KernelRuntime,
    piece: &'a F,
}

/// Calls `piece` with each index below `pieces`, on several threads if that is profitable. Each call takes about `piece_micros`
/// microseconds. `piece` returns a kernel status. Returns the first status that is not 0, or 0. If the run is interrupted,
/// returns [`STATUS_CANCELLED`] without calling the remaining pieces.
///
/// # Safety
/// The runtime's team and interrupt flag are valid. `piece` is safe to call on several threads at once, and does not unwind.
pub unsafe fn parallel_for<F: Fn(usize) -> i64>(
    runtime: &KernelRuntime,
    pieces: usize,
    piece_micros: usize,
    piece: &F,
) -> i64 {
    unsafe extern "C" fn range<F: Fn(usize) -> i64>(
        context: *mut c_void,
        begin: i64,
        end: i64,
    ) -> i64 {
        // SAFETY: `parallel_for` passes its context, which outlives the loop.
        let context = unsafe { &*context.cast::<Context<'_, F>>() };
        for index in begin..end {
            if context.runtime.is_interrupted() {
                return STATUS_CANCELLED;
            }
            let status = (context.piece)(index as usize);
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }
    let pieces = i64::try_from(pieces).unwrap_or(i64::MAX);
    let piece_micros = i64::try_from(piece_micros.max(1)).unwrap_or(i64::MAX);
    let mut context = Context { runtime, piece };
    // SAFETY: the context outlives the loop; guaranteed by the caller.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            range::<F>,
            (&raw mut context).cast(),
            pieces,
            -piece_micros,
        )
    }
}

/// The partition of a matrix product with a packed operand into pieces for threads. A piece is a
/// block of rows and a block of panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of blocks into which rows are divided.
    pub row_blocks: usize,
    /// Number of blocks into which panels are divided.
    pub panel_blocks: usize,
    /// Whether consecutive pieces compute different rows for the same panels; otherwise, they
    /// compute different panels for the same rows.
    pub rows_first: bool,
    /// Approximate duration of a piece of work in microseconds.
    pub piece_micros: usize,
}

impl Partition {
    /// Returns the number of pieces of work of the partition.
    pub fn pieces(&self) -> usize {
        self.row_blocks * self.panel_blocks
    }

    /// Reduces the number of panel blocks to the number that keeps all threads busy. This suits
    /// kernels that prepare the rows of A again in each piece.
    pub fn coarsen_panels(self) -> Partition {
        let micros = self.panel_blocks * self.piece_micros;
        let panel_blocks = self.panel_blocks.min(pieces().max(micros / MIN_PIECE_UNITS));
        Partition { panel_blocks, piece_micros: micros / panel_blocks.max(1), ..self }
    }

    /// Returns the ranges of rows and panels of piece `index`, for a matrix product of `m` rows and
    /// `panels` panels. The number of rows of a piece is a multiple of `unit`, except in the last
    /// block.
    pub fn piece(
        &self,
        index: usize,
        (m, unit): (usize, usize),
        panels: usize,
    ) -> (Range<usize>, Range<usize>) {
        let (row, panel) = if self.rows_first {
            (index % self.row_blocks, index / self.row_blocks)
        } else {
            (index / self.panel_blocks, index % self.panel_blocks)
        };
        (even_part(m, unit, row, self.row_blocks), even_part(panels, 1, panel, self.panel_blocks))
    }

    /// Chooses the partition for a matrix product of `m` rows, `n` columns and depth `k` with
    /// `panels` panels. The number of rows of a piece is a multiple of `unit`
    /// ([`Partition::piece`]).
    ///
    /// A product of few rows is divided by panels first, so that only one thread reads each part of
    /// B. A product of many rows is divided into equal blocks of rows, the same number for each
    /// thread, and then by panels. Products of one or two rows take as long as reading B, which is
    /// about the time of multiplying [`MEMORY_BOUND_ROWS`] rows.
    pub fn of_product((m, unit): (usize, usize), n: usize, k: usize, panels: usize) -> Partition {
        let work = m.max(MEMORY_BOUND_ROWS).saturating_mul(n).saturating_mul(k.max(1));
        let max_pieces = (work / unit_work()).clamp(1, MAX_PIECES);
        let has_many_rows = cuts_rows_first(m);
        let (row_blocks, panel_blocks) = if has_many_rows {
            let row_blocks = max_pieces.min(balanced_blocks(m / MIN_BLOCK_ROWS)).min(MAX_PIECES);
            let per_row_block =
                (max_pieces / MIN_PIECE_UNITS).max(pieces().min(max_pieces)) / row_blocks;
            (row_blocks, panels.min(per_row_block).max(1))
        } else {
            let panel_blocks = max_pieces.min(panels).max(1);
            // Rows share the reads of B, so they are divided only if threads would get different numbers of panels.
            let row_blocks =
                if panels_suffice(panel_blocks) { 1 } else { pieces().div_ceil(panel_blocks) };
            (row_blocks.min(max_pieces / panel_blocks).min(m / unit).max(1), panel_blocks)
        };
        let piece_micros = work / (unit_work() * row_blocks * panel_blocks);
        Partition { row_blocks, panel_blocks, rows_first: !has_many_rows, piece_micros }
    }
}

/// Returns the number of blocks into which work is divided: the largest number up to `max` that is 1, 2, 4 or a multiple of
/// [`pieces`], so that all threads get equally many blocks.
fn balanced_blocks(max: usize) -> usize {
    match max {
        0..2 => 1,
        2..4 => 2,
        _ if max < pieces() => 4,
        _ => max / pieces() * pieces(),
    }
}

/// Returns part `index` of the range `0..size`, which is divided into `count` parts of whole units.
/// A unit has `unit` elements; the last unit may be smaller. The sizes of the parts differ by at
/// most one unit.
pub fn even_part(size: usize, unit: usize, index: usize, count: usize) -> Range<usize> {
    let units = size.div_ceil(unit);
    let start = |i: usize| (i * (units / count) + i.min(units % count)) * unit;
    start(index).min(size)..start(index + 1).min(size)
}

#[cfg(test)]
mod tests {
    use super::super::micro_kernel::ROWS;
    use super::super::row_tiling::TILE_ROWS;
    use super::*;

    #[test]
    fn even_parts_cover_the_range() {
        for size in 0..50 {
            for unit in 1..7 {
                for count in 1..9 {
                    let mut end = 0;
                    for index in 0..count {
                        let part = even_part(size, unit, index, count);
                        assert_eq!(part.start, end);
                        end = part.end;
                    }
                    assert_eq!(end, size);
                }
            }
        }
    }

    #[test]
    fn pieces_cover_a_product_once() {
        for (m, panels) in
            [(1, 1), (7, 5), (33, 6), (64, 1), (150, 3), (200, 3), (1000, 16), (5000, 1)]
        {
            for unit in [ROWS, TILE_ROWS] {
                let partition = Partition::of_product((m, unit), panels * 64, 4096, panels);
                let mut visits = vec![0; m * panels];
                for index in 0..partition.pieces() {
                    let (rows, columns) = partition.piece(index, (m, unit), panels);
                    let is_empty = rows.is_empty() || columns.is_empty();
                    assert!(!is_empty, "{m} {panels} {unit} {partition:?}");
                    for row in rows {
                        columns.clone().for_each(|panel| visits[row * panels + panel] += 1);
                    }
                }
                assert!(visits.iter().all(|&n| n == 1), "{m} {panels} {unit} {partition:?}");
            }
        }
    }

    #[test]
    fn coarsened_panels_give_fewer_or_longer_pieces() {
        let sizes = |m, n, k, panels| {
            let partition = Partition::of_product((m, TILE_ROWS), n, k, panels).coarsen_panels();
            (partition.row_blocks, partition.panel_blocks)
        };
        assert_eq!(sizes(64, 1536, 24, 24), (1, 8));
        let k = unit_work() / (8 * 128);
        assert_eq!(sizes(8, 128, k, 2), (1, 1));
        assert_eq!(sizes(150, 64 * 640, 1024, 640), (1, 256));
    }

    #[test]
    fn small_products_are_one_piece_and_large_ones_are_divided_both_ways() {
        let sizes = |m, n, k, panels| {
            let partition = Partition::of_product((m, ROWS), n, k, panels);
            (partition.row_blocks, partition.panel_blocks)
        };
        assert_eq!(sizes(1, 16, 16, 1), (1, 1));
        assert_eq!(sizes(1, 384, 384, 6), (1, 6));
        assert_eq!(sizes(16, 384, 1536, 6), (1, 6));
        assert_eq!(sizes(33, 320, 1536, 5), (2, 5));
        assert_eq!(sizes(64, 64, 512, 1), (8, 1));
        assert_eq!(sizes(512, 384, 384, 6), (4, 2));
        assert_eq!(sizes(3136, 64, 576, 1), (32, 1));
        let partition = Partition::of_product((usize::MAX, ROWS), usize::MAX, usize::MAX, 9);
        assert!(partition.row_blocks <= MAX_PIECES);
    }
}

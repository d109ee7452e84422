//! Distributes pieces of work to the worker team, and cuts products into pieces.

use std::ffi::c_void;
use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};

use crate::rules::share::{LEAST_ROWS, LONG, MAX_PIECES, READ_ROWS, by_rows, panels_suffice};
pub use crate::rules::share::{pieces, unit_work};

struct Context<'a, F> {
    runtime: &'a KernelRuntime,
    piece: &'a F,
}

/// Calls `piece` with each number below `pieces`, on several threads if that is profitable; each
/// call takes about `units` microseconds. `piece` returns a kernel status. Returns the first one
/// that is not 0.
///
/// # Safety
/// The runtime's team and flag are valid. `piece` may be called on several threads at once, and
/// must not unwind.
pub unsafe fn share<F: Fn(usize) -> i64>(
    runtime: &KernelRuntime,
    pieces: usize,
    units: usize,
    piece: &F,
) -> i64 {
    unsafe extern "C" fn range<F: Fn(usize) -> i64>(
        context: *mut c_void,
        begin: i64,
        end: i64,
    ) -> i64 {
        // SAFETY: `share` passes its context, which outlives the loop.
        let all = unsafe { &*context.cast::<Context<'_, F>>() };
        for index in begin..end {
            if all.runtime.is_interrupted() {
                return STATUS_CANCELLED;
            }
            let status = (all.piece)(index as usize);
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }
    let pieces = i64::try_from(pieces).unwrap_or(i64::MAX);
    let units = i64::try_from(units.max(1)).unwrap_or(i64::MAX);
    let mut context = Context { runtime, piece };
    // SAFETY: the context outlives the loop; guaranteed by the caller.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            range::<F>,
            (&raw mut context).cast(),
            pieces,
            -units,
        )
    }
}

/// How a product with a packed operand is cut: into blocks of rows and blocks of panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of blocks of rows.
    pub rows: usize,
    /// Number of blocks of panels.
    pub panels: usize,
    /// Whether a thread processes all blocks of rows of the same panels in sequence, instead of all
    /// panels of the same rows.
    pub rows_first: bool,
    /// Approximate microseconds per piece.
    pub units: usize,
}

impl Cut {
    /// The number of pieces.
    pub fn pieces(&self) -> usize {
        self.rows * self.panels
    }

    /// Reduces the pieces of panels to what threads need, for kernels that prepare the rows of A in
    /// each piece.
    pub fn coarse(self) -> Cut {
        let work = self.panels * self.units;
        let panels = self.panels.min(pieces().max(work / LONG));
        Cut { panels, units: work / panels.max(1), ..self }
    }

    /// The rows and panels of piece `index` of a product of `m` rows and `panels` panels. The
    /// number of rows is a multiple of `unit` except in the last piece.
    pub fn piece(
        &self,
        index: usize,
        (m, unit): (usize, usize),
        panels: usize,
    ) -> (Range<usize>, Range<usize>) {
        let (row, panel) = if self.rows_first {
            (index % self.rows, index / self.rows)
        } else {
            (index / self.panels, index % self.panels)
        };
        (part(m, unit, row, self.rows), part(panels, 1, panel, self.panels))
    }
}

/// Cuts a product. Few rows are cut by panels first, so that only one thread reads each part of B.
/// Many rows are cut into equal blocks, the same number for each thread, and then by panels. The
/// number of rows of a piece is a multiple of `unit` ([`Cut::piece`]).
///
/// One or two rows take the time to read B, about that of the products of [`READ_ROWS`] rows.
pub fn cut((m, unit): (usize, usize), n: usize, k: usize, panels: usize) -> Cut {
    let work = m.max(READ_ROWS).saturating_mul(n).saturating_mul(k.max(1));
    let wanted = (work / unit_work()).clamp(1, MAX_PIECES);
    let many = by_rows(m);
    let (rows, panels) = if many {
        let rows = wanted.min(even_blocks(m / LEAST_ROWS)).min(MAX_PIECES);
        let more = (wanted / LONG).max(pieces().min(wanted)) / rows;
        (rows, panels.min(more).max(1))
    } else {
        let panels = wanted.min(panels).max(1);
        // Rows share the reads of B, unless one thread would get more panels than another.
        let rows = if panels_suffice(panels) { 1 } else { pieces().div_ceil(panels) };
        (rows.min(wanted / panels).min(m / unit).max(1), panels)
    };
    Cut { rows, panels, rows_first: !many, units: work / (unit_work() * rows * panels) }
}

/// The largest of 1, 2, 4 and the multiples of [`pieces`] that is at most `most`.
fn even_blocks(most: usize) -> usize {
    match most {
        0..2 => 1,
        2..4 => 2,
        _ if most < pieces() => 4,
        _ => most / pieces() * pieces(),
    }
}

/// Part number `index` of `count` of `0..size`; the parts differ by at most one `unit`.
pub fn part(size: usize, unit: usize, index: usize, count: usize) -> Range<usize> {
    let whole = size.div_ceil(unit);
    let start = |i: usize| (i * (whole / count) + i.min(whole % count)) * unit;
    start(index).min(size)..start(index + 1).min(size)
}

#[cfg(test)]
mod tests {
    use super::super::rows::TILE_ROWS;
    use super::super::tile::ROWS;
    use super::*;

    #[test]
    fn parts_cover_the_size() {
        for size in 0..50 {
            for unit in 1..7 {
                for count in 1..9 {
                    let mut at = 0;
                    for index in 0..count {
                        let part = part(size, unit, index, count);
                        assert_eq!(part.start, at);
                        at = part.end;
                    }
                    assert_eq!(at, size);
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
                let cut = cut((m, unit), panels * 64, 4096, panels);
                let mut seen = vec![0; m * panels];
                for index in 0..cut.pieces() {
                    let (rows, columns) = cut.piece(index, (m, unit), panels);
                    assert!(!rows.is_empty() && !columns.is_empty(), "{m} {panels} {unit} {cut:?}");
                    for row in rows {
                        columns.clone().for_each(|panel| seen[row * panels + panel] += 1);
                    }
                }
                assert!(seen.iter().all(|&n| n == 1), "{m} {panels} {unit} {cut:?}");
            }
        }
    }

    #[test]
    fn coarse_pieces_are_fewer_or_long() {
        let sizes = |m, n, k, panels| {
            let cut = cut((m, TILE_ROWS), n, k, panels).coarse();
            (cut.rows, cut.panels)
        };
        assert_eq!(sizes(64, 1536, 24, 24), (1, 8));
        let k = unit_work() / (8 * 128);
        assert_eq!(sizes(8, 128, k, 2), (1, 1));
        assert_eq!(sizes(150, 64 * 640, 1024, 640), (1, 256));
    }

    #[test]
    fn small_products_stay_whole_and_large_ones_are_cut_both_ways() {
        let sizes = |m, n, k, panels| {
            let cut = cut((m, ROWS), n, k, panels);
            (cut.rows, cut.panels)
        };
        assert_eq!(sizes(1, 16, 16, 1), (1, 1));
        assert_eq!(sizes(1, 384, 384, 6), (1, 6));
        assert_eq!(sizes(16, 384, 1536, 6), (1, 6));
        assert_eq!(sizes(33, 320, 1536, 5), (2, 5));
        assert_eq!(sizes(64, 64, 512, 1), (8, 1));
        assert_eq!(sizes(512, 384, 384, 6), (4, 2));
        assert_eq!(sizes(3136, 64, 576, 1), (32, 1));
        assert!(cut((usize::MAX, ROWS), usize::MAX, usize::MAX, 9).rows <= MAX_PIECES);
    }
}

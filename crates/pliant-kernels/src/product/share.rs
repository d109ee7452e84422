//! How one piece of work after another is handed to the worker team, and how products are cut into pieces.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};

/// Multiply-adds of about a microsecond.
pub const UNIT: usize = 64 * 1024;

struct Context<'a, F> {
    runtime: &'a KernelRuntime,
    units: i64,
    piece: &'a F,
}

/// Calls `piece` with each number below `pieces`, on several threads where that pays; each takes about `units`
/// microseconds. A piece returns a kernel status, as does this: the first that is not 0.
///
/// # Safety
/// The runtime's team and flag live. `piece` may be called on several threads at once, and does not unwind.
pub unsafe fn share<F: Fn(usize) -> i64>(
    runtime: &KernelRuntime,
    pieces: usize,
    units: usize,
    piece: &F,
) -> i64 {
    unsafe extern "C" fn part<F: Fn(usize) -> i64>(
        context: *mut c_void,
        begin: i64,
        end: i64,
    ) -> i64 {
        // SAFETY: `share` passes its context, which outlives the loop.
        let all = unsafe { &*context.cast::<Context<'_, F>>() };
        // A piece belongs to the range that holds its first unit.
        let first = |at: i64| at / all.units + i64::from(at % all.units != 0);
        for index in first(begin)..first(end) {
            // SAFETY: the ABI says that the flag is never null.
            if unsafe { (*all.runtime.interrupt).load(Ordering::Relaxed) } {
                return STATUS_CANCELLED;
            }
            let status = (all.piece)(index as usize);
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }
    // The team counts in units, so that it knows how much work a loop of few pieces is.
    let pieces = i64::try_from(pieces).unwrap_or(i64::MAX);
    let units = i64::try_from(units.max(1)).unwrap_or(i64::MAX).min(i64::MAX / pieces.max(1));
    let mut context = Context { runtime, units, piece };
    // SAFETY: the context outlives the loop; the caller's promise.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            part::<F>,
            (&raw mut context).cast(),
            pieces * units,
            1,
        )
    }
}

/// How a product with packed operand is cut: into blocks of rows and blocks of panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Blocks of rows.
    pub rows: usize,
    /// Blocks of panels.
    pub panels: usize,
    /// Microseconds that a piece takes, about.
    pub units: usize,
}

/// Rows from which rows are cut: then each thread reads all of B, but its rows of C are whole.
const MANY_ROWS: usize = 96;
/// Rows of a block at least, where there are many.
const BLOCK_ROWS: usize = 48;
/// Pieces that a product of few panels is cut into where its work allows it: four for each of two threads.
const PIECES: usize = 8;
/// Pieces at most.
const MAX_PIECES: usize = 256;

/// Few rows are cut by panels first, so that one thread reads each part of B; many by rows.
///
/// One or two rows take the time of reading B, which is about that of four rows' products.
pub fn cut(m: usize, n: usize, k: usize, panels: usize) -> Cut {
    let work = m.max(4).saturating_mul(n).saturating_mul(k.max(1));
    let wanted = (work / UNIT).clamp(1, MAX_PIECES);
    let (rows, panels) = if m > MANY_ROWS {
        (wanted.min(m / BLOCK_ROWS), 1)
    } else {
        let panels = wanted.min(panels).max(1);
        let rows = PIECES.div_ceil(panels).min(wanted / panels).min(m / 6).max(1);
        (rows, panels)
    };
    Cut { rows, panels, units: work / (UNIT * rows * panels) }
}

/// The part of `0..size` that is number `index` of `count` parts, which differ by at most one `unit`.
pub fn part(size: usize, unit: usize, index: usize, count: usize) -> std::ops::Range<usize> {
    let whole = size.div_ceil(unit);
    let start = |i: usize| (i * (whole / count) + i.min(whole % count)) * unit;
    start(index).min(size)..start(index + 1).min(size)
}

#[cfg(test)]
mod tests {
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
    fn small_products_stay_whole_and_large_ones_are_cut_both_ways() {
        assert_eq!(cut(1, 16, 16, 1), Cut { rows: 1, panels: 1, units: 0 });
        assert_eq!(cut(1, 384, 384, 6).panels, 6);
        assert_eq!(cut(64, 64, 512, 1), Cut { rows: 8, panels: 1, units: 4 });
        assert_eq!(cut(512, 384, 384, 6).panels, 1);
        assert!(cut(usize::MAX, usize::MAX, usize::MAX, 9).rows <= MAX_PIECES);
    }
}

//! The sizes of the blocks of query rows and keys in which attention is computed, and the scratch
//! memory for a block.

use std::ops::Range;

use super::query_key_blocks::Piece;
use crate::algorithm_selection::attention::{block_size, packs_keys, packs_values};

/// Padding between rows of scores, in elements. The padding avoids strides that are multiples of
/// 4096 bytes. With such strides, all rows would map to the same sets of the first-level cache.
const ROW_PADDING: usize = 16;
/// Number of float32 elements of a cache line, to which scores, packed keys and packed values are aligned in scratch memory.
const LINE: usize = 16;

/// The scratch memory for a range of query rows, and the range of keys that is currently packed in
/// this memory.
pub(super) struct Scratch {
    pub scores: *mut f32,
    /// The distance between rows of scores in the scratch memory, in elements.
    pub stride: usize,
    /// The address of the panels of packed keys; unused if keys are read in place.
    pub keys: *mut f32,
    /// The address of the rows of packed values, padded to whole vectors; unused if values are read in place.
    pub values: *mut f32,
    /// The range of keys for which keys and values are packed.
    pub packed: Range<usize>,
}

/// The division of a range of query rows into blocks, and whether keys and values are packed.
pub(super) struct Blocking {
    /// The range of keys that at least one of the query rows attends to. Its start is rounded down
    /// to the start of a panel.
    pub span: Range<usize>,
    /// Maximum number of keys of a block.
    pub key_step: usize,
    /// Maximum number of query rows of a block.
    pub rows: usize,
    /// Whether keys are copied to packed panels. Otherwise they are read in place.
    pub pack_keys: bool,
    /// Whether value vectors are copied to packed rows. Otherwise they are read in place.
    pub pack_values: bool,
}

impl Blocking {
    /// Chooses the blocking for the query rows of a piece of work. `span` is the range of keys that
    /// at least one of the rows attends to.
    pub fn new(p: &Piece<'_>, span: Range<usize>) -> Blocking {
        let panel = p.ops.kernels.columns();
        let span = span.start / panel * panel..span.end;
        let (max_rows, key_step) = block_size(span.len());
        let pack_keys = packs_keys(p.rows.len());
        // Values cannot be read in place if a vector would extend beyond their end. Values with a large stride are
        // packed, too: otherwise, every sliver of rows would access one page per value and few sets of the caches.
        let values_are_distant =
            p.a.v.row != p.s.value_size as i64 && packs_values(p.rows.len(), span.len());
        let pack_values = values_are_distant || !p.s.value_size.is_multiple_of(p.ops.kernels.lanes);
        Blocking { span, key_step, rows: max_rows.min(p.rows.len()), pack_keys, pack_values }
    }

    /// Returns the numbers of elements of the scores, the packed keys and the packed values, each
    /// rounded up to whole cache lines, and the distance between rows of scores. `None` on
    /// overflow.
    pub fn sizes(&self, p: &Piece<'_>) -> Option<([usize; 3], usize)> {
        let (lanes, panel) = (p.ops.kernels.lanes, p.ops.kernels.columns());
        let key_columns = self.key_step.next_multiple_of(panel);
        let stride = key_columns + ROW_PADDING;
        let keys = if self.pack_keys { key_columns.checked_mul(p.s.size)? } else { 0 };
        let width = p.s.value_size.next_multiple_of(lanes);
        let values = if self.pack_values { self.key_step.checked_mul(width)? } else { 0 };
        let mut total = 0usize;
        let mut sizes = [self.rows.checked_mul(stride)?, keys, values];
        for size in &mut sizes {
            *size = size.checked_next_multiple_of(LINE)?;
            total = total.checked_add(*size)?;
        }
        (total <= isize::MAX as usize / size_of::<f32>()).then_some((sizes, stride))
    }
}

impl Scratch {
    /// Divides the scratch memory at `block` into scores, packed keys and packed values. No keys are packed yet.
    pub fn new(block: *mut f32, [scores, keys, _]: [usize; 3], stride: usize) -> Scratch {
        Scratch {
            scores: block,
            stride,
            keys: block.wrapping_add(scores),
            values: block.wrapping_add(scores + keys),
            packed: 0..0,
        }
    }
}

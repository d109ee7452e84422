//! Sizes of the blocks of rows and keys of a piece of attention, and its scratch memory.

use std::ops::Range;

use super::piece::Piece;
use crate::rules::attention::{block_size, packs_keys, packs_values};

/// Padding between rows of scores, in elements. It avoids strides that are multiples of 4096 bytes, with which all rows
/// would map to the same sets of the first-level cache.
const ROW_PADDING: usize = 16;
/// Elements of a cache line.
const LINE: usize = 16;

/// The scratch memory of a piece, and the range of keys that is packed in it.
pub(super) struct Scratch {
    pub scores: *mut f32,
    /// The row stride of the scores, in elements.
    pub stride: usize,
    /// Panels of keys; unused if keys are not packed.
    pub keys: *mut f32,
    /// Rows of values, padded to whole vectors; unused if values are not packed.
    pub values: *mut f32,
    /// The range of packed keys and values.
    pub packed: Range<usize>,
}

/// The blocking of a piece.
pub(super) struct Blocking {
    /// The range of keys that any row sees. Its start is rounded down to the start of a panel.
    pub span: Range<usize>,
    /// Keys of a block.
    pub key_step: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Whether keys are packed instead of read in place.
    pub pack_keys: bool,
    /// Whether values are packed.
    pub pack_values: bool,
}

impl Blocking {
    /// Chooses the blocking for the range of keys that any row of a piece sees.
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

    /// The sizes of the scores, the packed keys and the packed values, and the row stride of the scores, in elements.
    /// Sizes are whole cache lines. `None` on overflow.
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
    /// Divides the scratch memory at `block` into its parts. Nothing is packed yet.
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

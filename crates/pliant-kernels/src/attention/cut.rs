//! How a piece of attention is cut into blocks of rows and keys, and the scratch memory that
//! it needs.

use std::ops::Range;

use super::piece::Piece;
use crate::rules::attention::{block, packs_keys, packs_values};

/// Padding between rows of scores, in elements. Without it, rows with a stride that is a multiple
/// of 4096 bytes would map to the same sets of the first-level cache.
const APART: usize = 16;
/// Elements of a cache line.
const LINE: usize = 16;

/// The scratch memory of a piece, and what is packed in it.
pub(super) struct Scratch {
    pub scores: *mut f32,
    /// The row stride of the scores, in elements.
    pub stride: usize,
    /// Panels of keys; unused if keys are not packed.
    pub keys: *mut f32,
    /// Rows of values, padded to whole vectors; unused if values are not packed.
    pub values: *mut f32,
    /// The packed keys.
    pub packed: Range<usize>,
}

/// How a piece is cut.
pub(super) struct Cut {
    /// The keys that some row sees, rounded down to the start of a panel.
    pub span: Range<usize>,
    /// Keys of a block.
    pub step: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Whether keys are packed instead of read in place.
    pub pack: bool,
    /// Whether values are packed.
    pub pack_values: bool,
}

impl Cut {
    /// The cut for the keys that some row of a piece sees.
    pub fn new(p: &Piece<'_>, span: Range<usize>) -> Cut {
        let panel = p.ops.kernels.columns();
        let span = span.start / panel * panel..span.end;
        let (most, step) = block(span.len());
        let pack = packs_keys(p.rows.len());
        // Values cannot be read in place if a vector would extend beyond their end. Values far
        // apart are packed, too, since every sliver of rows would access one page per value and few
        // sets of the caches.
        let far = p.a.v.row != p.s.value_size as i64 && packs_values(p.rows.len(), span.len());
        let pack_values = far || !p.s.value_size.is_multiple_of(p.ops.kernels.lanes);
        Cut { span, step, rows: most.min(p.rows.len()), pack, pack_values }
    }

    /// The numbers of elements of the scores, the packed keys and the packed values, each of which
    /// starts at a cache line, and the row stride of the scores. `None` on overflow.
    pub fn sizes(&self, p: &Piece<'_>) -> Option<([usize; 3], usize)> {
        let (lanes, panel) = (p.ops.kernels.lanes, p.ops.kernels.columns());
        let wide = self.step.next_multiple_of(panel);
        let stride = wide + APART;
        let keys = if self.pack { wide.checked_mul(p.s.size)? } else { 0 };
        let width = p.s.value_size.next_multiple_of(lanes);
        let values = if self.pack_values { self.step.checked_mul(width)? } else { 0 };
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
    /// The parts of the scratch memory at `block`; nothing is packed yet.
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

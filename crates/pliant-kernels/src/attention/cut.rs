//! How a piece of attention is cut into blocks of rows and keys, and the memory that it takes.

use std::ops::Range;

use super::piece::Piece;
use crate::rules::attention::{block, packs_keys, packs_values};

/// Elements between rows of scores beside the keys: rows at a multiple of 4096 bytes would fall into the same places of the
/// first-level cache.
const APART: usize = 16;
/// Elements of a line of the caches.
const LINE: usize = 16;

/// Scratch memory of a piece, and what is packed in it.
pub(super) struct Scratch {
    pub scores: *mut f32,
    /// Elements from row to row of the scores.
    pub stride: usize,
    /// Panels of keys; not read where none are packed.
    pub keys: *mut f32,
    /// Rows of values, of whole vectors; not read where none are packed.
    pub values: *mut f32,
    /// The keys that are packed.
    pub packed: Range<usize>,
}

/// How a piece is cut.
pub(super) struct Cut {
    /// Keys that some row sees, from the first of a panel.
    pub span: Range<usize>,
    /// Keys of a block.
    pub step: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Whether keys are packed, or read in place.
    pub pack: bool,
    /// Whether values are.
    pub pack_values: bool,
}

impl Cut {
    /// For the keys that some row of a piece sees.
    pub fn new(p: &Piece<'_>, span: Range<usize>) -> Cut {
        let panel = p.ops.kernels.columns();
        let span = span.start / panel * panel..span.end;
        let (most, step) = block(span.len());
        let pack = packs_keys(p.rows.len());
        // A vector beyond the end of a value must not be read. And values far apart take a page each, and few places of the
        // caches, again for each sliver of rows.
        let far = p.a.v.row != p.s.value_size as i64 && packs_values(p.rows.len(), span.len());
        let pack_values = far || !p.s.value_size.is_multiple_of(p.ops.kernels.lanes);
        Cut { span, step, rows: most.min(p.rows.len()), pack, pack_values }
    }

    /// Elements of scores, packed keys and packed values, of which each begins a line of the caches, and from row to row of the
    /// scores; none where they do not fit memory.
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
    /// Parts of these sizes at `block`; nothing is packed.
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

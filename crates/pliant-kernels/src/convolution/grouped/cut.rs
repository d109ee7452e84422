//! Cuts the filters of groups into blocks of one or two vectors.

use pliant_tensor::SHARED_FILTERS;

use super::super::Convolution;
use super::super::shape::Sizes;

/// Adjacent filters of one panel of weights, which are computed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The first filter.
    pub filter: usize,
    /// The number of filters.
    pub filters: usize,
    /// The number of vectors of filters: 1 or 2.
    pub vectors: usize,
    /// The first channel that they read.
    pub channel: usize,
    /// The offset of their weights, and their row stride.
    pub weights: usize,
    pub next: usize,
}

/// The cut of all filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    lanes: usize,
    /// The number of filters of all groups and of one group, the channels of a group, and the rows
    /// of a panel, which are taps and channels.
    all: usize,
    filters: usize,
    channels: usize,
    rows: usize,
    /// The columns of a group's own panel; `None` if groups share panels.
    width: Option<usize>,
}

impl Cut {
    /// The cut for vectors of `lanes` lanes.
    pub fn new(c: &Convolution, s: &Sizes, lanes: usize) -> Cut {
        Cut {
            lanes,
            all: s.filters,
            filters: s.group_filters(),
            channels: s.group_channels(),
            rows: s.kernel.iter().product::<usize>() * s.group_channels(),
            width: (!s.shared).then_some(c.width as usize),
        }
    }

    /// Whether a vector contains the filters of several groups.
    pub fn is_spread(&self) -> bool {
        self.width.is_none() && self.filters < self.lanes
    }

    /// The number of blocks.
    pub fn count(&self) -> usize {
        match self.width {
            None => self.all.div_ceil(self.widest()),
            Some(_) => self.all / self.filters * self.of_group(),
        }
    }

    /// The block with that index.
    pub fn block(&self, index: usize) -> Block {
        match self.width {
            None => self.of_shared(index),
            Some(width) => self.of_own(index, width),
        }
    }

    /// Maximum number of filters of a block.
    fn widest(&self) -> usize {
        if self.filters >= 2 * self.lanes { 2 * self.lanes } else { self.lanes }
    }

    fn of_shared(&self, index: usize) -> Block {
        let filter = index * self.widest();
        let (panel, column) = (filter / SHARED_FILTERS, filter % SHARED_FILTERS);
        Block {
            filter,
            filters: self.widest().min(self.all - filter),
            vectors: self.widest() / self.lanes,
            channel: filter / self.filters * self.channels,
            weights: panel * SHARED_FILTERS * self.rows + column,
            next: SHARED_FILTERS.min(self.all - panel * SHARED_FILTERS),
        }
    }

    fn of_own(&self, index: usize, width: usize) -> Block {
        let (group, at) = (index / self.of_group(), index % self.of_group());
        let panels = self.filters.div_ceil(width);
        let of_panel = width.div_ceil(2 * self.lanes);
        let (panel, at) = (at / of_panel, at % of_panel);
        let columns = width.min(self.filters - panel * width);
        let column = at * 2 * self.lanes;
        let filters = (2 * self.lanes).min(columns - column);
        Block {
            filter: group * self.filters + panel * width + column,
            filters,
            vectors: filters.div_ceil(self.lanes),
            channel: group * self.channels,
            weights: (group * panels + panel) * self.rows * width + column,
            next: width,
        }
    }

    /// The number of blocks of a group with its own panels: all panels except the last are full.
    fn of_group(&self) -> usize {
        let width = self.width.unwrap_or(SHARED_FILTERS);
        let full = (self.filters - 1) / width;
        let last = self.filters - full * width;
        full * width.div_ceil(2 * self.lanes) + last.div_ceil(2 * self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_filters_and_read_inside_panels() {
        for lanes in [4, 8, 16] {
            for (groups, filters, width) in [
                (3, 2, None),
                (32, 4, None),
                (5, 8, None),
                (2, 3, Some(16)),
                (3, 24, Some(32)),
                (2, 48, Some(48)),
                (2, 150, Some(64)),
            ] {
                let (all, rows) = (groups * filters, 7);
                let cut = Cut { lanes, all, filters, channels: 1, rows, width };
                let panels = width.map_or(1, |w| filters.div_ceil(w) * w);
                let stored = width.map_or(all * rows, |_| groups * panels * rows);
                let mut at = 0;
                for index in 0..cut.count() {
                    let b = cut.block(index);
                    assert_eq!((b.filter, b.channel), (at, at / filters), "{cut:?} {b:?}");
                    assert_eq!(b.vectors, b.filters.div_ceil(lanes), "{cut:?} {b:?}");
                    let whole = width.map_or(b.filters, |_| b.vectors * lanes);
                    assert!(b.weights + (rows - 1) * b.next + whole <= stored, "{cut:?} {b:?}");
                    at += b.filters;
                }
                assert_eq!(at, all, "{cut:?}");
            }
        }
    }
}

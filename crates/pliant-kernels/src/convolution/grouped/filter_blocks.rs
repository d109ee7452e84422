//! Divides the filters of a grouped convolution into blocks. The filters of a block are columns of
//! one panel of weights and fill one or two vectors.

use pliant_tensor::SHARED_FILTERS;

use super::super::Convolution;
use super::super::shape_and_strides::Sizes;

/// A block of adjacent filters from one panel of weights, whose results are computed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The index of the block's first filter.
    pub filter: usize,
    /// The number of filters of the block.
    pub filters: usize,
    /// The number of SIMD vectors that the filters of the block fill (with one filter per lane): 1 or 2.
    pub vectors: usize,
    /// The index of the first input channel that the filters read.
    pub channel: usize,
    /// The offset of the block's first weight from the start of all weights, in elements.
    pub weights: usize,
    /// The distance between rows of weights, in elements.
    pub weight_row_stride: usize,
}

/// The division of the filters of all groups into blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterBlocks {
    lanes: usize,
    /// The number of filters of all groups.
    all_filters: usize,
    /// The number of filters of a group.
    filters: usize,
    /// The number of channels of a group.
    channels: usize,
    /// The number of rows of a panel: one for each tap and channel.
    rows: usize,
    /// The number of columns (filters) of a panel, if each group has its own panels; `None` if
    /// groups share panels.
    width: Option<usize>,
}

impl FilterBlocks {
    /// Divides the filters of a convolution into blocks for vectors of `lanes` lanes.
    pub fn new(c: &Convolution, s: &Sizes, lanes: usize) -> FilterBlocks {
        FilterBlocks {
            lanes,
            all_filters: s.filters,
            filters: s.group_filters(),
            channels: s.group_channels(),
            rows: s.kernel.iter().product::<usize>() * s.group_channels(),
            width: (!s.shared).then_some(c.width as usize),
        }
    }

    /// Whether a vector contains filters of several groups.
    pub fn spans_groups(&self) -> bool {
        self.width.is_none() && self.filters < self.lanes
    }

    /// Returns the number of blocks of filters.
    pub fn count(&self) -> usize {
        match self.width {
            None => self.all_filters.div_ceil(self.max_filters()),
            Some(_) => self.all_filters / self.filters * self.blocks_per_group(),
        }
    }

    /// Returns the block of filters with index `index`.
    pub fn block(&self, index: usize) -> Block {
        match self.width {
            None => self.block_of_shared_panel(index),
            Some(width) => self.block_of_group_panel(index, width),
        }
    }

    /// Returns the maximum number of filters of a block, if several groups share a panel: two
    /// vectors of filters if a group has at least so many filters, otherwise one vector.
    fn max_filters(&self) -> usize {
        if self.filters >= 2 * self.lanes { 2 * self.lanes } else { self.lanes }
    }

    fn block_of_shared_panel(&self, index: usize) -> Block {
        let filter = index * self.max_filters();
        let (panel, column) = (filter / SHARED_FILTERS, filter % SHARED_FILTERS);
        Block {
            filter,
            filters: self.max_filters().min(self.all_filters - filter),
            vectors: self.max_filters() / self.lanes,
            channel: filter / self.filters * self.channels,
            weights: panel * SHARED_FILTERS * self.rows + column,
            weight_row_stride: SHARED_FILTERS.min(self.all_filters - panel * SHARED_FILTERS),
        }
    }

    fn block_of_group_panel(&self, index: usize, width: usize) -> Block {
        let blocks = self.blocks_per_group();
        let (group, group_block) = (index / blocks, index % blocks);
        let panels = self.filters.div_ceil(width);
        let blocks_per_panel = width.div_ceil(2 * self.lanes);
        let (panel, panel_block) = (group_block / blocks_per_panel, group_block % blocks_per_panel);
        let columns = width.min(self.filters - panel * width);
        let column = panel_block * 2 * self.lanes;
        let filters = (2 * self.lanes).min(columns - column);
        Block {
            filter: group * self.filters + panel * width + column,
            filters,
            vectors: filters.div_ceil(self.lanes),
            channel: group * self.channels,
            weights: (group * panels + panel) * self.rows * width + column,
            weight_row_stride: width,
        }
    }

    /// Returns the number of blocks of filters of one group, if each group has its own panels of
    /// weights. The filters of each panel are divided into blocks of at most two vectors. All
    /// panels of a group have `width` filters, except that the last may have fewer.
    fn blocks_per_group(&self) -> usize {
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
                let (all_filters, rows) = (groups * filters, 7);
                let blocks = FilterBlocks { lanes, all_filters, filters, channels: 1, rows, width };
                let panels = width.map_or(1, |w| filters.div_ceil(w) * w);
                let weights = width.map_or(all_filters * rows, |_| groups * panels * rows);
                let mut end = 0;
                for index in 0..blocks.count() {
                    let b = blocks.block(index);
                    assert_eq!((b.filter, b.channel), (end, end / filters), "{blocks:?} {b:?}");
                    assert_eq!(b.vectors, b.filters.div_ceil(lanes), "{blocks:?} {b:?}");
                    let columns = width.map_or(b.filters, |_| b.vectors * lanes);
                    let weights_end = b.weights + (rows - 1) * b.weight_row_stride + columns;
                    assert!(weights_end <= weights, "{blocks:?} {b:?}");
                    end += b.filters;
                }
                assert_eq!(end, all_filters, "{blocks:?}");
            }
        }
    }
}

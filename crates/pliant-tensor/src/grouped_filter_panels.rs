//! The packed memory layout of weights of grouped convolutions with few filters per group. Filters are the columns of a matrix and
//! are split into panels (blocks of adjacent columns that are stored contiguously). A panel contains the filters of several groups.

/// Number of filters in a panel (a block of filters of several groups, whose weights are stored contiguously). The last panel has
/// the remaining filters.
pub const SHARED_FILTERS: usize = 16;

/// Whether the weights of a grouped convolution with `groups` groups can be packed in panels that contain the filters of several
/// groups. Each group has `channels` input channels and `filters` filters. The packing requires several groups with 2, 4 or 8
/// filters each, and at most as many channels as filters.
pub fn may_share_panels(groups: usize, channels: usize, filters: usize) -> bool {
    groups > 1 && matches!(filters, 2 | 4 | 8) && (1..=filters).contains(&channels)
}

/// Returns the offset of a weight in the packed memory, in elements, given its row and its filter.
/// There are `rows` rows, and `filters` filters in all groups together. Rows are the channels of a
/// group for the first tap of the filter, then those for the next tap, and so on.
pub fn shared_panel_offset((rows, filters): (usize, usize), row: usize, filter: usize) -> usize {
    let first = filter / SHARED_FILTERS * SHARED_FILTERS;
    let columns = SHARED_FILTERS.min(filters - first);
    first * rows + row * columns + filter - first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_cover_the_memory_exactly() {
        for (rows, filters) in [(1, 2), (9, 16), (3, 20), (5, 40)] {
            let mut offsets: Vec<usize> = (0..rows * filters)
                .map(|i| shared_panel_offset((rows, filters), i / filters, i % filters))
                .collect();
            offsets.sort_unstable();
            assert!(offsets.into_iter().eq(0..rows * filters), "{rows} {filters}");
        }
        // The second row of the first panel, and the first row of the last panel.
        assert_eq!(shared_panel_offset((3, 20), 1, 0), 16);
        assert_eq!(shared_panel_offset((3, 20), 0, 16), 48);
    }

    #[test]
    fn panels_are_shared_by_groups_of_few_filters() {
        assert!(may_share_panels(2, 1, 2) && may_share_panels(32, 8, 8));
        for (groups, channels, filters) in [(1, 4, 4), (2, 5, 4), (2, 0, 4), (2, 3, 3), (2, 16, 16)]
        {
            assert!(!may_share_panels(groups, channels, filters));
        }
    }
}

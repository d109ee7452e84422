//! Weights of convolutions in groups of few filters, as panels that several groups share.

/// Filters of a panel that groups share; the last has as many as are left.
pub const SHARED_FILTERS: usize = 16;

/// Whether groups of so many channels and filters may share panels: several groups of 2, 4 or 8 filters and no more channels.
pub fn may_share_panels(groups: usize, channels: usize, filters: usize) -> bool {
    groups > 1 && matches!(filters, 2 | 4 | 8) && (1..=filters).contains(&channels)
}

/// Where the weight of a row and a filter lies, in panels of so many rows and filters of all groups. Rows are the channels of a
/// group for the first tap, then for the next.
pub fn shared_place((rows, filters): (usize, usize), row: usize, filter: usize) -> usize {
    let first = filter / SHARED_FILTERS * SHARED_FILTERS;
    let columns = SHARED_FILTERS.min(filters - first);
    first * rows + row * columns + filter - first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_all_there_are() {
        for (rows, filters) in [(1, 2), (9, 16), (3, 20), (5, 40)] {
            let mut places: Vec<usize> = (0..rows * filters)
                .map(|i| shared_place((rows, filters), i / filters, i % filters))
                .collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..rows * filters), "{rows} {filters}");
        }
        // The second row of the first panel, and the first row of the last.
        assert_eq!(shared_place((3, 20), 1, 0), 16);
        assert_eq!(shared_place((3, 20), 0, 16), 48);
    }

    #[test]
    fn few_filters_and_no_more_channels_are_shared() {
        assert!(may_share_panels(2, 1, 2) && may_share_panels(32, 8, 8));
        for (groups, channels, filters) in [(1, 4, 4), (2, 5, 4), (2, 0, 4), (2, 3, 3), (2, 16, 16)]
        {
            assert!(!may_share_panels(groups, channels, filters));
        }
    }
}

//! Cuts rows into slivers whose heights differ by at most one, so that no sliver has a single row
//! left over.

use super::tile::ROWS;

/// Rows of a block in tile registers.
pub const TILE_ROWS: usize = 32;

/// The first row and height of each sliver of `rows` rows.
pub fn slivers(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    even(rows, ROWS)
}

/// The first row and height of each part of `rows` rows, with at most `most` rows each.
#[inline]
pub fn even(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    // Divisions take longer than the products of a few rows.
    let count = if rows <= most { usize::from(rows > 0) } else { rows.div_ceil(most) };
    let (height, more) = if count <= 1 { (rows, 0) } else { (rows / count, rows % count) };
    (0..count).map(move |i| (i * height + i.min(more), height + usize::from(i < more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slivers_cover_the_rows_and_are_even() {
        for rows in 0..100 {
            let all: Vec<_> = slivers(rows).collect();
            let mut at = 0;
            for &(first, height) in &all {
                assert_eq!(first, at);
                at += height;
            }
            assert_eq!(at, rows);
            let heights = || all.iter().map(|s| s.1);
            let (low, high) = (heights().min().unwrap_or(0), heights().max().unwrap_or(0));
            assert!(high <= ROWS && high - low <= 1, "{rows}: {all:?}");
        }
    }
}

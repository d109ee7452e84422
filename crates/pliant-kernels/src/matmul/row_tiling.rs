//! Divides the rows of A into slivers (the rows of a register tile) whose heights differ by at most
//! one, so that no single row remains.

use super::micro_kernel::ROWS;

/// Maximum number of rows of A in a block that is multiplied in AMX tile registers.
pub const TILE_ROWS: usize = 32;

/// Divides `rows` rows into slivers (the rows of a register tile) of at most [`ROWS`] rows. Returns
/// the first row and the number of rows of each sliver.
pub fn slivers(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    split_evenly(rows, ROWS)
}

/// Divides `rows` rows into parts of at most `max_height` rows, whose sizes differ by at most one.
/// Returns the first row and the number of rows of each part.
#[inline]
pub fn split_evenly(rows: usize, max_height: usize) -> impl Iterator<Item = (usize, usize)> {
    // Divisions take longer than the products of a few rows.
    let count = if rows <= max_height { usize::from(rows > 0) } else { rows.div_ceil(max_height) };
    let (height, remainder) = if count <= 1 { (rows, 0) } else { (rows / count, rows % count) };
    (0..count).map(move |i| (i * height + i.min(remainder), height + usize::from(i < remainder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slivers_cover_all_rows_with_nearly_equal_heights() {
        for rows in 0..100 {
            let slivers: Vec<_> = slivers(rows).collect();
            let mut end = 0;
            for &(first, height) in &slivers {
                assert_eq!(first, end);
                end += height;
            }
            assert_eq!(end, rows);
            let heights = || slivers.iter().map(|s| s.1);
            let (low, high) = (heights().min().unwrap_or(0), heights().max().unwrap_or(0));
            assert!(high <= ROWS && high - low <= 1, "{rows}: {slivers:?}");
        }
    }
}

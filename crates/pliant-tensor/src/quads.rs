//! Quads: how a constant right operand of a product of 8-bit integers lies in memory: panels of columns, in each four
//! neighbours of k beside each other for every column. As panels of floats, the same on every machine.

/// Columns of the widest panel: four vectors of 512 bits of sums.
const MOST_COLUMNS: usize = 64;
/// Columns of a panel are a multiple of so many.
const STEP: usize = 16;

/// A packed operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quads {
    /// `[panels, ceil(k / 4), width, 4]`; zeros beyond k and beyond the last column.
    pub data: Vec<i8>,
    /// Columns of a panel.
    pub width: usize,
    /// The sum of each column.
    pub sums: Vec<i32>,
}

/// Packs a row-major matrix `[k, n]`; none where it has another number of elements, or the panels do not fit memory.
pub fn pack_quads(matrix: &[i8], k: usize, n: usize) -> Option<Quads> {
    if k.checked_mul(n)? != matrix.len() {
        return None;
    }
    let width = n.checked_next_multiple_of(STEP)?.clamp(STEP, MOST_COLUMNS);
    let (panels, quads) = (n.div_ceil(width), k.div_ceil(4));
    let len = panels.checked_mul(quads)?.checked_mul(width * 4)?;
    let (mut data, mut sums) = (Vec::new(), Vec::new());
    data.try_reserve_exact(len).ok()?;
    data.resize(len, 0i8);
    sums.try_reserve_exact(n).ok()?;
    sums.resize(n, 0i32);
    for (p, row) in matrix.chunks_exact(n.max(1)).enumerate() {
        for (j, &x) in row.iter().enumerate() {
            let at = ((j / width * quads + p / 4) * width + j % width) * 4 + p % 4;
            data[at] = x;
            sums[j] = sums[j].wrapping_add(x.into());
        }
    }
    Some(Quads { data, width, sums })
}

//! The memory layout of a constant right operand of an int8 matrix product: panels of columns, in
//! which four adjacent elements along k are stored together for each column (as VNNI instructions
//! require). Like float panels, the layout does not depend on the host CPU.

/// The number of columns of the widest panel: four 512-bit vectors of int32 sums.
const MOST_COLUMNS: usize = 64;
/// The number of columns of a panel is a multiple of this.
const STEP: usize = 16;

/// A packed right operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quads {
    /// The elements as `[panels, ceil(k / 4), width, 4]`, padded with zeros along k and the
    /// columns.
    pub data: Vec<i8>,
    /// The number of columns of a panel.
    pub width: usize,
    /// The sum of the elements of each column.
    pub sums: Vec<i32>,
}

/// The number of columns of a panel, for a matrix of `n` columns, or of a number that is not known.
pub fn quad_panel_width(n: Option<usize>) -> usize {
    n.map_or(MOST_COLUMNS, |n| n.clamp(1, MOST_COLUMNS).next_multiple_of(STEP))
}

/// Packs a row-major matrix `[k, n]`. `None` if the number of elements is wrong or the size
/// overflows.
pub fn pack_quads(matrix: &[i8], k: usize, n: usize) -> Option<Quads> {
    if k.checked_mul(n)? != matrix.len() {
        return None;
    }
    let width = quad_panel_width(Some(n));
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

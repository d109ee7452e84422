//! The packed memory layout of a constant right operand of an int8 matrix product. As for float
//! operands, columns are split into panels. Within a panel, the elements of a column are stored in
//! groups of four that are adjacent along the reduction dim `k`, as VNNI instructions require. The
//! layout does not depend on the host CPU.

/// Maximum number of columns of a panel (a block of adjacent columns that is stored contiguously): the int32 sums of a row fill
/// four 512-bit vectors.
const MAX_COLUMNS: usize = 64;
/// The number of columns of every panel (a block of adjacent columns that is stored contiguously) is a multiple of this number.
const COLUMN_STEP: usize = 16;

/// A right operand that is packed for VNNI instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnniMatrix {
    /// The packed elements as `[panels, ceil(k / 4), width, 4]`, padded with zeros along `k` and along the columns.
    pub data: Vec<i8>,
    /// The number of columns of a panel (a block of adjacent columns that is stored contiguously).
    pub width: usize,
    /// The sum of the elements of each column.
    pub sums: Vec<i32>,
}

/// Returns the number of columns of a panel (a block of adjacent columns that is stored contiguously) for a matrix of `n` columns.
/// `n` is `None` if the number of columns is unknown.
pub fn vnni_panel_width(n: Option<usize>) -> usize {
    n.map_or(MAX_COLUMNS, |n| n.clamp(1, MAX_COLUMNS).next_multiple_of(COLUMN_STEP))
}

/// Packs a row-major matrix `[k, n]` for VNNI instructions. `None` if `matrix` does not have `k * n` elements or on overflow.
pub fn pack_vnni(matrix: &[i8], k: usize, n: usize) -> Option<VnniMatrix> {
    if k.checked_mul(n)? != matrix.len() {
        return None;
    }
    let width = vnni_panel_width(Some(n));
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
    Some(VnniMatrix { data, width, sums })
}

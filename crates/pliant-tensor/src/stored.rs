//! Constant right operands of matrix products that are stored with fewer bits. The panels are as
//! for float32 ([`crate::pack_panels`]), but with elements of 8 bits, 4 bits or bfloat16. The
//! layout does not depend on the host CPU.
//!
//! | format | shape | contents |
//! |---|---|---|
//! | 8 bits | `[panels, k, width]` | int8 |
//! | 4 bits | `[panels, ceil(k / 2), width]` | uint8: row `2 p` is the low nibble, `2 p + 1` high |
//! | bfloat16 | `[panels, ceil(k / 2), width, 2]` | bfloat16: rows `2 p` and `2 p + 1` paired |

use half::bf16;

use crate::{DType, Tensor, TensorError, panel_width};

/// Visits the elements of a row-major matrix in panel layout. `put` gets the offset of the row (or
/// of the pair of rows) at the element's column, whether the row is odd, and the element.
fn each<T: Copy>(
    matrix: &[T],
    (k, n): (usize, usize),
    paired: bool,
    mut put: impl FnMut(usize, usize, T),
) {
    let width = panel_width(n, DType::Float32);
    let rows = if paired { k.div_ceil(2) } else { k };
    for (p, row) in matrix.chunks_exact(n.max(1)).enumerate().take(k) {
        let (at, odd) = if paired { (p / 2, p % 2) } else { (p, 0) };
        for (j, &x) in row.iter().enumerate() {
            put((j / width * rows + at) * width + j % width, odd, x);
        }
    }
}

fn shape(k: usize, n: usize, paired: bool) -> [i64; 3] {
    let width = panel_width(n, DType::Float32);
    let rows = if paired { k.div_ceil(2) } else { k };
    [n.div_ceil(width), rows, width].map(|d| d as i64)
}

/// Packs an int8 matrix `[k, n]` into panels.
///
/// # Errors
/// `ShapeMismatch` (wrong number of elements), `SizeOverflow`, `OutOfMemory`.
pub fn pack_bytes(matrix: &[i8], k: usize, n: usize) -> Result<Tensor, TensorError> {
    fits(matrix.len(), k, n)?;
    let mut out = Tensor::zeros(&shape(k, n, false), DType::Int8)?;
    let to = out.as_mut_slice::<i8>()?;
    each(matrix, (k, n), false, |at, _, x| to[at] = x);
    Ok(out)
}

/// Packs a matrix `[k, n]` of 4-bit numbers into panels. The upper four bits of each byte are
/// dropped.
///
/// # Errors
/// As [`pack_bytes`].
pub fn pack_nibbles(matrix: &[u8], k: usize, n: usize) -> Result<Tensor, TensorError> {
    fits(matrix.len(), k, n)?;
    let mut out = Tensor::zeros(&shape(k, n, true), DType::UInt8)?;
    let to = out.as_mut_slice::<u8>()?;
    each(matrix, (k, n), true, |at, odd, x| to[at] |= (x & 15) << (4 * odd));
    Ok(out)
}

/// Packs a matrix `[k, n]` into panels, rounding each element to bfloat16.
///
/// # Errors
/// As [`pack_bytes`].
pub fn pack_bfloat16(matrix: &[f32], k: usize, n: usize) -> Result<Tensor, TensorError> {
    fits(matrix.len(), k, n)?;
    let [panels, rows, width] = shape(k, n, true);
    let mut out = Tensor::zeros(&[panels, rows, width, 2], DType::BFloat16)?;
    let to = out.as_mut_slice::<bf16>()?;
    each(matrix, (k, n), true, |at, odd, x| to[at * 2 + odd] = bf16::from_f32(x));
    Ok(out)
}

fn fits(len: usize, k: usize, n: usize) -> Result<(), TensorError> {
    if k.checked_mul(n) == Some(len) {
        return Ok(());
    }
    let (expected, actual) = (vec![k as i64, n as i64], vec![len as i64]);
    Err(TensorError::ShapeMismatch { expected, actual })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_place() {
        for (k, n) in [(0, 3), (1, 1), (5, 16), (33, 70), (3, 0)] {
            let all: Vec<f32> = (0..k * n).map(|i| (i % 251) as f32).collect();
            let bytes: Vec<i8> = all.iter().map(|&x| (x - 125.0) as i8).collect();
            let small: Vec<u8> = all.iter().map(|&x| x as u8 % 16).collect();
            let width = panel_width(n, DType::Float32);
            let (wide, pairs) = (pack_bytes(&bytes, k, n).unwrap(), k.div_ceil(2));
            let (halves, rounded) =
                (pack_nibbles(&small, k, n).unwrap(), pack_bfloat16(&all, k, n).unwrap());
            let (wide, halves) = (wide.as_slice::<i8>().unwrap(), halves.as_slice::<u8>().unwrap());
            let rounded = rounded.as_slice::<bf16>().unwrap();
            for i in 0..k * n {
                let (p, panel, column) = (i / n, i % n / width, i % n % width);
                let pair = (panel * pairs + p / 2) * width + column;
                assert_eq!(wide[(panel * k + p) * width + column], bytes[i]);
                assert_eq!(halves[pair] >> (4 * (p % 2)) & 15, small[i]);
                assert_eq!(rounded[pair * 2 + p % 2].to_f32(), all[i]);
            }
        }
        assert!(matches!(pack_bytes(&[1], 2, 3), Err(TensorError::ShapeMismatch { .. })));
    }
}

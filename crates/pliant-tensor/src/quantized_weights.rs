//! Packed constant right operands of matrix products with elements of 8 bits, 4 bits or bfloat16. Columns are split into panels
//! as in float32 operands ([`crate::pack_panels`]). The layout does not depend on the host CPU.
//!
//! | format | shape | contents |
//! |---|---|---|
//! | 8 bits | `[panels, k, width]` | int8 |
//! | 4 bits | `[panels, ceil(k / 2), width]` | uint8: row `2 p` is the low nibble, `2 p + 1` high |
//! | bfloat16 | `[panels, ceil(k / 2), width, 2]` | bfloat16: rows `2 p` and `2 p + 1` paired |

use std::ops::Range;

use half::bf16;

use crate::matmul_panels::fill_panels;
use crate::{DType, Tensor, TensorError, panel_width};

/// Fills `out` with the panels of a matrix `[k, n]`. `put` writes the elements of one row of the matrix in one panel. Its arguments
/// are the memory of the row in the panel (which two rows may share), the index of the row, and the range of columns of the panel.
/// The array parameter is the shape of the output: panels, rows of memory per panel, and elements per row of memory.
fn fill<T: Send>(
    out: &mut [T],
    (k, n): (usize, usize),
    [_, rows, row_len]: [i64; 3],
    put: impl Fn(&mut [T], usize, Range<usize>) + Send + Sync,
) {
    let (rows, row_len, width) = (rows as usize, row_len as usize, panel_width(n, DType::Float32));
    if rows == 0 {
        return;
    }
    let pairs = k.div_ceil(rows);
    fill_panels(out, rows * row_len, |panel, to| {
        let columns = panel * width..n.min((panel + 1) * width);
        for (at, to) in to.chunks_exact_mut(row_len).enumerate() {
            for p in pairs * at..k.min(pairs * (at + 1)) {
                put(to, p, columns.clone());
            }
        }
    });
}

fn shape(k: usize, n: usize, paired: bool) -> [i64; 3] {
    let width = panel_width(n, DType::Float32);
    let rows = if paired { k.div_ceil(2) } else { k };
    [n.div_ceil(width), rows, width].map(|d| d as i64)
}

/// Packs an int8 matrix `[k, n]` into panels. `element(row, column)` returns an element.
///
/// # Errors
/// `SizeOverflow`, `OutOfMemory`.
pub fn pack_bytes(
    k: usize,
    n: usize,
    element: impl Fn(usize, usize) -> i8 + Send + Sync,
) -> Result<Tensor, TensorError> {
    let shape = shape(k, n, false);
    let mut out = Tensor::zeros(&shape, DType::Int8)?;
    fill(out.as_mut_slice::<i8>()?, (k, n), shape, |to, p, columns| {
        to.iter_mut().zip(columns).for_each(|(to, j)| *to = element(p, j));
    });
    Ok(out)
}

/// Packs a matrix `[k, n]` of 4-bit integers into panels. Only the lower four bits of each element are used.
///
/// # Errors
/// `SizeOverflow`, `OutOfMemory`.
pub fn pack_nibbles(
    k: usize,
    n: usize,
    element: impl Fn(usize, usize) -> u8 + Send + Sync,
) -> Result<Tensor, TensorError> {
    let shape = shape(k, n, true);
    let mut out = Tensor::zeros(&shape, DType::UInt8)?;
    fill(out.as_mut_slice::<u8>()?, (k, n), shape, |to, p, columns| {
        let shift = 4 * (p % 2);
        to.iter_mut().zip(columns).for_each(|(to, j)| *to |= (element(p, j) & 15) << shift);
    });
    Ok(out)
}

/// Packs a matrix `[k, n]` into panels, rounding each element to bfloat16.
///
/// # Errors
/// `SizeOverflow`, `OutOfMemory`.
pub fn pack_bfloat16(
    k: usize,
    n: usize,
    element: impl Fn(usize, usize) -> f32 + Send + Sync,
) -> Result<Tensor, TensorError> {
    let [panels, rows, width] = shape(k, n, true);
    let mut out = Tensor::zeros(&[panels, rows, width, 2], DType::BFloat16)?;
    fill(out.as_mut_slice::<bf16>()?, (k, n), [panels, rows, 2 * width], |to, p, columns| {
        let own = to.iter_mut().skip(p % 2).step_by(2);
        own.zip(columns).for_each(|(to, j)| *to = bf16::from_f32(element(p, j)));
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_packed() {
        for (k, n) in [(0, 3), (1, 1), (5, 16), (33, 70), (3, 0)] {
            let all: Vec<f32> = (0..k * n).map(|i| (i % 251) as f32).collect();
            let bytes: Vec<i8> = all.iter().map(|&x| (x - 125.0) as i8).collect();
            let small: Vec<u8> = all.iter().map(|&x| x as u8 % 16).collect();
            let width = panel_width(n, DType::Float32);
            let (wide, pairs) = (pack_bytes(k, n, |p, j| bytes[p * n + j]).unwrap(), k.div_ceil(2));
            let (halves, rounded) = (
                pack_nibbles(k, n, |p, j| small[p * n + j]).unwrap(),
                pack_bfloat16(k, n, |p, j| all[p * n + j]).unwrap(),
            );
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
    }
}

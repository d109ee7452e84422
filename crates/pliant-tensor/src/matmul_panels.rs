//! Panels: the packed memory layout of a constant right operand of a matrix product, which kernels read sequentially.
//!
//! A matrix `[k, n]` becomes `[panels, k, width]`. A panel has `width` adjacent columns, stored row by row. The last panel is
//! padded with zeros. The layout does not depend on the host CPU, so executables can store it. Kernels with narrow vectors read a
//! panel in strips.

use crate::{DType, Element, Tensor, TensorError};

/// Maximum size in bytes of a row of a panel (a block of adjacent columns that is stored contiguously): four 512-bit vectors.
const MAX_ROW_BYTES: usize = 256;
/// The number of columns of every panel (a block of adjacent columns that is stored contiguously) is a multiple of this number.
const COLUMN_STEP: usize = 16;

/// Returns the number of columns of a panel (a block of adjacent columns that is stored contiguously) for a matrix of `n` columns.
/// If all columns fit in the widest panel, there is one panel.
pub fn panel_width(n: usize, dtype: DType) -> usize {
    n.next_multiple_of(COLUMN_STEP)
        .clamp(COLUMN_STEP, (MAX_ROW_BYTES / dtype.size()).max(COLUMN_STEP))
}

/// Whether a matrix of this type can have panels of `width` columns.
pub fn is_panel_width(width: usize, dtype: DType) -> bool {
    width > 0 && width.is_multiple_of(COLUMN_STEP) && panel_width(width, dtype) == width
}

/// Packs a float32 or float64 matrix of rank 2, or its transpose, into panels. The result has rank 3.
///
/// # Errors
/// `ShapeMismatch` (the rank is not 2), `DTypeMismatch`, `SizeOverflow`, `OutOfMemory`.
pub fn pack_panels(matrix: &Tensor, transposed: bool) -> Result<Tensor, TensorError> {
    let &[rows, columns] = matrix.shape() else {
        let (expected, actual) = (vec![0, 0], matrix.shape().to_vec());
        return Err(TensorError::ShapeMismatch { expected, actual });
    };
    let (k, n) = if transposed { (columns, rows) } else { (rows, columns) };
    let matrix = matrix.to_contiguous()?;
    match matrix.dtype() {
        DType::Float64 => pack::<f64>(&matrix, k as usize, n as usize, transposed),
        _ => pack::<f32>(&matrix, k as usize, n as usize, transposed),
    }
}

fn pack<T: Element>(
    matrix: &Tensor,
    k: usize,
    n: usize,
    transposed: bool,
) -> Result<Tensor, TensorError> {
    let from = matrix.as_slice::<T>()?;
    let width = panel_width(n, T::DTYPE);
    let panels = n.div_ceil(width);
    let mut out = Tensor::zeros(&[panels as i64, k as i64, width as i64], T::DTYPE)?;
    if k == 0 {
        return Ok(out);
    }
    fill_panels(out.as_mut_slice::<T>()?, k * width, |p, to| {
        let first = p * width;
        let columns = width.min(n - first);
        if !transposed {
            for (row, to) in to.chunks_exact_mut(width).enumerate() {
                to[..columns].copy_from_slice(&from[row * n + first..][..columns]);
            }
            return;
        }
        // Blocks of 16 rows keep source and destination in the L1 cache.
        for (block, to) in to.chunks_mut(16 * width).enumerate() {
            for column in 0..columns {
                let from = &from[(first + column) * k + block * 16..];
                for (to, &x) in to.chunks_exact_mut(width).zip(from) {
                    to[column] = x;
                }
            }
        }
    });
    Ok(out)
}

/// Minimum number of elements of a matrix that is packed in parallel. For fewer, starting threads takes longer than packing.
const MIN_PARALLEL_ELEMENTS: usize = 1 << 16;

/// Calls `fill` on each panel of `out` with its index, in parallel if there are many elements.
pub(crate) fn fill_panels<T: Send>(
    out: &mut [T],
    panel_len: usize,
    fill: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let parallel = out.len() >= MIN_PARALLEL_ELEMENTS && out.len() >= 2 * panel_len;
    let panels = out.chunks_exact_mut(panel_len.max(1)).enumerate();
    match parallel {
        true => {
            drop(pliant_pool::parallel_map(panels.collect(), |(index, panel)| fill(index, panel)))
        }
        false => panels.for_each(|(index, panel)| fill(index, panel)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_packed_and_the_padding_is_zero() {
        for (k, n) in [(0, 3), (1, 1), (5, 16), (33, 70), (17, 129), (3, 0)] {
            let at = |row: usize, column: usize| (row * 1000 + column + 1) as f64;
            let plain: Vec<f64> = (0..k * n).map(|i| at(i / n, i % n)).collect();
            let turned: Vec<f64> = (0..k * n).map(|i| at(i % k, i / k)).collect();
            let width = panel_width(n, DType::Float64);
            for (data, shape, transposed) in [(plain, [k, n], false), (turned, [n, k], true)] {
                let matrix = Tensor::from_slice(&shape.map(|d| d as i64), &data).unwrap();
                let packed = pack_panels(&matrix, transposed).unwrap();
                let want = [n.div_ceil(width) as i64, k as i64, width as i64];
                assert_eq!(packed.shape(), want);
                for (i, &x) in packed.as_slice::<f64>().unwrap().iter().enumerate() {
                    let (panel, row, column) = (i / (k * width), i / width % k, i % width);
                    let column = panel * width + column;
                    assert_eq!(x, if column < n { at(row, column) } else { 0.0 });
                }
            }
        }
    }

    #[test]
    fn panel_widths_and_invalid_matrices() {
        for (n, dtype, width) in [
            (1, DType::Float32, 16),
            (33, DType::Float32, 48),
            (1000, DType::Float32, 64),
            (33, DType::Float64, 32),
        ] {
            assert_eq!(panel_width(n, dtype), width);
        }
        let vector = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
        assert!(matches!(pack_panels(&vector, false), Err(TensorError::ShapeMismatch { .. })));
        let integers = Tensor::from_slice(&[1, 1], &[1i32]).unwrap();
        assert!(matches!(pack_panels(&integers, true), Err(TensorError::DTypeMismatch { .. })));
    }
}

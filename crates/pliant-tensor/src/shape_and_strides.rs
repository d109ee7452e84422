//! Checked arithmetic on shapes and strides.

use crate::{DType, TensorError};

/// Returns the number of elements of a tensor of `shape`.
///
/// # Errors
/// `NegativeDim`, or `SizeOverflow` if the number of elements or bytes exceeds `isize::MAX`.
pub fn checked_numel(shape: &[i64], dtype: DType) -> Result<usize, TensorError> {
    // The product of the other dims must fit even if a dim is zero, because strides are computed from it.
    let mut product: i64 = 1;
    let mut empty = false;
    for &dim in shape {
        if dim < 0 {
            return Err(TensorError::NegativeDim { shape: shape.to_vec() });
        }
        if dim == 0 {
            empty = true;
        } else {
            product = product.checked_mul(dim).ok_or_else(|| overflow(shape, dtype))?;
        }
    }
    let bytes = product.checked_mul(dtype.size() as i64).ok_or_else(|| overflow(shape, dtype))?;
    if isize::try_from(bytes).is_err() {
        return Err(overflow(shape, dtype));
    }
    Ok(if empty { 0 } else { product as usize })
}

/// Returns the size of a contiguous tensor of `shape` in bytes.
///
/// # Errors
/// `NegativeDim`, or `SizeOverflow` if the number of elements or bytes exceeds `isize::MAX`.
pub fn checked_nbytes(shape: &[i64], dtype: DType) -> Result<usize, TensorError> {
    // `checked_numel` has checked the product including the element size.
    Ok(checked_numel(shape, dtype)? * dtype.size())
}

fn overflow(shape: &[i64], dtype: DType) -> TensorError {
    TensorError::SizeOverflow { shape: shape.to_vec(), dtype }
}

/// Writes the row-major strides of `shape`, in elements, to `strides`, which has the same length.
///
/// `shape` must have been checked by [`checked_numel`].
pub fn contiguous_strides(shape: &[i64], strides: &mut [i64]) {
    let mut step: i64 = 1;
    for (dim, stride) in shape.iter().zip(strides).rev() {
        *stride = step;
        step = step.saturating_mul((*dim).max(1));
    }
}

/// Whether the elements are in row-major order without gaps. The stride of a dim of size 1 does not matter.
pub(crate) fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    let mut step: i64 = 1;
    let mut row_major = true;
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        if dim == 0 {
            return true;
        }
        row_major &= dim == 1 || stride == step;
        // Only broadcast views saturate, and those are not row-major anyway.
        step = step.saturating_mul(dim);
    }
    row_major
}

/// Returns the byte range of a strided view, relative to its first element, as (lowest byte, one
/// past the highest byte). `None` if it does not fit into 128 bits.
pub(crate) fn byte_span(shape: &[i64], strides: &[i64], dtype: DType) -> Option<(i128, i128)> {
    if shape.contains(&0) {
        return Some((0, 0));
    }
    let (mut low, mut high) = (0i128, 0i128);
    for (&dim, &stride) in shape.iter().zip(strides) {
        let reach = (i128::from(dim) - 1).checked_mul(i128::from(stride))?;
        if reach < 0 {
            low = low.checked_add(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    let size = dtype.size() as i128;
    Some((low.checked_mul(size)?, high.checked_add(1)?.checked_mul(size)?))
}

/// Calls `visit(offset)` for each row of a strided view, in row-major order. A row extends along the last dim, and `offset` is the
/// element offset of its start. The rank is at least 1, and no dim is 0.
pub(crate) fn for_each_row(shape: &[i64], strides: &[i64], mut visit: impl FnMut(i64)) {
    let outer = shape.len() - 1;
    let mut index = vec![0i64; outer];
    let mut offset = 0i64;
    loop {
        visit(offset);
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert_eq!(checked_nbytes(&[2, 3], DType::Float32), Ok(24));
        assert_eq!(checked_nbytes(&[], DType::Float64), Ok(8));
        assert_eq!(checked_nbytes(&[0, 5], DType::Float32), Ok(0));
        assert!(matches!(
            checked_numel(&[-1, 0], DType::Bool),
            Err(TensorError::NegativeDim { .. })
        ));
        for shape in [&[i64::MAX, 2][..], &[i64::MAX][..], &[0, i64::MAX, i64::MAX][..]] {
            assert!(matches!(
                checked_numel(shape, DType::Float32),
                Err(TensorError::SizeOverflow { .. })
            ));
        }
    }

    #[test]
    fn contiguity_ignores_strides_of_unit_dims() {
        assert!(is_contiguous(&[2, 3], &[3, 1]));
        assert!(is_contiguous(&[2, 1, 3], &[3, 77, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(is_contiguous(&[0, 3], &[9, 9]));
        assert!(is_contiguous(&[], &[]));
        assert!(!is_contiguous(&[3], &[0]));
    }

    #[test]
    fn byte_spans_of_strided_views() {
        assert_eq!(byte_span(&[2, 3], &[3, 1], DType::Int16), Some((0, 12)));
        assert_eq!(byte_span(&[3], &[-2], DType::Int8), Some((-4, 1)));
        assert_eq!(byte_span(&[0], &[-2], DType::Int8), Some((0, 0)));
    }
}

//! Views of a tensor: read-only, sliced, reshaped and reinterpreted.

use crate::shape_and_strides::{checked_nbytes, checked_numel, contiguous_strides};
use crate::{DType, Tensor, TensorError};

impl Tensor {
    /// Returns a read-only view of the same data.
    pub fn as_read_only(&self) -> Tensor {
        if self.0.read_only {
            return self.clone();
        }
        let (o, storage) = (&*self.0, self.0.storage.clone());
        Self::new_unchecked(
            storage,
            o.byte_offset,
            self.shape(),
            self.strides(),
            o.dtype,
            o.numel,
            true,
        )
    }

    /// Returns a strided view: element `i` of dim `d` is element `first[d] + i * step[d]` of this
    /// tensor. `shape` is the shape of the view.
    ///
    /// # Errors
    /// `ShapeMismatch` (number of dims), `NegativeDim`, `SizeOverflow`, `OutOfBounds` (elements
    /// outside the storage).
    pub fn slice(&self, first: &[i64], step: &[i64], shape: &[i64]) -> Result<Tensor, TensorError> {
        let (o, dtype) = (&*self.0, self.dtype());
        if [first.len(), step.len(), shape.len()].iter().any(|&n| n != self.ndim()) {
            let (expected, actual) = (self.shape().to_vec(), shape.to_vec());
            return Err(TensorError::ShapeMismatch { expected, actual });
        }
        if checked_numel(shape, dtype)? == 0 {
            return Self::from_storage(o.storage.clone(), o.byte_offset, shape, dtype);
        }
        let overflow = || TensorError::SizeOverflow { shape: shape.to_vec(), dtype };
        let mut at = o.byte_offset as i64;
        let mut strides = Vec::with_capacity(shape.len());
        for ((&first, &step), (&stride, &len)) in
            first.iter().zip(step).zip(self.strides().iter().zip(shape))
        {
            let offset = first.checked_mul(stride).and_then(|n| n.checked_mul(dtype.size() as i64));
            at = offset.and_then(|n| at.checked_add(n)).ok_or_else(overflow)?;
            // A dim with a single element needs no stride.
            strides.push(if len == 1 {
                0
            } else {
                step.checked_mul(stride).ok_or_else(overflow)?
            });
        }
        let at = usize::try_from(at).map_err(|_| overflow())?;
        let view = Self::from_storage_strided(o.storage.clone(), at, shape, &strides, dtype)?;
        let v = &*view.0;
        Ok(Self::new_unchecked(v.storage.clone(), at, shape, &strides, dtype, v.numel, o.read_only))
    }

    /// Reinterprets the bytes of this tensor in row-major order, starting at `offset` bytes, as a tensor of another shape and data
    /// type. As `bool`, every nonzero byte is true.
    ///
    /// # Errors
    /// `OutOfBounds`, `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn reinterpreted(
        &self,
        shape: &[i64],
        dtype: DType,
        offset: i64,
    ) -> Result<Tensor, TensorError> {
        let source = self.to_contiguous()?;
        let (bytes, size) = (source.as_bytes()?, checked_nbytes(shape, dtype)?);
        let part = usize::try_from(offset)
            .ok()
            .and_then(|begin| bytes.get(begin..begin.checked_add(size)?))
            .ok_or_else(|| TensorError::OutOfBounds {
                begin: i128::from(offset),
                end: i128::from(offset) + size as i128,
                storage: bytes.len(),
            })?;
        if dtype.is_bool() {
            let part: Vec<u8> = part.iter().map(|&b| u8::from(b != 0)).collect();
            return Self::from_bytes(shape, dtype, &part);
        }
        Self::from_bytes(shape, dtype, part)
    }

    /// Returns a view of a contiguous tensor with another shape that has the same number of
    /// elements.
    ///
    /// # Errors
    /// `NotContiguous`, `ShapeMismatch`, `NegativeDim`, `SizeOverflow`.
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor, TensorError> {
        self.as_bytes()?;
        let numel = checked_numel(shape, self.dtype())?;
        if numel != self.numel() {
            let (expected, actual) = (shape.to_vec(), self.shape().to_vec());
            return Err(TensorError::ShapeMismatch { expected, actual });
        }
        let mut strides = vec![0; shape.len()];
        contiguous_strides(shape, &mut strides);
        let (o, storage) = (&*self.0, self.0.storage.clone());
        Ok(Self::new_unchecked(
            storage,
            o.byte_offset,
            shape,
            &strides,
            o.dtype,
            numel,
            o.read_only,
        ))
    }
}

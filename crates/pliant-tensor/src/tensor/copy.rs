//! Copies of tensors with any strides.

use crate::shape_and_strides::{checked_nbytes, for_each_row};
use crate::{Element, Storage, Tensor, TensorError};

impl Tensor {
    /// Copies the elements to a vector in row-major order, for any strides.
    ///
    /// # Errors
    /// `DTypeMismatch`, `OutOfMemory`, `InvalidBool`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        if self.0.contiguous && self.is_aligned() {
            return Ok(self.as_slice::<T>()?.to_vec());
        }
        Ok(self.copy()?.as_slice::<T>()?.to_vec())
    }

    /// Returns the tensor itself if it is contiguous, else a row-major copy.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_contiguous(&self) -> Result<Tensor, TensorError> {
        if self.0.contiguous { Ok(self.clone()) } else { self.copy() }
    }

    /// Creates a row-major, writable copy.
    ///
    /// # Errors
    /// `OutOfMemory`, or `SizeOverflow` for a broadcast view whose copy would be too large.
    pub fn copy(&self) -> Result<Tensor, TensorError> {
        let nbytes = checked_nbytes(self.shape(), self.dtype())?;
        // SAFETY: every element is written below, and nothing else refers to the copy.
        let storage = unsafe { Storage::uninit(nbytes) }?;
        let copy = Self::from_storage(storage, 0, self.shape(), self.dtype())?;
        // SAFETY: the copy is newly allocated, row-major and of the same shape and type.
        unsafe { self.copy_elements(copy.data_ptr()) };
        Ok(copy)
    }

    /// Copies the elements of `source`, which has the same shape and type, to this row-major tensor.
    ///
    /// # Errors
    /// `ShapeMismatch`, `DTypeMismatch`, `ReadOnly`, `NotContiguous`.
    ///
    /// # Safety
    /// Nothing else may access this tensor's memory during the call. It must not overlap the memory
    /// of `source`.
    pub unsafe fn copy_from(&self, source: &Tensor) -> Result<(), TensorError> {
        if self.shape() != source.shape() {
            let (expected, actual) = (self.shape().to_vec(), source.shape().to_vec());
            return Err(TensorError::ShapeMismatch { expected, actual });
        }
        if self.dtype() != source.dtype() {
            let (expected, actual) = (self.dtype(), source.dtype());
            return Err(TensorError::DTypeMismatch { expected, actual });
        }
        if self.is_read_only() {
            return Err(TensorError::ReadOnly);
        }
        self.as_bytes()?;
        // SAFETY: this tensor is row-major, of the same shape and type, and not accessed by others,
        // as the caller guarantees.
        unsafe { source.copy_elements(self.data_ptr()) };
        Ok(())
    }

    /// Copies the elements to `out` in row-major order.
    ///
    /// # Safety
    /// `out` must be writable for `nbytes` bytes that do not overlap this tensor.
    unsafe fn copy_elements(&self, out: *mut u8) {
        if self.0.numel == 0 {
            return;
        }
        if self.0.contiguous {
            // SAFETY: `nbytes` contiguous bytes on both sides.
            unsafe { std::ptr::copy_nonoverlapping(self.data_ptr(), out, self.nbytes()) };
            return;
        }
        let (shape, strides) = coalesce_dims(self.shape(), self.strides());
        let copy = match self.dtype().size() {
            1 => copy_rows::<1>,
            2 => copy_rows::<2>,
            4 => copy_rows::<4>,
            _ => copy_rows::<8>,
        };
        // SAFETY: the constructors checked every element that the strides reach; the caller guarantees space for as many.
        unsafe { copy(self.data_ptr(), &shape, &strides, out) };
    }
}

/// Simplifies the dims and strides of a view for copying: removes dims of size 1, and merges
/// adjacent dims if one stride covers both. The rank of the result is at least 1.
fn coalesce_dims(shape: &[i64], strides: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let (mut dims, mut steps): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for (&dim, &stride) in shape.iter().zip(strides).filter(|d| *d.0 != 1) {
        match (dims.last_mut(), steps.last_mut()) {
            (Some(outer), Some(step)) if dim.checked_mul(stride) == Some(*step) => {
                (*outer, *step) = (*outer * dim, stride);
            }
            _ => {
                dims.push(dim);
                steps.push(stride);
            }
        }
    }
    if dims.is_empty() {
        (dims, steps) = (vec![1], vec![1]);
    }
    (dims, steps)
}

/// Copies the elements of a view, each of `N` bytes, row by row.
///
/// # Safety
/// Every element of the view is readable, and `out` is writable for as many elements. No dim is 0, and the rank is at least 1.
unsafe fn copy_rows<const N: usize>(
    base: *const u8,
    shape: &[i64],
    strides: &[i64],
    mut out: *mut u8,
) {
    let last = shape.len() - 1;
    let (row, step) = (shape[last] as usize, strides[last] as isize);
    for_each_row(shape, strides, |start| {
        // SAFETY: the caller's promise.
        unsafe {
            let source = base.offset(start as isize * N as isize);
            if step == 1 {
                std::ptr::copy_nonoverlapping(source, out, row * N);
            } else {
                for i in 0..row {
                    // Wrapping, because only the offsets of elements are known to be in the storage.
                    let element = source.wrapping_offset(i as isize * step * N as isize);
                    std::ptr::copy_nonoverlapping(element, out.add(i * N), N);
                }
            }
            out = out.add(row * N);
        }
    });
}

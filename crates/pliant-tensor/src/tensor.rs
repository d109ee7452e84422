//! [`Tensor`]: a shared, typed, strided view of a storage. The tensor object also contains its description as a
//! [`DLTensor`].

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::dlpack::{DL_CPU, DLDataType, DLDevice, DLTensor};
use crate::shape_and_strides::{
    byte_span, checked_nbytes, checked_numel, contiguous_strides, is_contiguous,
};
use crate::{DType, Element, Storage, TensorError};

mod copy;
mod element_conversion;
mod views;

/// Maximum rank of a tensor whose shape and strides are stored inside the tensor object. The shape and strides of other tensors
/// are on the heap.
const INLINE_RANK: usize = 6;

/// The shape of a tensor, followed by its strides.
enum Dims {
    Inline([i64; 2 * INLINE_RANK]),
    Heap(Box<[i64]>),
}

impl Dims {
    fn new(shape: &[i64], strides: &[i64]) -> Dims {
        let rank = shape.len();
        if rank <= INLINE_RANK {
            let mut dims = [0; 2 * INLINE_RANK];
            dims[..rank].copy_from_slice(shape);
            dims[rank..2 * rank].copy_from_slice(strides);
            Dims::Inline(dims)
        } else {
            Dims::Heap([shape, strides].concat().into_boxed_slice())
        }
    }

    fn as_slice(&self) -> &[i64] {
        match self {
            Dims::Inline(dims) => dims,
            Dims::Heap(dims) => dims,
        }
    }

    fn as_mut_ptr(&mut self) -> *mut i64 {
        match self {
            Dims::Inline(dims) => dims.as_mut_ptr(),
            Dims::Heap(dims) => dims.as_mut_ptr(),
        }
    }
}

/// The object behind a tensor handle. `dl` contains pointers into `dims`, so the object must not move.
#[repr(C)]
struct Object {
    dl: DLTensor,
    storage: Storage,
    byte_offset: usize,
    numel: usize,
    dtype: DType,
    read_only: bool,
    contiguous: bool,
    dims: Dims,
}

/// Size of a tensor object in bytes, without dims stored on the heap.
pub(crate) const OBJECT: usize = size_of::<Object>();

/// A tensor in host memory: element type, shape, strides, and a view of shared bytes.
///
/// Clones share the data. The handle is `Send + Sync`. Reading through it is safe as long as code that writes through raw pointers
/// (compiled code, [`Tensor::data_ptr`]) does not write to tensors that are being read.
///
/// # Examples
/// ```
/// use pliant_tensor::{DType, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut x = Tensor::from_slice(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// assert_eq!((x.shape(), x.dtype()), (&[2i64, 3][..], DType::Float32));
/// x.as_mut_slice::<f32>()?[0] = 6.0;
/// assert_eq!(x.reshape(&[6])?.to_vec::<f32>()?, [6.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tensor(Arc<Object>);

// SAFETY: the object's raw pointers refer to the object itself and to its storage, which is Send +
// Sync.
unsafe impl Send for Tensor {}
// SAFETY: as for Send.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Creates a tensor without checks. The caller guarantees that all elements are in the storage. The tensor is read-only if the
    /// storage is.
    pub(crate) fn new_unchecked(
        storage: Storage,
        byte_offset: usize,
        shape: &[i64],
        strides: &[i64],
        dtype: DType,
        numel: usize,
        read_only: bool,
    ) -> Tensor {
        let (code, bits) = dtype.to_dlpack();
        let data = storage.as_ptr().wrapping_add(byte_offset).cast::<c_void>();
        #[expect(clippy::arc_with_non_send_sync, reason = "Tensor asserts Send and Sync")]
        let mut object = Arc::new(Object {
            dl: DLTensor {
                data,
                device: DLDevice { device_type: DL_CPU, device_id: 0 },
                ndim: shape.len() as i32,
                dtype: DLDataType { code, bits, lanes: 1 },
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            read_only: read_only || storage.is_read_only(),
            storage,
            byte_offset,
            numel,
            dtype,
            contiguous: is_contiguous(shape, strides),
            dims: Dims::new(shape, strides),
        });
        let inner = Arc::get_mut(&mut object).expect("the object was just made");
        let dims = inner.dims.as_mut_ptr();
        inner.dl.shape = dims;
        inner.dl.strides = dims.wrapping_add(shape.len());
        Tensor(object)
    }

    /// Creates a row-major view of `storage` that starts at `byte_offset`.
    ///
    /// # Errors
    /// `NegativeDim`, `SizeOverflow`, `OutOfBounds`.
    pub fn from_storage(
        storage: Storage,
        byte_offset: usize,
        shape: &[i64],
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        let numel = checked_numel(shape, dtype)?;
        let nbytes = numel * dtype.size();
        if byte_offset.checked_add(nbytes).is_none_or(|end| end > storage.len()) {
            let begin = byte_offset as i128;
            let end = begin + nbytes as i128;
            return Err(TensorError::OutOfBounds { begin, end, storage: storage.len() });
        }
        if shape.len() <= INLINE_RANK {
            let mut strides = [0; INLINE_RANK];
            let strides = &mut strides[..shape.len()];
            contiguous_strides(shape, strides);
            Ok(Self::new_unchecked(storage, byte_offset, shape, strides, dtype, numel, false))
        } else {
            let mut strides = vec![0; shape.len()];
            contiguous_strides(shape, &mut strides);
            Ok(Self::new_unchecked(storage, byte_offset, shape, &strides, dtype, numel, false))
        }
    }

    /// Creates a strided view of `storage`. Strides are in elements; they may be zero or negative. All elements must be inside the
    /// storage.
    ///
    /// # Errors
    /// `StridesMismatch` (wrong number of strides), `NegativeDim`, `SizeOverflow`, `OutOfBounds`.
    pub fn from_storage_strided(
        storage: Storage,
        byte_offset: usize,
        shape: &[i64],
        strides: &[i64],
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        if shape.len() != strides.len() {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            return Err(TensorError::StridesMismatch { shape, strides });
        }
        let numel = checked_numel(shape, dtype)?;
        let (low, high) = byte_span(shape, strides, dtype)
            .ok_or_else(|| TensorError::SizeOverflow { shape: shape.to_vec(), dtype })?;
        let (begin, end) = (low + byte_offset as i128, high + byte_offset as i128);
        if begin < 0 || end > storage.len() as i128 {
            return Err(TensorError::OutOfBounds { begin, end, storage: storage.len() });
        }
        Ok(Self::new_unchecked(storage, byte_offset, shape, strides, dtype, numel, false))
    }

    /// Creates a row-major tensor whose elements the caller will write.
    ///
    /// # Errors
    /// `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn empty(shape: &[i64], dtype: DType) -> Result<Tensor, TensorError> {
        // Zeroed, because safe code can read the elements. Fresh pages from the operating system are zero anyway.
        Self::zeros(shape, dtype)
    }

    /// Creates a row-major tensor of zeros.
    ///
    /// # Errors
    /// `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn zeros(shape: &[i64], dtype: DType) -> Result<Tensor, TensorError> {
        let storage = Storage::zeroed(checked_nbytes(shape, dtype)?)?;
        Self::from_storage(storage, 0, shape, dtype)
    }

    /// Creates a row-major tensor of `shape` with the elements `data`.
    ///
    /// # Errors
    /// `LengthMismatch`, `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn from_slice<T: Element>(shape: &[i64], data: &[T]) -> Result<Tensor, TensorError> {
        // SAFETY: elements are plain data, readable as bytes.
        let bytes = unsafe {
            std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), std::mem::size_of_val(data))
        };
        let expected = checked_numel(shape, T::DTYPE)?;
        if expected != data.len() {
            return Err(TensorError::LengthMismatch { expected, actual: data.len() });
        }
        Self::from_bytes(shape, T::DTYPE, bytes)
    }

    /// Creates a row-major tensor from the bytes of its elements in native byte order.
    ///
    /// # Errors
    /// `ByteLengthMismatch`, `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn from_bytes(shape: &[i64], dtype: DType, bytes: &[u8]) -> Result<Tensor, TensorError> {
        let expected = checked_nbytes(shape, dtype)?;
        if expected != bytes.len() {
            return Err(TensorError::ByteLengthMismatch { expected, actual: bytes.len() });
        }
        // SAFETY: every byte is written below.
        let storage = unsafe { Storage::uninit(expected) }?;
        // SAFETY: the storage is fresh, unshared and `expected` bytes long.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_ptr(), expected) };
        Self::from_storage(storage, 0, shape, dtype)
    }

    /// Creates a tensor of rank 0.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn scalar<T: Element>(value: T) -> Result<Tensor, TensorError> {
        Self::from_slice(&[], &[value])
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns the rank (number of dims).
    pub fn ndim(&self) -> usize {
        self.0.dl.ndim as usize
    }

    /// Returns the dims of the tensor, none of which is negative.
    pub fn shape(&self) -> &[i64] {
        &self.0.dims.as_slice()[..self.ndim()]
    }

    /// Returns the strides, in elements.
    pub fn strides(&self) -> &[i64] {
        let rank = self.ndim();
        &self.0.dims.as_slice()[rank..2 * rank]
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> usize {
        self.0.numel
    }

    /// Returns the size of all elements in bytes, without gaps due to strides.
    pub fn nbytes(&self) -> usize {
        self.0.numel * self.0.dtype.size()
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// Whether the elements must not be written.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Whether the address of the first element is a multiple of the element size, as typed slices require.
    pub fn is_aligned(&self) -> bool {
        // Element sizes are powers of two. Every call of a loop function runs this check.
        self.0.dl.data as usize & (self.0.dtype.size() - 1) == 0
    }

    /// Whether the tensor is row-major and aligned, as most loop functions require.
    pub fn is_row_major_aligned(&self) -> bool {
        self.0.contiguous && self.is_aligned()
    }

    /// Returns the storage that contains the elements.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// Returns the offset of the first element in the storage, in bytes.
    pub fn byte_offset(&self) -> usize {
        self.0.byte_offset
    }

    /// Returns the DLPack view of the tensor. The reference is valid as long as a handle exists.
    /// `byte_offset` is 0 and `strides` is not null.
    pub fn dl(&self) -> &DLTensor {
        &self.0.dl
    }

    /// Returns the address of the first element. Code that writes through it must ensure that the
    /// tensor is not read-only and that nothing else accesses these bytes at the same time.
    pub fn data_ptr(&self) -> *mut u8 {
        self.0.dl.data.cast()
    }

    /// Whether the byte ranges of two tensors overlap. The range of a tensor extends from its lowest to its highest element. A
    /// tensor without elements overlaps with nothing.
    pub fn overlaps(&self, other: &Tensor) -> bool {
        let ([a_begin, a_end], [b_begin, b_end]) = (self.bounds(), other.bounds());
        self.numel() > 0 && other.numel() > 0 && a_begin < b_end && b_begin < a_end
    }

    /// Returns the addresses of the first byte and of the end of a tensor that has elements.
    fn bounds(&self) -> [usize; 2] {
        let size = self.dtype().size();
        let (at, mut before, mut behind) = (self.data_ptr().addr(), 0usize, size);
        for (&dim, &stride) in self.shape().iter().zip(self.strides()) {
            let reach = dim.saturating_sub(1).saturating_mul(stride).unsigned_abs() as usize;
            let side = if stride < 0 { &mut before } else { &mut behind };
            *side = side.saturating_add(reach.saturating_mul(size));
        }
        [at.saturating_sub(before), at.saturating_add(behind)]
    }

    /// Whether this is the only handle to the tensor and to its memory, and the memory was
    /// allocated by Pliant. If so, another tensor can reuse the memory.
    pub fn is_unique(&self) -> bool {
        let object = &*self.0;
        let sole = Arc::strong_count(&self.0) == 1
            && Arc::weak_count(&self.0) == 0
            && object.storage.is_unique_buffer()
            && !object.read_only
            && object.contiguous
            && object.byte_offset == 0;
        // Synchronizes with accesses by other threads before they dropped their handles.
        fence(Ordering::Acquire);
        sole
    }

    /// Whether both handles refer to the same tensor object.
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the bytes of a contiguous tensor.
    ///
    /// # Errors
    /// `NotContiguous`.
    pub fn as_bytes(&self) -> Result<&[u8], TensorError> {
        if !self.0.contiguous {
            let (shape, strides) = (self.shape().to_vec(), self.strides().to_vec());
            return Err(TensorError::NotContiguous { shape, strides });
        }
        if self.0.numel == 0 {
            return Ok(&[]);
        }
        // SAFETY: the constructors have checked that the elements are inside the storage, which
        // `self` keeps alive.
        Ok(unsafe { std::slice::from_raw_parts(self.data_ptr(), self.nbytes()) })
    }

    /// Returns the elements of a contiguous tensor, in row-major order.
    ///
    /// # Errors
    /// `DTypeMismatch`, `NotContiguous`, `Misaligned`, `InvalidBool`.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        if T::DTYPE != self.0.dtype {
            let (expected, actual) = (T::DTYPE, self.0.dtype);
            return Err(TensorError::DTypeMismatch { expected, actual });
        }
        let bytes = self.as_bytes()?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if !(bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()) {
            return Err(TensorError::Misaligned { dtype: self.0.dtype });
        }
        if !T::is_valid(bytes) {
            return Err(TensorError::InvalidBool);
        }
        // SAFETY: the bytes are `numel` elements of T's type, aligned, and valid as T.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.0.numel) })
    }

    /// Returns the elements of a contiguous tensor for writing. There must be no other handle to
    /// the tensor or its storage.
    ///
    /// # Errors
    /// `DTypeMismatch`, `NotContiguous`, `Misaligned`, `InvalidBool`, `ReadOnly`, `Shared`.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        self.as_slice::<T>()?;
        if self.0.read_only {
            return Err(TensorError::ReadOnly);
        }
        let Some(object) = Arc::get_mut(&mut self.0) else { return Err(TensorError::Shared) };
        if !object.storage.is_unique() {
            return Err(TensorError::Shared);
        }
        if object.numel == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as for `as_slice`; also, this handle is the only one to the storage.
        Ok(unsafe { std::slice::from_raw_parts_mut(object.dl.data.cast(), object.numel) })
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}, {})", self.shape(), self.dtype())
    }
}

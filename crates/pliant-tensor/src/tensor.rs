//! [`Tensor`]: a shared, typed, strided view of a storage that contains a DLPack view of itself.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::dlpack::{DL_CPU, DLDataType, DLDevice, DLTensor};
use crate::layout::{
    byte_span, checked_nbytes, checked_numel, contiguous_strides, for_each_row, is_contiguous,
};
use crate::{DType, Element, Storage, TensorError};

/// Shape and strides up to this rank are stored inside the object.
const INLINE_RANK: usize = 6;

/// The shape, followed by the strides.
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

/// The object behind a handle. `dl` points into `dims`, so the object must not move.
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
    /// `ShapeMismatch` (wrong number of strides), `NegativeDim`, `SizeOverflow`, `OutOfBounds`.
    pub fn from_storage_strided(
        storage: Storage,
        byte_offset: usize,
        shape: &[i64],
        strides: &[i64],
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        if shape.len() != strides.len() {
            let (expected, actual) = (strides.to_vec(), shape.to_vec());
            return Err(TensorError::ShapeMismatch { expected, actual });
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
    /// `LengthMismatch` (in bytes), `NegativeDim`, `SizeOverflow`, `OutOfMemory`.
    pub fn from_bytes(shape: &[i64], dtype: DType, bytes: &[u8]) -> Result<Tensor, TensorError> {
        let expected = checked_nbytes(shape, dtype)?;
        if expected != bytes.len() {
            return Err(TensorError::LengthMismatch { expected, actual: bytes.len() });
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

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The rank.
    pub fn ndim(&self) -> usize {
        self.0.dl.ndim as usize
    }

    /// The dimensions. None is negative.
    pub fn shape(&self) -> &[i64] {
        &self.0.dims.as_slice()[..self.ndim()]
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[i64] {
        let rank = self.ndim();
        &self.0.dims.as_slice()[rank..2 * rank]
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.0.numel
    }

    /// The size of all elements in bytes, without gaps due to strides.
    pub fn nbytes(&self) -> usize {
        self.0.numel * self.0.dtype.size()
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// Whether the tensor must not be written.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Whether the address is a multiple of the element size, as typed slices require.
    pub fn is_aligned(&self) -> bool {
        // Element sizes are powers of two. Every call of a loop function runs this check.
        self.0.dl.data as usize & (self.0.dtype.size() - 1) == 0
    }

    /// Whether the tensor is row-major and aligned, as most loop functions require.
    pub fn is_row_major_aligned(&self) -> bool {
        self.0.contiguous && self.is_aligned()
    }

    /// The storage of the tensor.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// The offset of the first element in the storage, in bytes.
    pub fn byte_offset(&self) -> usize {
        self.0.byte_offset
    }

    /// The DLPack view. The pointer is valid as long as a handle exists. `byte_offset` is 0 and `strides` is not null.
    pub fn dl(&self) -> &DLTensor {
        &self.0.dl
    }

    /// The address of the first element. Code that writes through it must ensure that the tensor is not read-only and that nothing
    /// else accesses these bytes at the same time.
    pub fn data_ptr(&self) -> *mut u8 {
        self.0.dl.data.cast()
    }

    /// Whether the byte ranges from the lowest to the highest element of both tensors overlap. A tensor without elements overlaps
    /// with nothing.
    pub fn overlaps(&self, other: &Tensor) -> bool {
        let ([a_begin, a_end], [b_begin, b_end]) = (self.bounds(), other.bounds());
        self.numel() > 0 && other.numel() > 0 && a_begin < b_end && b_begin < a_end
    }

    /// The addresses of the first byte and of the end of a nonempty tensor.
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

    /// Whether this is the only handle to the tensor and to its memory, and Pliant allocated the memory. If so, another tensor can
    /// reuse the memory.
    pub fn is_unique(&self) -> bool {
        let object = &*self.0;
        let sole = Arc::strong_count(&self.0) == 1
            && Arc::weak_count(&self.0) == 0
            && object.storage.is_unique_buffer()
            && !object.read_only
            && object.contiguous
            && object.byte_offset == 0;
        // Synchronises with accesses by other threads before they dropped their handles.
        fence(Ordering::Acquire);
        sole
    }

    /// Whether both handles refer to the same object.
    pub fn same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A read-only tensor with the same data.
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

    /// The bytes of a contiguous tensor.
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

    /// The elements of a contiguous tensor, in row-major order.
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

    /// The elements of a contiguous tensor for writing. There must be no other handle to the tensor or its storage.
    ///
    /// # Errors
    /// As [`Tensor::as_slice`], and `ReadOnly`, `Shared`.
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

    /// The elements in row-major order, for any strides.
    ///
    /// # Errors
    /// `DTypeMismatch`, `OutOfMemory`, `InvalidBool`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        if self.0.contiguous && self.is_aligned() {
            return Ok(self.as_slice::<T>()?.to_vec());
        }
        Ok(self.copy()?.as_slice::<T>()?.to_vec())
    }

    /// The tensor itself if it is contiguous, else a row-major copy.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_contiguous(&self) -> Result<Tensor, TensorError> {
        if self.0.contiguous { Ok(self.clone()) } else { self.copy() }
    }

    /// A row-major, writable copy.
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

    /// A strided view: element `i` of dim `d` is element `first[d] + i * step[d]` of this tensor. `shape` is the shape of the view.
    ///
    /// # Errors
    /// `ShapeMismatch` (number of dims), `NegativeDim`, `SizeOverflow`, `OutOfBounds` (elements outside the storage).
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

    /// A view of a contiguous tensor with another shape that has the same number of elements.
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

    /// The elements as `f64` in row-major order. 64-bit integers are rounded.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>, TensorError> {
        self.convert(|dtype, bytes| match dtype {
            DType::Float16 => half::f16::from_ne_bytes(fixed(bytes)).to_f64(),
            DType::BFloat16 => half::bf16::from_ne_bytes(fixed(bytes)).to_f64(),
            DType::Float32 => f64::from(f32::from_ne_bytes(fixed(bytes))),
            DType::Float64 => f64::from_ne_bytes(fixed(bytes)),
            DType::UInt64 => u64::from_ne_bytes(fixed(bytes)) as f64,
            _ => read_int(dtype, bytes) as f64,
        })
    }

    /// The elements as `i64` in row-major order. Floats are truncated, and `uint64` wraps around.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>, TensorError> {
        self.convert(|dtype, bytes| match dtype {
            DType::Float16 => half::f16::from_ne_bytes(fixed(bytes)).to_f64() as i64,
            DType::BFloat16 => half::bf16::from_ne_bytes(fixed(bytes)).to_f64() as i64,
            DType::Float32 => f32::from_ne_bytes(fixed(bytes)) as i64,
            DType::Float64 => f64::from_ne_bytes(fixed(bytes)) as i64,
            _ => read_int(dtype, bytes),
        })
    }

    fn convert<T>(&self, read: impl Fn(DType, &[u8]) -> T) -> Result<Vec<T>, TensorError> {
        let tensor = self.to_contiguous()?;
        let dtype = self.dtype();
        Ok(tensor.as_bytes()?.chunks_exact(dtype.size()).map(|bytes| read(dtype, bytes)).collect())
    }
}

/// Dims and strides of a view without dims of size 1. Adjacent dims that form one regular walk through memory are merged. The rank
/// is at least 1.
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

/// Copies the elements of a view, which have `N` bytes, row by row.
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

/// The first `N` bytes of an element.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[..N]);
    out
}

fn read_int(dtype: DType, bytes: &[u8]) -> i64 {
    match dtype {
        DType::Bool => i64::from(bytes[0] != 0),
        DType::Int8 => i64::from(bytes[0] as i8),
        DType::Int16 => i64::from(i16::from_ne_bytes(fixed(bytes))),
        DType::Int32 => i64::from(i32::from_ne_bytes(fixed(bytes))),
        DType::UInt8 => i64::from(bytes[0]),
        DType::UInt16 => i64::from(u16::from_ne_bytes(fixed(bytes))),
        DType::UInt32 => i64::from(u32::from_ne_bytes(fixed(bytes))),
        // Int64 and UInt64. The callers handle floats.
        _ => i64::from_ne_bytes(fixed(bytes)),
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}, {})", self.shape(), self.dtype())
    }
}

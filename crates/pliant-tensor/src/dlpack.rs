//! The DLPack structures (stable C layout), and conversion of tensors to and from DLPack without copying.

use std::ffi::c_void;

use crate::shape_and_strides::{byte_span, checked_numel, contiguous_strides};
use crate::{DType, Storage, Tensor, TensorError};

/// The DLPack device type of host memory.
pub const DL_CPU: i32 = 1;
/// Flag of [`DLManagedTensorVersioned`]: the consumer must not write to the tensor.
pub const DLPACK_FLAG_READ_ONLY: u64 = 1;
/// Flag of [`DLManagedTensorVersioned`]: the tensor is a copy made by the producer.
pub const DLPACK_FLAG_COPIED: u64 = 2;
/// Maximum rank of an imported tensor. Tensors of a higher rank are rejected as malformed.
const MAX_RANK: i32 = 64;

/// `DLDevice`: the device that owns the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// The device type; [`DL_CPU`] for all tensors of Pliant.
    pub device_type: i32,
    /// The device index; 0 on the CPU.
    pub device_id: i32,
}

/// `DLDataType`: the element type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The type code (`DLDataTypeCode`).
    pub code: u8,
    /// The number of bits of one lane.
    pub bits: u8,
    /// The number of lanes; 1 for all tensors of Pliant.
    pub lanes: u16,
}

/// `DLTensor`: a view of memory.
///
/// Compiled code relies on `byte_offset == 0` and non-null `strides` in Pliant's own tensors. For rank 0, `shape` and `strides` may
/// be invalid pointers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The start of the memory. In Pliant's own tensors, this is the first element.
    pub data: *mut c_void,
    /// The device that owns the tensor's memory.
    pub device: DLDevice,
    /// The rank of the tensor.
    pub ndim: i32,
    /// The element type.
    pub dtype: DLDataType,
    /// The shape, an array of `ndim` sizes.
    pub shape: *mut i64,
    /// The strides in elements, an array of `ndim` integers. Null means row-major.
    pub strides: *mut i64,
    /// The offset of the first element from `data` in bytes.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: a [`DLTensor`] with its owner, for DLPack before 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The view of the tensor's memory.
    pub dl_tensor: DLTensor,
    /// A pointer for the producer's own use.
    pub manager_ctx: *mut c_void,
    /// A function of the producer that frees the structure and the memory of the tensor. May be null.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLPackVersion`: the version of the DLPack structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// The major version, incremented when the layout of the structures changes.
    pub major: u32,
    /// The minor version, incremented when new values are added to the existing layout.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: a [`DLTensor`] with its owner and flags, for DLPack since 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of the DLPack structures, which determines the layout of this structure.
    pub version: DLPackVersion,
    /// A pointer for the producer's own use.
    pub manager_ctx: *mut c_void,
    /// A function of the producer that frees the structure and the memory of the tensor. May be null.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Flags of the tensor: a combination of `DLPACK_FLAG_*`.
    pub flags: u64,
    /// The view of the tensor's memory.
    pub dl_tensor: DLTensor,
}

/// A pointer that can be sent to other threads. DLPack deleters may be called from any thread.
struct Handle<T>(*mut T);
// SAFETY: managed DLPack tensors have no thread affinity.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: the pointer is used once, by the release callback.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// Returns the pointer. This is a method so that closures capture the whole handle, which is `Send`, and not only the pointer
    /// in it.
    fn into_inner(self) -> *mut T {
        self.0
    }
}

impl Tensor {
    /// Takes ownership of a tensor from a DLPack producer without copying.
    ///
    /// On success the tensor owns `managed` and calls its deleter when it is dropped. On error the
    /// caller still owns it.
    ///
    /// # Errors
    /// `Unsupported` (device), `UnsupportedDType`, `Malformed`, `NegativeDim`, `SizeOverflow`.
    ///
    /// # Safety
    /// `managed` must point to a valid structure whose memory stays readable and writable until the
    /// deleter runs, from any thread.
    pub unsafe fn from_dlpack(managed: *mut DLManagedTensor) -> Result<Tensor, TensorError> {
        if managed.is_null() {
            return Err(TensorError::Malformed("the pointer to the DLPack tensor is null".into()));
        }
        // SAFETY: valid, as the caller guarantees.
        let view = unsafe { (*managed).dl_tensor };
        let handle = Handle(managed);
        let release = move || {
            let managed = handle.into_inner();
            // SAFETY: still valid, because only this callback ends its lifetime.
            if let Some(deleter) = unsafe { (*managed).deleter } {
                // SAFETY: called exactly once, with the producer's own pointer.
                unsafe { deleter(managed) }
            }
        };
        // SAFETY: the view is valid as long as the managed tensor exists.
        unsafe { import(&view, false, release) }
    }

    /// Takes ownership of a tensor from a DLPack 1.x producer without copying; see
    /// [`Tensor::from_dlpack`].
    ///
    /// # Errors
    /// The same errors as [`Tensor::from_dlpack`], and `Unsupported` for another major version.
    ///
    /// # Safety
    /// The conditions of [`Tensor::from_dlpack`] hold, except that the memory of read-only tensors need not be writable.
    pub unsafe fn from_dlpack_versioned(
        managed: *mut DLManagedTensorVersioned,
    ) -> Result<Tensor, TensorError> {
        if managed.is_null() {
            return Err(TensorError::Malformed("the pointer to the DLPack tensor is null".into()));
        }
        // SAFETY: valid, as the caller guarantees; `version` is the first field in every version.
        let version = unsafe { (*managed).version };
        if version.major != 1 {
            let text = format!(
                "DLPack version {}.{} is not supported; version 1 is",
                version.major, version.minor
            );
            return Err(TensorError::Unsupported(text));
        }
        // SAFETY: valid, as the caller guarantees, and the layout is known.
        let (view, flags) = unsafe { ((*managed).dl_tensor, (*managed).flags) };
        let handle = Handle(managed);
        let release = move || {
            let managed = handle.into_inner();
            // SAFETY: still valid, because only this callback ends its lifetime.
            if let Some(deleter) = unsafe { (*managed).deleter } {
                // SAFETY: called exactly once, with the producer's own pointer.
                unsafe { deleter(managed) }
            }
        };
        // SAFETY: the view is valid as long as the managed tensor exists.
        unsafe { import(&view, flags & DLPACK_FLAG_READ_ONLY != 0, release) }
    }

    /// Exports the tensor without copying, for consumers of DLPack before 1.0. The consumer must call the deleter of the returned
    /// structure.
    ///
    /// # Errors
    /// `ReadOnly`, because the old structure cannot mark a tensor as read-only.
    pub fn to_dlpack(&self) -> Result<*mut DLManagedTensor, TensorError> {
        if self.is_read_only() {
            return Err(TensorError::ReadOnly);
        }
        Ok(Box::into_raw(Box::new(DLManagedTensor {
            dl_tensor: *self.dl(),
            manager_ctx: Box::into_raw(Box::new(self.clone())).cast(),
            deleter: Some(delete_managed),
        })))
    }

    /// Exports the tensor without copying, for consumers of DLPack 1.x. The consumer must call the deleter of the returned
    /// structure.
    pub fn to_dlpack_versioned(&self) -> *mut DLManagedTensorVersioned {
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: Box::into_raw(Box::new(self.clone())).cast(),
            deleter: Some(delete_versioned),
            flags: if self.is_read_only() { DLPACK_FLAG_READ_ONLY } else { 0 },
            dl_tensor: *self.dl(),
        }))
    }
}

unsafe extern "C" fn delete_managed(managed: *mut DLManagedTensor) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `to_dlpack` created both boxes, and the consumer calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.manager_ctx.cast::<Tensor>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `to_dlpack_versioned` created both boxes, and the consumer calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.manager_ctx.cast::<Tensor>()));
    }
}

/// Creates a tensor from a view of memory that another library owns. The tensor calls `release`
/// when its memory is no longer used. On error, `release` is dropped without being called.
///
/// # Safety
/// The view must be valid until `release` runs, and readable (writable unless `read_only`) from any
/// thread.
unsafe fn import(
    view: &DLTensor,
    read_only: bool,
    release: impl FnOnce() + Send + Sync + 'static,
) -> Result<Tensor, TensorError> {
    if view.device.device_type != DL_CPU {
        let device = view.device.device_type;
        let text =
            format!("the tensor is on DLPack device type {device}, not on the CPU (type {DL_CPU})");
        return Err(TensorError::Unsupported(text));
    }
    if view.dtype.lanes != 1 {
        let text = format!(
            "DLPack elements of {} lanes are not supported; the number of lanes must be 1",
            view.dtype.lanes
        );
        return Err(TensorError::UnsupportedDType(text));
    }
    let Some(dtype) = DType::from_dlpack(view.dtype.code, view.dtype.bits) else {
        let (code, bits) = (view.dtype.code, view.dtype.bits);
        let text = format!("DLPack type code {code} with {bits} bits is not supported");
        return Err(TensorError::UnsupportedDType(text));
    };
    if !(0..=MAX_RANK).contains(&view.ndim) || (view.ndim > 0 && view.shape.is_null()) {
        let text = match (0..=MAX_RANK).contains(&view.ndim) {
            true => "the shape of the DLPack tensor is null".to_string(),
            false => {
                format!("the rank of the DLPack tensor is {}, expected 0 to {MAX_RANK}", view.ndim)
            }
        };
        return Err(TensorError::Malformed(text));
    }
    let rank = view.ndim as usize;
    // SAFETY: `shape` has `ndim` values, as the caller guarantees; for rank 0 nothing is read.
    let shape = unsafe { copy_dims(view.shape, rank) };
    let numel = checked_numel(&shape, dtype)?;
    let strides = if view.strides.is_null() {
        let mut strides = vec![0; rank];
        contiguous_strides(&shape, &mut strides);
        strides
    } else {
        // SAFETY: `strides` is not null and has `ndim` values, as the caller guarantees.
        unsafe { copy_dims(view.strides, rank) }
    };
    let overflow = || TensorError::SizeOverflow { shape: shape.clone(), dtype };
    let (low, high) = byte_span(&shape, &strides, dtype).ok_or_else(overflow)?;
    let low = isize::try_from(low).map_err(|_| overflow())?;
    let len = isize::try_from(high - low as i128).map_err(|_| overflow())? as usize;
    if numel > 0 && view.data.is_null() {
        return Err(TensorError::Malformed(
            "the DLPack tensor has elements, but its data pointer is null".into(),
        ));
    }
    let offset = usize::try_from(view.byte_offset).map_err(|_| overflow())?;
    let first = view.data.cast::<u8>().wrapping_add(offset).wrapping_offset(low);
    // SAFETY: the bytes from the lowest to the highest element belong to the view, which the caller
    // guarantees to be valid.
    let storage = unsafe { Storage::from_foreign(first, len, read_only, release) };
    // The storage starts at the lowest element, so the first element is `-low` bytes after its start.
    Ok(Tensor::new_unchecked(
        storage,
        low.unsigned_abs(),
        &shape,
        &strides,
        dtype,
        numel,
        read_only,
    ))
}

/// Copies `rank` dims or strides from a pointer.
///
/// # Safety
/// `ptr` must be readable for `rank` values.
unsafe fn copy_dims(ptr: *const i64, rank: usize) -> Vec<i64> {
    if rank == 0 {
        return Vec::new();
    }
    // SAFETY: readable for `rank` values, as the caller guarantees.
    unsafe { std::slice::from_raw_parts(ptr, rank) }.to_vec()
}

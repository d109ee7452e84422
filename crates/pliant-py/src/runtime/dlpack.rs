//! Imports and exports DLPack capsules.

use std::ffi::CStr;

use pliant_tensor::{DLManagedTensor, DLManagedTensorVersioned, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error::{Error, Result};

const UNVERSIONED: &CStr = c"dltensor";
const UNVERSIONED_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// Returns a tensor that shares the memory of an object with `__dlpack__`.
///
/// # Errors
/// If the producer raises an exception, or if Pliant does not support the device, type or layout.
pub fn from_object(obj: &Bound<'_, PyAny>) -> Result<Tensor> {
    let py = obj.py();
    let kwargs = PyDict::new(py);
    kwargs.set_item("max_version", (1, 0))?;
    let capsule = match obj.call_method("__dlpack__", (), Some(&kwargs)) {
        // Producers that predate DLPack 1.0 do not accept the argument.
        Err(e) if e.is_instance_of::<PyTypeError>(py) => obj.call_method0("__dlpack__"),
        other => other,
    }?;
    from_capsule(&capsule)
}

/// Takes ownership of the tensor in a capsule.
///
/// # Errors
/// If the object is not an unconsumed DLPack capsule, or if Pliant does not support the device, type or layout.
pub fn from_capsule(obj: &Bound<'_, PyAny>) -> Result<Tensor> {
    let capsule = obj.cast::<PyCapsule>()?;
    let ptr = capsule.as_ptr();
    // SAFETY: the capsule is alive. Under either name, its pointer refers to the structure that the protocol specifies.
    // Renaming the capsule transfers ownership of the structure to this function.
    unsafe {
        if ffi::PyCapsule_IsValid(ptr, VERSIONED.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(ptr, VERSIONED.as_ptr())
                .cast::<DLManagedTensorVersioned>();
            let tensor = Tensor::from_dlpack_versioned(managed)?;
            ffi::PyCapsule_SetName(ptr, VERSIONED_USED.as_ptr());
            return Ok(tensor);
        }
        if ffi::PyCapsule_IsValid(ptr, UNVERSIONED.as_ptr()) != 0 {
            let managed =
                ffi::PyCapsule_GetPointer(ptr, UNVERSIONED.as_ptr()).cast::<DLManagedTensor>();
            let tensor = Tensor::from_dlpack(managed)?;
            ffi::PyCapsule_SetName(ptr, UNVERSIONED_USED.as_ptr());
            return Ok(tensor);
        }
    }
    Err(Error::Value("the capsule is not a DLPack capsule, or it was already consumed".into()))
}

/// Creates a DLPack capsule that shares the memory of the tensor. `versioned` selects the capsule format of DLPack 1.0, which
/// states the version, instead of the older one.
///
/// # Errors
/// `ValueError` if the tensor is read-only and `versioned` is false, since the older format has no read-only flag.
pub fn to_capsule(py: Python<'_>, tensor: &Tensor, versioned: bool) -> Result<Py<PyAny>> {
    // SAFETY: each pointer is stored in a capsule under the name that the protocol specifies. The destructor frees the
    // structure unless a consumer has renamed the capsule.
    let capsule = unsafe {
        if versioned {
            let ptr = tensor.to_dlpack_versioned();
            ffi::PyCapsule_New(ptr.cast(), VERSIONED.as_ptr(), Some(drop_versioned))
        } else {
            let ptr = tensor.to_dlpack()?;
            ffi::PyCapsule_New(ptr.cast(), UNVERSIONED.as_ptr(), Some(drop_unversioned))
        }
    };
    // SAFETY: the pointer is a new reference, or null with an exception set.
    Ok(unsafe { Bound::from_owned_ptr_or_err(py, capsule) }?.unbind())
}

unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is alive in its destructor. Under this name, it still owns the structure.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 0 {
            return;
        }
        let managed = ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr())
            .cast::<DLManagedTensorVersioned>();
        if let Some(deleter) = (*managed).deleter {
            deleter(managed);
        }
    }
}

unsafe extern "C" fn drop_unversioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as for `drop_versioned`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 0 {
            return;
        }
        let managed =
            ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast::<DLManagedTensor>();
        if let Some(deleter) = (*managed).deleter {
            deleter(managed);
        }
    }
}

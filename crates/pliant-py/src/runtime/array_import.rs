//! Converts foreign arrays to tensors without copying: through the buffer protocol (NumPy) and through DLPack (other
//! libraries). The tensor keeps the array alive, and is read-only if the array is.

use std::ffi::{CStr, c_char, c_int};

use pliant_tensor::{DType, Storage, Tensor};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::error::{Error, Result};
use crate::runtime::dlpack;
use crate::runtime::ndarray::{NDArray, with_dtype};

/// A `Py_buffer` that is always released with the GIL held.
struct PyBuffer(Box<ffi::Py_buffer>);

// SAFETY: the structure is plain data, and releasing it first attaches to the interpreter.
unsafe impl Send for PyBuffer {}
// SAFETY: shared access only reads the structure.
unsafe impl Sync for PyBuffer {}

impl Drop for PyBuffer {
    fn drop(&mut self) {
        // SAFETY: PyObject_GetBuffer filled the buffer, and it is released once, attached to the interpreter. During
        // interpreter shutdown attaching fails, and the process then frees the memory.
        Python::try_attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.0) });
    }
}

/// Returns a tensor that shares the memory of an array: a Pliant array, an object with the buffer
/// protocol, or one with `__dlpack__`. Returns `None` if the object is none of these.
///
/// # Errors
/// If Pliant does not support the element type, device or layout.
pub fn borrow_tensor(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
    if let Ok(array) = obj.cast::<NDArray>() {
        return Ok(Some(array.get().tensor().clone()));
    }
    // SAFETY: the pointer refers to a live object.
    if unsafe { ffi::PyObject_CheckBuffer(obj.as_ptr()) } != 0 {
        match from_buffer(obj)? {
            Some(tensor) => return Ok(Some(tensor)),
            None if is_ml_dtypes_bfloat16(obj) => return from_bfloat16_bits(obj).map(Some),
            None if !has_dlpack(obj) => return Err(unsupported_format(obj)),
            None => {}
        }
    }
    if has_dlpack(obj) {
        return match dlpack::from_object(obj) {
            Err(Error::DType(_)) => Err(unsupported_format(obj)),
            Err(Error::Python(e)) if requires_grad(obj) => Err(Error::Type(format!(
                "the tensor requires a gradient (requires_grad), and Pliant does not differentiate: \
                 call .detach() on it first ({cause})",
                cause = e.value(obj.py())
            ))),
            Err(Error::Python(e)) if e.is_instance_of::<PyBufferError>(obj.py()) => {
                Err(unsupported_format(obj))
            }
            other => other.map(Some),
        };
    }
    from_array_interface(obj)
}

/// Whether the object is a NumPy array of the bfloat16 type of `ml_dtypes`, which has no buffer format.
fn is_ml_dtypes_bfloat16(obj: &Bound<'_, PyAny>) -> bool {
    let name = obj.getattr("dtype").and_then(|d| d.getattr("name"));
    name.is_ok_and(|n| n.extract::<&str>().is_ok_and(|n| n == "bfloat16"))
}

/// Imports a bfloat16 array of NumPy, viewed as an array of uint16.
fn from_bfloat16_bits(obj: &Bound<'_, PyAny>) -> Result<Tensor> {
    let bits = obj.call_method1("view", ("uint16",))?;
    let tensor = from_buffer(&bits)?.ok_or_else(|| unsupported_format(obj))?;
    with_dtype(&tensor, DType::BFloat16)
}

/// Whether the object is a tensor with `requires_grad`, such as PyTorch's, which refuses to export its memory.
fn requires_grad(obj: &Bound<'_, PyAny>) -> bool {
    let flag = obj.getattr(pyo3::intern!(obj.py(), "requires_grad"));
    flag.is_ok_and(|flag| flag.is_truthy().unwrap_or(false))
}

fn has_dlpack(obj: &Bound<'_, PyAny>) -> bool {
    obj.hasattr(pyo3::intern!(obj.py(), "__dlpack__")).unwrap_or(false)
}

fn unsupported_format(obj: &Bound<'_, PyAny>) -> Error {
    let dtype = obj.getattr("dtype").map(|d| d.to_string());
    let what = dtype.unwrap_or_else(|_| "an unknown dtype".to_string());
    let known: Vec<&str> = DType::all().map(DType::name).collect();
    Error::DType(format!("arrays of {what} are not supported (supported: {})", known.join(", ")))
}

/// Converts objects that have only `__array_interface__` or `__array__` through NumPy, which shares or copies the
/// elements.
fn from_array_interface(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
    let py = obj.py();
    let has = |name: &str| obj.hasattr(name).unwrap_or(false);
    if !has("__array_interface__") && !has("__array__") {
        return Ok(None);
    }
    let array = py.import("numpy")?.call_method1("asarray", (obj,))?;
    from_buffer(&array)?.map(Some).ok_or_else(|| unsupported_format(&array))
}

/// Returns a tensor over the memory of an object with the buffer protocol, or `None` if Pliant does
/// not support the element format.
fn from_buffer(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>> {
    let mut buffer = Box::new(ffi::Py_buffer::new());
    // SAFETY: the object is alive, and this function owns the structure.
    let rc = unsafe { ffi::PyObject_GetBuffer(obj.as_ptr(), &mut *buffer, ffi::PyBUF_RECORDS_RO) };
    if rc != 0 {
        // NumPy has no buffer format for some types (bfloat16, datetime64). DLPack may support them.
        let error = PyErr::fetch(obj.py());
        if error.is_instance_of::<PyValueError>(obj.py())
            || error.is_instance_of::<PyBufferError>(obj.py())
        {
            return Ok(None);
        }
        return Err(error.into());
    }
    let buffer = PyBuffer(buffer);
    let Some(dtype) = buffer_dtype(buffer.0.format, buffer.0.itemsize) else {
        return Ok(None);
    };
    view_buffer(buffer, dtype).map(Some)
}

fn buffer_dtype(format: *mut c_char, itemsize: isize) -> Option<DType> {
    if format.is_null() {
        return (itemsize == 1).then_some(DType::UInt8);
    }
    // SAFETY: a format that is not null is a C string that the exporter owns as long as the buffer lives.
    let format = unsafe { CStr::from_ptr(format) }.to_bytes();
    let code = match format {
        [c] | [b'@' | b'=' | b'<', c] => *c,
        _ => return None,
    };
    let dtype = match (code, itemsize) {
        (b'?', 1) => DType::Bool,
        (b'b', 1) => DType::Int8,
        (b'B' | b'c', 1) => DType::UInt8,
        (b'h', 2) => DType::Int16,
        (b'H', 2) => DType::UInt16,
        (b'i' | b'l' | b'q' | b'n', 4) => DType::Int32,
        (b'I' | b'L' | b'Q' | b'N', 4) => DType::UInt32,
        (b'l' | b'q' | b'n', 8) => DType::Int64,
        (b'L' | b'Q' | b'N', 8) => DType::UInt64,
        (b'e', 2) => DType::Float16,
        (b'f', 4) => DType::Float32,
        (b'd', 8) => DType::Float64,
        _ => return None,
    };
    Some(dtype)
}

/// Returns a tensor over the memory of a buffer. The buffer is released together with the last
/// tensor that shares it.
fn view_buffer(buffer: PyBuffer, dtype: DType) -> Result<Tensor> {
    const MAX_INLINE: usize = 8;
    let view = &buffer.0;
    let rank = view.ndim as usize;
    let item = dtype.size() as isize;
    let (mut shape, mut strides) = ([0i64; MAX_INLINE], [0i64; MAX_INLINE]);
    let (mut big_shape, mut big_strides);
    let (shape, strides): (&mut [i64], &mut [i64]) = if rank <= MAX_INLINE {
        (&mut shape[..rank], &mut strides[..rank])
    } else {
        (big_shape, big_strides) = (vec![0; rank], vec![0; rank]);
        (&mut big_shape, &mut big_strides)
    };
    // The byte offsets of the first element and of the end of the last element in memory, in 128 bits, because
    // exporters may report invalid values.
    let (mut low, mut high, mut empty) = (0i128, item as i128, false);
    for axis in 0..rank {
        // SAFETY: PyBUF_RECORDS_RO requests shape and strides, which hold `ndim` values each.
        let (dim, stride) = unsafe { (*view.shape.add(axis), *view.strides.add(axis)) };
        if stride % item != 0 {
            return Err(Error::Unsupported(format!(
                "the array has a stride of {stride} bytes, which is not a multiple of the {item} bytes of a {dtype} element"
            )));
        }
        shape[axis] = dim as i64;
        strides[axis] = (stride / item) as i64;
        empty |= dim == 0;
        let span = (dim as i128 - 1) * stride as i128;
        if span < 0 { low += span } else { high += span }
    }
    if empty {
        (low, high) = (0, 0);
    }
    let too_large = || {
        Error::Shape(
            "the array with its strides spans more memory than can be addressed".to_string(),
        )
    };
    let len = usize::try_from(high - low).map_err(|_| too_large())?;
    let offset = usize::try_from(-low).map_err(|_| too_large())?;
    let first = view.buf.cast::<u8>().wrapping_sub(offset);
    let read_only = view.readonly != 0 as c_int;
    // SAFETY: the exporter keeps all elements between the lowest and the highest address valid until the buffer is
    // released. A read-only buffer is only viewed as read-only.
    let storage = unsafe { Storage::from_foreign(first, len, read_only, move || drop(buffer)) };
    Ok(Tensor::from_storage_strided(storage, offset, shape, strides, dtype)?)
}

/// Converts any object from which NumPy can create an array to a tensor. Arrays are shared; scalars
/// and nested lists are copied.
///
/// # Errors
/// `TypeError` for any other object.
pub fn to_tensor(obj: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Tensor> {
    if let Some(tensor) = borrow_tensor(obj)? {
        return match dtype {
            Some(dtype) if dtype != tensor.dtype() => convert_with_numpy(obj, Some(dtype)),
            _ => Ok(tensor),
        };
    }
    convert_with_numpy(obj, dtype)
}

/// Converts through `numpy.asarray`. Without an explicit type, Python floats become float32 and ints int64.
fn convert_with_numpy(obj: &Bound<'_, PyAny>, dtype: Option<DType>) -> Result<Tensor> {
    let py = obj.py();
    let name = match dtype {
        Some(dtype) => Some(dtype.name()),
        None if obj.is_instance_of::<PyBool>() => Some("bool"),
        None if obj.is_instance_of::<PyFloat>() => Some("float32"),
        None if obj.is_instance_of::<PyInt>() => Some("int64"),
        None => None,
    };
    if name == Some("bfloat16") {
        return Err(Error::Unsupported(
            "the value cannot be converted to bfloat16, because NumPy has no such type; pass an object with __dlpack__, such as a \
             PyTorch tensor"
                .into(),
        ));
    }
    let array = py.import("numpy")?.call_method1("asarray", (obj, name))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "O" {
        return Err(Error::Type(format!(
            "an object of type {} cannot be converted to a tensor: pass an array, a number or a list of numbers",
            obj.get_type().name()?
        )));
    }
    // NumPy converts lists of Python floats to float64, which is rarely intended.
    let array = if dtype.is_none() && kind == "f" && obj.is_instance_of::<pyo3::types::PyList>() {
        array.call_method1("astype", ("float32",))?
    } else {
        array
    };
    from_buffer(&array)?.ok_or_else(|| unsupported_format(&array))
}

/// Parses a data type given as a string, a NumPy dtype or a NumPy scalar type.
///
/// # Errors
/// `DTypeError` for a type that Pliant does not support, `TypeError` for any other object.
pub fn parse_dtype(obj: &Bound<'_, PyAny>) -> Result<DType> {
    let named = |name: &str| name.parse::<DType>().map_err(|e| Error::DType(e.to_string()));
    if let Ok(name) = obj.extract::<&str>() {
        return named(name);
    }
    let py = obj.py();
    if obj.is(py.get_type::<PyFloat>()) {
        return Ok(DType::Float32);
    }
    if obj.is(py.get_type::<PyInt>()) {
        return Ok(DType::Int64);
    }
    if obj.is(py.get_type::<PyBool>()) {
        return Ok(DType::Bool);
    }
    let dtype = py.import("numpy")?.getattr("dtype")?.call1((obj,));
    let Ok(dtype) = dtype else {
        return Err(Error::Type(format!(
            "a dtype must be a string such as 'float32', not {}",
            obj.repr()?
        )));
    };
    named(dtype.getattr("name")?.extract::<&str>()?)
}

//! `NDArray`: a tensor in Python. It supports the buffer protocol and DLPack, so NumPy and other libraries access its
//! memory without copying.

use std::ffi::{CStr, c_int, c_void};

use pliant_tensor::{DType, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::array_import::{borrow_tensor, parse_dtype, to_tensor};
use crate::runtime::device::Device;
use crate::runtime::dlpack;
use crate::runtime::shape_tuple::extract_shape;

/// A tensor in host memory, as a Python object.
#[pyclass(frozen, module = "pliant.runtime", weakref)]
pub struct NDArray {
    tensor: Tensor,
}

impl NDArray {
    /// Returns the wrapped tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Wraps a tensor as a Python object.
    pub fn wrap(tensor: Tensor) -> NDArray {
        NDArray { tensor }
    }
}

#[pymethods]
impl NDArray {
    /// Returns the dims of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// Returns the strides, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.strides())
    }

    /// Returns the element type as a string.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype().name()
    }

    /// Returns the rank.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.ndim()
    }

    /// Returns the number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.tensor.numel()
    }

    /// Returns the size of the elements in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.nbytes()
    }

    /// Whether the elements may not be written.
    #[getter]
    fn read_only(&self) -> bool {
        self.tensor.is_read_only()
    }

    /// Returns the device of the array, which is always the CPU.
    #[getter]
    fn device(&self) -> Device {
        Device::CPU
    }

    /// Returns a NumPy array that shares the memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        as_numpy(slf)
    }

    /// Returns a NumPy array that shares the memory.
    fn asnumpy<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        as_numpy(slf)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> Result<Bound<'py, PyAny>> {
        let array = as_numpy(slf)?;
        let Some(dtype) = dtype else {
            return if copy == Some(true) { Ok(array.call_method0("copy")?) } else { Ok(array) };
        };
        let kwargs = PyDict::new(slf.py());
        kwargs.set_item("copy", copy == Some(true))?;
        Ok(array.call_method("astype", (dtype,), Some(&kwargs))?)
    }

    /// Returns a DLPack capsule that shares the memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Result<Py<PyAny>> {
        if stream.is_some_and(|s| !s.is_none()) {
            return Err(Error::Value(
                "__dlpack__: the argument 'stream' must be None, because the tensor is on the CPU"
                    .into(),
            ));
        }
        if dl_device.is_some_and(|d| d.0 != pliant_tensor::DL_CPU) {
            return Err(PyBufferError::new_err(
                "dl_device: the tensor is on the CPU and cannot be exported to another device",
            )
            .into());
        }
        let versioned = max_version.is_some_and(|v| v.0 >= 1);
        if copy == Some(true) {
            return dlpack::to_capsule(py, &self.tensor.copy()?, versioned);
        }
        dlpack::to_capsule(py, &self.tensor, versioned)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (pliant_tensor::DL_CPU, 0)
    }

    /// Returns a copy with separate memory.
    fn copy(&self) -> Result<NDArray> {
        Ok(NDArray { tensor: self.tensor.copy()? })
    }

    /// Copies the elements of `source` into this array and returns this array. `source` is an array-like object that
    /// broadcasts to the shape of this array, as in a NumPy assignment.
    fn copyfrom<'py>(
        slf: &Bound<'py, Self>,
        source: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Self>> {
        let everything = slf.py().Ellipsis().into_bound(slf.py());
        assign(slf, &everything, source)?;
        Ok(slf.clone())
    }

    /// Copies the elements into the array `target` and returns `target`. If `target` is not an `NDArray`, such as a
    /// device, returns a new array.
    fn copyto<'py>(
        slf: &Bound<'py, Self>,
        target: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        if let Ok(array) = target.cast::<NDArray>() {
            let everything = slf.py().Ellipsis().into_bound(slf.py());
            assign(array, &everything, slf.as_any())?;
            return Ok(target.clone());
        }
        Ok(Bound::new(slf.py(), slf.get().copy()?)?.into_any())
    }

    /// Returns the array itself, because all memory is host memory.
    fn to(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = device;
        slf.clone().unbind()
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(as_numpy(slf)?.get_item(index)?)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: Bound<'_, PyAny>,
        value: Bound<'_, PyAny>,
    ) -> Result<()> {
        assign(slf, &index, &value)
    }

    fn __len__(&self) -> Result<usize> {
        match self.tensor.shape().first() {
            Some(&dim) => Ok(dim as usize),
            None => Err(Error::Type("a tensor of rank 0 has no len()".into())),
        }
    }

    fn __float__(slf: &Bound<'_, Self>) -> Result<f64> {
        one_element(slf)?;
        Ok(slf.get().tensor.to_f64_vec()?[0])
    }

    fn __int__(slf: &Bound<'_, Self>) -> Result<i64> {
        one_element(slf)?;
        Ok(slf.get().tensor.to_i64_vec()?[0])
    }

    fn __bool__(slf: &Bound<'_, Self>) -> Result<bool> {
        one_element(slf)?;
        Ok(slf.get().tensor.to_f64_vec()?[0] != 0.0)
    }

    /// Returns the value of an array with one element.
    fn item<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(as_numpy(slf)?.call_method0("item")?)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> Result<String> {
        let tensor = &slf.get().tensor;
        if tensor.dtype() == DType::BFloat16 {
            return Ok(format!("<pliant.NDArray shape={:?} bfloat16>", tensor.shape()));
        }
        let dims: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
        let comma = if dims.len() == 1 { "," } else { "" };
        let shape = format!("({}{comma})", dims.join(", "));
        Ok(format!("<pliant.NDArray shape={shape}, {}>\n{}", tensor.dtype(), as_numpy(slf)?.str()?))
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> Result<()> {
        // SAFETY: the interpreter passes a structure to be filled.
        unsafe { fill_buffer(slf, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: `fill_buffer` filled the structure and stored its box there.
        unsafe { drop(Box::from_raw((*view).internal.cast::<ExportedDims>())) }
    }
}

fn one_element(slf: &Bound<'_, NDArray>) -> Result<()> {
    match slf.get().tensor.numel() {
        1 => Ok(()),
        n => Err(Error::Type(format!(
            "a tensor of {n} elements cannot be converted to a number: it must have one element"
        ))),
    }
}

/// Creates a NumPy view of the array. The base of the view is a memoryview that keeps the array
/// alive. bfloat16 elements have the type from the package `ml_dtypes`, which ONNX and JAX also
/// use.
///
/// # Errors
/// If the elements are bfloat16 and `ml_dtypes` is not installed.
pub fn as_numpy<'py>(slf: &Bound<'py, NDArray>) -> Result<Bound<'py, PyAny>> {
    let py = slf.py();
    let numpy = py.import("numpy")?;
    let tensor = &slf.get().tensor;
    if tensor.dtype() == DType::BFloat16 {
        let Ok(scalar) = py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16")) else {
            return Err(Error::Unsupported(
                "a bfloat16 tensor cannot become a NumPy array, because NumPy has no bfloat16; install the package ml_dtypes, \
                 export the tensor with __dlpack__, or cast it to float32 in the model"
                    .into(),
            ));
        };
        let bits = Bound::new(py, NDArray::wrap(with_dtype(tensor, DType::UInt16)?))?;
        let view = pyo3::types::PyMemoryView::from(bits.as_any())?;
        let bits = numpy.call_method1("asarray", (view,))?;
        return Ok(bits.call_method1("view", (scalar,))?);
    }
    let view = pyo3::types::PyMemoryView::from(slf.as_any())?;
    Ok(numpy.call_method1("asarray", (view,))?)
}

/// Returns a tensor over the same memory with another element type of the same size.
///
/// # Errors
/// If the tensor cannot be created.
pub fn with_dtype(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    let (storage, offset) = (tensor.storage().clone(), tensor.byte_offset());
    let (shape, strides) = (tensor.shape(), tensor.strides());
    Ok(Tensor::from_storage_strided(storage, offset, shape, strides, dtype)?)
}

fn assign(
    slf: &Bound<'_, NDArray>,
    index: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> Result<()> {
    if slf.get().tensor.is_read_only() {
        return Err(Error::Value(
            "the elements of the tensor cannot be changed, because the tensor is read-only".into(),
        ));
    }
    let value = match value.cast::<NDArray>() {
        Ok(array) => as_numpy(array)?,
        Err(_) => value.clone(),
    };
    Ok(as_numpy(slf)?.set_item(index, value)?)
}

/// The dims and strides to which an exported buffer points.
struct ExportedDims {
    shape: Vec<isize>,
    strides: Vec<isize>,
}

fn buffer_format(dtype: DType) -> Option<&'static CStr> {
    // On 64-bit Unix, NumPy's int64 is the C type `long`; elsewhere it is `long long`.
    let long = cfg!(all(target_pointer_width = "64", not(windows)));
    Some(match dtype {
        DType::Bool => c"?",
        DType::Int8 => c"b",
        DType::Int16 => c"h",
        DType::Int32 => c"i",
        DType::Int64 => {
            if long {
                c"l"
            } else {
                c"q"
            }
        }
        DType::UInt8 => c"B",
        DType::UInt16 => c"H",
        DType::UInt32 => c"I",
        DType::UInt64 => {
            if long {
                c"L"
            } else {
                c"Q"
            }
        }
        DType::Float16 => c"e",
        DType::Float32 => c"f",
        DType::Float64 => c"d",
        DType::BFloat16 => return None,
    })
}

/// Fills a buffer view of the array for a consumer of the buffer protocol. `flags` are the requirements of the
/// consumer.
///
/// # Safety
/// `view` must be null or point to a structure that may be filled.
unsafe fn fill_buffer(
    slf: Bound<'_, NDArray>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> Result<()> {
    let buffer_error = |why: &str| Err(Error::Python(PyBufferError::new_err(why.to_string())));
    if view.is_null() {
        return buffer_error("the caller of the buffer protocol passed a null Py_buffer");
    }
    let tensor = &slf.get().tensor;
    if flags & ffi::PyBUF_WRITABLE != 0 && tensor.is_read_only() {
        return buffer_error(
            "the tensor is read-only, so it cannot be exported as a writable buffer",
        );
    }
    let strides_requested = flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES;
    if !strides_requested && !tensor.is_contiguous() {
        return buffer_error(
            "the tensor is not contiguous, so it cannot be exported as a contiguous buffer",
        );
    }
    let Some(format) = buffer_format(tensor.dtype()) else {
        return buffer_error(
            "a bfloat16 tensor cannot be exported with the buffer protocol, which has no format for bfloat16; use __dlpack__ \
             instead",
        );
    };
    let size = tensor.dtype().size() as isize;
    let exported = Box::new(ExportedDims {
        shape: tensor.shape().iter().map(|&d| d as isize).collect(),
        strides: tensor.strides().iter().map(|&s| s as isize * size).collect(),
    });
    let data: *mut c_void = tensor.data_ptr().cast();
    let (rank, nbytes, read_only) = (tensor.ndim(), tensor.nbytes(), tensor.is_read_only());
    let requested = |flag: c_int| flags & flag == flag;
    // SAFETY: this function owns the structure. The pointers into `exported` are valid until the buffer is released,
    // and the memory is valid as long as the owner, which `obj` keeps alive.
    unsafe {
        let view = &mut *view;
        view.buf = data;
        view.len = nbytes as isize;
        view.readonly = read_only as c_int;
        view.itemsize = size;
        view.format = if requested(ffi::PyBUF_FORMAT) {
            format.as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        };
        view.ndim = rank as c_int;
        view.shape = if requested(ffi::PyBUF_ND) && rank > 0 {
            exported.shape.as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        };
        view.strides = if strides_requested && rank > 0 {
            exported.strides.as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        };
        view.suboffsets = std::ptr::null_mut();
        view.internal = Box::into_raw(exported).cast();
        view.obj = slf.into_any().into_ptr();
    }
    Ok(())
}

/// Creates an array with a copy of the elements of an array-like object.
#[pyfunction]
#[pyo3(signature = (arr, device=None, dtype=None))]
pub fn array(
    arr: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> Result<NDArray> {
    let _ = device;
    let dtype = dtype.map(parse_dtype).transpose()?;
    let tensor = to_tensor(arr, dtype)?;
    Ok(NDArray { tensor: tensor.copy()? })
}

/// Creates an array of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, device=None))]
pub fn empty(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> Result<NDArray> {
    let _ = device;
    let dtype = dtype.map(parse_dtype).transpose()?.unwrap_or(DType::Float32);
    Ok(NDArray { tensor: Tensor::zeros(&extract_shape(shape)?, dtype)? })
}

/// Creates an array that shares the memory of a DLPack capsule or of an object with `__dlpack__` or
/// the buffer protocol.
#[pyfunction]
pub fn from_dlpack(obj: &Bound<'_, PyAny>) -> Result<NDArray> {
    if obj.is_instance_of::<pyo3::types::PyCapsule>() {
        return Ok(NDArray { tensor: dlpack::from_capsule(obj)? });
    }
    match borrow_tensor(obj)? {
        Some(tensor) => Ok(NDArray { tensor }),
        None => Err(Error::Type(format!(
            "an object of type {} cannot become a tensor, because it has neither __dlpack__ nor the buffer protocol",
            obj.get_type().name()?
        ))),
    }
}

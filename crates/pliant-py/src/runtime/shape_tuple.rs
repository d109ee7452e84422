//! `ShapeTuple`: the dims of a tensor as a run-time value.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result};

/// A shape as a run-time value: an immutable sequence of ints.
#[pyclass(frozen, sequence, module = "pliant.runtime")]
pub struct ShapeTuple(pub Vec<i64>);

#[pymethods]
impl ShapeTuple {
    #[new]
    fn new(shape: Vec<i64>) -> Self {
        ShapeTuple(shape)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        Ok(PyTuple::new(py, &self.0)?.as_any().get_item(index)?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyTuple::new(py, &self.0)?.as_any().try_iter()?.into_any())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        match other.cast::<ShapeTuple>() {
            Ok(other) => other.get().0 == self.0,
            Err(_) => other.extract::<Vec<i64>>().is_ok_and(|v| v == self.0),
        }
    }

    fn __hash__<'py>(&self, py: Python<'py>) -> PyResult<isize> {
        PyTuple::new(py, &self.0)?.hash()
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.0.iter().map(i64::to_string).collect();
        format!("ShapeTuple([{}])", dims.join(", "))
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0)
    }
}

/// Returns the dims in a shape argument, which is a `ShapeTuple`, or a tuple or list of ints.
///
/// # Errors
/// `TypeError` for any other object.
pub fn extract_shape(obj: &Bound<'_, PyAny>) -> Result<Vec<i64>> {
    if let Ok(shape) = obj.cast::<ShapeTuple>() {
        return Ok(shape.get().0.clone());
    }
    if let Ok(dim) = obj.extract::<i64>() {
        return Ok(vec![dim]);
    }
    obj.extract::<Vec<i64>>()
        .map_err(|_| Error::Type("a shape must be an int or a sequence of ints".to_string()))
}

//! Memory of the caller for the results of a run: the argument `out` of calls of a model.
//!
//! The results are copied to the arrays after the run. All arrays are checked before the first one is written, so a failed call
//! changes none of them.

use pliant_tensor::Tensor;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::array_import::borrow_tensor;
use crate::runtime::ndarray::NDArray;

/// The keyword argument of calls that has the arrays.
pub const OUT: &str = "out";

/// An array of the caller, with a tensor over its memory.
struct Target<'py> {
    object: Bound<'py, PyAny>,
    tensor: Tensor,
}

/// The arrays that a call receives as `out`. An entry that is `None` stands for a result that gets memory of its own.
pub struct OutputArrays<'py> {
    targets: Vec<Option<Target<'py>>>,
}

impl<'py> OutputArrays<'py> {
    /// Reads the argument `out` of a call with the arguments `args`: an array for a single result, or a list or tuple with an array
    /// or `None` for each result.
    ///
    /// # Errors
    /// `TypeError` for an object that is no array, and `ValueError` for an array that is read-only, not contiguous, or shares
    /// memory with another one or with an argument.
    pub fn new(out: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>) -> Result<Self> {
        let is_sequence = out.is_instance_of::<PyList>() || out.is_instance_of::<PyTuple>();
        let objects: Vec<Bound<'py, PyAny>> =
            if is_sequence { out.try_iter()?.collect::<PyResult<_>>()? } else { vec![out.clone()] };
        let mut targets: Vec<Option<Target<'py>>> = Vec::with_capacity(objects.len());
        for (i, object) in objects.into_iter().enumerate() {
            if object.is_none() {
                targets.push(None);
                continue;
            }
            let tensor = writable_tensor(i, &object)?;
            if let Some(k) = targets.iter().position(|t| overlaps(t.as_ref(), &tensor)) {
                return Err(Error::Value(format!("out[{k}] and out[{i}] share memory")));
            }
            targets.push(Some(Target { object, tensor }));
        }
        for (k, arg) in args.iter().enumerate() {
            let Ok(Some(arg)) = borrow_tensor(&arg) else { continue };
            if let Some(i) = targets.iter().position(|t| overlaps(t.as_ref(), &arg)) {
                return Err(Error::Value(format!("out[{i}] shares memory with argument {k}")));
            }
        }
        Ok(OutputArrays { targets })
    }

    /// Copies results to the arrays. Returns the caller's objects, and the results themselves for entries that are `None`.
    ///
    /// # Errors
    /// `ValueError` if the number of results differs from that of the arrays, `ShapeError` and `DTypeError` if an array does
    /// not fit its result, and `TypeError` for a result that is not a tensor.
    pub fn fill(&self, results: Vec<Bound<'py, PyAny>>) -> Result<Vec<Bound<'py, PyAny>>> {
        let (given, count) = (self.targets.len(), results.len());
        if given != count {
            return Err(Error::Value(format!(
                "out has {given} entries, but the call has {count} results"
            )));
        }
        let mut copies = Vec::new();
        for (i, (target, result)) in self.targets.iter().zip(&results).enumerate() {
            let Some(target) = target else { continue };
            let Ok(result) = result.cast::<NDArray>() else {
                let class = result.get_type().name()?;
                return Err(Error::Type(format!(
                    "out[{i}] is an array, but the result is not a tensor ({class}): pass None"
                )));
            };
            check_fit(i, &target.tensor, result.get().tensor())?;
            copies.push((&target.tensor, result.get().tensor().clone()));
        }
        for (target, result) in copies {
            // SAFETY: the arrays do not overlap each other or the arguments, and results have memory of their own. The caller must
            // not access the arrays on other threads during the call, as for every function that writes to an array.
            unsafe { target.copy_from(&result) }?;
        }
        let objects = self.targets.iter().zip(results);
        Ok(objects.map(|(t, r)| t.as_ref().map_or(r, |t| t.object.clone())).collect())
    }
}

/// Returns a tensor over the memory of entry `i`, to which a row-major result can be copied.
fn writable_tensor(i: usize, object: &Bound<'_, PyAny>) -> Result<Tensor> {
    let imported = borrow_tensor(object).map_err(|e| e.with_prefix(&format!("out[{i}]: ")))?;
    let Some(tensor) = imported else {
        let class = object.get_type().name()?;
        return Err(Error::Type(format!("out[{i}] must be an array or None, not {class}")));
    };
    if tensor.is_read_only() {
        return Err(Error::Value(format!("out[{i}] is read-only")));
    }
    if !tensor.is_contiguous() {
        return Err(Error::Value(format!(
            "out[{i}] is not contiguous in row-major order (its strides are {:?})",
            tensor.strides()
        )));
    }
    Ok(tensor)
}

fn overlaps(target: Option<&Target<'_>>, tensor: &Tensor) -> bool {
    target.is_some_and(|target| target.tensor.overlaps(tensor))
}

fn check_fit(i: usize, target: &Tensor, result: &Tensor) -> Result<()> {
    if target.dtype() != result.dtype() {
        let (given, dtype) = (target.dtype(), result.dtype());
        return Err(Error::DType(format!(
            "out[{i}] has the data type {given}, but the result is {dtype}"
        )));
    }
    if target.shape() != result.shape() {
        let (given, shape) = (target.shape(), result.shape());
        return Err(Error::Shape(format!(
            "out[{i}] has the shape {given:?}, but the result has the shape {shape:?}"
        )));
    }
    Ok(())
}

//! Inputs and outputs by name, for `Model.run`, which is compatible with sessions of ONNX Runtime.

use pliant::Signature;
use pliant_diag::spelling_suggestions::did_you_mean;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::ndarray::{NDArray, as_numpy};
use crate::runtime::preallocated_outputs::OutputArrays;

/// Converts the list of requested output names; `None` means all outputs.
///
/// # Errors
/// `TypeError` if the argument is not a list of names.
pub fn requested_outputs(names: &Bound<'_, PyAny>) -> Result<Option<Vec<String>>> {
    if names.is_none() {
        return Ok(None);
    }
    let text = names.cast::<PyString>().is_ok();
    names.extract().ok().filter(|_| !text).map(Some).ok_or_else(|| {
        let got = names.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
        let expected = "a list of names of outputs, or None for all";
        Error::Type(format!("run: the argument 'output_names' must be {expected}, not {got}"))
    })
}

/// Checks that the inputs are a dict with string keys and returns it.
///
/// # Errors
/// `TypeError` if the argument is not a dict with string keys.
pub fn feeds_by_name<'py>(feeds: &Bound<'py, PyAny>) -> Result<Bound<'py, PyDict>> {
    let dict = feeds.cast::<PyDict>().ok();
    let has_string_keys =
        |d: &&Bound<'py, PyDict>| d.keys().iter().all(|k| k.cast::<PyString>().is_ok());
    dict.filter(has_string_keys).cloned().ok_or_else(|| {
        let got = feeds.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
        let got = if got == "dict" { "a dict with other keys".to_owned() } else { got };
        Error::Type(format!(
            "run: the argument 'feeds' must be a dict from names of inputs to arrays, not {got}"
        ))
    })
}

/// Puts the inputs of a call, given by name, in the order of the parameters.
///
/// # Errors
/// `ValueError` if an input is missing or unknown.
pub fn ordered_arguments<'py>(
    signature: &Signature,
    feeds: &Bound<'py, PyDict>,
) -> Result<Bound<'py, PyTuple>> {
    let names = signature.feed_names();
    for key in feeds.keys() {
        let key: String = key.extract()?;
        if !names.contains(&&*key) {
            let help = pliant::unknown_input_help(signature, &key);
            return Err(Error::Value(format!(
                "run: the argument 'feeds' has a value for '{key}', but there is no input '{key}' ({help})"
            )));
        }
    }
    let mut values = Vec::with_capacity(names.len());
    let mut missing = Vec::new();
    for &name in &names {
        match feeds.get_item(name)? {
            Some(value) => values.push(value),
            None => missing.push(name),
        }
    }
    if !missing.is_empty() {
        return Err(Error::Value(format!(
            "run: the argument 'feeds' has no value for input {}",
            missing.join(", ")
        )));
    }
    Ok(PyTuple::new(feeds.py(), values)?)
}

/// Converts the requested outputs to NumPy arrays, or all outputs if `requested_outputs` is `None`. Outputs for which `arrays` has
/// memory are copied to it instead.
///
/// # Errors
/// `ValueError` if an output is unknown, and the errors of [`OutputArrays::fill`].
pub fn requested_results<'py>(
    signature: &Signature,
    requested_outputs: Option<Vec<String>>,
    value: &Bound<'py, PyAny>,
    arrays: Option<OutputArrays<'py>>,
) -> Result<Bound<'py, PyList>> {
    let py = value.py();
    let names = &signature.output_names;
    let all: Vec<Bound<'py, PyAny>> = match value.cast::<PyTuple>() {
        // A single output that is a sequence is also a tuple.
        Ok(tuple) if names.len() != 1 => tuple.iter().collect(),
        _ => vec![value.clone()],
    };
    let indices = match requested_outputs {
        Some(requested) => output_indices(names, &requested, all.len())?,
        None => (0..all.len()).collect(),
    };
    let mut results: Vec<_> = indices.iter().map(|&i| all[i].clone()).collect();
    if let Some(arrays) = arrays {
        results = arrays.fill(results)?;
    }
    let convert = |(&i, value): (&usize, &Bound<'py, PyAny>)| {
        let name = names.get(i).map_or_else(|| i.to_string(), |name| format!("'{name}'"));
        to_numpy(value).map_err(|e| e.with_prefix(&format!("output {name}: ")))
    };
    let list = indices.iter().zip(&results).map(convert).collect::<Result<Vec<_>>>()?;
    Ok(PyList::new(py, list)?)
}

/// Returns the positions of outputs by name among `count` outputs.
///
/// # Errors
/// `ValueError` if an output is unknown.
fn output_indices(names: &[String], requested: &[String], count: usize) -> Result<Vec<usize>> {
    let mut indices = Vec::with_capacity(requested.len());
    for name in requested {
        let index = names.iter().position(|n| n == name).filter(|&i| i < count);
        let Some(index) = index else {
            let among = match names.is_empty() {
                true => {
                    "the outputs of this function have no names: pass None for all outputs".into()
                }
                false => format!("the outputs are {}", names.join(", ")),
            };
            let help = did_you_mean(name, names.iter().map(String::as_str)).unwrap_or(among);
            return Err(Error::Value(format!(
                "run: the argument 'output_names' contains '{name}', but there is no output '{name}' ({help})"
            )));
        };
        indices.push(index);
    }
    Ok(indices)
}

/// The maximum rank of a NumPy array.
const MAX_NUMPY_RANK: usize = 64;

/// Converts a tensor to a NumPy array, and a sequence to a list of arrays.
fn to_numpy<'py>(value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    if let Ok(array) = value.cast::<NDArray>() {
        let rank = array.get().tensor().ndim();
        if rank > MAX_NUMPY_RANK {
            let text = format!(
                "the tensor has {rank} dims, but NumPy arrays have at most {MAX_NUMPY_RANK}"
            );
            return Err(Error::Value(text));
        }
        return as_numpy(array);
    }
    match value.cast::<PyTuple>() {
        Ok(items) => {
            let items: Vec<_> = items.iter().map(|i| to_numpy(&i)).collect::<Result<_>>()?;
            Ok(PyList::new(value.py(), items)?.into_any())
        }
        Err(_) => Ok(value.clone()),
    }
}

//! Model files to modules: the importer of ONNX.

use std::path::PathBuf;

use indexmap::IndexMap;
use pliant::onnx::{self, DimSpec, ImportError, ImportOptions, Limits, Model};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::enter::guard;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::ndarray::NDArray;

/// A module, its parameters by name, the names of its inputs and of its outputs.
type Parts<'py> = (IRModule, Bound<'py, PyDict>, Vec<String>, Vec<String>);

/// Imports an ONNX model, a path or its bytes: the module, its parameters by name, and the names of inputs and outputs.
/// `shapes` gives dims of inputs in place of those of the file, numbers or names of symbols.
#[pyfunction]
#[pyo3(signature = (source, keep_params=false, shapes=None))]
pub fn import_onnx<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    keep_params: bool,
    shapes: Option<Bound<'py, PyDict>>,
) -> Result<Parts<'py>> {
    let options = ImportOptions {
        keep_params_in_input: keep_params,
        shapes: shapes.map_or_else(|| Ok(IndexMap::new()), |s| dims_of(&s))?,
    };
    let limits = Limits::default();
    let model = match source.cast::<PyBytes>() {
        Ok(bytes) => {
            let bytes = bytes.as_bytes().to_vec();
            py.detach(|| guard(|| Ok(Model::from_bytes(bytes, limits))))?
        }
        Err(_) => {
            let path: PathBuf = source.extract()?;
            py.detach(|| guard(|| Ok(Model::open(&path, limits))))?
        }
    };
    let model = model.map_err(refused)?;
    let imported = py.detach(|| guard(|| Ok(onnx::import(&model, &options))))?;
    let imported = imported.map_err(refused)?;
    let params = PyDict::new(py);
    for (name, tensor) in imported.params {
        params.set_item(name, NDArray::wrap(tensor))?;
    }
    Ok((IRModule::wrap(imported.module), params, imported.inputs, imported.outputs))
}

fn dims_of(shapes: &Bound<'_, PyDict>) -> Result<IndexMap<String, Vec<DimSpec>>> {
    let mut out = IndexMap::new();
    for (name, dims) in shapes.iter() {
        let name: String = name.extract()?;
        let mut list = Vec::new();
        for dim in dims.try_iter()? {
            let dim = dim?;
            list.push(match dim.extract::<i64>() {
                Ok(size) if size >= 0 => DimSpec::Size(size),
                Ok(size) => {
                    return Err(Error::Value(format!(
                        "input '{name}': the size {size} is negative"
                    )));
                }
                Err(_) => DimSpec::Name(dim.str()?.extract()?),
            });
        }
        out.insert(name, list);
    }
    Ok(out)
}

/// A model that is wrong is the user's; one that is not supported is not.
fn refused(e: ImportError) -> Error {
    let text = e.to_string().trim_end().to_string();
    if e.is_invalid() { Error::Compile(text) } else { Error::Unsupported(text) }
}

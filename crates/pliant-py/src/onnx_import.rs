//! Imports and checks ONNX model files for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use pliant::onnx::{
    self, DimSpec, DynamicDim, ImportError, ImportOptions, Limits, Model, ProblemKind,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::ir_module::IRModule;
use crate::onnx_file::OnnxFile;
use crate::runtime::array_import::parse_dtype;
use crate::runtime::ndarray::NDArray;
use crate::source_texts::{add_graph, name_nodes};

/// An imported model: the module, its parameters by name, its input names, its output names, and a
/// report on shapes. The report has the symbols with the nodes that constrain them, and warnings.
type ImportedModel<'py> =
    (IRModule, Bound<'py, PyDict>, Vec<String>, Vec<String>, (String, Vec<String>));

/// Imports an ONNX model from a path, from bytes or from an `OnnxFile`. Returns the module, its parameters by name, and the names
/// of inputs and outputs. `shapes` and `dtypes` override the dims and element types of inputs. Dims are numbers or names of
/// symbols.
#[pyfunction]
#[pyo3(signature = (source, keep_params=false, shapes=None, dtypes=None, limits=None, facts=None))]
pub fn import_onnx<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    keep_params: bool,
    shapes: Option<Bound<'py, PyDict>>,
    dtypes: Option<Bound<'py, PyDict>>,
    limits: Option<Bound<'py, PyDict>>,
    facts: Option<ShapeFacts>,
) -> Result<ImportedModel<'py>> {
    let dtype = |(name, dtype): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
        let name: String = name.extract()?;
        let parsed =
            parse_dtype(&dtype).map_err(|e| e.with_prefix(&format!("dtype_dict of '{name}': ")))?;
        Ok((name, parsed))
    };
    let facts = facts.unwrap_or_default();
    let options = ImportOptions {
        keep_params_in_input: keep_params,
        shapes: shapes.map_or_else(|| Ok(IndexMap::new()), |s| input_dims(&s))?,
        dtypes: dtypes.iter().flatten().map(dtype).collect::<Result<_>>()?,
        dynamic: dynamic_dims(facts.dynamic),
        divisible: facts.divisible.into_iter().collect(),
        allow_specialization: facts.allow_specialization,
        strict: facts.strict,
        file: Some(add_graph("an ONNX model")),
        ..ImportOptions::default()
    };
    let model = open(source, limits.as_ref())?;
    let imported = run_detached(py, || onnx::import(&model, &options).map_err(import_error))?;
    if let Some(file) = options.file {
        name_nodes(file, &imported.nodes);
    }
    let params = PyDict::new(py);
    for (name, tensor) in imported.params {
        params.set_item(name, NDArray::wrap(tensor))?;
    }
    let shape_report =
        (imported.shapes.to_string(), imported.warnings.iter().map(|w| w.to_string()).collect());
    Ok((IRModule::wrap(imported.module), params, imported.inputs, imported.outputs, shape_report))
}

/// A declared dim: its axis, its symbol, its minimum and its maximum size.
type DeclaredDim = (usize, Option<String>, Option<i64>, Option<i64>);

/// Facts about shapes that the caller declares: dims of inputs, divisors of symbols, and whether
/// the import may replace symbols by fixed sizes.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub struct ShapeFacts {
    dynamic: Vec<(String, Vec<DeclaredDim>)>,
    divisible: Vec<(String, i64)>,
    allow_specialization: bool,
    strict: bool,
}

fn dynamic_dims(
    declared: Vec<(String, Vec<DeclaredDim>)>,
) -> IndexMap<String, IndexMap<usize, DynamicDim>> {
    let dims = |dims: Vec<DeclaredDim>| {
        dims.into_iter().map(|(axis, name, min, max)| (axis, DynamicDim { name, min, max }))
    };
    declared.into_iter().map(|(input, list)| (input, dims(list).collect())).collect()
}

/// Opens a model at a path, or decodes it from bytes. An `OnnxFile` is already open; it has the limits with which it was opened.
pub fn open(source: &Bound<'_, PyAny>, limits: Option<&Bound<'_, PyDict>>) -> Result<Arc<Model>> {
    let py = source.py();
    if let Ok(file) = source.cast::<OnnxFile>() {
        return Ok(file.get().model());
    }
    let limits = import_limits(limits)?;
    if let Ok(bytes) = source.cast::<PyBytes>() {
        let bytes = bytes.as_bytes().to_vec();
        return run_detached(py, || {
            Model::from_bytes(bytes, limits).map(Arc::new).map_err(import_error)
        });
    }
    let path: PathBuf = source.extract()?;
    run_detached(py, || Model::open(&path, limits).map(Arc::new).map_err(import_error))
}

/// A finding about a model: the kind, the operator, the message, a suggested change, and the names of the nodes.
type Finding = (&'static str, String, String, Option<String>, Vec<String>);

/// The result of a check: findings, operators with their counts, the report as text, and the files written.
type CheckResult<'py> = (Vec<Finding>, Bound<'py, PyDict>, String, Vec<PathBuf>);

/// Checks an ONNX model. Returns its findings, its operators with their counts, and the report as text. If `reduce` is a directory,
/// writes a minimal model for each finding into it, and also returns the paths of these models.
#[pyfunction]
#[pyo3(signature = (source, reduce=None, limits=None, allow_specialization=false, strict=false))]
pub fn check_onnx<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    reduce: Option<PathBuf>,
    limits: Option<Bound<'py, PyDict>>,
    allow_specialization: bool,
    strict: bool,
) -> Result<CheckResult<'py>> {
    let model = open(source, limits.as_ref())?;
    let options = ImportOptions { allow_specialization, strict, ..ImportOptions::default() };
    let report = run_detached(py, || Ok(onnx::check(&model, &options)))?;
    let files = match reduce {
        Some(dir) => report.write_reduced(&dir).map_err(PyErr::from)?,
        None => Vec::new(),
    };
    let operators = PyDict::new(py);
    for (name, count) in &report.operators {
        operators.set_item(name, count)?;
    }
    let text = report.to_string();
    let found = report.findings.into_iter().map(|f| {
        let kind = match f.kind {
            ProblemKind::Invalid => "invalid",
            ProblemKind::Unsupported => "unsupported",
            ProblemKind::Internal => "internal",
        };
        (kind, f.operator, f.message, f.help, f.nodes)
    });
    Ok((found.collect(), operators, text, files))
}

/// The operators that can be imported, as domain and name.
#[pyfunction]
pub fn onnx_operators() -> Vec<(&'static str, &'static str)> {
    onnx::ops::all().map(|o| (o.domain, o.name)).collect()
}

/// Returns the limits of an import: the defaults, with the entries of `overrides` replaced by name.
fn import_limits(overrides: Option<&Bound<'_, PyDict>>) -> Result<Limits> {
    let mut limits = Limits::default();
    let Some(overrides) = overrides else { return Ok(limits) };
    for (name, value) in overrides {
        let name: String = name.extract()?;
        match &*name {
            "file_bytes" => limits.file_bytes = value.extract()?,
            "decoded_bytes" => limits.decoded_bytes = value.extract()?,
            "tensor_bytes" => limits.tensor_bytes = value.extract()?,
            "rank" => limits.rank = value.extract()?,
            "nodes" => limits.nodes = value.extract()?,
            "depth" => limits.depth = value.extract()?,
            "seconds" => {
                let seconds: f64 = value.extract()?;
                let time = Duration::try_from_secs_f64(seconds);
                limits.time = Some(time.map_err(|e| {
                    Error::Value(format!(
                        "limits: the value of 'seconds' is not a valid number of seconds: {e}"
                    ))
                })?);
            }
            _ => {
                return Err(Error::Type(format!(
                    "limits: there is no limit '{name}'; the limits are file_bytes, decoded_bytes, tensor_bytes, rank, nodes, depth and seconds"
                )));
            }
        }
    }
    Ok(limits)
}

fn input_dims(shapes: &Bound<'_, PyDict>) -> Result<IndexMap<String, Vec<DimSpec>>> {
    let mut out = IndexMap::new();
    for (name, dims) in shapes.iter() {
        let name: String = name.extract()?;
        let mut list = Vec::new();
        for dim in dims.try_iter()? {
            list.push(input_dim(&name, &dim?)?);
        }
        out.insert(name, list);
    }
    Ok(out)
}

/// Parses a dim argument: a size, the name of a symbol, or `None` or -1 for an unnamed symbol.
fn input_dim(input: &str, dim: &Bound<'_, PyAny>) -> Result<DimSpec> {
    match dim.extract::<i64>() {
        _ if dim.is_none() => Ok(DimSpec::Any),
        Ok(-1) => Ok(DimSpec::Any),
        Ok(size) if size >= 0 => Ok(DimSpec::Size(size)),
        Ok(size) => {
            let text = format!("shape_dict of '{input}': the size {size} is negative");
            Err(Error::Value(text))
        }
        Err(_) => Ok(DimSpec::Name(dim.str()?.extract()?)),
    }
}

/// The error of an import: `CompileError` for an invalid model, `UnsupportedError` for an unsupported feature.
fn import_error(e: ImportError) -> Error {
    let text = e.to_string().trim_end().to_string();
    if e.is_invalid() { Error::Compile(text) } else { Error::Unsupported(text) }
}

//! ONNX model files for Python: what a file declares, before any conversion.

use std::sync::Arc;

use pliant::onnx::{DeclaredSize, DeclaredValue, Model, ModelMetadata};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::error::Result;
use crate::onnx_import::open;

/// A decoded ONNX model file, which can be imported.
#[pyclass(frozen, module = "pliant")]
pub struct OnnxFile {
    model: Arc<Model>,
    metadata: ModelMetadata,
}

impl OnnxFile {
    /// The decoded model.
    pub fn model(&self) -> Arc<Model> {
        self.model.clone()
    }
}

#[pymethods]
impl OnnxFile {
    #[new]
    #[pyo3(signature = (source, limits=None))]
    fn new(source: &Bound<'_, PyAny>, limits: Option<Bound<'_, PyDict>>) -> Result<OnnxFile> {
        let model = open(source, limits.as_ref())?;
        let metadata = model.metadata();
        Ok(OnnxFile { model, metadata })
    }

    #[getter]
    fn inputs(&self) -> Vec<OnnxValueInfo> {
        self.model.required_inputs().into_iter().map(OnnxValueInfo::from).collect()
    }

    #[getter]
    fn outputs(&self) -> Vec<OnnxValueInfo> {
        self.model.outputs().into_iter().map(OnnxValueInfo::from).collect()
    }

    #[getter]
    fn overridable_initializers(&self) -> Vec<OnnxValueInfo> {
        self.model.overridable_initializers().into_iter().map(OnnxValueInfo::from).collect()
    }

    #[getter]
    fn initializer_names(&self) -> Vec<&str> {
        self.model.initializer_names().collect()
    }

    #[getter]
    fn ir_version(&self) -> i64 {
        self.metadata.ir_version
    }

    #[getter]
    fn opset_imports<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        Ok(self.metadata.opset_imports.iter().into_py_dict(py)?)
    }

    #[getter]
    fn producer_name(&self) -> &str {
        &self.metadata.producer_name
    }

    #[getter]
    fn producer_version(&self) -> &str {
        &self.metadata.producer_version
    }

    #[getter]
    fn domain(&self) -> &str {
        &self.metadata.domain
    }

    #[getter]
    fn model_version(&self) -> Option<i64> {
        self.metadata.model_version
    }

    #[getter]
    fn doc_string(&self) -> &str {
        &self.metadata.doc_string
    }

    #[getter]
    fn graph_name(&self) -> &str {
        &self.metadata.graph_name
    }

    #[getter]
    fn graph_doc_string(&self) -> &str {
        &self.metadata.graph_doc_string
    }

    #[getter]
    fn metadata_props<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        Ok(self.metadata.properties.iter().into_py_dict(py)?)
    }
}

/// An input, output or initializer, as a model file declares it.
#[pyclass(frozen, get_all, module = "pliant")]
pub struct OnnxValueInfo {
    /// The name in the file.
    name: String,
    /// The type, such as `tensor(float)`; empty if the file declares none.
    r#type: String,
    /// The dims of a tensor; `None` if the file declares no shape.
    shape: Option<Vec<DimInfo>>,
    /// What each dim means, such as `DATA_BATCH`; empty texts if the file does not declare it.
    denotations: Vec<String>,
}

/// A dim in Python: an `int`, a `str` (a symbol), or `None` if its size is unknown.
#[derive(Clone, IntoPyObject, IntoPyObjectRef)]
enum DimInfo {
    Fixed(i64),
    Symbol(String),
    Unknown(Option<i64>),
}

impl From<DeclaredValue> for OnnxValueInfo {
    fn from(value: DeclaredValue) -> Self {
        let size = |size: &DeclaredSize| match size {
            DeclaredSize::Fixed(size) => DimInfo::Fixed(*size),
            DeclaredSize::Symbol(text) => DimInfo::Symbol(text.clone()),
            DeclaredSize::Unknown => DimInfo::Unknown(None),
        };
        let dims = value.dims.as_deref();
        OnnxValueInfo {
            name: value.name,
            r#type: value.ty,
            shape: dims.map(|dims| dims.iter().map(|dim| size(&dim.size)).collect()),
            denotations: dims
                .unwrap_or_default()
                .iter()
                .map(|dim| dim.denotation.clone())
                .collect(),
        }
    }
}

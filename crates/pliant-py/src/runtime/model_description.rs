//! `InputInfo` and `ModelStats`: descriptions of a model.

use pliant::{Dim, ValueInfo};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::Result;

/// The name, type and shape of an input of a function. Outputs are described by the same class.
#[pyclass(frozen, module = "pliant")]
pub struct InputInfo {
    info: ValueInfo,
}

impl InputInfo {
    /// Describes an input or output.
    pub fn new(info: ValueInfo) -> InputInfo {
        InputInfo { info }
    }
}

#[pymethods]
impl InputInfo {
    /// Returns the name of the input or output.
    #[getter]
    fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns the data type, or `None` if unknown.
    #[getter]
    fn dtype(&self) -> Option<&str> {
        self.info.dtype.as_deref()
    }

    /// Returns the dims: ints, and strings for symbolic dims. `None` if unknown.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyTuple>>> {
        let Some(dims) = &self.info.shape else { return Ok(None) };
        let dims: PyResult<Vec<_>> = dims
            .iter()
            .map(|d| match d {
                Dim::Constant(v) => Ok(v.into_pyobject(py)?.into_any()),
                Dim::Symbolic(s) => Ok(s.into_pyobject(py)?.into_any()),
            })
            .collect();
        Ok(Some(PyTuple::new(py, dims?)?))
    }

    /// Returns the type in script syntax.
    #[getter]
    fn struct_info(&self) -> &str {
        &self.info.ty
    }

    fn __repr__(&self) -> String {
        if self.info.name.is_empty() {
            return self.info.ty.clone();
        }
        format!("{}: {}", self.info.name, self.info.ty)
    }
}

/// Statistics of a model: its compilations, runs, compile time and functions.
#[pyclass(frozen, get_all, module = "pliant")]
pub struct ModelStats {
    /// The number of programs compiled for the model: 1, plus those that its runs compiled.
    pub compilations: u64,
    /// The number of runs of the model's functions.
    pub runs: u64,
    /// The duration of the compilation in seconds.
    pub compile_seconds: f64,
    /// The number of graph functions in the program.
    pub functions: usize,
    /// The number of loop functions that were compiled to machine code. Kernels of the library are not counted, in spite of the
    /// name.
    pub kernels: usize,
    /// The code generator whose code runs: `"cranelift"`, or `"llvm"` once LLVM has compiled all loop functions.
    pub tier: &'static str,
    /// The compilation phases with their durations in seconds.
    pub phases: Vec<(String, f64)>,
}

#[pymethods]
impl ModelStats {
    fn __repr__(&self) -> String {
        format!(
            "ModelStats(compilations={}, runs={}, compile_seconds={:.4}, functions={}, kernels={})",
            self.compilations, self.runs, self.compile_seconds, self.functions, self.kernels
        )
    }
}

//! The extension module `pliant._core`: the Rust side of the Python package.
//!
//! Surfaces without logic: every class here is a frozen handle to a value of another crate, and every function
//! translates its arguments, calls one, and translates the result. Python files above add names and docs.

mod enter;
mod error;
mod runtime;

use pyo3::prelude::*;

/// The Rust side of the package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::runtime::device::{Device, cpu, device};
    #[pymodule_export]
    use crate::runtime::ndarray::{NDArray, array, empty, from_dlpack};
    #[pymodule_export]
    use crate::runtime::shape::ShapeTuple;

    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    /// The version and how this extension was built.
    #[pyfunction]
    fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("version", env!("CARGO_PKG_VERSION"))?;
        info.set_item("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        info.set_item("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS))?;
        info.set_item("backends", vec!["cranelift"])?;
        info.set_item("rust", env!("CARGO_PKG_RUST_VERSION"))?;
        Ok(info)
    }
}

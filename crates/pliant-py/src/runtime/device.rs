//! Devices. There is one, the CPU; the class exists so that code written for several runs.

use pyo3::prelude::*;

use crate::error::{Error, Result};

/// A device: `pliant.cpu(0)`.
#[pyclass(frozen, eq, hash, module = "pliant.runtime")]
#[derive(PartialEq, Eq, Hash)]
pub struct Device {
    /// The index; 0.
    #[pyo3(get)]
    device_id: i32,
}

#[pymethods]
impl Device {
    /// The DLPack type of the CPU.
    #[getter]
    fn device_type(&self) -> i32 {
        pliant_tensor::DL_CPU
    }

    /// Waits for nothing: calls return when the work is done.
    fn sync(&self) {}

    #[getter]
    fn exist(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("cpu({})", self.device_id)
    }
}

/// The CPU.
#[pyfunction]
#[pyo3(signature = (dev_id=0))]
pub fn cpu(dev_id: i32) -> Device {
    Device { device_id: dev_id }
}

/// The device of that name: `"cpu"`, `"llvm"` or `"cpu:0"`.
#[pyfunction]
#[pyo3(signature = (dev, dev_id=0))]
pub fn device(dev: &str, dev_id: i32) -> Result<Device> {
    match dev.split(':').next() {
        Some("cpu" | "llvm" | "cranelift" | "c") => Ok(Device { device_id: dev_id }),
        _ => Err(Error::Unsupported(format!("device '{dev}': Pliant runs on the CPU only"))),
    }
}

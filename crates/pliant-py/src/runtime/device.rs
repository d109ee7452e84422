//! Devices. The CPU is the only device. The class exists so that programs written for several devices run unchanged.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};

/// A device: `pliant.cpu(0)`.
#[pyclass(frozen, eq, hash, module = "pliant.runtime")]
#[derive(PartialEq, Eq, Hash)]
pub struct Device {
    /// The index of the device, which is always 0.
    #[pyo3(get)]
    device_id: i32,
}

impl Device {
    /// The only device: the CPU.
    pub const CPU: Device = Device { device_id: 0 };
}

#[pymethods]
impl Device {
    /// Returns the DLPack device type of the CPU.
    #[getter]
    fn device_type(&self) -> i32 {
        pliant_tensor::DL_CPU
    }

    /// Does nothing, because calls return only after their work is done. For compatibility with
    /// other devices.
    fn sync(&self) {}

    #[getter]
    fn exist(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        format!("cpu({})", self.device_id)
    }
}

/// Returns the CPU as a device. It is the only device, so an index other than 0 is an error.
#[pyfunction]
#[pyo3(signature = (dev_id=0))]
pub fn cpu(dev_id: i32) -> Result<Device> {
    if dev_id != 0 {
        return Err(Error::Value(format!(
            "there is no cpu({dev_id}): cpu(0) is the only device, with all cores"
        )));
    }
    Ok(Device::CPU)
}

/// Returns the device with this name: `"cpu"`, `"llvm"`, `"cranelift"` or `"c"`, each also with an index, as in
/// `"cpu:0"`.
#[pyfunction]
#[pyo3(signature = (dev, dev_id=0))]
pub fn device(dev: &str, dev_id: i32) -> Result<Device> {
    let (kind, index) = dev.split_once(':').unwrap_or((dev, ""));
    let index = match index {
        "" => dev_id,
        text => text
            .parse()
            .map_err(|_| Error::Value(format!("'{dev}' is not a device: write \"cpu\"")))?,
    };
    match kind {
        "cpu" | "llvm" | "cranelift" | "c" => cpu(index),
        _ => Err(Error::Unsupported(format!(
            "device '{dev}' is not supported: Pliant runs on the CPU only"
        ))),
    }
}

/// Rejects devices other than the CPU. Accepts a device or a list of devices, as programs for several devices pass
/// them.
///
/// # Errors
/// `UnsupportedError` for other devices, `TypeError` for objects that are not devices.
pub fn check_device(obj: &Bound<'_, PyAny>) -> Result<()> {
    if obj.is_instance_of::<Device>() {
        return Ok(());
    }
    if let Ok(name) = obj.extract::<String>() {
        return device(&name, 0).map(|_| ());
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        for item in obj.try_iter()? {
            let item = item?;
            if !item.is_instance_of::<Device>() {
                return Err(not_a_device(&item));
            }
        }
        return Ok(());
    }
    Err(not_a_device(obj))
}

fn not_a_device(obj: &Bound<'_, PyAny>) -> Error {
    let what = obj.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
    Error::Type(format!("the device must be pliant.cpu(), not {what}"))
}

//! Whether `import tvm` is Pliant in this process. Constructors and the parser then follow TVM where Pliant's own API differs.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Whether TVM's behaviour is enabled.
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Enables or disables TVM's behaviour in this process. `pliant.tvm.install` and `uninstall` call this function.
#[pyfunction]
pub fn set_tvm_compatibility(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

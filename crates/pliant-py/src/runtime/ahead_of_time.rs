//! Ahead-of-time compilation.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error::Result;
use crate::gil_and_panics::run_detached;
use crate::runtime::ctrl_c_interrupts::CompileGuard;
use crate::runtime::executable_and_model::Executable;

/// Writes a program with its machine code to a file of the kind `emit`. `target` contains the code generator, the CPU and the
/// target triple.
#[pyfunction]
pub fn export_library(
    py: Python<'_>,
    executable: &Bound<'_, Executable>,
    path: PathBuf,
    emit: &str,
    target: (String, Option<String>, Option<String>),
    runtime_library: Option<PathBuf>,
) -> Result<()> {
    let emit = pliant::Emit::parse(emit)?;
    let (code_generator, target_cpu, target_triple) = target;
    let (code_generator, _) = pliant::Target::parse(&code_generator)?;
    let options =
        pliant::ExportOptions { code_generator, target_triple, target_cpu, runtime_library };
    let compiled = executable.get().compiled.clone();
    run_detached(py, || {
        let _compiling = CompileGuard::begin();
        Ok(pliant::export_library(&compiled, &path, emit, &options)?)
    })
}

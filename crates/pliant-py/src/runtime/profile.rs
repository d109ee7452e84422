//! `Profile`: the time spent in each function that a run called.

use pliant_vm::{RunOptions, Value};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::runtime::virtual_machine::MonitoredVm;

/// The time of several runs of a function, split by the functions that they called. ``print`` shows
/// it as a table.
#[pyclass(frozen, module = "pliant")]
pub struct Profile {
    profile: pliant::Profile,
}

impl Profile {
    /// Profiles runs of a function of a VM.
    ///
    /// # Errors
    /// If a run fails, or if there are no runs.
    pub fn of(
        py: Python<'_>,
        monitored: &MonitoredVm,
        function: &str,
        args: &[Value],
        runs: u32,
        options: RunOptions,
    ) -> Result<Profile> {
        if runs == 0 {
            return Err(Error::Value(
                "profile: the argument 'runs' must be at least 1, not 0".into(),
            ));
        }
        let run = |vm: &_| pliant::profile(vm, function, args, runs, &options);
        Ok(Profile { profile: monitored.with_run(py, run)? })
    }
}

#[pymethods]
impl Profile {
    /// Returns the number of profiled runs.
    #[getter]
    fn runs(&self) -> u32 {
        self.profile.runs
    }

    /// Returns the time of all runs in seconds, including the overhead of profiling.
    #[getter]
    fn seconds(&self) -> f64 {
        self.profile.total.as_secs_f64()
    }

    /// Returns a dictionary for each called function, the slowest first: ``name``, ``calls`` and
    /// ``seconds`` of all runs, ``gflops`` (10^9 floating-point operations of library kernels per
    /// second, 0 for generated loops) and ``gigabytes`` (10^9 bytes of the tensors passed to loop
    /// functions per second, 0 for other functions).
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>> {
        let row = |callee: &pliant::CalleeProfile| -> Result<Bound<'py, PyDict>> {
            let row = PyDict::new(py);
            row.set_item("name", &callee.name)?;
            row.set_item("calls", callee.calls)?;
            row.set_item("seconds", callee.time.as_secs_f64())?;
            row.set_item("gflops", callee.gflops())?;
            row.set_item("gigabytes", callee.gigabytes())?;
            Ok(row)
        };
        self.profile.callees.iter().map(row).collect()
    }

    /// Returns the profile as a table of the ``top`` slowest functions, or of all functions.
    #[pyo3(signature = (top=None))]
    fn table(&self, top: Option<usize>) -> String {
        match top {
            Some(top) => format!("{:.top$}", self.profile),
            None => self.profile.to_string(),
        }
    }

    fn __str__(&self) -> String {
        self.table(None)
    }

    fn __repr__(&self) -> String {
        format!(
            "Profile(runs={}, seconds={:.4}, functions={})",
            self.runs(),
            self.seconds(),
            self.profile.callees.len()
        )
    }
}

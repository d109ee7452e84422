//! `Profile`: the time spent in each function that a run called.

use std::path::PathBuf;

use pliant_vm::{RunOptions, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::value_conversion::from_value;
use crate::runtime::virtual_machine::MonitoredVm;

/// The time of several runs of a function, split by the functions that they called. ``print`` shows
/// it as a table.
#[pyclass(frozen, module = "pliant")]
pub struct Profile {
    profile: pliant::Profile,
}

impl Profile {
    /// Profiles runs of a function of a VM, after one run to warm up if `warm_up` is set.
    ///
    /// # Errors
    /// If a run fails, or if there are no runs.
    pub fn of(
        py: Python<'_>,
        monitored: &MonitoredVm,
        (function, args): (&str, &[Value]),
        (runs, warm_up): (u32, bool),
        options: RunOptions,
    ) -> Result<Profile> {
        if runs == 0 {
            return Err(Error::Value(
                "profile: the argument 'runs' must be at least 1, not 0".into(),
            ));
        }
        let profile = if warm_up { pliant::profile } else { pliant::profile_cold };
        let run = |vm: &_| profile(vm, function, args, runs, &options);
        Ok(Profile { profile: monitored.with_run(py, run)? })
    }
}

/// Calls a function of `pliant._profile_export`, which formats profiles.
fn export_function<'py>(
    profile: &Bound<'py, Profile>,
    name: &str,
    args: &[Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = profile.py();
    let all: Vec<_> = [profile.clone().into_any()].iter().chain(args).cloned().collect();
    py.import("pliant._profile_export")?.call_method1(name, PyTuple::new(py, all)?)
}

fn kind_name(kind: pliant::CalleeKind) -> &'static str {
    match kind {
        pliant::CalleeKind::LoopFunction => "loops",
        pliant::CalleeKind::Builtin => "builtin",
        pliant::CalleeKind::Packed => "packed",
        pliant::CalleeKind::GraphFunction => "graph",
    }
}

/// Returns the peak rate of the machine in 10^9 floating-point operations per second, for float32 with all threads. The first call
/// measures it.
#[pyfunction]
pub fn machine_peak_gflops(py: Python<'_>) -> f64 {
    py.detach(pliant::machine_peak_flops) / 1e9
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
    /// second, 0 for generated loops), ``percent_of_peak`` (these operations relative to the machine's
    /// peak rate), ``gigabytes`` (10^9 bytes of the tensors passed to loop functions per second, 0 for
    /// other functions) and ``locations`` (the ONNX nodes or source lines that the calls compute).
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>> {
        let row = |callee: &pliant::CalleeProfile| -> Result<Bound<'py, PyDict>> {
            let row = PyDict::new(py);
            row.set_item("name", &callee.name)?;
            row.set_item("calls", callee.calls)?;
            row.set_item("seconds", callee.time.as_secs_f64())?;
            row.set_item("gflops", callee.gflops())?;
            row.set_item("percent_of_peak", callee.percent_of_peak())?;
            row.set_item("gigabytes", callee.gigabytes())?;
            row.set_item("locations", &callee.locations)?;
            Ok(row)
        };
        self.profile.callees.iter().map(row).collect()
    }

    /// Returns a dictionary for each call of the last run, in the order in which they ended: ``name``, ``kind`` (``"loops"``,
    /// ``"builtin"`` or ``"packed"``), ``start`` (seconds since the start of the run), ``seconds``, ``flops``, ``bytes``,
    /// ``location`` (the ONNX nodes or source lines, or ``""``), ``tensors`` (the types of the tensors among the arguments) and
    /// ``memory`` (the bytes of all tensors of the process at the end of the call).
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyDict>>> {
        let event = |call: &pliant::CallRecord| -> Result<Bound<'py, PyDict>> {
            let event = PyDict::new(py);
            event.set_item("name", &call.name)?;
            event.set_item("kind", kind_name(call.kind))?;
            event.set_item("start", call.start.as_secs_f64())?;
            event.set_item("seconds", call.time.as_secs_f64())?;
            event.set_item("flops", call.flops)?;
            event.set_item("bytes", call.bytes)?;
            event.set_item("location", &call.location)?;
            event.set_item("tensors", &call.tensors)?;
            event.set_item("memory", call.memory)?;
            Ok(event)
        };
        self.profile.events.iter().map(event).collect()
    }

    /// Returns the result of the last run.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_value(py, self.profile.result.clone())
    }

    /// Returns the profile as JSON text: ``runs``, ``seconds``, ``peak_gflops``, ``calls`` and ``events``.
    fn to_json<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export_function(slf, "to_json", &[])
    }

    /// Writes the calls of the last run as a trace, which Perfetto (ui.perfetto.dev) and Chrome show.
    fn save_trace(slf: &Bound<'_, Self>, path: PathBuf) -> PyResult<()> {
        let path = path.into_pyobject(slf.py())?.into_any();
        export_function(slf, "save_trace", &[path]).map(drop)
    }

    /// Returns a table of the calls, which notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export_function(slf, "to_html", &[])
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

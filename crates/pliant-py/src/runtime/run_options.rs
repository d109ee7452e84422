//! Converts the arguments `timeout` (in seconds) and `cancel` of a run to run options, and defines `CancelToken`.
//! `pliant-vm/src/time_limit.rs` stops the run.

use std::time::Duration;

use pliant_vm::{CancelHandle, RunOptions};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error::{Error, Result};

/// The keyword argument of calls that sets the time limit.
pub const TIMEOUT: &str = "timeout";
/// The keyword argument of calls that has the token to stop the run.
pub const CANCEL: &str = "cancel";

/// Stops runs from another thread. `model(x, cancel=token)` raises `CancelledError` soon after `token.cancel()` was called.
/// Runs that start later with the token raise it at once.
#[pyclass(frozen, module = "pliant")]
#[derive(Default)]
pub struct CancelToken {
    handle: CancelHandle,
}

#[pymethods]
impl CancelToken {
    #[new]
    fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Stops all runs that were started with the token. Does not wait until they have stopped.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.handle.cancel());
    }

    /// Returns whether `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.handle.is_cancelled()
    }

    fn __repr__(&self) -> String {
        let state = if self.cancelled() { "True" } else { "False" };
        format!("<pliant.CancelToken cancelled={state}>")
    }
}

/// Returns the options of a run with this timeout and token; `None` means no limit and no token.
///
/// # Errors
/// `TypeError` for a timeout that is not a number and for an object that is no token, `ValueError` for a timeout that is negative,
/// infinite or NaN.
pub fn run_options(
    timeout: Option<&Bound<'_, PyAny>>,
    cancel: Option<&Bound<'_, PyAny>>,
) -> Result<RunOptions> {
    Ok(RunOptions { time_limit: time_limit(timeout)?, cancel: cancel_handle(cancel)? })
}

fn cancel_handle(cancel: Option<&Bound<'_, PyAny>>) -> Result<Option<CancelHandle>> {
    let Some(token) = cancel.filter(|token| !token.is_none()) else { return Ok(None) };
    match token.cast::<CancelToken>() {
        Ok(token) => Ok(Some(token.get().handle.clone())),
        Err(_) => Err(Error::Type(format!(
            "the argument 'cancel' must be a pliant.CancelToken or None, not {}",
            token.get_type().name()?
        ))),
    }
}

fn time_limit(timeout: Option<&Bound<'_, PyAny>>) -> Result<Option<Duration>> {
    let Some(value) = timeout.filter(|value| !value.is_none()) else { return Ok(None) };
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<f64>().ok() };
    let Some(seconds) = number else {
        let class = value.get_type().name()?;
        let text = format!(
            "the argument 'timeout' must be a number of seconds, or None for no limit, not {class}"
        );
        return Err(Error::Type(text));
    };
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(Error::Value(format!(
            "the argument 'timeout' must be a finite, non-negative number of seconds, or None for no limit, not {value}"
        )));
    }
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

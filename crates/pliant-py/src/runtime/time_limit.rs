//! Converts the argument `timeout` of a run (in seconds) to a time limit. `pliant-vm/src/time_limit.rs` stops the run.

use std::time::Duration;

use pliant_vm::RunOptions;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error::{Error, Result};

/// The keyword argument of calls that sets the time limit.
pub const TIMEOUT: &str = "timeout";

/// Returns the run options of a call with this timeout; `None` means no limit.
///
/// # Errors
/// `TypeError` for a value that is not a number, `ValueError` for one that is negative, infinite or
/// NaN.
pub fn run_options(timeout: Option<&Bound<'_, PyAny>>) -> Result<RunOptions> {
    let Some(value) = timeout.filter(|value| !value.is_none()) else {
        return Ok(RunOptions::default());
    };
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
    let time_limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Ok(RunOptions { time_limit: Some(time_limit) })
}

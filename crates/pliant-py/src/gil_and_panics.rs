//! The boundary between Python and Rust: releases the GIL, converts panics into exceptions, and raises pending signals.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::relax::function_owner::ALREADY_LOCKED;

/// Runs `work` without the GIL. A panic in `work` becomes an `InternalError`. Pending signals (Ctrl-C) are raised after
/// `work` has returned.
///
/// # Errors
/// The error of `work`, `InternalError` or `KeyboardInterrupt`.
pub fn run_detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    pliant_tensor::memory_reserve::check()?;
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    py.check_signals()?;
    match outcome {
        Ok(result) => result,
        Err(panic) => Err(internal_error(panic)),
    }
}

/// Runs short `work` with the GIL held. A panic in `work` becomes an `InternalError`.
///
/// # Errors
/// The error of `work`, or `InternalError`.
pub fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => Err(internal_error(panic)),
    }
}

fn internal_error(panic: Box<dyn Any + Send>) -> Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message occurred");
    if text == ALREADY_LOCKED {
        return Error::Value(text.to_string());
    }
    Error::Internal(format!("{text} (this is a bug in Pliant; please report it)"))
}

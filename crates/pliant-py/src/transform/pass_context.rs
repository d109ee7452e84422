//! Converts a `pliant.transform.PassContext` to a context of the Rust passes. For passes that are called individually, reads the
//! environment variable `PLIANT_DUMP_IR`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pliant::{CancelToken, CompileOptions, pass_context};
use pliant_pass::{DumpIr, PassContext};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::runtime::ctrl_c_interrupts::poll_signals;
use crate::transform::instrument::to_instrument;

thread_local! {
    /// The contexts of the Python passes that run on this thread, outermost first: each Python
    /// context with its Rust context. A pass called by a Python pass runs with the same
    /// instruments.
    static RUNNING: RefCell<Vec<(Py<PyAny>, PassContext)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the context of a Python pass available to the passes that it calls, until this value is dropped.
pub struct RunningPass;

impl RunningPass {
    /// Makes the Python context `object` and the Rust context `ctx` of a Python pass available to the passes that it
    /// calls, until the returned value is dropped.
    pub fn begin(object: Py<PyAny>, ctx: &PassContext) -> RunningPass {
        RUNNING.with_borrow_mut(|list| list.push((object, ctx.clone())));
        RunningPass
    }
}

impl Drop for RunningPass {
    fn drop(&mut self) {
        // Dropping Python objects may run Python code, so the borrow must end first.
        let last = RUNNING.with_borrow_mut(Vec::pop);
        drop(last);
    }
}

/// Copies the settings of a Python pass context into compile options. Settings that are already set are kept.
///
/// # Errors
/// If a value has the wrong type, or if a setting does not exist.
pub fn copy_settings(options: &mut CompileOptions, context: &Bound<'_, PyAny>) -> Result<()> {
    if options.opt_level.is_none() {
        options.opt_level = Some(context.getattr("opt_level")?.extract()?);
    }
    options.disabled_passes.extend(names(context, "disabled_pass")?);
    options.required_passes.extend(names(context, "required_pass")?);
    for (key, value) in context.getattr("config")?.cast::<PyDict>()? {
        let value = crate::relax::value_conversion::attr_value(&value)?;
        let key: Arc<str> = key.extract::<String>()?.into();
        pliant_pass::pass_settings::check(&key, &value).map_err(Error::Value)?;
        options.config.entry(key).or_insert(value);
    }
    for instrument in context.getattr("instruments")?.try_iter()? {
        options.instruments.push(to_instrument(&instrument?)?);
    }
    options.cancel = CancelToken::with_poll(poll_signals);
    Ok(())
}

fn names(context: &Bound<'_, PyAny>, attribute: &str) -> Result<Vec<String>> {
    Ok(context.getattr(attribute)?.extract()?)
}

/// Converts a Python pass context to a Rust context. If the enclosing Python pass runs under the same Python
/// context, its Rust context is reused, so that the same instruments continue.
///
/// # Errors
/// As for [`copy_settings`].
pub fn to_pass_context(context: &Bound<'_, PyAny>) -> Result<PassContext> {
    let running = RUNNING.with_borrow(|list| {
        let (object, ctx) = list.last()?;
        object.is(context).then(|| ctx.clone())
    });
    if let Some(ctx) = running {
        return Ok(ctx);
    }
    let mut options = CompileOptions::default();
    copy_settings(&mut options, context)?;
    let mut ctx = pass_context(&options);
    ctx.instruments.extend(dump_from_environment().map(|d| d as _));
    Ok(ctx)
}

/// Returns the instrument that writes the module after every pass if `PLIANT_DUMP_IR` is set. It is
/// used for passes that are called individually. All passes share it, so that their files are
/// numbered consecutively.
fn dump_from_environment() -> Option<Arc<DumpIr>> {
    static LAST_USED: Mutex<Option<(PathBuf, Arc<DumpIr>)>> = Mutex::new(None);
    let dir = PathBuf::from(std::env::var_os("PLIANT_DUMP_IR").filter(|d| !d.is_empty())?);
    let mut last_used = LAST_USED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last_used {
        Some((same, dump)) if *same == dir => Some(dump.clone()),
        _ => {
            let dump = Arc::new(DumpIr::new(dir.clone()));
            *last_used = Some((dir, dump.clone()));
            Some(dump)
        }
    }
}

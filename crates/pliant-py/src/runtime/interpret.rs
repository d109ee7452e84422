//! The reference interpreter, for tests: what a function of a module returns, without any compiler pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use pliant_interp::{Options, PackedFuncs, Value, run_with};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::interrupt::{poll_signals, take_raised};
use crate::runtime::value::{from_value, to_value};

/// Runs a function of a module in the reference interpreter. It calls the registered packed functions.
#[pyfunction]
#[pyo3(signature = (module, func, *args))]
pub fn interpret<'py>(
    py: Python<'py>,
    module: &Bound<'py, IRModule>,
    func: &str,
    args: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyAny>> {
    let args = args.iter().map(|a| taken(to_value(&a)?)).collect::<Result<Vec<Value>>>()?;
    let module = module.get().snapshot();
    let value = enter(py, || interruptible(&module, func, &args))?;
    Ok(from_value(py, given(value)?)?)
}

/// How often a run is looked after.
const TICK: Duration = Duration::from_millis(50);

/// A run that Ctrl-C stops.
fn interruptible(module: &pliant_ir::IRModule, func: &str, args: &[Value]) -> Result<Value> {
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options { stop: Some(stop.clone()), ..Options::default() };
    let (over, runs) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let result = run_with(module, func, args, &Registered, &options);
            // Who waits for it waits until it is there.
            let _ = over.send(result);
        });
        loop {
            match runs.recv_timeout(TICK) {
                Ok(_) if stop.load(Ordering::Relaxed) => return Err(Error::Python(take_raised())),
                Ok(result) => return result.map_err(|e| Error::Vm(e.to_string())),
                Err(_) if poll_signals() => stop.store(true, Ordering::Relaxed),
                Err(_) => {}
            }
        }
    })
}

/// The packed functions of the registry.
struct Registered;

impl PackedFuncs for Registered {
    fn call(&self, name: &str, args: &[Value]) -> Option<std::result::Result<Value, String>> {
        let func = pliant_vm::get_func(name)?;
        let told = |e: Error| PyErr::from(e).to_string();
        let call = || -> std::result::Result<Value, String> {
            let args: Result<Vec<_>> = args.iter().cloned().map(given).collect();
            let result = func(&args.map_err(told)?).map_err(|e| told(e.into()))?;
            taken(result).map_err(told)
        };
        Some(call())
    }
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!("the interpreter neither takes nor gives {what} here"))
}

/// A value of the machine as one of the interpreter.
fn taken(value: pliant_vm::Value) -> Result<Value> {
    use pliant_vm::Value as Machine;
    Ok(match value {
        Machine::None => Value::None,
        Machine::Tensor(t) => Value::Tensor(t),
        Machine::Shape(dims) => Value::Shape(dims.iter().copied().collect()),
        Machine::Int(v) => Value::Int(v),
        Machine::Float(v) => Value::Float(v),
        Machine::Bool(v) => Value::Bool(v),
        Machine::Str(s) => Value::Str((*s).into()),
        Machine::DType(d) => Value::DType(d),
        Machine::Tuple(items) => {
            Value::tuple(items.iter().cloned().map(taken).collect::<Result<Vec<_>>>()?)
        }
        Machine::Object(any) => Value::Object(any),
        other => return Err(unsupported(other.kind())),
    })
}

/// A value of the interpreter as one of the machine.
fn given(value: Value) -> Result<pliant_vm::Value> {
    use pliant_vm::Value as Machine;
    Ok(match value {
        Value::None => Machine::None,
        Value::Tensor(t) => Machine::Tensor(t),
        Value::Shape(dims) => Machine::shape(&dims),
        Value::Int(v) => Machine::Int(v),
        Value::Float(v) => Machine::Float(v),
        Value::Bool(v) => Machine::Bool(v),
        Value::Str(s) => Machine::str(&s),
        Value::DType(d) => Machine::DType(d),
        Value::Tuple(items) => {
            Machine::tuple(items.iter().cloned().map(given).collect::<Result<Vec<_>>>()?)
        }
        Value::Object(any) => Machine::Object(any),
        Value::Storage(_) | Value::Func(_) => return Err(unsupported("functions and memory")),
    })
}

//! The reference interpreter, for tests: computes the result of a function of a module without any
//! compiler pass.

use std::sync::Arc;

use pliant_interp::{ErrorKind, Func, HostFunc, Options, PackedFuncs, Value, run_func};
use pliant_vm::{FuncValue, Value as Machine, VmError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::interrupt::{poll_signals, raised, take_raised};
use crate::runtime::value::{from_value, to_value};
use crate::sources::with_sources;

/// Runs a function of a module in the reference interpreter. Registered packed functions can be
/// called. Function values are passed to and from Python as callables.
#[pyfunction]
#[pyo3(signature = (module, func, *args))]
pub fn interpret<'py>(
    py: Python<'py>,
    module: &Bound<'py, IRModule>,
    func: &str,
    args: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyAny>> {
    pliant::register_library();
    let run = Arc::new(Run { module: module.get().snapshot() });
    let args = args.iter().map(|a| run.taken(to_value(&a)?)).collect::<Result<Vec<Value>>>()?;
    let func = Func::Global(func.into());
    let value = enter(py, || run.interruptible(&func, &args))?;
    Ok(from_value(py, run.given(value)?)?)
}

/// A module under interpretation. A function that a run returns is called in a separate run.
struct Run {
    module: pliant_ir::IRModule,
}

impl Run {
    /// Runs a function so that Ctrl-C can stop it.
    fn interruptible(self: &Arc<Self>, func: &Func, args: &[Value]) -> Result<Value> {
        let options = Options { should_stop: Some(poll_signals), ..Options::default() };
        let packed = Registered(self.clone());
        let result = run_func(&self.module, func, args, &packed, &options);
        match (result, raised()) {
            // An exception is also reported if the run ended before it noticed the interruption.
            (_, Some(raised)) => Err(Error::Python(raised)),
            (Err(e), None) if e.kind == ErrorKind::Stopped => Err(Error::Python(take_raised())),
            (result, None) => result.map_err(|e| Error::Vm(with_sources(|s| e.with_lines(s)))),
        }
    }

    /// Calls a host function, which takes VM values, on values of the interpreter.
    fn call_host(
        self: &Arc<Self>,
        args: &[Value],
        call: impl FnOnce(&[Machine]) -> std::result::Result<Machine, VmError>,
    ) -> std::result::Result<Value, String> {
        let told = |e: Error| PyErr::from(e).to_string();
        let args: Result<Vec<_>> = args.iter().cloned().map(|a| self.given(a)).collect();
        let result = call(&args.map_err(told)?).map_err(|e| told(e.into()))?;
        self.taken(result).map_err(told)
    }

    /// Converts a VM value to a value of the interpreter.
    fn taken(self: &Arc<Self>, value: Machine) -> Result<Value> {
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
                let items = items.iter().cloned().map(|item| self.taken(item));
                Value::tuple(items.collect::<Result<Vec<_>>>()?)
            }
            Machine::Object(any) => Value::Object(any),
            Machine::Func(func) => {
                let (run, callee) = (self.clone(), func.clone());
                let call =
                    move |args: &[Value]| run.call_host(args, |args: &[Machine]| callee.call(args));
                Value::Func(Func::Host(Arc::new(HostFunc {
                    name: func.name().into(),
                    call: Box::new(call),
                    object: Arc::new(func),
                })))
            }
            other @ Machine::Storage(_) => return Err(unsupported(other.kind())),
        })
    }

    /// Converts a value of the interpreter to a VM value.
    fn given(self: &Arc<Self>, value: Value) -> Result<Machine> {
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
                let items = items.iter().cloned().map(|item| self.given(item));
                Machine::tuple(items.collect::<Result<Vec<_>>>()?)
            }
            Value::Object(any) => Machine::Object(any),
            Value::Func(Func::Host(ref host))
                if let Some(func) = host.object.downcast_ref::<FuncValue>() =>
            {
                Machine::Func(FuncValue::clone(func))
            }
            Value::Func(func) => {
                let (run, name) = (self.clone(), func.name().to_string());
                let call = move |args: &[Machine]| run.call_own(&func, args);
                Machine::Func(FuncValue::packed(name, Arc::new(call)))
            }
            Value::Storage(_) => return Err(unsupported("memory")),
        })
    }

    /// Calls a function of the module on VM values.
    fn call_own(
        self: &Arc<Self>,
        func: &Func,
        args: &[Machine],
    ) -> std::result::Result<Machine, VmError> {
        let args: Result<Vec<Value>> = args.iter().cloned().map(|a| self.taken(a)).collect();
        let result = args.and_then(|args| self.interruptible(func, &args));
        let value = result.and_then(|value| self.given(value));
        value.map_err(|e| VmError::external(PyErr::from(e)))
    }
}

/// The registered packed functions.
struct Registered(Arc<Run>);

impl PackedFuncs for Registered {
    fn call(&self, name: &str, args: &[Value]) -> Option<std::result::Result<Value, String>> {
        let func = pliant_vm::get_func(name)?;
        Some(self.0.call_host(args, |args| func(args)))
    }
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!("the interpreter neither takes nor gives {what} here"))
}

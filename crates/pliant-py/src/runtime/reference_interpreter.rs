//! Runs functions of a module in the reference interpreter, without any compiler pass. Tests compare results with it.

use std::sync::Arc;

use pliant_interp::{ErrorKind, Func, HostFunc, Options, PackedFuncs, Value, run_func};
use pliant_vm::{FuncValue, Value as VmValue, VmError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::ir_module::IRModule;
use crate::runtime::ctrl_c_interrupts::{poll_signals, take_interrupt_error, take_signal_error};
use crate::runtime::value_conversion::{from_value, to_value};
use crate::source_texts::with_sources;

/// Runs a function of a module in the reference interpreter. Registered packed functions can be called. Function values
/// are passed to and from Python as callables.
#[pyfunction]
#[pyo3(signature = (module, func, *args))]
pub fn interpret<'py>(
    py: Python<'py>,
    module: &Bound<'py, IRModule>,
    func: &str,
    args: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyAny>> {
    pliant::register_library();
    let run = Arc::new(Interpretation { module: module.get().snapshot() });
    let args =
        args.iter().map(|a| run.from_vm_value(to_value(&a)?)).collect::<Result<Vec<Value>>>()?;
    let func = Func::Global(func.into());
    let value = run_detached(py, || run.run_interruptibly(&func, &args))?;
    Ok(from_value(py, run.to_vm_value(value)?)?)
}

/// A module that the reference interpreter runs. If a run returns a function, each call of that
/// function is another run.
struct Interpretation {
    module: pliant_ir::IRModule,
}

impl Interpretation {
    /// Runs a function of the module so that Ctrl-C can stop it.
    fn run_interruptibly(self: &Arc<Self>, func: &Func, args: &[Value]) -> Result<Value> {
        let options = Options { should_stop: Some(poll_signals), ..Options::default() };
        let packed = RegisteredFuncs(self.clone());
        let result = run_func(&self.module, func, args, &packed, &options);
        match (result, take_signal_error()) {
            // An exception is also reported if the run ended before it noticed the interruption.
            (_, Some(error)) => Err(Error::Python(error)),
            (Err(e), None) if e.kind == ErrorKind::Stopped => {
                Err(Error::Python(take_interrupt_error()))
            }
            (result, None) => result.map_err(|e| Error::Vm(with_sources(|s| e.with_lines(s)))),
        }
    }

    /// Calls `call`, a function on VM values such as a registered packed function, with values of the interpreter. Converts the
    /// arguments to VM values, and the result to a value of the interpreter.
    fn call_host(
        self: &Arc<Self>,
        args: &[Value],
        call: impl FnOnce(&[VmValue]) -> std::result::Result<VmValue, VmError>,
    ) -> std::result::Result<Value, String> {
        let error_text = |e: Error| PyErr::from(e).to_string();
        let args: Result<Vec<_>> = args.iter().cloned().map(|a| self.to_vm_value(a)).collect();
        let result = call(&args.map_err(error_text)?).map_err(|e| error_text(e.into()))?;
        self.from_vm_value(result).map_err(error_text)
    }

    /// Converts a VM value to a value of the interpreter.
    fn from_vm_value(self: &Arc<Self>, value: VmValue) -> Result<Value> {
        Ok(match value {
            VmValue::None => Value::None,
            VmValue::Tensor(t) => Value::Tensor(t),
            VmValue::Shape(dims) => Value::Shape(dims.iter().copied().collect()),
            VmValue::Int(v) => Value::Int(v),
            VmValue::Float(v) => Value::Float(v),
            VmValue::Bool(v) => Value::Bool(v),
            VmValue::Str(s) => Value::Str((*s).into()),
            VmValue::DType(d) => Value::DType(d),
            VmValue::Tuple(items) => {
                let items = items.iter().cloned().map(|item| self.from_vm_value(item));
                Value::tuple(items.collect::<Result<Vec<_>>>()?)
            }
            VmValue::Object(any) => Value::Object(any),
            VmValue::Func(func) => {
                let (run, callee) = (self.clone(), func.clone());
                let call =
                    move |args: &[Value]| run.call_host(args, |args: &[VmValue]| callee.call(args));
                Value::Func(Func::Host(Arc::new(HostFunc {
                    name: func.name().into(),
                    call: Box::new(call),
                    object: Arc::new(func),
                })))
            }
            other @ VmValue::Storage(_) => return Err(unsupported(other.kind())),
        })
    }

    /// Converts a value of the interpreter to a VM value.
    fn to_vm_value(self: &Arc<Self>, value: Value) -> Result<VmValue> {
        Ok(match value {
            Value::None => VmValue::None,
            Value::Tensor(t) => VmValue::Tensor(t),
            Value::Shape(dims) => VmValue::shape(&dims),
            Value::Int(v) => VmValue::Int(v),
            Value::Float(v) => VmValue::Float(v),
            Value::Bool(v) => VmValue::Bool(v),
            Value::Str(s) => VmValue::str(&s),
            Value::DType(d) => VmValue::DType(d),
            Value::Tuple(items) => {
                let items = items.iter().cloned().map(|item| self.to_vm_value(item));
                VmValue::tuple(items.collect::<Result<Vec<_>>>()?)
            }
            Value::Object(any) => VmValue::Object(any),
            Value::Func(Func::Host(ref host))
                if let Some(func) = host.object.downcast_ref::<FuncValue>() =>
            {
                VmValue::Func(FuncValue::clone(func))
            }
            Value::Func(func) => {
                let (run, name) = (self.clone(), func.name().to_string());
                let call = move |args: &[VmValue]| run.call_module_func(&func, args);
                VmValue::Func(FuncValue::packed(name, Arc::new(call)))
            }
            Value::Storage(_) => return Err(unsupported("memory")),
        })
    }

    /// Calls a function of the module on VM values.
    fn call_module_func(
        self: &Arc<Self>,
        func: &Func,
        args: &[VmValue],
    ) -> std::result::Result<VmValue, VmError> {
        let args: Result<Vec<Value>> =
            args.iter().cloned().map(|a| self.from_vm_value(a)).collect();
        let result = args.and_then(|args| self.run_interruptibly(func, &args));
        let value = result.and_then(|value| self.to_vm_value(value));
        value.map_err(|e| VmError::external(PyErr::from(e)))
    }
}

/// Lets the interpreter call the registered packed functions.
struct RegisteredFuncs(Arc<Interpretation>);

impl PackedFuncs for RegisteredFuncs {
    fn call(&self, name: &str, args: &[Value]) -> Option<std::result::Result<Value, String>> {
        let func = pliant_vm::get_func(name)?;
        Some(self.0.call_host(args, |args| func(args)))
    }
}

fn unsupported(values: &str) -> Error {
    Error::Unsupported(format!("the interpreter cannot pass {values} to or from Python code"))
}

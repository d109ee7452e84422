//! The reference interpreter, for tests: what a function of a module returns, without any compiler pass.

use pliant_interp::{NoPacked, Value, run};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::value::{from_value, to_value};

/// Runs a function of a module in the reference interpreter. Packed functions are not known to it.
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
    let value =
        enter(py, || run(&module, func, &args, &NoPacked).map_err(|e| Error::Vm(e.to_string())))?;
    Ok(from_value(py, given(value)?)?)
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!("the interpreter takes and gives no {what} here"))
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
        Value::Storage(_) | Value::Func(_) | Value::Object(_) => {
            return Err(unsupported("functions, memory and objects"));
        }
    })
}

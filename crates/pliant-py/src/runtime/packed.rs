//! Packed functions: Python functions that programs call by name, and any function as a Python callable.

use std::sync::{Arc, OnceLock};

use pliant_vm::{
    FuncValue, PackedFunc, Value, VirtualMachine, VmError, func_names, get_func, register_func,
    unregister_func,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::runtime::machine::Machine;
use crate::runtime::value::{from_value, to_value};

/// A function as a Python callable: registered, built in, or of a program.
#[pyclass(frozen, module = "pliant.runtime")]
pub struct PackedFunction {
    /// The function.
    pub func: FuncValue,
    /// The machine whose program the function belongs to: it lives as long as the callable.
    machine: Option<VirtualMachine>,
    /// The same, watched for Ctrl-C from the first call on.
    watched: OnceLock<Arc<Machine>>,
}

impl PackedFunction {
    /// The function as a callable, which may outlive all other handles to its machine.
    pub fn new(func: FuncValue) -> PackedFunction {
        let machine = func.machine();
        PackedFunction { func, machine, watched: OnceLock::new() }
    }
}

#[pymethods]
impl PackedFunction {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        let py = args.py();
        let values = args.iter().map(|a| to_value(&a)).collect::<Result<Vec<Value>>>()?;
        let result = match &self.machine {
            Some(vm) => self
                .watched
                .get_or_init(|| Machine::new(vm.clone()))
                .with_run(py, |_| self.func.call(&values))?,
            None => enter(py, || Ok(self.func.call(&values)?))?,
        };
        Ok(from_value(py, result)?)
    }

    /// The name.
    #[getter]
    fn name(&self) -> String {
        self.func.name().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<pliant.PackedFunc {}>", self.func.name())
    }
}

/// A Python callable as a function of the machine. It is called with the GIL; what it raises arrives at the
/// caller of the program as it is.
pub fn from_callable(callable: Py<PyAny>) -> PackedFunc {
    Arc::new(move |args: &[Value]| {
        Python::attach(|py| {
            call_python(callable.bind(py), args).map_err(|e| {
                let e: PyErr = e.into();
                VmError::external(e)
            })
        })
    })
}

fn call_python(callable: &Bound<'_, PyAny>, args: &[Value]) -> Result<Value> {
    let py = callable.py();
    let args: PyResult<Vec<_>> = args.iter().map(|v| from_value(py, v.clone())).collect();
    let result = callable.call1(PyTuple::new(py, args?)?)?;
    to_value(&result)
}

/// Registers a Python function under a name that programs call.
#[pyfunction]
#[pyo3(signature = (name, func, replace=false))]
pub fn registry_register(name: &str, func: Py<PyAny>, replace: bool) -> Result<()> {
    let known = Python::attach(|py| match func.bind(py).cast::<PackedFunction>() {
        Ok(packed) => packed_of(packed.get()),
        Err(_) => from_callable(func.clone_ref(py)),
    });
    if register_func(name, known, replace) {
        return Ok(());
    }
    Err(Error::Value(format!(
        "a function '{name}' is registered already (override=True replaces it)"
    )))
}

fn packed_of(func: &PackedFunction) -> PackedFunc {
    let func = func.func.clone();
    Arc::new(move |args: &[Value]| func.call(args))
}

/// The function registered under a name.
#[pyfunction]
pub fn registry_get(name: &str) -> Option<PackedFunction> {
    get_func(name).map(|f| PackedFunction::new(FuncValue::packed(name, f)))
}

/// Takes a function out of the registry; whether it was there.
#[pyfunction]
pub fn registry_remove(py: Python<'_>, name: &str) -> bool {
    // Dropping the function may run Python code, which must not wait for us.
    let removed = unregister_func(name);
    let found = removed.is_some();
    py.detach(|| drop(removed));
    found
}

/// The names of all registered functions.
#[pyfunction]
pub fn registry_names() -> Vec<String> {
    func_names()
}

//! Packed functions: Python functions that programs call by name, and Python callables for functions of programs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use pliant_vm::{
    FuncValue, PackedFunc, Value, VirtualMachine, VmError, func_names, get_func, register_func,
    unregister_func,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::runtime::run_options::run_options;
use crate::runtime::value_conversion::{from_value, to_value, visit_captured};
use crate::runtime::virtual_machine::MonitoredVm;
use crate::runtime::vm_objects::{VmObjectOwner, VmObjectTable};

/// A function as a Python callable: a registered function, a built-in function, or a function of a program.
#[pyclass(frozen, module = "pliant.runtime")]
pub struct PackedFunction {
    /// The wrapped function value.
    pub func: FuncValue,
    /// The VM whose program contains the function. It lives at least as long as the callable.
    vm: Option<VirtualMachine>,
    /// The VM in the field `vm`, registered with the Ctrl-C watcher at the first call.
    monitored: OnceLock<Arc<MonitoredVm>>,
    /// The owner of the Python objects that the VM refers to.
    object_owner: Option<Py<VmObjectOwner>>,
    /// The number of calls in progress. A call may change the captured values without the GIL, so the garbage collector does not
    /// visit them during calls.
    calls: AtomicUsize,
}

impl PackedFunction {
    /// Wraps a function as a callable, which may outlive all other handles of the function's VM.
    pub fn new(py: Python<'_>, func: FuncValue) -> PackedFunction {
        let vm = func.vm();
        let object_owner =
            vm.as_ref().and_then(VmObjectTable::of).and_then(|table| table.owner_object(py));
        PackedFunction {
            func,
            vm,
            monitored: OnceLock::new(),
            object_owner,
            calls: AtomicUsize::new(0),
        }
    }
}

/// Counts a call of a packed function as in progress until this value is dropped.
struct CallInProgress<'a>(&'a AtomicUsize);

impl<'a> CallInProgress<'a> {
    fn begin(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        CallInProgress(calls)
    }
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[pymethods]
impl PackedFunction {
    /// Calls the function. `timeout` is the time limit of the run in seconds, which applies to functions of a program;
    /// a run that exceeds it raises `TimeLimitError`.
    #[pyo3(signature = (*args, timeout=None))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = args.py();
        let options = run_options(timeout, None)?;
        let values = args.iter().map(|a| to_value(&a)).collect::<Result<Vec<Value>>>()?;
        // The counter is incremented and decremented with the GIL held.
        let _in_progress = CallInProgress::begin(&self.calls);
        let result = match &self.vm {
            Some(vm) => self
                .monitored
                .get_or_init(|| MonitoredVm::new(vm.clone()))
                .with_run(py, |_| self.func.call_with(&values, &options))?,
            None => run_detached(py, || Ok(self.func.call_with(&values, &options)?))?,
        };
        Ok(from_value(py, result)?)
    }

    /// Returns the name of the function.
    #[getter]
    fn name(&self) -> String {
        self.func.name().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<pliant.PackedFunc {}>", self.func.name())
    }

    /// Visits the captured objects that have no other owner, for Python's garbage collector. During
    /// a call, the captured objects may change at any time, so they are not visited then.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.object_owner.iter().try_for_each(|object_owner| visit.call(object_owner))?;
        match self.calls.load(Ordering::Relaxed) {
            0 => visit_captured(&self.func, &visit),
            _ => Ok(()),
        }
    }
}

/// Wraps a Python callable as a packed function of the VM. Each call holds the GIL, and exceptions reach the caller
/// of the program unchanged.
pub fn from_callable(callable: Py<PyAny>) -> PackedFunc {
    Arc::new(move |args: &[Value]| Python::attach(|py| call_for_vm(callable.bind(py), args)))
}

/// Calls a Python callable with VM values, and converts its result to a VM value.
///
/// # Errors
/// If the callable raises an exception, or if the VM does not accept its result.
pub fn call_for_vm(
    callable: &Bound<'_, PyAny>,
    args: &[Value],
) -> std::result::Result<Value, VmError> {
    call_python(callable, args).map_err(|e| {
        let e: PyErr = e.into();
        VmError::external(e)
    })
}

fn call_python(callable: &Bound<'_, PyAny>, args: &[Value]) -> Result<Value> {
    let py = callable.py();
    let args: PyResult<Vec<_>> = args.iter().map(|v| from_value(py, v.clone())).collect();
    let result = callable.call1(PyTuple::new(py, args?)?)?;
    to_value(&result)
}

/// Registers a Python function under a name, by which programs can call it.
#[pyfunction]
#[pyo3(signature = (name, func, replace=false))]
pub fn registry_register(name: &str, func: Py<PyAny>, replace: bool) -> Result<()> {
    let packed = Python::attach(|py| match func.bind(py).cast::<PackedFunction>() {
        Ok(packed) => to_packed(packed.get()),
        Err(_) => from_callable(func.clone_ref(py)),
    });
    if register_func(name, packed, replace) {
        return Ok(());
    }
    Err(Error::Value(format!(
        "a packed function '{name}' is already registered; pass override=True to replace it"
    )))
}

fn to_packed(func: &PackedFunction) -> PackedFunc {
    let func = func.func.clone();
    Arc::new(move |args: &[Value]| func.call(args))
}

/// Returns the packed function registered under this name, or `None` if there is none.
#[pyfunction]
pub fn registry_get(py: Python<'_>, name: &str) -> Option<PackedFunction> {
    get_func(name).map(|f| PackedFunction::new(py, FuncValue::packed(name, f)))
}

/// Removes a function from the registry. Returns whether it was registered.
#[pyfunction]
pub fn registry_remove(py: Python<'_>, name: &str) -> bool {
    // Dropping the function may run Python code, which must not wait for this thread.
    let removed = unregister_func(name);
    let found = removed.is_some();
    py.detach(|| drop(removed));
    found
}

/// Returns the names of all registered functions.
#[pyfunction]
pub fn registry_names() -> Vec<String> {
    func_names()
}

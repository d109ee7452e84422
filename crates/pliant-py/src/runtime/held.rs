//! The Python objects that a VM refers to, made visible to Python's garbage collector.
//!
//! A VM calls Python functions, and the object that such a function belongs to may refer to the VM.
//! The collector can find this reference cycle only if each reference to a Python object has
//! exactly one owner that reports it. Therefore these references belong to [`Held`], a Python
//! object that all Python handles of the VM refer to. The VM itself accesses them through a table
//! that it shares with [`Held`], and they are dropped together with it.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pliant_vm::{PackedFunc, VirtualMachine, VmError, WeakVm};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};

use crate::runtime::packed::called;
use crate::runtime::value::visit_kept;

/// The Python objects that a VM refers to.
#[derive(Default)]
struct Objects {
    functions: Vec<Py<PyAny>>,
    instrument: Option<Py<PyAny>>,
}

/// The objects as the VM accesses them.
#[derive(Default)]
pub struct Table {
    objects: Mutex<Objects>,
    /// The Python object that owns them.
    owner: OnceLock<Py<PyWeakrefReference>>,
    /// The VM, whose inputs and results belong to it.
    machine: OnceLock<WeakVm>,
}

/// The owner of the Python objects that a VM refers to.
#[pyclass(frozen, weakref, module = "pliant.relax")]
pub struct Held(Arc<Table>);

#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Code that locks the table holds the GIL and creates no Python object meanwhile. So the
        // table is not locked while the collector runs.
        let Ok(objects) = self.0.objects.try_lock() else { return Ok(()) };
        objects.functions.iter().try_for_each(|f| visit.call(f))?;
        objects.instrument.iter().try_for_each(|f| visit.call(f))?;
        match self.0.machine.get().and_then(WeakVm::upgrade) {
            Some(machine) => visit_kept(&machine, &visit),
            None => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut *self.0.objects());
        drop(objects);
    }
}

impl Table {
    /// A table of these functions, and its owner.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn new(py: Python<'_>, functions: Vec<Py<PyAny>>) -> PyResult<(Arc<Table>, Py<Held>)> {
        let table = Arc::new(Table::default());
        table.objects().functions = functions;
        let held = Bound::new(py, Held(table.clone()))?;
        let _ = table.owner.set(PyWeakrefReference::new(&held)?.unbind());
        Ok((table, held.unbind()))
    }

    /// Records the VM to which the table belongs.
    pub fn belongs_to(&self, machine: &VirtualMachine) {
        let _ = self.machine.set(machine.downgrade());
    }

    /// The table of a VM that was created from Python.
    pub fn of(vm: &VirtualMachine) -> Option<&Table> {
        let owned: &(dyn Any + Send + Sync) = &**vm.attachment()?;
        owned.downcast_ref()
    }

    /// The owner, if it is still alive.
    pub fn held(&self, py: Python<'_>) -> Option<Py<Held>> {
        let owner = self.owner.get()?.bind(py).upgrade_as::<Held>().ok()??;
        Some(owner.unbind())
    }

    /// The function with this index as a packed function of the VM.
    pub fn function(self: &Arc<Self>, index: usize) -> PackedFunc {
        let table = self.clone();
        Arc::new(move |args| {
            Python::attach(|py| {
                let found = table.objects().functions.get(index).map(|f| f.clone_ref(py));
                match found {
                    Some(function) => called(function.bind(py), args),
                    None => {
                        Err(VmError::type_error("the owner of the machine's functions is gone"))
                    }
                }
            })
        })
    }

    /// The Python object that instruments the VM's calls.
    pub fn instrument(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.objects().instrument.as_ref().map(|f| f.clone_ref(py))
    }

    /// Sets the Python object that instruments the VM's calls.
    pub fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut self.objects().instrument, instrument);
        drop(old);
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The Python objects that a machine holds, where Python's garbage collector can see them.
//!
//! A machine calls Python functions, and an object that such a function belongs to may hold the machine. The collector
//! finds that cycle only if each reference to a Python object has one owner that it can ask. So these references are
//! [`Held`]'s, a Python object that all Python objects of the machine refer to; the machine itself finds them through the
//! table that it shares with it, and they go with it.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pliant_vm::{PackedFunc, VirtualMachine, VmError, WeakMachine};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};

use crate::runtime::packed::called;
use crate::runtime::value::visit_kept;

/// What a machine holds of Python.
#[derive(Default)]
struct Objects {
    functions: Vec<Py<PyAny>>,
    instrument: Option<Py<PyAny>>,
}

/// The objects, as the machine finds them.
#[derive(Default)]
pub struct Table {
    objects: Mutex<Objects>,
    /// The Python object that owns them.
    owner: OnceLock<Py<PyWeakrefReference>>,
    /// The machine, whose inputs and results are its own.
    machine: OnceLock<WeakMachine>,
}

/// The owner of the Python objects that a machine holds.
#[pyclass(frozen, weakref, module = "pliant.relax")]
pub struct Held(Arc<Table>);

#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever locks the table has the GIL and makes no Python object meanwhile, so that nobody has it now.
        let Ok(objects) = self.0.objects.try_lock() else { return Ok(()) };
        objects.functions.iter().try_for_each(|f| visit.call(f))?;
        objects.instrument.iter().try_for_each(|f| visit.call(f))?;
        match self.0.machine.get().and_then(WeakMachine::upgrade) {
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
    /// Those of the interpreter.
    pub fn new(py: Python<'_>, functions: Vec<Py<PyAny>>) -> PyResult<(Arc<Table>, Py<Held>)> {
        let table = Arc::new(Table::default());
        table.objects().functions = functions;
        let held = Bound::new(py, Held(table.clone()))?;
        let _ = table.owner.set(PyWeakrefReference::new(&held)?.unbind());
        Ok((table, held.unbind()))
    }

    /// Says which machine the table belongs to.
    pub fn belongs_to(&self, machine: &VirtualMachine) {
        let _ = self.machine.set(machine.downgrade());
    }

    /// The table of a machine that Python made.
    pub fn of(vm: &VirtualMachine) -> Option<&Table> {
        let owned: &(dyn Any + Send + Sync) = &**vm.owned()?;
        owned.downcast_ref()
    }

    /// The owner, if it lives.
    pub fn held(&self, py: Python<'_>) -> Option<Py<Held>> {
        let owner = self.owner.get()?.bind(py).upgrade_as::<Held>().ok()??;
        Some(owner.unbind())
    }

    /// The function at that place as one of the machine's.
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

    /// What watches the machine's calls.
    pub fn instrument(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.objects().instrument.as_ref().map(|f| f.clone_ref(py))
    }

    /// Sets what watches the machine's calls.
    pub fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut self.objects().instrument, instrument);
        drop(old);
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The Python objects that a VM refers to, made visible to Python's garbage collector.
//!
//! A VM calls Python functions, and the object that such a function belongs to may refer to the VM. The collector can
//! find this reference cycle only if each reference to a Python object has exactly one owner that reports it. Therefore
//! these references belong to [`VmObjectOwner`], a Python object that all Python handles of the VM refer to. The VM
//! itself accesses them through a table that it shares with the owner, and they are dropped together with the owner.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pliant_vm::{PackedFunc, VirtualMachine, VmError, WeakVm};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};

use crate::runtime::packed_functions::call_for_vm;
use crate::runtime::value_conversion::visit_stored;

/// The Python objects that a VM refers to.
#[derive(Default)]
struct VmObjects {
    functions: Vec<Py<PyAny>>,
    instrument: Option<Py<PyAny>>,
}

/// The table through which a VM accesses the Python objects that it refers to.
#[derive(Default)]
pub struct VmObjectTable {
    objects: Mutex<VmObjects>,
    /// A weak reference to the [`VmObjectOwner`] that owns the Python objects in this table.
    owner: OnceLock<Py<PyWeakrefReference>>,
    /// The VM that uses this table. The owner also reports the inputs and results that this VM
    /// stores.
    vm: OnceLock<WeakVm>,
}

/// The owner of the Python objects that a VM refers to.
#[pyclass(frozen, weakref, module = "pliant.relax")]
pub struct VmObjectOwner(Arc<VmObjectTable>);

#[pymethods]
impl VmObjectOwner {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Code that locks the table holds the GIL and creates no Python object meanwhile. So the table is not locked
        // while the collector runs.
        let Ok(objects) = self.0.objects.try_lock() else { return Ok(()) };
        objects.functions.iter().try_for_each(|f| visit.call(f))?;
        objects.instrument.iter().try_for_each(|f| visit.call(f))?;
        match self.0.vm.get().and_then(WeakVm::upgrade) {
            Some(vm) => visit_stored(&vm, &visit),
            None => Ok(()),
        }
    }
}

impl Drop for VmObjectOwner {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut *self.0.objects());
        drop(objects);
    }
}

impl VmObjectTable {
    /// Creates a table with the given Python functions, and the owner of these functions.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn new(
        py: Python<'_>,
        functions: Vec<Py<PyAny>>,
    ) -> PyResult<(Arc<VmObjectTable>, Py<VmObjectOwner>)> {
        let table = Arc::new(VmObjectTable::default());
        table.objects().functions = functions;
        let owner_object = Bound::new(py, VmObjectOwner(table.clone()))?;
        let _ = table.owner.set(PyWeakrefReference::new(&owner_object)?.unbind());
        Ok((table, owner_object.unbind()))
    }

    /// Records the VM to which the table belongs.
    pub fn set_vm(&self, vm: &VirtualMachine) {
        let _ = self.vm.set(vm.downgrade());
    }

    /// Returns the object table of a VM, if the VM was created from Python.
    pub fn of(vm: &VirtualMachine) -> Option<&VmObjectTable> {
        let owned: &(dyn Any + Send + Sync) = &**vm.attachment()?;
        owned.downcast_ref()
    }

    /// Returns the owner of the table's objects, if the owner is still alive.
    pub fn owner_object(&self, py: Python<'_>) -> Option<Py<VmObjectOwner>> {
        let owner = self.owner.get()?.bind(py).upgrade_as::<VmObjectOwner>().ok()??;
        Some(owner.unbind())
    }

    /// Returns the Python function with this index as a packed function of the VM.
    pub fn function(self: &Arc<Self>, index: usize) -> PackedFunc {
        let table = self.clone();
        Arc::new(move |args| {
            Python::attach(|py| {
                let found = table.objects().functions.get(index).map(|f| f.clone_ref(py));
                match found {
                    Some(function) => call_for_vm(function.bind(py), args),
                    None => Err(VmError::type_error(
                        "the VM to which this Python function belongs was deleted; keep the VM alive while its functions are called",
                    )),
                }
            })
        })
    }

    /// Returns the Python callable that observes the VM's calls (its instrument).
    pub fn instrument(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.objects().instrument.as_ref().map(|f| f.clone_ref(py))
    }

    /// Sets the Python callable that observes the VM's calls (its instrument).
    pub fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut self.objects().instrument, instrument);
        drop(old);
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, VmObjects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! [`PrimFuncObjects`]: the Python objects of the variables and buffers of a loop function. They stay the same as long
//! as Python code or a module refers to the function.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pliant_ir::tir::{Buffer, PrimFunc, Var};
use pliant_ops::te;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::tir::body::PrimFuncBody;

/// The objects of variables and buffers.
#[derive(Clone, Default)]
pub struct ObjectMap {
    /// The objects of variables.
    pub vars: FxHashMap<Var, te::Var>,
    /// The objects of buffers.
    pub tensors: FxHashMap<Buffer, te::Tensor>,
}

/// The data shared by functions that differ only in their attributes.
#[derive(Default)]
struct Shared {
    objects: ObjectMap,
    body: OnceLock<Py<PrimFuncBody>>,
}

/// A loop function with its Python objects.
pub struct PrimFuncObjects {
    /// The function. Its address is the key of this entry, so it must stay alive as long as the entry.
    pub func: Arc<PrimFunc>,
    shared: Arc<Shared>,
}

/// All live entries, by the addresses of the functions.
fn registry() -> MutexGuard<'static, FxHashMap<usize, Weak<PrimFuncObjects>>> {
    static REGISTRY: OnceLock<Mutex<FxHashMap<usize, Weak<PrimFuncObjects>>>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl PrimFuncObjects {
    /// The entry of a function, which is created if there is none.
    pub fn of(func: Arc<PrimFunc>) -> Arc<PrimFuncObjects> {
        let known = registry().get(&(Arc::as_ptr(&func) as usize)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| Self::register(func, Arc::default()))
    }

    /// An entry for the same function with other attributes.
    pub fn with_same_body(&self, func: PrimFunc) -> Arc<PrimFuncObjects> {
        Self::register(Arc::new(func), self.shared.clone())
    }

    /// An entry for a new function whose variables and buffers have these objects.
    pub fn with_objects(func: PrimFunc, objects: ObjectMap) -> Arc<PrimFuncObjects> {
        Self::register(Arc::new(func), Arc::new(Shared { objects, body: OnceLock::new() }))
    }

    fn register(func: Arc<PrimFunc>, shared: Arc<Shared>) -> Arc<PrimFuncObjects> {
        let address = Arc::as_ptr(&func) as usize;
        let objects = Arc::new(PrimFuncObjects { func, shared });
        let mut registry = registry();
        if registry.len() == registry.capacity() {
            registry.retain(|_, objects| objects.strong_count() > 0);
        }
        registry.insert(address, Arc::downgrade(&objects));
        objects
    }

    /// The body as a Python object.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn body<'py>(&self, py: Python<'py>) -> Result<&Bound<'py, PrimFuncBody>> {
        if let Some(body) = self.shared.body.get() {
            return Ok(body.bind(py));
        }
        let body = Bound::new(py, PrimFuncBody::read(py, &self.func, &self.shared.objects)?)?;
        // If another thread was faster, its objects are used.
        Ok(self.shared.body.get_or_init(|| body.unbind()).bind(py))
    }
}

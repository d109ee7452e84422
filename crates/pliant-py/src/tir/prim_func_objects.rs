//! [`PrimFuncObjects`]: the Python objects that represent the variables and buffers of a loop function. They stay
//! the same as long as Python code or a module refers to the function.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pliant_ir::tir::{Buffer, PrimFunc, Var};
use pliant_ops::te;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::tir::prim_func_body::PrimFuncBody;

/// The Python objects of a loop function's variables and buffers.
#[derive(Clone, Default)]
pub struct ObjectMap {
    /// The Python object of each variable.
    pub vars: FxHashMap<Var, te::Var>,
    /// The Python object of each buffer.
    pub tensors: FxHashMap<Buffer, te::Tensor>,
}

/// The Python objects that several functions share because the functions differ only in their
/// attributes.
#[derive(Default)]
struct SharedObjects {
    objects: ObjectMap,
    body: OnceLock<Py<PrimFuncBody>>,
}

/// A loop function, with the Python objects that represent its variables, its buffers and its body.
pub struct PrimFuncObjects {
    /// The function. Its address is the key in the registry, so it must stay alive as long as this value.
    pub func: Arc<PrimFunc>,
    shared: Arc<SharedObjects>,
}

/// Locks the registry of all live [`PrimFuncObjects`], by the addresses of their functions.
fn registry() -> MutexGuard<'static, FxHashMap<usize, Weak<PrimFuncObjects>>> {
    static REGISTRY: OnceLock<Mutex<FxHashMap<usize, Weak<PrimFuncObjects>>>> = OnceLock::new();
    REGISTRY.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl PrimFuncObjects {
    /// Returns the Python objects of a function. Creates and registers them if the function has
    /// none yet.
    pub fn of(func: Arc<PrimFunc>) -> Arc<PrimFuncObjects> {
        let known = registry().get(&(Arc::as_ptr(&func) as usize)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| Self::register(func, Arc::default()))
    }

    /// Registers `func`, a loop function that differs from this one only in its attributes. Both functions share their Python
    /// objects.
    pub fn with_same_body(&self, func: PrimFunc) -> Arc<PrimFuncObjects> {
        Self::register(Arc::new(func), self.shared.clone())
    }

    /// Registers a new function, whose variables and buffers are represented by the given Python objects.
    pub fn with_objects(func: PrimFunc, objects: ObjectMap) -> Arc<PrimFuncObjects> {
        Self::register(Arc::new(func), Arc::new(SharedObjects { objects, body: OnceLock::new() }))
    }

    fn register(func: Arc<PrimFunc>, shared: Arc<SharedObjects>) -> Arc<PrimFuncObjects> {
        let address = Arc::as_ptr(&func) as usize;
        let objects = Arc::new(PrimFuncObjects { func, shared });
        let mut registry = registry();
        if registry.len() == registry.capacity() {
            registry.retain(|_, objects| objects.strong_count() > 0);
        }
        registry.insert(address, Arc::downgrade(&objects));
        objects
    }

    /// Returns the body as a Python object.
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

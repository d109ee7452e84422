//! [`Seen`]: what Python has seen of a loop function: the objects that its variables and buffers are, which stay the same
//! for as long as the function is held, by Python or by a module.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use pliant_ir::tir::{Buffer, PrimFunc, Var};
use pliant_ops::te;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::tir::body::PrimFuncBody;

/// The objects of variables and buffers.
#[derive(Clone, Default)]
pub struct Objects {
    /// Those of variables.
    pub vars: FxHashMap<Var, te::Var>,
    /// Those of buffers.
    pub tensors: FxHashMap<Buffer, te::Tensor>,
}

/// What functions share that differ in their attributes alone.
#[derive(Default)]
struct Shared {
    objects: Objects,
    body: OnceLock<Py<PrimFuncBody>>,
}

/// A loop function with its objects.
pub struct Seen {
    /// The function, which stays where it is as long as this is found under its address.
    pub func: Arc<PrimFunc>,
    shared: Arc<Shared>,
}

/// All that is held, by the addresses of the functions.
fn all() -> MutexGuard<'static, FxHashMap<usize, Weak<Seen>>> {
    static ALL: OnceLock<Mutex<FxHashMap<usize, Weak<Seen>>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    /// What was seen of that function.
    pub fn of(func: Arc<PrimFunc>) -> Arc<Seen> {
        let known = all().get(&(Arc::as_ptr(&func) as usize)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| Self::enter(func, Arc::default()))
    }

    /// A function with other attributes.
    pub fn alike(&self, func: PrimFunc) -> Arc<Seen> {
        Self::enter(Arc::new(func), self.shared.clone())
    }

    /// A new function whose variables and buffers are those objects.
    pub fn with(func: PrimFunc, objects: Objects) -> Arc<Seen> {
        Self::enter(Arc::new(func), Arc::new(Shared { objects, body: OnceLock::new() }))
    }

    fn enter(func: Arc<PrimFunc>, shared: Arc<Shared>) -> Arc<Seen> {
        let address = Arc::as_ptr(&func) as usize;
        let seen = Arc::new(Seen { func, shared });
        let mut all = all();
        if all.len() == all.capacity() {
            all.retain(|_, seen| seen.strong_count() > 0);
        }
        all.insert(address, Arc::downgrade(&seen));
        seen
    }

    /// The body in Python.
    ///
    /// # Errors
    /// Those of the interpreter.
    pub fn body<'py>(&self, py: Python<'py>) -> Result<&Bound<'py, PrimFuncBody>> {
        if let Some(body) = self.shared.body.get() {
            return Ok(body.bind(py));
        }
        let body = Bound::new(py, PrimFuncBody::read(py, &self.func, &self.shared.objects)?)?;
        // Another thread may have been faster; its objects are everybody's then.
        Ok(self.shared.body.get_or_init(|| body.unbind()).bind(py))
    }
}

//! [`Seen`]: the Python objects of the variables and buffers of a loop function. They stay the same
//! as long as Python code or a module holds the function.

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
    /// The objects of variables.
    pub vars: FxHashMap<Var, te::Var>,
    /// The objects of buffers.
    pub tensors: FxHashMap<Buffer, te::Tensor>,
}

/// The data shared by functions that differ only in their attributes.
#[derive(Default)]
struct Shared {
    objects: Objects,
    body: OnceLock<Py<PrimFuncBody>>,
}

/// A loop function with its Python objects.
pub struct Seen {
    /// The function. Its address is the key of this entry, so it must stay alive as long as the
    /// entry.
    pub func: Arc<PrimFunc>,
    shared: Arc<Shared>,
}

/// All live entries, by the addresses of the functions.
fn all() -> MutexGuard<'static, FxHashMap<usize, Weak<Seen>>> {
    static ALL: OnceLock<Mutex<FxHashMap<usize, Weak<Seen>>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    /// The entry of a function, which is created if there is none.
    pub fn of(func: Arc<PrimFunc>) -> Arc<Seen> {
        let known = all().get(&(Arc::as_ptr(&func) as usize)).and_then(Weak::upgrade);
        known.unwrap_or_else(|| Self::enter(func, Arc::default()))
    }

    /// An entry for the same function with other attributes.
    pub fn alike(&self, func: PrimFunc) -> Arc<Seen> {
        Self::enter(Arc::new(func), self.shared.clone())
    }

    /// An entry for a new function whose variables and buffers have these objects.
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

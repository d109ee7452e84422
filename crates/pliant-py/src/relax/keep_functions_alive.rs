//! [`RetainedOwners`]: keeps alive the [`FuncOwner`]s of a module's functions that Python code has accessed. Python objects for
//! parts of these functions therefore stay valid and compare equal as long as the module lives.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir::IRModule;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::relax::detached_expr::Node;
use crate::relax::function::{Function, owner_of};
use crate::relax::function_owner::FuncOwner;
use crate::te::prim_func::PrimFunc;
use crate::tir::prim_func_objects::PrimFuncObjects;

/// Keeps alive the [`FuncOwner`]s of graph functions and the Python objects of loop functions, by the addresses of the functions.
#[derive(Default)]
pub struct RetainedOwners {
    owners: Mutex<FxHashMap<usize, Arc<FuncOwner>>>,
    objects: Mutex<FxHashMap<usize, Arc<PrimFuncObjects>>>,
}

impl RetainedOwners {
    /// Keeps `owner`, which holds a graph function of `module` for Python code, alive while the module contains the function.
    pub fn retain_owner(&self, owner: Arc<FuncOwner>, module: &IRModule) {
        let Some(key) = owner.lock().finished().map(address) else { return };
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.insert(key, owner);
        // Owners of replaced functions are removed once they outnumber those of current functions.
        if owners.len() > 2 * module.functions.len() + 1 {
            let current: FxHashSet<usize> = module.relax_funcs().map(|(_, f)| address(f)).collect();
            owners.retain(|key, _| current.contains(key));
        }
    }

    /// Keeps the Python objects of a loop function of `module` alive.
    pub fn retain_prim_func(&self, objects: Arc<PrimFuncObjects>, module: &IRModule) {
        let mut retained = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        retained.insert(Arc::as_ptr(&objects.func) as usize, objects);
        if retained.len() > 2 * module.functions.len() + 1 {
            let current: FxHashSet<usize> =
                module.prim_funcs().map(|(_, f)| Arc::as_ptr(f) as usize).collect();
            retained.retain(|key, _| current.contains(key));
        }
    }

    /// Keeps the [`FuncOwner`] or the Python objects of a function that Python code added to `module` alive while the module
    /// contains the function.
    pub fn retain_object(&self, obj: &Bound<'_, PyAny>, module: &IRModule) {
        if let Ok(func) = obj.cast::<PrimFunc>() {
            return self.retain_prim_func(func.get().objects(), module);
        }
        let Ok(func) = obj.cast::<Function>() else { return };
        let node = &func.as_super().get().node;
        // A local function that is added to a module by itself becomes a different function.
        let owner = owner_of(node, "a function of a module");
        if let (Node::Root(_) | Node::Func(_), Ok(owner)) = (node.get(), owner) {
            self.retain_owner(owner, module);
        }
    }
}

impl Clone for RetainedOwners {
    fn clone(&self) -> Self {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner).clone();
        RetainedOwners { owners: Mutex::new(owners), objects: Mutex::new(objects) }
    }
}

fn address(func: &Arc<pliant_ir::relax::Function>) -> usize {
    Arc::as_ptr(func) as usize
}

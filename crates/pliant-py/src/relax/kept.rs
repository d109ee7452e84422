//! [`KeptHomes`]: keeps the homes of a module's functions that Python code has accessed, so that
//! their parts stay identical as long as the module lives.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir::IRModule;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::relax::function::{Function, home_of};
use crate::relax::home::Home;
use crate::relax::node::Node;
use crate::te::prim_func::PrimFunc;
use crate::tir::seen::Seen;

/// Homes by the addresses of their functions, and the seen parts of loop functions by the addresses
/// of these functions.
#[derive(Default)]
pub struct KeptHomes(Mutex<FxHashMap<usize, Arc<Home>>>, Mutex<FxHashMap<usize, Arc<Seen>>>);

impl KeptHomes {
    /// Keeps the home of a function of a module.
    pub fn keep(&self, home: Arc<Home>, module: &IRModule) {
        let Some(key) = home.lock().finished().map(address) else { return };
        let mut homes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        homes.insert(key, home);
        // Homes of replaced functions are removed once they outnumber those of current functions.
        if homes.len() > 2 * module.functions.len() + 1 {
            let here: FxHashSet<usize> = module.relax_funcs().map(|(_, f)| address(f)).collect();
            homes.retain(|key, _| here.contains(key));
        }
    }

    /// Keeps the seen parts of a loop function of a module.
    pub fn keep_seen(&self, seen: Arc<Seen>, module: &IRModule) {
        let mut kept = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(Arc::as_ptr(&seen.func) as usize, seen);
        if kept.len() > 2 * module.functions.len() + 1 {
            let here: FxHashSet<usize> =
                module.prim_funcs().map(|(_, f)| Arc::as_ptr(f) as usize).collect();
            kept.retain(|key, _| here.contains(key));
        }
    }

    /// Keeps the home or seen parts of a function that Python code holds and that was added to a
    /// module.
    pub fn keep_object(&self, obj: &Bound<'_, PyAny>, module: &IRModule) {
        if let Ok(func) = obj.cast::<PrimFunc>() {
            return self.keep_seen(func.get().seen(), module);
        }
        let Ok(func) = obj.cast::<Function>() else { return };
        let node = &func.as_super().get().node;
        // A local function that is added to a module by itself becomes a different function.
        if let (Node::Root(_) | Node::Func(_), Ok(home)) = (node.get(), home_of(node)) {
            self.keep(home, module);
        }
    }
}

impl Clone for KeptHomes {
    fn clone(&self) -> Self {
        let homes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let seen = self.1.lock().unwrap_or_else(PoisonError::into_inner).clone();
        KeptHomes(Mutex::new(homes), Mutex::new(seen))
    }
}

fn address(func: &Arc<pliant_ir::relax::Function>) -> usize {
    Arc::as_ptr(func) as usize
}

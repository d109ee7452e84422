//! The global registry of packed functions: functions of the host that programs call by name.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::{Value, VmError};

/// A function of the host.
pub type PackedFunc = Arc<dyn Fn(&[Value]) -> Result<Value, VmError> + Send + Sync>;

static REGISTRY: LazyLock<RwLock<FxHashMap<String, PackedFunc>>> = LazyLock::new(RwLock::default);

/// Registers `func` under `name` for machines made from now on. Returns false, and changes nothing, if the name is
/// taken and `replace` is false.
pub fn register_func(name: &str, func: PackedFunc, replace: bool) -> bool {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if !replace && registry.contains_key(name) {
        return false;
    }
    let old = registry.insert(name.to_string(), func);
    // Dropping a function may run code of the host that uses the registry.
    drop(registry);
    drop(old);
    true
}

/// The function registered under `name`.
pub fn get_func(name: &str) -> Option<PackedFunc> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Takes the function `name` out of the registry.
pub fn unregister_func(name: &str) -> Option<PackedFunc> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner).remove(name)
}

/// The names of all registered functions, sorted.
pub fn func_names() -> Vec<String> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let mut names: Vec<String> = registry.keys().cloned().collect();
    names.sort_unstable();
    names
}

//! The global registry of packed and library functions, which are Rust or Python functions that programs call by name.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use pliant_exec::abi::KernelRuntime;
use rustc_hash::FxHashMap;

use crate::memory_pool::{alloc_workspace, free_workspace};
use crate::{Value, VmError};

/// A Rust function that programs can call by name, with VM values as arguments and result (a packed function). Python functions are
/// wrapped as such functions.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant_vm::{PackedFunc, Value, VmError};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let negate: PackedFunc = Arc::new(|args: &[Value]| match args {
///     [Value::Int(value)] => Ok(Value::Int(-value)),
///     _ => Err(VmError::type_error("negate takes one integer")),
/// });
/// assert_eq!(negate(&[Value::Int(3)])?.as_int(), Some(-3));
/// assert!(negate(&[]).is_err());
/// # Ok(())
/// # }
/// ```
pub type PackedFunc = Arc<dyn Fn(&[Value]) -> Result<Value, VmError> + Send + Sync>;

/// A Rust function that programs can call by name, and that also receives the runtime of the calling run, with the worker team for
/// parallel loops and the interrupt flag. It cannot call packed functions through the runtime.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant_vm::{LibraryFunc, Value, VmError, get_func, register_library_func};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first: LibraryFunc = Arc::new(|runtime, args| match args {
///     _ if runtime.is_interrupted() => Err(VmError::Interrupted),
///     [first, ..] => Ok(first.clone()),
///     [] => Ok(Value::None),
/// });
/// register_library_func("docs.first", first, true);
/// let first = get_func("docs.first").expect("it is registered");
/// assert_eq!(first(&[Value::Int(1), Value::Int(2)])?.as_int(), Some(1));
/// # Ok(())
/// # }
/// ```
pub type LibraryFunc =
    Arc<dyn Fn(&KernelRuntime, &[Value]) -> Result<Value, VmError> + Send + Sync>;

/// A function that programs call by name: a packed function or a library function.
#[derive(Clone)]
pub(crate) enum HostFunc {
    Packed(PackedFunc),
    Library(LibraryFunc),
}

impl HostFunc {
    /// Calls the function during a run. `runtime` is the runtime that loop functions of the run receive.
    pub(crate) fn call(&self, runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
        match self {
            HostFunc::Packed(func) => func(args),
            HostFunc::Library(func) => {
                let KernelRuntime { call_packed, call, report_error, .. } = KernelRuntime::serial();
                func(&KernelRuntime { call_packed, call, report_error, ..*runtime }, args)
            }
        }
    }

    /// Calls the function outside of a run, with the global worker team. The call cannot be interrupted.
    pub(crate) fn call_outside(&self, args: &[Value]) -> Result<Value, VmError> {
        match self {
            HostFunc::Packed(func) => func(args),
            HostFunc::Library(func) => func(&outside_runtime(), args),
        }
    }

    fn into_packed(self) -> PackedFunc {
        match self {
            HostFunc::Packed(func) => func,
            HostFunc::Library(func) => Arc::new(move |args| func(&outside_runtime(), args)),
        }
    }
}

fn outside_runtime() -> KernelRuntime {
    KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: std::ptr::from_ref(pliant_pool::global()).cast(),
        alloc_workspace,
        free_workspace,
        ..KernelRuntime::serial()
    }
}

static REGISTRY: LazyLock<RwLock<FxHashMap<String, HostFunc>>> = LazyLock::new(RwLock::default);

/// Registers `func` under `name` for VMs created later. Returns false, without any change, if the name is taken and `replace` is
/// false.
pub fn register_func(name: &str, func: PackedFunc, replace: bool) -> bool {
    register(name, HostFunc::Packed(func), replace)
}

/// Registers a library function as [`register_func`] registers a packed function. A library function also receives the worker team
/// and the interrupt flag of the calling run.
pub fn register_library_func(name: &str, func: LibraryFunc, replace: bool) -> bool {
    register(name, HostFunc::Library(func), replace)
}

fn register(name: &str, func: HostFunc, replace: bool) -> bool {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if !replace && registry.contains_key(name) {
        return false;
    }
    let old = registry.insert(name.to_string(), func);
    // Dropping a function may run host code that uses the registry, so release the lock first.
    drop(registry);
    drop(old);
    true
}

/// Returns the function registered under `name`, as a packed function; `None` if the name is not registered.
pub fn get_func(name: &str) -> Option<PackedFunc> {
    find_func(name).map(HostFunc::into_packed)
}

/// Returns the packed or library function registered under `name`; `None` if the name is not registered.
pub(crate) fn find_func(name: &str) -> Option<HostFunc> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Removes the function `name` from the registry. Returns the function, or `None` if the name was
/// not registered.
pub fn unregister_func(name: &str) -> Option<PackedFunc> {
    let func = REGISTRY.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    func.map(HostFunc::into_packed)
}

/// Returns the names of all registered packed and library functions, sorted.
pub fn func_names() -> Vec<String> {
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let mut names: Vec<String> = registry.keys().cloned().collect();
    names.sort_unstable();
    names
}

//! The virtual machine (VM): runs an [`Executable`](pliant_exec::Executable) with inputs of any shape, from any thread.
//!
//! [`VirtualMachine::new`] links the calls of an executable to builtins, packed functions and compiled loop functions.
//! [`invoke`](VirtualMachine::invoke) then runs a function without locks, on register frames that are reused. Every argument,
//! register and result is a [`Value`].
//!
//! The host provides two kinds of functions. A [`PackedFunc`] is a plain callback ([`register_func`]). A [`LibraryFunc`] also
//! receives the VM's worker team and interrupt flag, like a loop function ([`register_library_func`]). Programs look up both by
//! name in the global registry.

mod builtin_args;
mod builtins;
mod callback;
mod context;
mod error;
mod first_use;
mod gc_traverse;
mod instrument;
mod interrupt_flags;
mod link;
mod memory;
mod native_bodies;
mod owner_ids;
mod poison_check;
mod registry;
mod run;
mod tensor_cache;
mod time_limit;
mod value;
mod virtual_machine;

pub use builtin_args::Args;
pub use builtins::builtin_names;
pub use error::{CheckKind, TraceEntry, VmError};
pub use gc_traverse::uniquely_held_objects;
pub use instrument::{CallEvent, CalleeKind, Instrument, InstrumentAction};
pub use link::LoopFuncTable;
pub use memory::{pooled_bytes, release_pooled, set_pool_limit};
pub use registry::{
    LibraryFunc, PackedFunc, func_names, get_func, register_func, register_library_func,
    unregister_func,
};
pub use value::{FuncValue, Object, Tuple, Value};
pub use virtual_machine::{DEFAULT_DEPTH, RunOptions, VirtualMachine, VmOptions, VmStats, WeakVm};

//! The virtual machine (VM). It runs [`Executable`](pliant_exec::Executable)s with any shapes, from
//! any thread.
//!
//! A [`VirtualMachine`] links an executable's calls to builtins, packed functions and compiled loop
//! functions once. Then [`invoke`](VirtualMachine::invoke) runs a function on reusable frames
//! without locks. Values are of type [`Value`]. A host function is a [`PackedFunc`], looked up by
//! name in the global registry ([`register_func`]), or a [`LibraryFunc`], which uses the VM's
//! worker team and can be interrupted like a loop function ([`register_library_func`]).

mod args;
mod builtins;
mod callback;
mod context;
mod error;
mod first_use;
mod instrument;
mod link;
mod machine;
mod memory;
mod native;
mod owner_ids;
mod poison_check;
mod reach;
mod registry;
mod run;
mod spares;
mod stop;
mod time_limit;
mod value;

pub use args::Args;
pub use builtins::builtin_names;
pub use error::{CheckKind, TraceEntry, VmError};
pub use instrument::{CallEvent, CalleeKind, Instrument, InstrumentAction};
pub use link::KernelTable;
pub use machine::{DEFAULT_DEPTH, RunOptions, VirtualMachine, VmOptions, VmStats, WeakMachine};
pub use memory::{pooled_bytes, release_pooled, set_pool_limit};
pub use reach::sole_objects;
pub use registry::{
    LibraryFunc, PackedFunc, func_names, get_func, register_func, register_library_func,
    unregister_func,
};
pub use value::{FuncValue, Object, Tuple, Value};

//! The virtual machine: runs [`Executable`](pliant_exec::Executable)s at every shape, from any thread.
//!
//! One [`VirtualMachine`] links an executable's calls to builtins, packed functions and compiled kernels once; then
//! [`invoke`](VirtualMachine::invoke) runs a function over reusable frames, without locks. A value is a [`Value`]; a
//! function of the host is a [`PackedFunc`], found by name in the global registry ([`register_func`]), or a
//! [`LibraryFunc`], which shares the machine's team and stops with its kernels ([`register_library_func`]).

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
pub use instrument::{CallEvent, Instrument, InstrumentAction};
pub use link::KernelTable;
pub use machine::{DEFAULT_DEPTH, RunOptions, VirtualMachine, VmOptions, VmStats, WeakMachine};
pub use memory::{pooled_bytes, release_pooled, set_pool_limit};
pub use reach::sole_objects;
pub use registry::{
    LibraryFunc, PackedFunc, func_names, get_func, register_func, register_library_func,
    unregister_func,
};
pub use value::{FuncValue, Object, Tuple, Value};

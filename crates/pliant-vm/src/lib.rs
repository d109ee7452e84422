//! The virtual machine (VM): runs an [`Executable`](pliant_exec::Executable) with inputs of any
//! shape, from any thread.
//!
//! [`VirtualMachine::new`] links the calls of an executable to builtins, packed functions and
//! compiled loop functions. [`invoke`](VirtualMachine::invoke) then runs a function without locks,
//! on reused register frames. Every argument, register and result is a [`Value`].
//!
//! The embedding program provides two kinds of functions. A [`PackedFunc`] is a plain callback ([`register_func`]). A
//! [`LibraryFunc`] also receives the VM's worker team and interrupt flag, like a loop function ([`register_library_func`]).
//! Programs look up both kinds by name in the global registry.

mod builtin_operands;
mod builtins;
mod call_instruments;
mod error;
mod executable_linker;
mod gc_traverse;
mod host_function_registry;
mod interpreter;
mod interrupt_flags;
mod loop_function_callbacks;
mod loop_function_code;
mod memory_owner_ids;
mod memory_pool;
mod native_body_runtime;
mod registers_and_frames;
mod run_cancellation;
mod runtime_compilations;
mod runtime_value;
mod tensor_cache;
mod time_limit;
mod uninitialized_read_analysis;
mod uninitialized_result_check;
mod virtual_machine;

pub use builtin_operands::Args;
pub use builtins::builtin_names;
pub use call_instruments::{CallEvent, CalleeKind, Instrument, InstrumentAction};
pub use error::{CheckKind, TraceEntry, VmError};
pub use executable_linker::LoopFuncTable;
pub use gc_traverse::uniquely_held_objects;
pub use host_function_registry::{
    LibraryFunc, PackedFunc, func_names, get_func, register_func, register_library_func,
    unregister_func,
};
pub use memory_pool::{pooled_bytes, release_pooled, set_pool_limit};
pub use run_cancellation::CancelHandle;
pub use runtime_compilations::record_compilation;
pub use runtime_value::{FuncValue, Object, Tuple, Value};
pub use virtual_machine::{DEFAULT_DEPTH, RunOptions, VirtualMachine, VmOptions, VmStats, WeakVm};

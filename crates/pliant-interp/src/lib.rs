//! The reference interpreter: slow and simple, the oracle of the tests.
//!
//! It executes the graph functions and loop functions of a module at any stage of compilation, without running a pass. It is
//! stricter than compiled code: it fills new memory with NaN or a pattern, checks every access against its buffer and every value
//! against the type of its variable, and rejects reads of killed variables. It does not run machine code, so a `T.call_extern` of a
//! registered symbol is an error.
//!
//! | module | contains |
//! |---|---|
//! | [`runtime_values`] | [`Value`]: the arguments and results of functions |
//! | [`packed_functions`] | [`PackedFuncs`]: packed functions of the host |
//! | [`interp_error`] | [`InterpError`]: the error of a run |
//! | `interpreter` | the state of a run: step budget, call depth, global functions |
//! | `graph_functions` | graph functions: bindings, calls, type checks, operators |
//! | `builtins` | the builtins `vm.builtin.*`, which lowered modules call |
//! | `loop_functions` | loop functions: statements, expressions, buffers, calls of kernels and extern functions |
//!
//! ```
//! use pliant_interp::{NoPacked, run};
//! use pliant_ir::IRModule;
//!
//! let error = run(&IRModule::new(), "main", &[], &NoPacked).unwrap_err();
//! assert!(error.to_string().contains("no function 'main'"));
//! ```

mod builtins;
mod graph_functions;
pub mod interp_error;
mod interpreter;
mod loop_functions;
pub mod packed_functions;
pub mod runtime_values;

pub use interp_error::{ErrorKind, InterpError, TraceEntry};
pub use interpreter::{Options, run, run_func, run_with};
pub use packed_functions::{NoPacked, PackedFuncs, PackedTable, assign};
pub use runtime_values::{Func, HostFunc, Value};

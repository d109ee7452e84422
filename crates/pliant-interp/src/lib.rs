//! The reference interpreter: slow and simple, the oracle of the tests.
//!
//! It executes a module at any stage of the build, graph functions and loop functions, without any
//! compiler pass. It is strict where compiled code need not be: new memory is filled with NaN or a
//! pattern, every access is checked against its buffer, both sides of `T.Select`, `and` and `or`
//! are evaluated, every value is checked against the type of its variable, and a killed variable
//! cannot be read. It runs no machine code: a registered symbol for `T.call_extern` is refused.
//!
//! | module | owns |
//! |---|---|
//! | [`value`] | [`Value`]: what functions take and return |
//! | [`packed`] | [`PackedFuncs`]: packed functions of the host |
//! | `machine` | the run: budget of steps, depth, global functions |
//! | `graph` | graph functions: bindings, calls, type checks, operators through their loop functions |
//! | `graph` | graph functions: bindings, calls, type checks, operators through their loop forms |
//! | `builtins` | `vm.builtin.*` as the lowered stages call them |
//! | `loops` | loop functions: statements, expressions, buffers, linked functions |
//!
//! ```
//! use pliant_interp::{NoPacked, run};
//! use pliant_ir::IRModule;
//!
//! let error = run(&IRModule::new(), "main", &[], &NoPacked).unwrap_err();
//! assert!(error.to_string().contains("no function 'main'"));
//! ```

mod builtins;
pub mod error;
mod interpreter;
mod graph;
mod loops;
pub mod packed;
pub mod value;

pub use error::{ErrorKind, InterpError, TraceEntry};
pub use interpreter::{Options, run, run_func, run_with};
pub use packed::{NoPacked, PackedFuncs, PackedTable, assign};
pub use value::{Func, HostFunc, Value};

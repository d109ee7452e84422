//! The executable that the compiler produces and the VM runs, with its file format.
//!
//! An [`Executable`] consists of a function table (bytecode, compiled loop functions, packed functions), a constant table, and an
//! opaque `kernels` section from which the compiler restores machine code. [`ExecBuilder`] creates executables;
//! [`Executable::load`] reads them from a file. Both run the validator, which does not trust its input. [`abi`] specifies the
//! calling convention of loop functions, [`native_body`] that of native function bodies.

pub mod abi;
mod builder;
mod builtins;
mod error;
mod format;
mod listing;
pub mod native_body;
mod program;
mod source_locations;
mod validate;
mod wire;

pub use builder::ExecBuilder;
pub use builtins::{BUILTINS, BuiltinArity, MakeShapeCode, MatchShapeCode, builtin_arity};
pub use error::ExecError;
pub use program::{
    Arg, ArgValue, Constant, EXEC_MODE, Executable, FuncDef, FuncId, Instr, LoopFuncInfo,
    LoopFuncParam, Param, Reg, VmFunction,
};
pub use source_locations::{LineRun, NODE, SourceLocation};
pub use validate::MAX_REGS;

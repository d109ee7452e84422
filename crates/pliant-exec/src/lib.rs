//! The executable, which the compiler passes to the virtual machine, and its file format.
//!
//! An [`Executable`] is a table of functions (bytecode, compiled loop functions, packed functions),
//! a table of constants, and an opaque `kernels` section from which the compiler crates restore
//! machine code. It is built with [`ExecBuilder`] or read from bytes. In both cases the validator
//! checks it without trusting the input. The calling convention of loop functions is in [`abi`],
//! that of native function bodies in [`body`].

pub mod abi;
pub mod body;
mod builder;
mod builtins;
mod error;
mod format;
mod lines;
mod program;
mod text;
mod validate;
mod wire;

pub use builder::ExecBuilder;
pub use builtins::{BUILTINS, BuiltinArity, MakeShapeCode, MatchShapeCode, builtin_arity};
pub use error::ExecError;
pub use lines::{LineRun, NODE, Place};
pub use program::{
    Arg, ArgValue, Constant, EXEC_MODE, Executable, FuncDef, FuncId, Instr, KernelArg, KernelInfo,
    Param, Reg, VmFunction,
};
pub use validate::MAX_REGS;

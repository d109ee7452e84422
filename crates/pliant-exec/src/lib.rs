//! The executable: what the compiler hands to the virtual machine, and the file it is saved in.
//!
//! An [`Executable`] is a table of functions (bytecode, compiled kernels, packed functions), a table of constants and
//! an opaque `kernels` section from which the compiler crates make machine code again. It is built with
//! [`ExecBuilder`] or read from bytes, and either way it has passed the validator, which trusts nothing. The calling
//! convention of kernels is in [`abi`], that of native function bodies in [`body`].

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

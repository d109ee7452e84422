//! The executable that the compiler produces and the VM runs, with its file format.
//!
//! An [`Executable`] consists of a function table (bytecode functions, the signatures of loop functions, the names of builtins and
//! packed functions), a constant table, and the section `kernels`. This section contains the loop functions as script text, which
//! this crate does not interpret. When a file is loaded, the compiler compiles the text again. So an executable contains no machine
//! code.
//!
//! [`ExecBuilder`] creates executables, and [`Executable::load`] reads them from a file. Both run the validator, which does not
//! trust its input. [`abi`] specifies the calling convention of loop functions, [`native_body_abi`] that of native function bodies,
//! and [`ahead_of_time_abi`] the interface of programs that were compiled ahead of time.

pub mod abi;
pub mod ahead_of_time_abi;
mod bytecode_listing;
mod bytecode_program;
mod bytecode_validator;
mod error;
mod executable_builder;
mod file_format;
mod instruction_source_locations;
pub mod native_body_abi;
mod program_serialization;
mod vm_builtin_signatures;

pub use bytecode_program::{
    Arg, ArgValue, Constant, EXEC_MODE, Executable, FuncDef, FuncId, Instr, LoopFuncInfo,
    LoopFuncParam, Param, Reg, VmFunction,
};
pub use bytecode_validator::MAX_REGS;
pub use error::ExecError;
pub use executable_builder::ExecBuilder;
pub use instruction_source_locations::{LineRun, NODE, SourceLocation};
pub use vm_builtin_signatures::{
    BUILTINS, BuiltinArity, MakeShapeCode, MatchShapeCode, builtin_arity,
};

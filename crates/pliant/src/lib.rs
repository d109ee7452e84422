//! Pliant: a tensor compiler for programs whose shapes are known only when they run.
//!
//! A module (parsed from script, or built) is compiled once, with its shapes as symbols, and runs at every shape:
//! - [`compile`] makes a [`CompiledModule`]: bytecode and machine code. It can be saved, loaded and run by
//!   [virtual machines](pliant_vm::VirtualMachine).
//! - [`Model`] is the short face: `Model::compile(module, &options)?.run("main", &args)`.
//! - [`Error`] says whose fault a failure is.
//!
//! This is the crate to depend on; the others are its parts and may change at any time.

mod compile;
mod compiled;
mod error;
mod inspect;
mod kernels;
mod model;
mod options;
mod script;
mod signature;
mod stats;
mod transform;
pub mod vm_codegen;

pub use compile::{build, compile, pass_context};
pub use compiled::CompiledModule;
pub use error::{Error, ErrorKind};
pub use inspect::{print, stage_text, verify};
pub use model::Model;
pub use options::{CompileOptions, ExecMode, Target};
pub use pliant_diag::{Diagnostic, SourceMap};
pub use pliant_exec::Executable;
pub use pliant_ir::{DType, IRModule};
pub use pliant_pass::{CancelToken, DumpIr, Instrument, PassContext, PrintIr, Timing, TimingEntry};
pub use pliant_tensor::Tensor;
pub use pliant_vm::{Value, VirtualMachine, VmError};
pub use script::{Script, parse, parse_file};
pub use signature::{Dim, Signature, ValueInfo, signatures};
pub use stats::{CompileStats, ModelStats};
pub use transform::{PassEntry, PassLevel, find_pass, pass_list, transform};

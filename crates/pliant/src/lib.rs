//! Pliant: a tensor compiler for programs with symbolic shapes.
//!
//! A module (parsed from script, or built) is compiled once, with symbolic shapes, and runs at
//! every shape:
//! - [`compile`] creates a [`CompiledModule`]: bytecode and machine code. It can be saved, loaded
//!   and run by [virtual machines](pliant_vm::VirtualMachine).
//! - [`Model`] is the simple interface: `Model::compile(module, &options)?.run("main", &args)`.
//! - [`Error`] states the cause of a failure.
//!
//! Programs call host functions by name. Packed functions ([`register_func`]) are called from graph
//! functions and, with `T.call_packed`, from loop functions. Native functions on scalars
//! ([`register_symbol`]) are called with `T.call_extern`.
//!
//! [`register_op`] adds an operator that is defined by tensor expressions ([`te`]).
//!
//! Depend only on this crate. The other crates are internal and may change at any time.

mod compile;
mod compiled_module;
mod constant_evaluator;
mod dynamic_operators;
mod error;
mod explain;
pub mod hardware;
mod host;
mod inspect;
mod library_functions;
mod loop_functions;
mod model;
mod options;
mod packed_name_conflicts;
mod profile;
mod program_cache;
mod script;
mod signature;
mod stats;
mod transform;
mod user_op;
pub mod vm_codegen;

pub use compile::{build, compile, pass_context, pipeline};
pub use compiled_module::CompiledModule;
pub use dynamic_operators::operator_programs;
pub use error::{Error, ErrorKind};
pub use explain::Explanation;
pub use inspect::{print, stage_text, verify};
pub use library_functions::{call_library, register_library};
pub use model::Model;
pub use options::{CompileOptions, ExecMode, Pipeline, Target};
pub use pliant_diag::{Diagnostic, SourceMap};
pub use pliant_exec::Executable;
pub use pliant_ir::{AttrValue, Attrs, BaseFunc, DType, IRModule, relax, tir};
pub use pliant_kernels::{ExternTy as SymbolTy, SymbolError, register_symbol};
pub use pliant_onnx as onnx;
pub use pliant_ops::te;
pub use pliant_opt::offload::rules as offload_rules;
pub use pliant_pass::{
    CancelToken, DumpIr, FunctionPass, Instrument, ModulePass, PassContext, PassError, PassInfo,
    PrintIr, Remark, RemarkKind, Sequential, Timing, TimingEntry, Verify,
};
pub use pliant_tensor::memory_reserve::{Allocator, prepare as prepare_for_shortage};
pub use pliant_tensor::{Tensor, held_bytes, memory_limit, set_memory_limit};
pub use pliant_vm::{
    CallEvent, CalleeKind, InstrumentAction, LibraryFunc, PackedFunc, RunOptions, TraceEntry,
    Value, VirtualMachine, VmError, VmOptions, register_func, register_library_func,
};
pub use profile::{CalleeProfile, Profile, profile};
pub use script::{Script, parse, parse_file};
pub use signature::{Dim, Signature, ValueInfo, signatures};
pub use stats::{CompileStats, ModelStats};
pub use transform::{
    PassEntry, PassLevel, find_pass, pass_list, register_pass, transform, unknown_pass,
};
pub use user_op::register_op;

/// The README and the pages of `docs/embed`, whose code runs as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/embed/model.md")]
    mod model {}
    #[doc = include_str!("../../../docs/embed/functions.md")]
    mod functions {}
    #[doc = include_str!("../../../docs/embed/compilation.md")]
    mod compilation {}
}

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
mod compile_and_model_stats;
mod compile_options;
mod compiled_module;
mod constant_evaluator;
mod dynamic_operators;
mod error;
mod function_profile;
pub mod hardware;
mod library_packed_functions;
mod loop_codegen;
mod model;
mod module_inspection;
mod offload_explanation;
mod onnx_host_functions;
mod packed_name_conflicts;
mod pass_registry;
mod program_cache;
mod script_parsing;
mod signature;
mod user_operators;
pub mod vm_codegen;

pub use compile::{build, compile, pass_context, pipeline};
pub use compile_and_model_stats::{CompileStats, ModelStats};
pub use compile_options::{CompileOptions, ExecMode, Pipeline, Target};
pub use compiled_module::CompiledModule;
pub use dynamic_operators::operator_programs;
pub use error::{Error, ErrorKind};
pub use function_profile::{CalleeProfile, Profile, profile};
pub use library_packed_functions::{call_library, register_library};
pub use model::Model;
pub use module_inspection::{print, stage_text, verify};
pub use offload_explanation::Explanation;
pub use pass_registry::{
    PassEntry, PassLevel, find_pass, pass_list, register_pass, transform, unknown_pass,
};
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
pub use script_parsing::{Script, parse, parse_file};
pub use signature::{Dim, Signature, ValueInfo, signatures};
pub use user_operators::register_op;

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

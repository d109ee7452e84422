//! Pliant: a tensor compiler for programs with symbolic shapes.
//!
//! A module (parsed from script, or built) is compiled once, with symbolic shapes, and runs at
//! every shape:
//! - [`compile`] creates a [`CompiledModule`]: bytecode and machine code. It can be saved, loaded
//!   and run by [virtual machines](pliant_vm::VirtualMachine).
//! - [`Model`] is the simple interface: `Model::compile(module, &options)?.run("main", &args)`.
//! - [`Error`] states the cause of a failure.
//!
//! Programs call host functions by name, from graph functions and, with `T.call_packed`, from loop functions. A packed function
//! ([`register_func`]) receives only its arguments. A library function ([`register_library_func`]) also receives the worker team
//! and the interrupt flag of the calling run. Native functions on scalars ([`register_symbol`]) are called with `T.call_extern`.
//!
//! [`register_op`] adds an operator that is defined by tensor expressions ([`te`]).
//!
//! # Examples
//! ```
//! use pliant::{CompileOptions, Model, Tensor, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = r#"
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     return R.add(x, x)
//! "#;
//! let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
//! let model = Model::compile(module, &CompileOptions::default())?;
//! for n in [1usize, 4] {
//!     let x = Tensor::from_slice(&[n as i64], &vec![1.0f32; n])?;
//!     let y = model.run("main", &[Value::Tensor(x)])?;
//!     assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, vec![2.0; n]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! - `cranelift` (default) and `llvm`: the code generators. At least one is required.
//! - `onnx` (default): the import of ONNX models.
//! - `cross`: object files for other architectures than that of the host, with Cranelift.
//!
//! # Stability
//! Depend only on this crate. The other crates are internal and may change at any time.

#[cfg(not(any(feature = "cranelift", feature = "llvm")))]
compile_error!("pliant needs a code generator: enable the feature `cranelift` or `llvm`");

mod ahead_of_time;
#[cfg(all(feature = "cranelift", feature = "llvm"))]
mod background_optimization;
#[cfg(not(all(feature = "cranelift", feature = "llvm")))]
#[path = "no_background_optimization.rs"]
mod background_optimization;
mod call_recorder;
mod compile;
mod compile_and_model_stats;
mod compile_options;
mod compiled_module;
mod constant_evaluator;
#[cfg(feature = "onnx")]
mod deferred_node;
mod dynamic_operators;
mod error;
mod explorer;
mod function_profile;
pub mod hardware;
mod library_host_functions;
mod loop_codegen;
mod model;
mod module_inspection;
mod offload_explanation;
mod packed_name_conflicts;
mod pass_registry;
mod program_cache;
mod script_parsing;
mod signature;
mod user_operators;
pub mod vm_codegen;

pub use ahead_of_time::{Emit, ExportOptions, export_library};
pub use background_optimization::prepare_exit;
pub use call_recorder::CallRecord;
pub use compile::{build, compile, pass_context, pipeline};
pub use compile_and_model_stats::{CompileStats, ModelStats};
pub use compile_options::{CompileOptions, ExecMode, Pipeline, TIER_VARIABLE, Target};
pub use compiled_module::CompiledModule;
pub use dynamic_operators::operator_programs;
pub use error::{Error, ErrorKind};
pub use explorer::Exploration;
pub use function_profile::{CalleeProfile, Profile, machine_peak_flops, profile, profile_cold};
pub use library_host_functions::register_library;
pub use model::Model;
pub use module_inspection::{print, stage_text, verify};
pub use offload_explanation::Explanation;
pub use pass_registry::{
    PassEntry, PassLevel, find_pass, pass_list, register_pass, transform, unknown_pass,
};
pub use pliant_diag::{Diagnostic, SourceMap};
pub use pliant_exec::Executable;
pub use pliant_ir::{AttrValue, Attrs, BaseFunc, DType, IRModule, relax, tir};
/// Registers a native function on scalars for `T.call_extern` in loop functions.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, SymbolTy, Tensor, Value, register_symbol};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// extern "C" fn triple(x: f32) -> f32 {
///     3.0 * x
/// }
///
/// // SAFETY: `triple` has this signature and does not unwind.
/// unsafe { register_symbol("docs_triple", triple as *const (), &[SymbolTy::F32], SymbolTy::F32)? };
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @T.prim_func
///     def f(var_A: T.handle, var_B: T.handle):
///         n = T.int64()
///         A = T.match_buffer(var_A, (n,), "float32")
///         B = T.match_buffer(var_B, (n,), "float32")
///         for i in range(n):
///             with T.block("B"):
///                 v_i = T.axis.spatial(n, i)
///                 B[v_i] = T.call_extern("float32", "docs_triple", A[v_i])
///
///     @R.function
///     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///         n = T.int64()
///         cls = Module
///         y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), "float32"))
///         return y
/// "#;
/// let module = pliant::parse("triple.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, -2.0])?;
/// let y = model.run("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [3.0, -6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_kernels::register_symbol;
pub use pliant_kernels::{ExternTy as SymbolTy, SymbolError};
/// Imports ONNX models; [`Model::from_onnx`] imports and compiles a file in one step.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, Tensor, onnx};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains an ONNX model with the node y = Relu(x), where x has the shape [n].
/// let file = onnx::Model::from_bytes(RELU, onnx::Limits::default())?;
/// let imported = onnx::import(&file, &onnx::ImportOptions::default())?;
/// let model = Model::compile(imported.module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[3], &[-1.0f32, 0.0, 2.0])?;
/// let results = model.run_named(&[("x", x)])?;
/// assert_eq!(results[0].0, "y");
/// let y = results[0].1.as_tensor().expect("a tensor");
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "onnx")]
pub use pliant_onnx as onnx;
pub use pliant_ops::te;
pub use pliant_opt::offload::rules as offload_rules;
/// Writes the module after every pass to a file.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, DumpIr, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let dir = std::env::temp_dir().join(format!("pliant-doc-dump-{}", std::process::id()));
/// let options = CompileOptions {
///     instruments: vec![Arc::new(DumpIr::new(&dir))],
///     ..CompileOptions::default()
/// };
/// compile(module, &options)?;
/// assert!(std::fs::read_to_string(dir.join("00-input.py"))?.contains("R.add(x, x)"));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_pass::DumpIr;
/// Prints the module before or after passes.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, PrintIr, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// // Prints the module to standard error after LegalizeOps.
/// let print = PrintIr { before: false, after: true, only: vec!["LegalizeOps".into()] };
/// let options =
///     CompileOptions { instruments: vec![Arc::new(print)], ..CompileOptions::default() };
/// assert_eq!(compile(module, &options)?.signatures()[0].name, "main");
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_pass::PrintIr;
/// Reports that a pass has rewritten a part of the program, or why it has not.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Remark, RemarkKind, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32")):
///     with R.dataflow():
///         y = R.matmul(x, w)
///         R.output(y)
///     return y
/// "#;
/// let module = pliant::parse("matmul.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let remarks: &[Remark] = &program.stats().explanation.remarks;
/// let packed = remarks.iter().find(|remark| &*remark.rule == "matmul_packed");
/// let packed = packed.expect("a remark on the matmul");
/// assert_eq!(packed.kind, RemarkKind::Missed);
/// assert!(packed.message.contains("not constant"));
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_pass::Remark;
/// Runs several passes in order.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, ModulePass, Sequential, find_pass, pass_context};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let passes = vec![find_pass("EliminateCommonSubexpr")?, find_pass("LegalizeOps")?];
/// let sequence = Sequential::new("short", passes);
/// let lowered = sequence.apply(module, &pass_context(&CompileOptions::default()))?;
/// assert!(pliant::print(&lowered).contains("call_tir"));
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_pass::Sequential;
/// Measures the run time of passes.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, Timing, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let timing = Arc::new(Timing::new());
/// let options = CompileOptions {
///     instruments: vec![timing.clone()],
///     ..CompileOptions::default()
/// };
/// compile(module, &options)?;
/// assert!(timing.entries().iter().any(|entry| entry.name == "LegalizeOps"));
/// assert!(timing.render().contains("LegalizeOps"));
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_pass::Timing;
pub use pliant_pass::{
    CancelToken, FunctionPass, Instrument, ModulePass, PassContext, PassError, PassInfo,
    RemarkKind, TimingEntry, Verify,
};
pub use pliant_runtime::{Dim, Signature, ValueInfo, call_library};
pub use pliant_schedule as schedule;
pub use pliant_tensor::memory_reserve::{Allocator, prepare as prepare_for_shortage};
pub use pliant_tensor::{Tensor, held_bytes, memory_limit, set_memory_limit};
/// Runs a compiled program; [`CompiledModule::vm`] creates it.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Tensor, Value, VirtualMachine, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let vm: VirtualMachine = compile(module, &CompileOptions::default())?.vm()?;
/// assert!(vm.function_names().contains(&"main"));
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = vm.invoke("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// assert_eq!(vm.stats().invocations, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_vm::VirtualMachine;
/// Options of a virtual machine, such as packed functions that only it can call.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, PackedFunc, Tensor, Value, VmError, VmOptions, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let double: PackedFunc = Arc::new(|args: &[Value]| {
///     let x = args[0].as_tensor().ok_or_else(|| VmError::external("x is not a tensor"))?;
///     let doubled: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| 2.0 * v).collect();
///     Ok(Value::Tensor(Tensor::from_slice(x.shape(), &doubled)?))
/// });
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @R.function(pure=False)
///     def main(x: R.Tensor(("n",), "float32")):
///         return R.call_packed("docs.double", x, sinfo_args=R.Tensor((n,), "float32"))
/// "#;
/// let module = pliant::parse("call.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let functions = [("docs.double".to_string(), double)].into_iter().collect();
/// let vm = program.vm_with(VmOptions { functions, ..VmOptions::default() })?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = vm.invoke("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_vm::VmOptions;
/// Registers a Rust function that programs call by name with `R.call_packed`.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, Model, PackedFunc, Tensor, Value, VmError, register_func};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let double: PackedFunc = Arc::new(|args: &[Value]| {
///     let x = args[0].as_tensor().ok_or_else(|| VmError::external("x is not a tensor"))?;
///     let doubled: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| 2.0 * v).collect();
///     Ok(Value::Tensor(Tensor::from_slice(x.shape(), &doubled)?))
/// });
/// assert!(register_func("docs.double", double, true));
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @R.function(pure=False)
///     def main(x: R.Tensor(("n",), "float32")):
///         return R.call_packed("docs.double", x, sinfo_args=R.Tensor((n,), "float32"))
/// "#;
/// let module = pliant::parse("call.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = model.run("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_vm::register_func;
/// Registers a Rust function that can check whether the run that calls it is interrupted.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, LibraryFunc, Model, Tensor, Value, VmError, register_library_func};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let double: LibraryFunc = std::sync::Arc::new(|runtime, args| {
///     if runtime.is_interrupted() {
///         return Err(VmError::Interrupted);
///     }
///     let x = args[0].as_tensor().ok_or_else(|| VmError::external("x is not a tensor"))?;
///     let doubled: Vec<f32> = x.to_vec::<f32>()?.iter().map(|v| 2.0 * v).collect();
///     Ok(Value::Tensor(Tensor::from_slice(x.shape(), &doubled)?))
/// });
/// assert!(register_library_func("docs.double", double, true));
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @R.function(pure=False)
///     def main(x: R.Tensor(("n",), "float32")):
///         return R.call_packed("docs.double", x, sinfo_args=R.Tensor((n,), "float32"))
/// "#;
/// let module = pliant::parse("call.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = model.run("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_vm::register_library_func;
pub use pliant_vm::{
    CallEvent, CalleeKind, InstrumentAction, LibraryFunc, PackedFunc, TraceEntry, Value, VmError,
};
/// Options of one run, such as a time limit or a handle that cancels it.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use pliant::{CompileOptions, Model, RunOptions, Tensor, Value};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let options = RunOptions { time_limit: Some(Duration::from_secs(60)), ..RunOptions::default() };
/// let y = model.run_with("main", &[Value::Tensor(x)], &options)?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Details
pub use pliant_vm::{CancelHandle, RunOptions};
pub use script_parsing::{Script, parse, parse_file};
pub use signature::{signatures, unknown_input_help};
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

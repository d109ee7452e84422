//! [`CompiledModule`]: a program with its machine code, which can be run and saved.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pliant_codegen::CodegenOptions;
use pliant_exec::Executable;
use pliant_ir::IRModule;
use pliant_pass::TimingEntry;
use pliant_runtime::Signature;
use pliant_vm::{LoopFuncTable, VirtualMachine, VmOptions};

use crate::background_optimization::{self, Optimization};
use crate::compile::{Phase, pass_context};
use crate::compile_and_model_stats::CompileStats;
use crate::compile_options::{CompileOptions, Target};
use crate::error::Error;
use crate::loop_codegen;
use crate::offload_explanation::Explanation;

/// A compiled program. Clones share the program.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, CompiledModule, Tensor, Value, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// // `save` and `load` do the same with a file.
/// let loaded = CompiledModule::from_bytes(&program.to_bytes()?)?;
/// assert_eq!(loaded.signatures(), program.signatures());
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = loaded.vm()?.invoke("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CompiledModule(Arc<Inner>);

struct Inner {
    executable: Arc<Executable>,
    kernels: LoopFuncTable,
    module: Option<IRModule>,
    signatures: Vec<Signature>,
    stats: CompileStats,
    threads: Option<usize>,
    /// The code generator that compiled the program.
    first_tier: Target,
    /// The background compilation of the loop functions with LLVM, if there is one.
    optimization: Option<Arc<Optimization>>,
    /// A value that returns free memory to the system when it is dropped. It is the last field of the program, so that the other
    /// fields have already freed their memory.
    trim: Trim,
}

/// Whether dropping a module returns free memory to the system. It does not for the many small
/// modules that compilations and runs create internally.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDrop {
    Trim,
    Keep,
}

struct Trim(OnDrop);

impl Drop for Trim {
    fn drop(&mut self) {
        if self.0 == OnDrop::Trim {
            pliant_pool::trim();
        }
    }
}

impl CompiledModule {
    pub(crate) fn new(
        (executable, kernels, module): (Executable, LoopFuncTable, Option<IRModule>),
        signatures: Vec<Signature>,
        stats: CompileStats,
        threads: Option<usize>,
        on_drop: OnDrop,
        (first_tier, optimization): (Target, Option<Arc<Optimization>>),
    ) -> Self {
        let executable = Arc::new(executable);
        CompiledModule(Arc::new(Inner {
            executable,
            kernels,
            module,
            signatures,
            stats,
            threads,
            first_tier,
            optimization,
            trim: Trim(on_drop),
        }))
    }

    /// Waits until the background compilation of the program with LLVM has finished. It skips functions without loops and very
    /// large ones. Returns immediately if there is no background compilation, because the target is not [`Target::Auto`], the build
    /// does not contain LLVM, or the process is a forked child.
    pub fn wait_optimized(&self) {
        while !self.wait_optimized_timeout(Duration::from_secs(3600)) {}
    }

    /// Waits at most for `timeout` until the background compilation of the program with LLVM has finished. Returns whether it has
    /// finished.
    pub fn wait_optimized_timeout(&self, timeout: Duration) -> bool {
        self.0.optimization.as_ref().is_none_or(|optimization| optimization.wait(timeout))
    }

    /// Returns the name of the code generator whose code runs: `"cranelift"`, or `"llvm"` once LLVM has compiled all loop
    /// functions, except functions without loops and very large ones.
    pub fn tier(&self) -> &'static str {
        let optimized = self.0.optimization.as_ref().is_some_and(|o| o.has_succeeded());
        if optimized { "llvm" } else { self.0.first_tier.name() }
    }

    /// Whether LLVM is still compiling loop functions of the program in the background, or will compile them.
    pub fn is_optimizing(&self) -> bool {
        self.0.optimization.as_ref().is_some_and(|o| !o.is_finished())
    }

    /// Returns the executable: bytecode, constants and the encoded loop functions.
    pub fn executable(&self) -> &Arc<Executable> {
        &self.0.executable
    }

    /// Returns the machine code of the loop functions.
    pub fn kernels(&self) -> &LoopFuncTable {
        &self.0.kernels
    }

    /// Returns the module after the last pass; `None` if the program was loaded from a file.
    pub fn module(&self) -> Option<&IRModule> {
        self.0.module.as_ref()
    }

    /// Returns the signatures of the public functions, with the symbols of the source program.
    pub fn signatures(&self) -> &[Signature] {
        &self.0.signatures
    }

    /// Returns the signature of the public function with this name.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.0.signatures.iter().find(|s| s.name == name)
    }

    /// Returns statistics of the compilation.
    pub fn stats(&self) -> &CompileStats {
        &self.0.stats
    }

    /// Creates a VM that runs the program.
    ///
    /// # Errors
    /// `Runtime` if host functions are not registered; the error names them.
    pub fn vm(&self) -> Result<VirtualMachine, Error> {
        let team = self.0.threads.and_then(pliant_pool::shared_team);
        self.vm_with(VmOptions { team, ..VmOptions::default() })
    }

    /// Creates a VM that runs the program, with options such as packed functions that only this VM can call.
    ///
    /// # Errors
    /// The errors of [`vm`](Self::vm).
    pub fn vm_with(&self, options: VmOptions) -> Result<VirtualMachine, Error> {
        crate::library_host_functions::register_library();
        let (executable, kernels) = (self.0.executable.clone(), self.0.kernels.clone());
        let trim = self.0.trim.0 == OnDrop::Trim;
        Ok(VirtualMachine::with_options(executable, kernels, VmOptions { trim, ..options })?)
    }

    /// Writes the program to a file that [`load`](Self::load) reads on any machine. An existing
    /// file is replaced atomically, so that programs loaded from it remain valid.
    ///
    /// # Errors
    /// `Executable` if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(self.0.executable.save(path.as_ref())?)
    }

    /// Returns the program as bytes, in the format that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// `Executable` if it cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.0.executable.to_bytes()?)
    }

    /// Maps a program file into memory and compiles its loop functions for this machine. The file
    /// must not be modified while the program exists, since the program reads its weights from the
    /// mapping; [`save`](Self::save) may replace the file.
    ///
    /// # Errors
    /// `Executable` if the file cannot be read, is damaged or is not a saved program.
    pub fn load(path: impl AsRef<Path>) -> Result<CompiledModule, Error> {
        let phase = Phase::start("ReadFile");
        let path = path.as_ref();
        let executable = Executable::load(path)?;
        Self::compile_kernels(executable, vec![phase.end()]).map_err(|error| match error {
            Error::Executable(error) => Error::Executable(error.in_file(path)),
            other => other,
        })
    }

    /// Loads a program from bytes that [`to_bytes`](Self::to_bytes) returned, as
    /// [`load`](Self::load) does from a file.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn from_bytes(bytes: &[u8]) -> Result<CompiledModule, Error> {
        let phase = Phase::start("ReadBytes");
        let executable = Executable::from_bytes(bytes)?;
        Self::compile_kernels(executable, vec![phase.end()])
    }

    /// Creates a program from an executable, whose loop functions are compiled for this machine.
    ///
    /// # Errors
    /// `Executable` if its loop functions do not match the calls in its bytecode.
    pub fn from_executable(executable: Executable) -> Result<CompiledModule, Error> {
        Self::compile_kernels(executable, Vec::new())
    }

    /// Compiles the loop functions of an executable. `phases` are the compilation phases timed so
    /// far.
    fn compile_kernels(
        mut executable: Executable,
        mut phases: Vec<TimingEntry>,
    ) -> Result<CompiledModule, Error> {
        let options = CodegenOptions::default();
        let target = Target::Auto.first_tier()?;
        let backend = loop_codegen::backend(target);
        let phase = Phase::start("ReadKernels");
        let loop_functions = loop_codegen::decode(&executable)?;
        phases.push(phase.end());
        let phase = Phase::start("LowerLoops");
        let lowered = loop_codegen::lower(
            &loop_functions,
            &pass_context(&CompileOptions::default()),
            &*backend,
        )?;
        phases.push(phase.end());
        let phase = Phase::start("MachineCode");
        let compiled = loop_codegen::compile(&lowered, &*backend, &options)?;
        loop_codegen::adopt_recompiled(&mut executable, &loop_functions, &compiled)?;
        let kernels = compiled.len();
        let mut table = loop_codegen::kernel_table(compiled, &loop_functions);
        let optimization =
            background_optimization::start(Target::Auto, &loop_functions, &mut table)?;
        phases.push(phase.end());
        let phase = Phase::start("FunctionBodies");
        loop_codegen::add_bodies(&mut table, &executable, &options)?;
        phases.push(phase.end());
        let stats = CompileStats {
            total: phases.iter().map(|p| p.duration).sum(),
            phases,
            functions: executable.vm_functions().count(),
            kernels,
            explanation: Explanation::default(),
        };
        let signatures = executable
            .metadata()
            .get("signatures")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let on_drop = OnDrop::Trim;
        let parts = (executable, table, None);
        Ok(CompiledModule::new(parts, signatures, stats, None, on_drop, (target, optimization)))
    }
}

//! [`Model`]: a compiled program together with a VM that runs it, the simple interface of Pliant.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_diag::SourceMap;
use pliant_ir::IRModule;
use pliant_onnx::{ImportOptions, Limits};
use pliant_tensor::Tensor;
use pliant_vm::{RunOptions, Value, VirtualMachine};

use crate::compile::compile;
use crate::compile_and_model_stats::ModelStats;
use crate::compile_options::CompileOptions;
use crate::compiled_module::CompiledModule;
use crate::error::Error;
use crate::signature::{Signature, ValueInfo};

/// A compiled program and a VM that runs it, callable from any thread.
pub struct Model {
    compiled: CompiledModule,
    vm: VirtualMachine,
    runs: AtomicU64,
}

impl Model {
    /// Compiles a module and creates a VM for it.
    ///
    /// # Errors
    /// As [`compile`]; `Runtime` if packed functions are not registered.
    pub fn compile(module: IRModule, options: &CompileOptions) -> Result<Model, Error> {
        Self::new(compile(module, options)?)
    }

    /// Compiles an ONNX model. Its symbolic dims stay symbolic. External data is read from the
    /// folder of the model file. The files must not change while the model exists, since its
    /// weights are mapped into memory, not copied.
    ///
    /// # Errors
    /// All problems that prevent the import of the model; otherwise as [`compile`].
    pub fn from_onnx(path: impl AsRef<Path>, options: &CompileOptions) -> Result<Model, Error> {
        let file = pliant_onnx::Model::open(path.as_ref(), Limits::default())?;
        let mut sources = SourceMap::new();
        let imported = pliant_onnx::import_with(&file, &ImportOptions::default(), &mut sources)?;
        let options = CompileOptions { sources: Some(Arc::new(sources)), ..options.clone() };
        Self::compile(imported.module, &options)
    }

    /// Loads a program that [`CompiledModule::save`] wrote.
    ///
    /// # Errors
    /// As [`CompiledModule::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Model, Error> {
        Self::new(CompiledModule::load(path)?)
    }

    /// Creates a model from a compiled program.
    ///
    /// # Errors
    /// `Runtime` if packed functions are not registered; the error names them.
    pub fn new(compiled: CompiledModule) -> Result<Model, Error> {
        let vm = compiled.vm()?;
        Ok(Model { compiled, vm, runs: AtomicU64::new(0) })
    }

    /// Runs a function of the program.
    ///
    /// # Errors
    /// `Runtime`, with a message that names the function, the parameter and the symbol.
    pub fn run(&self, function: &str, args: &[Value]) -> Result<Value, Error> {
        self.run_with(function, args, &RunOptions::default())
    }

    /// As [`run`](Self::run), with options.
    ///
    /// # Errors
    /// As [`run`](Self::run); `TimeLimit` if the run exceeds its time limit.
    pub fn run_with(
        &self,
        function: &str,
        args: &[Value],
        options: &RunOptions,
    ) -> Result<Value, Error> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(self.vm.invoke_with(function, args, options)?)
    }

    /// Runs the entry function on inputs given by name. Returns the results with their names in the
    /// imported file; the names are empty if the model was not imported.
    ///
    /// # Errors
    /// `User` if an input is missing or unknown; otherwise as [`run`](Self::run).
    pub fn run_named(&self, feeds: &[(&str, Tensor)]) -> Result<Vec<(String, Value)>, Error> {
        self.run_named_with(feeds, &RunOptions::default())
    }

    /// As [`run_named`](Self::run_named), with options.
    ///
    /// # Errors
    /// As [`run_named`](Self::run_named); `TimeLimit` if the run exceeds its time limit.
    pub fn run_named_with(
        &self,
        feeds: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Value)>, Error> {
        let signature = self.entry().and_then(|name| self.signature(name));
        let signature = signature.ok_or_else(|| {
            Error::option("the model has no function 'main'", "call a function by name with `run`")
        })?;
        let names = signature.feed_names();
        if let Some((name, _)) = feeds.iter().find(|(n, _)| !names.contains(n)) {
            let help = signature.unknown_input_help(name);
            return Err(Error::option(
                format!("a value is passed for '{name}', but there is no input '{name}'"),
                help,
            ));
        }
        let feed = |name: &&str| {
            let value = feeds.iter().find(|(n, _)| n == name).map(|(_, t)| t.clone());
            let missing = || {
                Error::option(
                    format!("the value of input '{name}' is missing"),
                    "pass a tensor for this input",
                )
            };
            value.map(Value::Tensor).ok_or_else(missing)
        };
        let args = names.iter().map(feed).collect::<Result<Vec<Value>, Error>>()?;
        let result = self.run_with(&signature.name, &args, options)?;
        let outputs = &signature.output_names;
        Ok(match result.as_tuple() {
            Some(fields) if outputs.len() != 1 => {
                let name = |i: usize| outputs.get(i).cloned().unwrap_or_default();
                fields.iter().enumerate().map(|(i, v)| (name(i), v.clone())).collect()
            }
            _ => vec![(outputs.first().cloned().unwrap_or_default(), result)],
        })
    }

    /// Returns the name of the entry function: `main`, or the only public function.
    pub fn entry(&self) -> Option<&str> {
        let all = self.compiled.signatures();
        match all {
            [one] => Some(&one.name),
            _ => all.iter().find(|s| s.name == "main").map(|s| &*s.name),
        }
    }

    /// Returns the inputs of the entry function, with symbolic dims as expressions.
    pub fn inputs(&self) -> &[ValueInfo] {
        self.entry().and_then(|name| self.signature(name)).map_or(&[], |s| &s.inputs)
    }

    /// Returns the signature of the public function with this name.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.compiled.signature(name)
    }

    /// Returns the compiled program of the model.
    pub fn compiled(&self) -> &CompiledModule {
        &self.compiled
    }

    /// Returns the VM that runs the program.
    pub fn vm(&self) -> &VirtualMachine {
        &self.vm
    }

    /// Returns statistics of the model: how often it was compiled (once, regardless of the shapes
    /// at which it ran), and how often it ran.
    pub fn stats(&self) -> ModelStats {
        ModelStats { compilations: 1, runs: self.runs.load(Ordering::Relaxed) }
    }
}

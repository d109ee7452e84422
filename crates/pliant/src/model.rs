//! [`Model`]: the short face of a compiled program.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_ir::IRModule;
use pliant_vm::{Value, VirtualMachine};

use crate::compile::compile;
use crate::compiled::CompiledModule;
use crate::error::Error;
use crate::options::CompileOptions;
use crate::signature::{Signature, ValueInfo};
use crate::stats::ModelStats;

/// A compiled program and a machine that runs it, callable from any thread.
pub struct Model {
    compiled: CompiledModule,
    vm: VirtualMachine,
    runs: AtomicU64,
}

impl Model {
    /// Compiles a module.
    ///
    /// # Errors
    /// As [`compile`]; `Runtime` naming packed functions that are not registered.
    pub fn compile(module: IRModule, options: &CompileOptions) -> Result<Model, Error> {
        Self::new(compile(module, options)?)
    }

    /// Loads a saved program.
    ///
    /// # Errors
    /// As [`CompiledModule::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Model, Error> {
        Self::new(CompiledModule::load(path)?)
    }

    /// A model of a compiled program.
    ///
    /// # Errors
    /// `Runtime` naming packed functions that are not registered.
    pub fn new(compiled: CompiledModule) -> Result<Model, Error> {
        let vm = compiled.vm()?;
        Ok(Model { compiled, vm, runs: AtomicU64::new(0) })
    }

    /// Runs a function.
    ///
    /// # Errors
    /// `Runtime`, with a message that names the function, the parameter and the symbol.
    pub fn run(&self, function: &str, args: &[Value]) -> Result<Value, Error> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(self.vm.invoke(function, args)?)
    }

    /// The function that is run when none is named: `main`, else the only one.
    pub fn entry(&self) -> Option<&str> {
        let all = self.compiled.signatures();
        match all {
            [one] => Some(&one.name),
            _ => all.iter().find(|s| s.name == "main").map(|s| &*s.name),
        }
    }

    /// What the entry function takes, with symbolic dims as expressions.
    pub fn inputs(&self) -> &[ValueInfo] {
        self.entry().and_then(|name| self.signature(name)).map_or(&[], |s| &s.inputs)
    }

    /// The signature of a function.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.compiled.signature(name)
    }

    /// The program.
    pub fn compiled(&self) -> &CompiledModule {
        &self.compiled
    }

    /// The machine.
    pub fn vm(&self) -> &VirtualMachine {
        &self.vm
    }

    /// What the model has done: it was compiled once, whatever the shapes it ran at.
    pub fn stats(&self) -> ModelStats {
        ModelStats { compilations: 1, runs: self.runs.load(Ordering::Relaxed) }
    }
}

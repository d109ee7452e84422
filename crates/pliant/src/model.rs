//! [`Model`]: a compiled program together with a VM that runs it, the simple interface of Pliant.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_ir::IRModule;
use pliant_runtime::{NamedInputError, Signature, ValueInfo, entry_function};
use pliant_tensor::Tensor;
use pliant_vm::{RunOptions, Value, VirtualMachine};

use crate::compile::compile;
use crate::compile_and_model_stats::ModelStats;
use crate::compile_options::CompileOptions;
use crate::compiled_module::CompiledModule;
use crate::error::Error;
use crate::signature::unknown_input_help;

/// A compiled program and a VM that runs it, callable from any thread.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, Tensor, Value};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// for n in [1usize, 4] {
///     let x = Tensor::from_slice(&[n as i64], &vec![1.0f32; n])?;
///     let y = model.run("main", &[Value::Tensor(x)])?;
///     assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, vec![2.0; n]);
/// }
/// assert_eq!((model.stats().compilations, model.stats().runs), (1, 2));
/// # Ok(())
/// # }
/// ```
pub struct Model {
    compiled: CompiledModule,
    vm: VirtualMachine,
    runs: AtomicU64,
}

impl Model {
    /// Compiles a module and creates a VM for it.
    ///
    /// # Errors
    /// The errors of [`compile`], or `Runtime` if host functions are not registered.
    pub fn compile(module: IRModule, options: &CompileOptions) -> Result<Model, Error> {
        Self::new(compile(module, options)?)
    }

    /// Compiles an ONNX model. Its symbolic dims stay symbolic. External data is read from the
    /// folder of the model file. The files must not change while the model exists, since its
    /// weights are mapped into memory, not copied.
    ///
    /// # Examples
    /// ```
    /// use pliant::{CompileOptions, Model, Tensor};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # // A model with one node, y = Relu(x), where x has the shape [n].
    /// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
    /// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
    /// # let path = std::env::temp_dir().join(format!("pliant-doc-{}.onnx", std::process::id()));
    /// # std::fs::write(&path, RELU)?;
    /// // A model file with the node y = Relu(x), where x has the shape [n].
    /// let model = Model::from_onnx(&path, &CompileOptions::default())?;
    /// for n in [2, 3] {
    ///     let x = Tensor::from_slice(&[n], &vec![-1.0f32; n as usize])?;
    ///     let results = model.run_named(&[("x", x)])?;
    ///     assert_eq!(results[0].0, "y");
    ///     assert_eq!(results[0].1.as_tensor().expect("a tensor").shape(), [n]);
    /// }
    /// # drop(model);
    /// # std::fs::remove_file(&path)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// All problems that prevent the import of the model, or else the errors of [`compile`].
    #[cfg(feature = "onnx")]
    pub fn from_onnx(path: impl AsRef<Path>, options: &CompileOptions) -> Result<Model, Error> {
        let file = pliant_onnx::Model::open(path.as_ref(), pliant_onnx::Limits::default())?;
        let mut sources = pliant_diag::SourceMap::new();
        let import = pliant_onnx::ImportOptions::default();
        let imported = pliant_onnx::import_with(&file, &import, &mut sources)?;
        let options =
            CompileOptions { sources: Some(std::sync::Arc::new(sources)), ..options.clone() };
        Self::compile(imported.module, &options)
    }

    /// Loads a program that [`CompiledModule::save`] wrote.
    ///
    /// # Errors
    /// The errors of [`CompiledModule::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Model, Error> {
        Self::new(CompiledModule::load(path)?)
    }

    /// Creates a model from a compiled program.
    ///
    /// # Errors
    /// `Runtime` if host functions are not registered; the error names them.
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

    /// Runs a function of the program, with options such as a time limit.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use pliant::{CompileOptions, ErrorKind, Model, RunOptions, Tensor, Value};
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
    /// let options = RunOptions { time_limit: Some(Duration::ZERO), ..RunOptions::default() };
    /// let error = model.run_with("main", &[Value::Tensor(x)], &options).expect_err("no time");
    /// assert_eq!(error.kind(), ErrorKind::TimeLimit);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), or `TimeLimit` if the run exceeds its time limit.
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
    /// # Examples
    /// ```
    /// use pliant::{CompileOptions, Model, Tensor};
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
    /// let results = model.run_named(&[("x", x)])?;
    /// let y = results[0].1.as_tensor().expect("a tensor");
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `User` if an input is missing or unknown, or else the errors of [`run`](Self::run).
    pub fn run_named(&self, feeds: &[(&str, Tensor)]) -> Result<Vec<(String, Value)>, Error> {
        self.run_named_with(feeds, &RunOptions::default())
    }

    /// Runs the entry function on inputs given by name, with options such as a time limit. Returns the results with their names in
    /// the imported file; the names are empty if the model was not imported.
    ///
    /// # Errors
    /// The errors of [`run_named`](Self::run_named), or `TimeLimit` if the run exceeds its time limit.
    pub fn run_named_with(
        &self,
        feeds: &[(&str, Tensor)],
        options: &RunOptions,
    ) -> Result<Vec<(String, Value)>, Error> {
        let signature = self.entry().and_then(|name| self.signature(name));
        let signature = signature.ok_or_else(|| {
            Error::option("the model has no function 'main'", "call a function by name with `run`")
        })?;
        let args = signature.arguments(feeds).map_err(|error| match error {
            NamedInputError::Unknown(name) => Error::option(
                format!("a value is passed for '{name}', but there is no input '{name}'"),
                unknown_input_help(signature, &name),
            ),
            NamedInputError::Missing(name) => Error::option(
                format!("the value of input '{name}' is missing"),
                "pass a tensor for this input",
            ),
            NamedInputError::Tensor(error) => Error::Runtime(error.into()),
        })?;
        Ok(signature.named_results(self.run_with(&signature.name, &args, options)?))
    }

    /// Returns the name of the entry function: `main`, or the only public function.
    pub fn entry(&self) -> Option<&str> {
        entry_function(self.compiled.signatures()).map(|signature| &*signature.name)
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

    /// Returns statistics of the model: the number of programs that were compiled for it (1, plus
    /// those that its runs compiled), and how often it ran.
    pub fn stats(&self) -> ModelStats {
        let compilations = 1 + self.vm.stats().compilations;
        ModelStats { compilations, runs: self.runs.load(Ordering::Relaxed) }
    }
}

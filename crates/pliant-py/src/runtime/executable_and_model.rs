//! `Executable`: a compiled program. `Model`: a simpler interface to a compiled program.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pliant::Signature;
use pliant::{CancelToken, CompileOptions, CompiledModule, Pipeline};
use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::AttrValue;
use pliant_pass::pass_settings::{KERNELS, PRECISION};
use pliant_vm::RunOptions;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::ir_module::IRModule;
use crate::runtime::ctrl_c_interrupts::{CompileGuard, poll_signals};
use crate::runtime::model_description::{InputInfo, ModelStats};
use crate::runtime::named_inputs_outputs;
use crate::runtime::preallocated_outputs::{OUT, OutputArrays};
use crate::runtime::profile::Profile;
use crate::runtime::run_options::{CANCEL, TIMEOUT, run_options};
use crate::runtime::virtual_machine::{MonitoredVm, VMFunction};
use crate::source_texts::with_sources;
use crate::transform::pass_context;
use crate::transform::python_pass::to_pass;

/// A compiled program: bytecode, constants and machine code.
#[pyclass(frozen, module = "pliant.relax", weakref)]
pub struct Executable {
    /// The compiled program.
    pub compiled: CompiledModule,
}

#[pymethods]
impl Executable {
    /// Returns the bytecode as text.
    fn as_text(&self) -> String {
        self.compiled.executable().as_text()
    }

    /// Returns the bytecode as a Python program that builds the executable with `ExecBuilder`.
    fn as_python(&self) -> String {
        self.compiled.executable().as_python()
    }

    /// Returns the numbers of functions, constants and registers as text.
    fn stats(&self) -> String {
        self.compiled.executable().stats()
    }

    /// Returns the duration of each compilation phase as a table.
    fn timing(&self) -> String {
        self.compiled.stats().render()
    }

    /// Returns the module after the last pass, or `None` for a loaded program.
    #[getter]
    fn module(&self) -> Option<IRModule> {
        self.compiled.module().cloned().map(IRModule::wrap)
    }

    /// Returns the names of the callable functions.
    #[getter]
    fn function_names(&self) -> Vec<String> {
        self.compiled.executable().vm_functions().map(|f| f.name.clone()).collect()
    }

    /// Writes the program to a file. `pliant.runtime.load_module` reads it.
    fn export_library(&self, py: Python<'_>, file_name: PathBuf) -> Result<()> {
        run_detached(py, || Ok(self.compiled.save(&file_name)?))
    }

    /// Writes the program to a file, as `export_library` does.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.export_library(py, path)
    }

    /// Returns the program as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        let bytes = run_detached(py, || Ok(self.compiled.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads a program from a file that `export_library` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Result<Executable> {
        let compiled = run_detached(py, || Ok(CompiledModule::load(&path)?))?;
        Ok(Executable { compiled })
    }

    /// Reads a program from bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Executable> {
        let compiled = run_detached(py, || Ok(CompiledModule::from_bytes(data)?))?;
        Ok(Executable { compiled })
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> =
            self.compiled.executable().vm_functions().map(|f| &*f.name).collect();
        format!("<pliant.Executable: {}>", names.join(", "))
    }
}

/// Converts Python keyword arguments to compile options.
///
/// # Errors
/// If an option is unknown or has an invalid value.
pub fn compile_options(py: Python<'_>, kwargs: &Bound<'_, PyDict>) -> Result<CompileOptions> {
    let text = |key: &str, default: &str| -> Result<String> {
        match kwargs.get_item(key)? {
            Some(v) if !v.is_none() => Ok(v.str()?.to_string()),
            _ => Ok(default.to_string()),
        }
    };
    let (mut options, notes) =
        CompileOptions::from_names(&text("target", "auto")?, &text("exec_mode", "bytecode")?)?;
    if kwargs.get_item("verbose")?.is_some_and(|v| v.is_truthy().unwrap_or(false)) {
        for note in notes {
            PyErr::warn(
                py,
                &py.get_type::<pyo3::exceptions::PyUserWarning>(),
                &c_string(&note),
                2,
            )?;
        }
    }
    for (key, value) in kwargs {
        let key: String = key.extract()?;
        if value.is_none() {
            continue;
        }
        match &*key {
            "target" | "exec_mode" | "verbose" | "context" => {}
            "pipeline" => options.pipeline = Some(pipeline(&value, kwargs)?),
            "kernels" => {
                let on = kernels_enabled(&value)?;
                options.config.insert(KERNELS.into(), AttrValue::Bool(on));
            }
            "precision" => {
                let name = precision(&value)?;
                options.config.insert(PRECISION.into(), AttrValue::Str(name.into()));
            }
            "threads" => options.threads = Some(extract_option(&key, &value)?),
            "opt_level" => options.opt_level = Some(extract_option(&key, &value)?),
            "disabled_passes" => options.disabled_passes = extract_option(&key, &value)?,
            "required_passes" => options.required_passes = extract_option(&key, &value)?,
            "verify" => options.verify = Some(extract_option(&key, &value)?),
            "seconds" => options.time = Some(compile_time_limit(&value)?),
            "dump_dir" => options.dump_dir = Some(extract_option(&key, &value)?),
            _ => return Err(unknown_option(&key)),
        }
    }
    if let Some(context) = kwargs.get_item("context")? {
        pass_context::copy_settings(&mut options, &context)?;
    }
    options.cancel = CancelToken::with_poll(poll_signals);
    options.sources = Some(Arc::new(with_sources(|sources| sources.clone())));
    Ok(options)
}

/// Reads the option that allows or forbids library kernels.
fn kernels_enabled(value: &Bound<'_, PyAny>) -> Result<bool> {
    let name: String = extract_option("kernels", value)?;
    match &*name {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => {
            Err(Error::Value(format!("option 'kernels' must be \"on\" or \"off\", not \"{name}\"")))
        }
    }
}

/// Reads the option for the data type to which constant right operands of matrix products are
/// rounded.
fn precision(value: &Bound<'_, PyAny>) -> Result<&'static str> {
    let name: String = extract_option("precision", value)?;
    match &*name {
        "f32" | "float32" => Ok("float32"),
        "bf16" | "bfloat16" => Ok("bfloat16"),
        _ => Err(Error::Value(format!(
            "option 'precision' must be \"f32\" or \"bf16\", not \"{name}\""
        ))),
    }
}

/// Reads the option for the time limit of the compilation.
fn compile_time_limit(value: &Bound<'_, PyAny>) -> Result<Duration> {
    let seconds: f64 = extract_option("seconds", value)?;
    let invalid = |_| {
        Error::Value(format!(
            "option 'seconds' must be a non-negative number of seconds, not {seconds}"
        ))
    };
    Duration::try_from_secs_f64(seconds).map_err(invalid)
}

/// Converts the value of an option. If it has the wrong type, the error contains the name of the
/// option.
fn extract_option<'py, T: FromPyObjectOwned<'py>>(
    key: &str,
    value: &Bound<'py, PyAny>,
) -> Result<T> {
    value.extract::<T>().map_err(|e| {
        let e: PyErr = e.into();
        Error::Type(format!("the value of option '{key}' is invalid: {}", e.value(value.py())))
    })
}

/// Returns the passes to be run: a pipeline given by name, or passes for the pass manager.
fn pipeline(value: &Bound<'_, PyAny>, kwargs: &Bound<'_, PyDict>) -> Result<Pipeline> {
    match (value.extract::<String>(), kwargs.get_item("context")?) {
        (Ok(name), _) => Ok(Pipeline::Named(name)),
        (Err(_), Some(context)) => Ok(Pipeline::Passes(to_pass(value, &context)?)),
        (Err(_), None) => Err(Error::Type(format!(
            "option 'pipeline' must be the name of a pipeline (str), got {}: passes are accepted only with option 'context', the \
             pliant.transform.PassContext under which they run",
            value.get_type().name()?
        ))),
    }
}

/// The interval at which a wait for background compilations checks for signals such as Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

const OPTIONS: &[&str] = &[
    "config",
    "disabled_passes",
    "dump_dir",
    "exec_mode",
    "instruments",
    "kernels",
    "opt_level",
    "pipeline",
    "precision",
    "required_passes",
    "seconds",
    "target",
    "threads",
    "verbose",
    "verify",
];

/// Options of `pliant.compile` that apply to ONNX models only. Python code removes them before it calls this crate.
const ONNX_OPTIONS: &[&str] =
    &["allow_specialization", "divisible", "dynamic_shapes", "limits", "strict"];

fn unknown_option(key: &str) -> Error {
    let all = || OPTIONS.iter().chain(ONNX_OPTIONS).copied();
    let hint = did_you_mean(key, all()).unwrap_or_else(|| {
        let (general, onnx) = (OPTIONS.join(", "), ONNX_OPTIONS.join(", "));
        format!("the options are {general}; for ONNX models also {onnx}")
    });
    Error::Type(format!("there is no compile option '{key}' ({hint})"))
}

fn c_string(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Compiles a module with the options in the keyword arguments.
#[pyfunction]
pub fn compile_module(
    py: Python<'_>,
    module: &Bound<'_, IRModule>,
    kwargs: &Bound<'_, PyDict>,
) -> Result<Executable> {
    let options = compile_options(py, kwargs)?;
    module.get().check_complete()?;
    let module = module.get().snapshot();
    let compiled = run_detached(py, || {
        let _compiling = CompileGuard::begin();
        Ok(pliant::compile(module, &options)?)
    })?;
    Ok(Executable { compiled })
}

/// A compiled model. Calling it runs the model, with inputs of any valid shape.
#[pyclass(frozen, subclass, module = "pliant", weakref)]
pub struct Model {
    compiled: CompiledModule,
    monitored: Arc<MonitoredVm>,
    entry: Option<u32>,
    entry_name: String,
    runs: AtomicU64,
    /// The importer's report on symbolic sizes, if the model was imported from ONNX.
    shapes: Option<String>,
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (executable, shapes=None))]
    fn new(executable: &Bound<'_, Executable>, shapes: Option<String>) -> Result<Self> {
        let compiled = executable.get().compiled.clone();
        let monitored = MonitoredVm::new(compiled.vm()?);
        let signatures = compiled.signatures();
        if signatures.is_empty() {
            return Err(Error::Compile(
                "the module has no graph function to call (help: call its loop functions from an R.function, with \
                 R.call_tir)"
                    .into(),
            ));
        }
        let entry_name = match signatures {
            [one] => one.name.clone(),
            _ => signatures
                .iter()
                .find(|s| s.name == "main")
                .map_or_else(String::new, |s| s.name.clone()),
        };
        let entry = monitored.vm.index_of(&entry_name).ok();
        Ok(Model { compiled, monitored, entry, entry_name, runs: AtomicU64::new(0), shapes })
    }

    /// Runs the model. Keyword arguments are inputs by name. `timeout` is the time limit of the run in seconds; a run
    /// that exceeds it raises `TimeLimitError`. `cancel` is a `CancelToken` that stops the run from another thread. `out`
    /// has arrays
    /// to which the results are copied: one array, or a tuple with an array or `None` for each result; they are returned. If an
    /// input has one of these names, the keyword passes that input, and `run` accepts the option.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let Some(index) = self.entry else { return Err(self.no_entry_error()) };
        self.runs.fetch_add(1, Ordering::Relaxed);
        let Some(kwargs) = kwargs else {
            return self.monitored.call(index, args, RunOptions::default());
        };
        let timeout = self.take_option(kwargs, TIMEOUT)?;
        let cancel = self.take_option(kwargs, CANCEL)?;
        let out = self.take_option(kwargs, OUT)?;
        let options = run_options(timeout.as_ref(), cancel.as_ref())?;
        let args = self.positional_arguments(args, kwargs)?;
        let Some(out) = out.filter(|out| !out.is_none()) else {
            return self.monitored.call(index, &args, options);
        };
        let arrays = OutputArrays::new(&out, &args)?;
        let result = self.monitored.call(index, &args, options)?;
        match result.cast::<PyTuple>() {
            Ok(tuple) => {
                Ok(PyTuple::new(args.py(), arrays.fill(tuple.iter().collect())?)?.into_any())
            }
            Err(_) => arrays.fill(vec![result])?.pop().ok_or_else(|| self.no_entry_error()),
        }
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> Result<VMFunction> {
        let missing = |text| Error::Python(pyo3::exceptions::PyAttributeError::new_err(text));
        slf.get().function(name).map_err(missing)
    }

    fn __getitem__(&self, name: &str) -> Result<VMFunction> {
        self.function(name).map_err(Error::Key)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.function(name).is_ok()
    }

    /// Returns the names of the model's functions.
    #[getter]
    fn function_names(&self) -> Vec<String> {
        self.compiled.signatures().iter().map(|s| s.name.clone()).collect()
    }

    /// Returns the inputs of the model, with name, dtype and dims. Symbolic dims are strings.
    #[getter]
    fn inputs(&self) -> Vec<InputInfo> {
        let signature = self.compiled.signature(&self.entry_name);
        signature
            .map(|s| s.inputs.iter().cloned().map(InputInfo::new).collect())
            .unwrap_or_default()
    }

    /// Returns the output of the entry function, or `None` if the model has no entry function.
    #[getter]
    fn output(&self) -> Option<InputInfo> {
        self.compiled.signature(&self.entry_name).map(|s| InputInfo::new(s.output.clone()))
    }

    /// Returns the names of the inputs. For an imported model, these are the names in the model file; otherwise, they are the
    /// names of the parameters.
    #[getter]
    fn input_names(&self) -> Vec<String> {
        let signature = self.compiled.signature(&self.entry_name);
        signature.map_or_else(Vec::new, |s| s.feed_names().into_iter().map(String::from).collect())
    }

    /// Returns the names of the outputs in the file from which the model was imported. Empty for
    /// other models.
    #[getter]
    fn output_names(&self) -> Vec<String> {
        let signature = self.compiled.signature(&self.entry_name);
        signature.map_or_else(Vec::new, |s| s.output_names.clone())
    }

    /// Returns, for each output of an imported model, the name of its element type in the package `ml_dtypes` if the type has fewer
    /// than 8 bits or is an 8-bit float, or `""`. The model returns such outputs as 8-bit integers. Empty if there are none.
    #[getter]
    fn narrow_outputs(&self) -> Vec<String> {
        let signature = self.compiled.signature(&self.entry_name);
        signature.map_or_else(Vec::new, |s| s.narrow_outputs.clone())
    }

    /// Runs the model on inputs by name and returns the outputs with these names as NumPy arrays, or all outputs for
    /// `None`. This method is compatible with `run` of an ONNX Runtime session. `timeout` is the time limit of the run
    /// in seconds; a run that exceeds it raises `TimeLimitError`. `cancel` is a `CancelToken` that stops the run from
    /// another thread.
    /// `out` has an array or `None` for each requested output; the outputs are copied to the arrays, which are returned.
    #[pyo3(signature = (output_names, feeds, *, out=None, timeout=None, cancel=None))]
    fn run<'py>(
        &self,
        output_names: &Bound<'py, PyAny>,
        feeds: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        cancel: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyList>> {
        let options = run_options(timeout, cancel)?;
        let output_names = named_inputs_outputs::requested_outputs(output_names)?;
        let feeds = named_inputs_outputs::feeds_by_name(feeds)?;
        let entry = self.compiled.signature(&self.entry_name).zip(self.entry);
        let Some((signature, index)) = entry else { return Err(self.no_entry_error()) };
        let args = named_inputs_outputs::ordered_arguments(signature, &feeds)?;
        let arrays = out.map(|out| OutputArrays::new(out, &args)).transpose()?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        let value = self.monitored.call(index, &args, options)?;
        named_inputs_outputs::requested_results(signature, output_names, &value, arrays)
    }

    /// Runs the model once to warm up and `runs` times to measure which functions take the time. The model's inputs are passed as
    /// in a call. `timeout` is the time limit of each run in seconds. Runs of the model on other threads are slower during a
    /// profile. Without `warm_up`, there is no run to warm up.
    #[pyo3(signature = (*args, runs=10, timeout=None, cancel=None, warm_up=true, **kwargs))]
    #[expect(clippy::too_many_arguments, reason = "each one is an argument in Python")]
    fn profile(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        runs: u32,
        timeout: Option<&Bound<'_, PyAny>>,
        cancel: Option<&Bound<'_, PyAny>>,
        warm_up: bool,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Result<Profile> {
        if self.entry.is_none() {
            return Err(self.no_entry_error());
        }
        let options = run_options(timeout, cancel)?;
        let args = match kwargs {
            Some(kwargs) => self.positional_arguments(args, kwargs)?,
            None => args.clone(),
        };
        let values = self.monitored.arguments(&self.entry_name, &args)?;
        Profile::of(py, &self.monitored, (&self.entry_name, &values), (runs, warm_up), options)
    }

    /// Describes as text which operators run in library kernels, which run in generated loops and why, and which loops
    /// are slow. A model that was loaded from a file cannot be explained; the text says so.
    fn explain(&self) -> String {
        self.compiled.stats().explanation.to_string()
    }

    /// Prints the symbols of the inputs with their ranges. For an imported model, also prints the nodes that constrain
    /// them.
    fn explain_shapes(&self, py: Python<'_>) -> Result<()> {
        let text = match &self.shapes {
            Some(text) => text.clone(),
            None => self.symbols_of_inputs(),
        };
        py.import("builtins")?.getattr("print")?.call1((text.trim_end(),))?;
        Ok(())
    }

    /// Returns statistics of the model: the number of compilations, the number of runs, and the
    /// compile time.
    fn stats(&self) -> ModelStats {
        let compile = self.compiled.stats();
        let vm = self.monitored.vm.stats();
        ModelStats {
            compilations: 1 + vm.compilations,
            runs: vm.invocations,
            compile_seconds: compile.total.as_secs_f64(),
            functions: compile.functions,
            kernels: compile.kernels,
            tier: self.compiled.tier(),
            phases: compile
                .phases
                .iter()
                .map(|p| (p.name.clone(), p.duration.as_secs_f64()))
                .collect(),
        }
    }

    /// Waits until the background compilation of the model with LLVM has finished. Returns
    /// immediately if there is none.
    fn wait_optimized(&self, py: Python<'_>) -> PyResult<()> {
        while !py.detach(|| self.compiled.wait_optimized_timeout(SIGNAL_INTERVAL)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Returns the executable of the model.
    #[getter]
    fn executable(&self) -> Executable {
        Executable { compiled: self.compiled.clone() }
    }

    /// Writes the model to a file, as `save` does; for compatibility with TVM.
    fn export_library(&self, py: Python<'_>, file_name: PathBuf) -> Result<()> {
        self.save(py, file_name)
    }

    /// Writes the model to a file. `pliant.load` reads it.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        run_detached(py, || Ok(self.compiled.save(&path)?))
    }

    fn __repr__(&self) -> String {
        let show = |s: &Signature| {
            let inputs: Vec<String> =
                s.inputs.iter().map(|i| format!("{}: {}", i.name, i.ty)).collect();
            format!("{}({}) -> {}", s.name, inputs.join(", "), s.output.ty)
        };
        let list: Vec<String> = self.compiled.signatures().iter().map(show).collect();
        format!("<pliant.Model {}>", list.join("; "))
    }
}

impl Model {
    /// Describes the symbols of the inputs, with the dims in which they occur.
    fn symbols_of_inputs(&self) -> String {
        let mut occurrences: indexmap::IndexMap<String, Vec<String>> = indexmap::IndexMap::new();
        let inputs =
            self.compiled.signature(&self.entry_name).map_or(&[][..], |s| s.inputs.as_slice());
        for input in inputs {
            for (axis, dim) in input.shape.iter().flatten().enumerate() {
                if let pliant::Dim::Symbolic(text) = dim {
                    occurrences
                        .entry(text.clone())
                        .or_default()
                        .push(format!("{}[{axis}]", input.name));
                }
            }
        }
        let line = |(dim, occurrences): (&String, &Vec<String>)| {
            format!("{dim}: any size  ({})\n", occurrences.join(", "))
        };
        occurrences.iter().map(line).collect()
    }

    /// Returns the function with this name, or the reason why there is none.
    fn function(&self, name: &str) -> Result<VMFunction, String> {
        match self.monitored.vm.index_of(name) {
            Ok(index) => {
                let name = name.to_string();
                Ok(VMFunction {
                    monitored: self.monitored.clone(),
                    index,
                    name,
                    object_owner: None,
                })
            }
            Err(_) => Err(format!(
                "the model has no function '{name}' (it has: {})",
                self.function_names().join(", ")
            )),
        }
    }

    /// Removes an option from the keyword arguments of a call and returns it. A keyword with the name of an input is not an option.
    fn take_option<'py>(
        &self,
        kwargs: &Bound<'py, PyDict>,
        name: &str,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        if self.has_input(name) {
            return Ok(None);
        }
        let value = kwargs.get_item(name)?;
        if value.is_some() {
            // The dict was created for this call, so it may be modified.
            kwargs.del_item(name)?;
        }
        Ok(value)
    }

    /// Whether the entry function has an input with this name.
    fn has_input(&self, name: &str) -> bool {
        self.compiled
            .signature(&self.entry_name)
            .is_some_and(|s| s.inputs.iter().any(|input| input.name == name))
    }

    /// Puts the positional and keyword arguments of a call in the order of the parameters.
    fn positional_arguments<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, PyTuple>> {
        let names: Vec<&str> = self
            .compiled
            .signature(&self.entry_name)
            .map(|s| s.inputs.iter().map(|i| i.name.as_str()).collect())
            .unwrap_or_default();
        let mut values: Vec<Bound<'py, PyAny>> = args.iter().collect();
        for name in names.iter().skip(args.len()) {
            match kwargs.get_item(name)? {
                Some(value) => values.push(value),
                None => break,
            }
        }
        if values.len() - args.len() != kwargs.len() {
            let problems = keyword_problems(&names, args.len(), kwargs)?.join(", ");
            let signature = format!("{}({})", self.entry_name, names.join(", "));
            return Err(Error::Type(format!(
                "the call of {signature} does not match its parameters: {problems}"
            )));
        }
        Ok(PyTuple::new(args.py(), values)?)
    }

    fn no_entry_error(&self) -> Error {
        let names = self.function_names().join(", ");
        Error::Type(format!("the model has no function 'main': call one of {names} by name"))
    }
}

/// Describes what is wrong with the keyword arguments of a call that also has `positional` positional arguments: unknown
/// keywords, parameters with two values, and parameters without one. `names` are the parameters.
fn keyword_problems(
    names: &[&str],
    positional: usize,
    kwargs: &Bound<'_, PyDict>,
) -> Result<Vec<String>> {
    let (passed, open) = names.split_at(positional.min(names.len()));
    let mut problems = Vec::new();
    if positional > names.len() {
        problems.push(format!("there are {positional} positional arguments"));
    }
    for key in kwargs.keys() {
        let key = key.to_string();
        if passed.contains(&&*key) {
            problems.push(format!("'{key}' is passed twice"));
        } else if !open.contains(&&*key) {
            let hint = did_you_mean(&key, open.iter().copied());
            let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            problems.push(format!("there is no parameter '{key}'{hint}"));
        }
    }
    for name in open {
        if !kwargs.contains(name)? {
            problems.push(format!("'{name}' is missing"));
        }
    }
    Ok(problems)
}

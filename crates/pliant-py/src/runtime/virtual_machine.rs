//! `VirtualMachine`: runs an executable.

use std::sync::Arc;
use std::time::Instant;

use pliant_exec::FuncDef;
use pliant_tensor::{DType, Tensor};
use pliant_vm as vm;
use pliant_vm::{RunOptions, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::runtime::ctrl_c_interrupts::RunCounter;
use crate::runtime::device::check_device;
use crate::runtime::executable_and_model::Executable;
use crate::runtime::packed_functions::PackedFunction;
use crate::runtime::profile::Profile;
use crate::runtime::run_options::run_options;
use crate::runtime::value_conversion::{callable_value, from_value, to_value};
use crate::runtime::vm_objects::{VmObjectOwner, VmObjectTable};

/// A VM that Ctrl-C can stop.
pub struct MonitoredVm {
    /// The virtual machine.
    pub vm: vm::VirtualMachine,
    run_counter: Arc<RunCounter>,
}

impl MonitoredVm {
    /// Creates a VM that the watcher of Ctrl-C monitors.
    pub fn new(vm: vm::VirtualMachine) -> Arc<MonitoredVm> {
        let run_counter = RunCounter::monitor(&vm);
        Arc::new(MonitoredVm { vm, run_counter })
    }

    /// Runs a function of the VM with the arguments of a Python call.
    ///
    /// # Errors
    /// The error of the run.
    pub fn call<'py>(
        &self,
        index: u32,
        args: &Bound<'py, PyTuple>,
        options: RunOptions,
    ) -> Result<Bound<'py, PyAny>> {
        let py = args.py();
        const INLINE: usize = 8;
        let n = args.len();
        let result = if n <= INLINE {
            let mut values: [Value; INLINE] = Default::default();
            for (i, (slot, arg)) in values.iter_mut().zip(args.iter_borrowed()).enumerate() {
                *slot = self.argument(index, i, &arg)?;
            }
            self.run(py, index, &values[..n], options)?
        } else {
            let value = |(i, a): (usize, Bound<'py, PyAny>)| self.argument(index, i, &a);
            let values = args.iter().enumerate().map(value).collect::<Result<Vec<Value>>>()?;
            self.run(py, index, &values, options)?
        };
        Ok(from_value(py, result)?)
    }

    /// Converts the argument for parameter `param_index` to a VM value.
    ///
    /// # Errors
    /// If the VM does not accept the value.
    fn argument(&self, index: u32, param_index: usize, arg: &Bound<'_, PyAny>) -> Result<Value> {
        match to_value(arg) {
            Ok(value) if may_need_conversion(&value) => {
                Ok(self.to_declared_type(index, param_index, value, arg))
            }
            Ok(value) => Ok(value),
            Err(e) => Err(self.with_parameter_name(index, param_index, e)),
        }
    }

    /// Converts the arguments of a function to VM values, in order.
    ///
    /// # Errors
    /// If the VM does not accept a value.
    pub fn arguments(&self, name: &str, args: &Bound<'_, PyTuple>) -> Result<Vec<Value>> {
        let index = self.vm.index_of(name).map_err(|e| Error::Key(e.to_string()))?;
        args.iter().enumerate().map(|(i, a)| self.argument(index, i, &a)).collect()
    }

    /// Converts an argument to the declared type of its parameter. A rank-0 tensor, such as a scalar of NumPy, becomes a scalar;
    /// a tuple of integers becomes a shape; a callable object becomes a function. Other arguments are unchanged.
    #[cold]
    fn to_declared_type(
        &self,
        index: u32,
        param_index: usize,
        value: Value,
        arg: &Bound<'_, PyAny>,
    ) -> Value {
        let Some(FuncDef::Vm(func)) = self.vm.executable().funcs().get(index as usize) else {
            return value;
        };
        let declared = func.params.get(param_index).map_or("", |p| p.ty.trim_start_matches("R."));
        let converted = match &value {
            Value::Tensor(tensor) if declared.starts_with("Prim") => scalar_value(tensor),
            Value::Tuple(items) if declared.starts_with("Shape") => shape_value(items),
            Value::Object(_) if declared.starts_with("Callable") => callable_value(arg),
            _ => None,
        };
        converted.unwrap_or(value)
    }

    /// Adds the name of the parameter to the error for an argument.
    #[cold]
    fn with_parameter_name(&self, index: u32, param_index: usize, error: Error) -> Error {
        let names = self.vm.function_names();
        let same = |name: &&&str| self.vm.index_of(name).is_ok_and(|i| i == index);
        let Some(&func) = names.iter().find(same) else { return error };
        let params = self.vm.params(func).unwrap_or_default();
        match params.get(param_index) {
            Some(param) => error.with_prefix(&format!("{func}: parameter '{}': ", param.name)),
            None => error.with_prefix(&format!("{func}: argument {param_index}: ")),
        }
    }

    fn run(
        &self,
        py: Python<'_>,
        index: u32,
        args: &[Value],
        options: RunOptions,
    ) -> Result<Value> {
        run_detached(py, || {
            let _running = self.run_counter.begin();
            Ok(self.vm.invoke_index_with(index, args, &options)?)
        })
    }

    /// Measures run times: returns `repeat` measurements in seconds. Each is the mean of `number` runs, or of more
    /// runs if these take less than `min_repeat_ms`.
    ///
    /// # Errors
    /// If a run fails, or if there is nothing to measure.
    fn with_timing(
        &self,
        py: Python<'_>,
        (number, repeat, min_repeat_ms): (u64, u64, f64),
        run: impl Fn(&vm::VirtualMachine) -> std::result::Result<(), vm::VmError> + Send + Sync,
    ) -> Result<Vec<f64>> {
        if number == 0 || repeat == 0 {
            let which = if number == 0 { "number" } else { "repeat" };
            return Err(Error::Value(format!(
                "time_evaluator: the argument '{which}' must be at least 1, not 0"
            )));
        }
        self.with_run(py, |vm| {
            // One run warms up caches, pools and threads.
            run(vm)?;
            let mut results = Vec::new();
            let mut number = number;
            for _ in 0..repeat {
                loop {
                    let start = Instant::now();
                    for _ in 0..number {
                        run(vm)?;
                    }
                    let seconds = start.elapsed().as_secs_f64();
                    if seconds * 1e3 >= min_repeat_ms {
                        results.push(seconds / number as f64);
                        break;
                    }
                    let per_run = (seconds / number as f64).max(1e-9);
                    number =
                        ((min_repeat_ms / 1e3 / per_run) as u64).clamp(number + 1, number * 1000);
                }
            }
            Ok(results)
        })
    }

    /// Calls `work` with the VM, without the GIL. The watcher of Ctrl-C counts this as a run.
    ///
    /// # Errors
    /// The error of `work`.
    pub fn with_run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&vm::VirtualMachine) -> std::result::Result<T, vm::VmError> + Send,
    ) -> Result<T> {
        run_detached(py, || {
            let _running = self.run_counter.begin();
            Ok(work(&self.vm)?)
        })
    }
}

/// Parses `max_depth`, the maximum call depth.
fn parse_max_depth(value: &Bound<'_, PyAny>) -> Result<usize> {
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        let class = value.get_type().name()?;
        return Err(Error::Type(format!("the argument 'max_depth' must be an int, not {class}")));
    }
    let depth = value.extract::<usize>().ok().filter(|&depth| depth > 0);
    depth.ok_or_else(|| {
        Error::Value(format!("the argument 'max_depth' must be at least 1, not {value}"))
    })
}

/// Whether an argument may have to be converted to the declared type of its parameter.
fn may_need_conversion(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.ndim() == 0,
        Value::Tuple(_) | Value::Object(_) => true,
        _ => false,
    }
}

/// Returns the number in a rank-0 tensor as a scalar value.
fn scalar_value(tensor: &Tensor) -> Option<Value> {
    let dtype = tensor.dtype();
    match tensor.ndim() {
        0 if dtype.is_bool() => tensor.to_i64_vec().ok().map(|v| Value::Bool(v[0] != 0)),
        0 if dtype.is_float() => tensor.to_f64_vec().ok().map(|v| Value::Float(v[0])),
        // An integer beyond 63 bits stays a tensor, which no scalar parameter accepts.
        0 => tensor
            .to_i64_vec()
            .ok()
            .filter(|v| dtype != DType::UInt64 || v[0] >= 0)
            .map(|v| Value::Int(v[0])),
        _ => None,
    }
}

/// Returns the shape with these integers as dims. Integers may also be rank-0 tensors.
fn shape_value(items: &[Value]) -> Option<Value> {
    let dim = |item: &Value| match item {
        Value::Int(dim) => Some(*dim),
        Value::Tensor(tensor) => match scalar_value(tensor)? {
            Value::Int(dim) => Some(dim),
            _ => None,
        },
        _ => None,
    };
    let dims: Option<Vec<i64>> = items.iter().map(dim).collect();
    dims.map(|dims| Value::shape(&dims))
}

/// One function of a VM. Calling it runs the function.
#[pyclass(frozen, module = "pliant.relax")]
pub struct VMFunction {
    /// The VM that runs the function.
    pub monitored: Arc<MonitoredVm>,
    /// The index of the function.
    pub index: u32,
    /// The name of the function.
    pub name: String,
    /// The owner of the Python objects that the VM refers to.
    pub object_owner: Option<Py<VmObjectOwner>>,
}

#[pymethods]
impl VMFunction {
    /// Runs the function. `timeout` is the time limit of the run in seconds; a run that exceeds it raises
    /// `TimeLimitError`.
    #[pyo3(signature = (*args, timeout=None))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        self.monitored.call(self.index, args, run_options(timeout, None)?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.object_owner.iter().try_for_each(|object_owner| visit.call(object_owner))
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// Returns the names of the parameters.
    #[getter]
    fn params(&self) -> Vec<String> {
        let params = self.monitored.vm.params(&self.name).unwrap_or_default();
        params.iter().map(|p| p.name.clone()).collect()
    }

    fn __repr__(&self) -> String {
        let params = self.monitored.vm.params(&self.name).unwrap_or_default();
        let list: Vec<String> = params.iter().map(ToString::to_string).collect();
        format!("<function {}({})>", self.name, list.join(", "))
    }
}

/// Runs the functions of an executable for inputs of any valid shape, from any thread.
#[pyclass(frozen, subclass, module = "pliant.relax", weakref)]
pub struct VirtualMachine {
    monitored: Arc<MonitoredVm>,
    object_owner: Py<VmObjectOwner>,
}

#[pymethods]
impl VirtualMachine {
    /// Creates a VM for an executable. `functions` are packed functions for this VM only; they take precedence over
    /// registered ones. `max_depth` is the maximum call depth (100,000 by default).
    #[new]
    #[pyo3(signature = (rt_mod, device=None, memory_cfg=None, profile=false, functions=None, max_depth=None))]
    fn new(
        rt_mod: &Bound<'_, Executable>,
        device: Option<&Bound<'_, PyAny>>,
        memory_cfg: Option<&Bound<'_, PyAny>>,
        profile: bool,
        functions: Option<Vec<(String, Py<PyAny>)>>,
        max_depth: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        if let Some(device) = device.filter(|d| !d.is_none()) {
            check_device(device)?;
        }
        let _ = (memory_cfg, profile);
        let max_depth = max_depth.filter(|d| !d.is_none()).map(parse_max_depth).transpose()?;
        let (names, functions): (Vec<String>, Vec<Py<PyAny>>) =
            functions.unwrap_or_default().into_iter().unzip();
        let (table, object_owner) = VmObjectTable::new(rt_mod.py(), functions)?;
        let functions: FxHashMap<String, vm::PackedFunc> =
            names.into_iter().enumerate().map(|(i, name)| (name, table.function(i))).collect();
        let options = vm::VmOptions {
            functions,
            max_depth,
            attachment: Some(table.clone()),
            ..vm::VmOptions::default()
        };
        let vm = rt_mod.get().compiled.vm_with(options)?;
        table.set_vm(&vm);
        Ok(VirtualMachine { monitored: MonitoredVm::new(vm), object_owner })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.object_owner)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> Result<VMFunction> {
        let index = self.monitored.vm.index_of(name).map_err(|e| Error::Key(e.to_string()))?;
        let (name, object_owner) = (name.to_string(), Some(self.object_owner.clone_ref(py)));
        Ok(VMFunction { monitored: self.monitored.clone(), index, name, object_owner })
    }

    fn __contains__(&self, name: &str) -> bool {
        self.monitored.vm.index_of(name).is_ok()
    }

    /// Returns the maximum depth of calls between the program's functions. A new value takes effect
    /// from the next call.
    #[getter]
    fn max_depth(&self) -> usize {
        self.monitored.vm.max_depth()
    }

    #[setter]
    fn set_max_depth(&self, value: &Bound<'_, PyAny>) -> Result<()> {
        self.monitored.vm.set_max_depth(parse_max_depth(value)?);
        Ok(())
    }

    /// Returns the names of the functions.
    #[getter]
    fn function_names(&self) -> Vec<String> {
        self.monitored.vm.function_names().into_iter().map(String::from).collect()
    }

    /// Returns the number of parameters of a function.
    fn get_function_arity(&self, func_name: &str) -> Result<usize> {
        self.monitored.vm.index_of(func_name).map_err(|e| Error::Key(e.to_string()))?;
        Ok(self.monitored.vm.params(func_name).map_or(0, <[_]>::len))
    }

    /// Returns the name of a parameter of a function.
    fn get_function_param_name(&self, func_name: &str, index: usize) -> Result<String> {
        self.monitored.vm.index_of(func_name).map_err(|e| Error::Key(e.to_string()))?;
        let params = self.monitored.vm.params(func_name).unwrap_or_default();
        let param = params.get(index).map(|p| p.name.clone());
        param.ok_or_else(|| {
            Error::Index(format!(
                "function '{func_name}' has {} parameters, so the parameter index {index} is out of range",
                params.len()
            ))
        })
    }

    /// Stores the arguments with which `invoke_stateful` calls a function.
    #[pyo3(signature = (func_name, *args, **kwargs))]
    fn set_input(
        &self,
        func_name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> Result<()> {
        let mut values = self.monitored.arguments(func_name, args)?;
        if let Some(kwargs) = kwargs.filter(|k| !k.is_empty()) {
            values = self.merge_keywords(func_name, values, kwargs)?;
        }
        Ok(self.monitored.vm.set_input(func_name, values)?)
    }

    /// Calls a function with the arguments stored by `set_input` and stores its result. `timeout` is the time limit of
    /// the run in seconds; a run that exceeds it raises `TimeLimitError`.
    #[pyo3(signature = (func_name, *, timeout=None))]
    fn invoke_stateful(
        &self,
        py: Python<'_>,
        func_name: &str,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let options = run_options(timeout, None)?;
        self.monitored.with_run(py, |vm| vm.invoke_stateful_with(func_name, &options))
    }

    /// Returns the result of the last `invoke_stateful` of the function `func_name`.
    fn get_outputs<'py>(&self, py: Python<'py>, func_name: &str) -> Result<Bound<'py, PyAny>> {
        Ok(from_value(py, self.monitored.vm.get_outputs(func_name)?)?)
    }

    /// Calls a closure that a function of this VM returned. `timeout` is the time limit of the run in seconds; a run
    /// that exceeds it raises `TimeLimitError`.
    #[pyo3(signature = (closure, *args, timeout=None))]
    fn invoke_closure<'py>(
        &self,
        closure: &Bound<'py, PackedFunction>,
        args: &Bound<'py, PyTuple>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let options = run_options(timeout, None)?;
        let values = args.iter().map(|a| to_value(&a)).collect::<Result<Vec<Value>>>()?;
        let func = closure.get().func.clone();
        let result = self.monitored.with_run(args.py(), |_| func.call_with(&values, &options))?;
        Ok(from_value(args.py(), result)?)
    }

    /// Sets a Python function that the VM calls before and after each call in a program, as `fn(callee, name, before, result,
    /// *args)`. `None` removes the instrument. If the function returns `VMInstrumentReturnKind.SKIP_RUN` (1) before a call, the
    /// call is skipped.
    fn set_instrument(&self, instrument: Option<Py<PyAny>>) {
        let table = VmObjectTable::of(&self.monitored.vm)
            .and_then(|_| self.monitored.vm.attachment().cloned());
        let (Some(object_table), Some(attachment)) = (VmObjectTable::of(&self.monitored.vm), table)
        else {
            return;
        };
        let is_set = instrument.is_some();
        object_table.set_instrument(instrument);
        let watch = vm::Instrument::new(move |event| {
            Python::attach(|py| {
                match attachment
                    .downcast_ref::<VmObjectTable>()
                    .and_then(|table| table.instrument(py))
                {
                    Some(f) => call_instrument(py, &f, event),
                    None => vm::InstrumentAction::Continue,
                }
            })
        });
        self.monitored.vm.set_instrument(is_set.then_some(watch));
    }

    /// Runs `func_name(*args)` once to warm up and `runs` times to measure which functions take the time. `timeout` is the time
    /// limit of each run in seconds. During the profile, the VM has an instrument that measures the calls. It replaces the
    /// instrument that was set before, and is removed at the end.
    #[pyo3(signature = (func_name, *args, runs=1, timeout=None))]
    fn profile(
        &self,
        py: Python<'_>,
        func_name: &str,
        args: &Bound<'_, PyTuple>,
        runs: u32,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> Result<Profile> {
        let options = run_options(timeout, None)?;
        let values = self.monitored.arguments(func_name, args)?;
        Profile::of(py, &self.monitored, (func_name, &values), (runs, true), options)
    }

    /// Measures runs of `func_name(*args)`. Returns `repeat` results in seconds, each the mean of
    /// `number` runs.
    #[pyo3(signature = (func_name, args, number, repeat, min_repeat_ms))]
    fn _time(
        &self,
        py: Python<'_>,
        func_name: &str,
        args: &Bound<'_, PyTuple>,
        number: u64,
        repeat: u64,
        min_repeat_ms: f64,
    ) -> Result<Vec<f64>> {
        let index = self.monitored.vm.index_of(func_name).map_err(|e| Error::Key(e.to_string()))?;
        let values = self.monitored.arguments(func_name, args)?;
        let counts = (number, repeat, min_repeat_ms);
        self.monitored.with_timing(py, counts, |vm| vm.invoke_index(index, &values).map(drop))
    }

    /// Measures runs of the function `func_name` with the arguments that `set_input` stored. Returns `repeat` results in seconds,
    /// each the mean of `number` runs.
    fn _time_stateful(
        &self,
        py: Python<'_>,
        func_name: &str,
        number: u64,
        repeat: u64,
        min_repeat_ms: f64,
    ) -> Result<Vec<f64>> {
        let counts = (number, repeat, min_repeat_ms);
        self.monitored.with_timing(py, counts, |vm| vm.invoke_stateful(func_name))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.monitored.vm)
    }
}

impl VirtualMachine {
    fn merge_keywords(
        &self,
        func: &str,
        positional: Vec<Value>,
        kwargs: &Bound<'_, pyo3::types::PyDict>,
    ) -> Result<Vec<Value>> {
        let params = self.monitored.vm.params(func).unwrap_or_default();
        let mut slots: Vec<Option<Value>> = positional.into_iter().map(Some).collect();
        slots.resize(params.len().max(slots.len()), None);
        for (key, value) in kwargs {
            let key: String = key.extract()?;
            let Some(i) = params.iter().position(|p| p.name == key) else {
                let known: Vec<&str> = params.iter().map(|p| &*p.name).collect();
                return Err(Error::Type(format!(
                    "function '{func}' has no parameter '{key}' (it has: {})",
                    known.join(", ")
                )));
            };
            if slots[i].is_some() {
                return Err(Error::Type(format!(
                    "function '{func}' got several values for parameter '{key}'"
                )));
            }
            let index = self.monitored.vm.index_of(func).map_err(|e| Error::Key(e.to_string()))?;
            slots[i] = Some(self.monitored.argument(index, i, &value)?);
        }
        let missing = slots.iter().position(Option::is_none);
        match missing.and_then(|i| params.get(i)) {
            Some(param) => Err(Error::Type(format!(
                "function '{func}': the value of parameter '{}' is missing",
                param.name
            ))),
            None => Ok(slots.into_iter().flatten().collect()),
        }
    }
}

fn call_instrument(
    py: Python<'_>,
    f: &Py<PyAny>,
    event: &vm::CallEvent<'_>,
) -> vm::InstrumentAction {
    let call = || -> Result<bool> {
        let result = match event.result {
            Some(value) => from_value(py, value.clone())?,
            None => py.None().into_bound(py),
        };
        let mut all = vec![
            event.function.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            event.callee.into_pyobject(py).map_err(PyErr::from)?.into_any(),
            pyo3::types::PyBool::new(py, event.before).to_owned().into_any(),
            result,
        ];
        for value in event.args {
            all.push(from_value(py, value.clone())?);
        }
        let returned = f.bind(py).call1(PyTuple::new(py, all)?)?;
        Ok(returned.extract::<i64>().is_ok_and(|v| v == 1))
    };
    match call() {
        Ok(true) => vm::InstrumentAction::Skip,
        Ok(false) => vm::InstrumentAction::Continue,
        Err(e) => {
            // An instrument cannot make a run fail. Python reports the exception, and the run continues.
            PyErr::from(e).write_unraisable(py, Some(f.bind(py)));
            vm::InstrumentAction::Continue
        }
    }
}

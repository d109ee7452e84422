//! Models: creation, destruction, runs.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pliant_exec::ahead_of_time_abi::ProgramHeader;
use pliant_tensor::Tensor;
use pliant_vm::{RunOptions, Value, VmOptions};

use super::status::{Status, argument_error, guard, guard_value};
use crate::error::RuntimeError;
use crate::program::Program;
use crate::signature::Signature;

/// Options of [`pliant_create`], `pliant_options` in C.
#[repr(C)]
#[derive(Debug)]
pub struct Options {
    /// The name of the function to run; null for the entry function.
    pub function: *const c_char,
    /// The number of threads that a run uses; 0 for the default.
    pub threads: usize,
}

/// A program that is ready to run, with its inputs and outputs: `pliant_model` in C.
#[derive(Debug)]
pub struct Model {
    pub(super) program: Program,
    pub(super) signature: Signature,
    /// The names of the inputs, and the dims of each as text.
    pub(super) inputs: Vec<(CString, Vec<CString>)>,
    pub(super) output_names: Vec<CString>,
    state: Mutex<State>,
}

/// The inputs that are set and the outputs of the last run of a model.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) inputs: Vec<Option<Tensor>>,
    pub(super) outputs: Vec<Value>,
}

impl Model {
    fn new(program: Program, function: Option<&str>) -> Result<Model, RuntimeError> {
        let names = || {
            let names: Vec<&str> = program.signatures().iter().map(|s| &*s.name).collect();
            names.join(", ")
        };
        let signature = match function {
            None => program.entry().ok_or_else(|| {
                argument_error(format!(
                    "the program has no function 'main'; select one of its functions: {}",
                    names()
                ))
            })?,
            Some(name) => {
                program.signatures().iter().find(|s| s.name == name).ok_or_else(|| {
                    let functions = names();
                    argument_error(format!(
                        "the program has no function '{name}'; its functions are: {functions}"
                    ))
                })?
            }
        }
        .clone();
        let feed_names = signature.feed_names();
        let inputs = feed_names.iter().zip(&signature.inputs).map(|(name, input)| {
            let dims = input.tensor_dims().unwrap_or_default();
            let dims = dims.iter().map(|dim| c_string(&dim.to_string()));
            (c_string(name), dims.collect())
        });
        let inputs: Vec<_> = inputs.collect();
        let output_names = signature.output_names.iter().map(|name| c_string(name)).collect();
        let state = State { inputs: vec![None; inputs.len()], outputs: Vec::new() };
        Ok(Model { program, signature, inputs, output_names, state: Mutex::new(state) })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, options: &RunOptions) -> Result<(), RuntimeError> {
        let mut state = self.state();
        state.outputs.clear();
        let mut arguments = Vec::with_capacity(state.inputs.len());
        for (i, input) in state.inputs.iter().enumerate() {
            let Some(tensor) = input else {
                let name = self.signature.feed_names()[i];
                return Err(argument_error(format!(
                    "input {i}, '{name}', is not set; call pliant_set_input first"
                )));
            };
            arguments.push(self.signature.inputs[i].argument(tensor)?);
        }
        let result = self.program.vm().invoke_with(&self.signature.name, &arguments, options)?;
        let outputs = self.signature.named_results(result).into_iter().map(|(_, value)| value);
        state.outputs = outputs.collect();
        Ok(())
    }
}

/// Converts text to a C string. Zero bytes in the text are omitted.
fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// Returns the string at an address.
///
/// # Safety
/// The address is null or that of a C string.
pub(super) unsafe fn text<'a>(address: *const c_char, what: &str) -> Result<&'a str, RuntimeError> {
    if address.is_null() {
        return Err(argument_error(format!("{what} is a null pointer, but must be a C string")));
    }
    // SAFETY: guaranteed by the caller.
    let text = unsafe { CStr::from_ptr(address) };
    text.to_str().map_err(|_| argument_error(format!("{what} is not valid UTF-8")))
}

/// Returns the model at an address.
///
/// # Safety
/// The address is null or that of a model.
pub(super) unsafe fn model<'a>(address: *const Model) -> Result<&'a Model, RuntimeError> {
    // SAFETY: guaranteed by the caller.
    unsafe { address.as_ref() }.ok_or_else(|| argument_error("the argument 'model' is null"))
}

/// Creates a model, which runs a function of `program`, and stores its address in `model`.
///
/// # Safety
/// `program` is null or the header of a program that stays loaded as long as the model, `options` is null or valid, and `model` is
/// null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_create(
    program: *const ProgramHeader,
    options: *const Options,
    model: *mut *mut Model,
) -> Status {
    guard(|| {
        if model.is_null() {
            return Err(argument_error("the argument 'model', which receives the model, is null"));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { model.write(std::ptr::null_mut()) };
        // SAFETY: guaranteed by the caller.
        let program = unsafe { program.as_ref() };
        let program = program.ok_or_else(|| argument_error("the argument 'program' is null"))?;
        // SAFETY: guaranteed by the caller.
        let options = unsafe { options.as_ref() };
        let (mut vm, mut function) = (VmOptions::default(), None);
        if let Some(options) = options {
            if !options.function.is_null() {
                // SAFETY: guaranteed by the caller.
                function = Some(unsafe { text(options.function, "the name of the function") }?);
            }
            if options.threads > pliant_pool::MAX_THREADS {
                return Err(argument_error(format!(
                    "the number of threads must be at most {}, but is {}",
                    pliant_pool::MAX_THREADS,
                    options.threads
                )));
            }
            vm.team =
                (options.threads > 0).then(|| pliant_pool::shared_team(options.threads)).flatten();
        }
        pliant_pool::check_threads().map_err(argument_error)?;
        // SAFETY: guaranteed by the caller.
        let program = unsafe { Program::link(program, vm) }?;
        let created = Box::new(Model::new(program, function)?);
        // SAFETY: guaranteed by the caller.
        unsafe { model.write(Box::into_raw(created)) };
        Ok(())
    })
}

/// Destroys a model.
///
/// # Safety
/// `model` is null, or was returned by [`pliant_create`] and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_destroy(model: *mut Model) {
    guard_value((), || {
        if !model.is_null() {
            // SAFETY: guaranteed by the caller.
            drop(unsafe { Box::from_raw(model) });
        }
    });
}

/// Runs the function of a model on the inputs that are set, and stores its outputs in the model.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_run(address: *mut Model) -> Status {
    // SAFETY: guaranteed by the caller.
    guard(|| unsafe { model(address) }?.run(&RunOptions::default()))
}

/// Runs the function of a model, with a time limit of `seconds` seconds, on the inputs that are set.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_run_for(address: *mut Model, seconds: f64) -> Status {
    guard(|| {
        let limit = Duration::try_from_secs_f64(seconds).map_err(|_| {
            argument_error(format!(
                "the time limit must be a number of seconds from 0 to below 2^64, but is {seconds}"
            ))
        })?;
        // SAFETY: guaranteed by the caller.
        unsafe { model(address) }?
            .run(&RunOptions { time_limit: Some(limit), ..RunOptions::default() })
    })
}

/// Stops the current run of a model.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_interrupt(address: *const Model) {
    guard_value((), || {
        // SAFETY: guaranteed by the caller.
        if let Some(model) = unsafe { address.as_ref() } {
            model.program.vm().interrupt();
        }
    });
}

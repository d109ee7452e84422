//! The inputs and outputs of models.

use std::ffi::{CString, c_char};
use std::slice;

use pliant_tensor::{DType, Storage, Tensor, checked_nbytes};
use pliant_vm::Value;

use super::model::{Model, model, text};
use super::status::{Status, argument_error, guard, guard_value};
use crate::error::RuntimeError;
use crate::signature::Dim;

/// A row-major tensor, `pliant_tensor` in C.
#[repr(C)]
#[derive(Debug)]
pub struct CTensor {
    /// The address of the first element.
    pub data: *mut u8,
    /// The address of the sizes of the tensor's dims.
    pub shape: *const i64,
    /// The number of dims.
    pub rank: usize,
    /// The element type: 256 * the type code of DLPack + the number of bits.
    pub dtype: i32,
}

/// The number that [`pliant_input_dim`] returns for a dim whose size is known only at run time.
const SYMBOLIC: i64 = -1;
/// The maximum rank of a tensor that a C program passes.
const MAX_RANK: usize = 64;

/// Encodes an element type as a number: 256 * the type code of DLPack + the number of bits.
fn dtype_number(dtype: DType) -> i32 {
    let (code, bits) = dtype.to_dlpack();
    i32::from(u16::from_be_bytes([code, bits]))
}

/// Decodes an element type from its number, which [`dtype_number`] returns.
fn dtype_of_number(number: i32) -> Result<DType, RuntimeError> {
    let decoded = u16::try_from(number).ok().and_then(|number| {
        let [code, bits] = number.to_be_bytes();
        DType::from_dlpack(code, bits)
    });
    decoded.ok_or_else(|| {
        argument_error(format!(
            "the tensor has the element type {number}, which is not a constant of pliant_dtype"
        ))
    })
}

impl Model {
    fn dims(&self, input: usize) -> Option<Vec<Dim>> {
        self.signature.inputs.get(input)?.tensor_dims()
    }

    /// Returns the nonempty output of the last run whose first element is at an address.
    fn output_at(&self, address: *mut u8) -> Option<Tensor> {
        let state = self.state();
        let mut tensors = state.outputs.iter().filter_map(Value::as_tensor);
        tensors.find(|t| t.numel() > 0 && t.data_ptr() == address).cloned()
    }

    /// Returns the output with the index `output` as a row-major tensor. Copies the output if it shares memory with an input.
    fn output(&self, output: usize) -> Result<Tensor, RuntimeError> {
        let mut state = self.state();
        let count = state.outputs.len();
        let Some(value) = state.outputs.get(output) else {
            return Err(argument_error(match count {
                0 => "the model has no outputs, because it has not run".to_string(),
                _ => format!("the model has no output {output}; it has {count} outputs"),
            }));
        };
        let tensor = output_tensor(value).ok_or_else(|| {
            let kind = value.kind();
            argument_error(format!("output {output} is not a tensor, but {kind}"))
        })??;
        let shared = state.inputs.iter().flatten().any(|input| input.overlaps(&tensor));
        let tensor = if shared { tensor.copy()? } else { tensor.to_contiguous()? };
        // The model keeps the memory that the caller reads.
        state.outputs[output] = Value::Tensor(tensor.clone());
        Ok(tensor)
    }
}

/// Converts a result to a tensor; `None` if it is neither a tensor nor a scalar or shape.
fn output_tensor(value: &Value) -> Option<Result<Tensor, RuntimeError>> {
    let tensor = match value {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        Value::Int(value) => Tensor::scalar(*value),
        Value::Float(value) => Tensor::scalar(*value),
        Value::Bool(value) => Tensor::from_bytes(&[], DType::Bool, &[u8::from(*value)]),
        Value::Shape(dims) => Tensor::from_slice(&[dims.len() as i64], dims),
        _ => return None,
    };
    Some(tensor.map_err(RuntimeError::from))
}

/// Creates a tensor that borrows the memory of a C tensor. If `owner` is a tensor in the same memory, the new tensor keeps that
/// memory alive.
///
/// # Safety
/// The shape has as many sizes as the rank, and the elements are readable until the tensor is dropped.
unsafe fn borrowed_tensor(tensor: &CTensor, owner: Option<Tensor>) -> Result<Tensor, RuntimeError> {
    let dtype = dtype_of_number(tensor.dtype)?;
    if tensor.rank > MAX_RANK {
        let rank = tensor.rank;
        return Err(argument_error(format!(
            "the rank of a tensor must be at most {MAX_RANK}, but is {rank}"
        )));
    }
    let shape = match (tensor.rank, tensor.shape.is_null()) {
        (0, _) => &[],
        (_, true) => {
            return Err(argument_error(
                "the shape pointer of the tensor is null, but the tensor has dims",
            ));
        }
        // SAFETY: guaranteed by the caller.
        (rank, false) => unsafe { slice::from_raw_parts(tensor.shape, rank) },
    };
    let bytes = checked_nbytes(shape, dtype).map_err(|e| argument_error(e.to_string()))?;
    if tensor.data.is_null() && bytes > 0 {
        return Err(argument_error(
            "the data pointer of the tensor is null, but the tensor has elements",
        ));
    }
    // SAFETY: guaranteed by the caller.
    let storage = unsafe { Storage::from_foreign(tensor.data, bytes, true, move || drop(owner)) };
    Ok(Tensor::from_storage(storage, 0, shape, dtype)?)
}

/// Returns the number of inputs of a model; 0 for a null model.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_count(address: *const Model) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { address.as_ref() }.map_or(0, |model| model.inputs.len())
}

/// Returns the address of a C string; null if there is none.
fn text_address(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Returns the name of an input; null if there is no such input.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_name(address: *const Model, input: usize) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let model = unsafe { address.as_ref() };
    text_address(model.and_then(|model| model.inputs.get(input)).map(|(name, _)| name))
}

/// Returns the index of the input with this name; -1 if there is no such input.
///
/// # Safety
/// `address` is null or that of a model; `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_index(address: *const Model, name: *const c_char) -> i64 {
    // SAFETY: guaranteed by the caller.
    let (model, name) = unsafe { (address.as_ref(), text(name, "the name")) };
    let (Some(model), Ok(name)) = (model, name) else { return -1 };
    let position = model.inputs.iter().position(|(input, _)| input.to_bytes() == name.as_bytes());
    position.map_or(-1, |position| position as i64)
}

/// Returns the element type of an input; 0 if it is unknown.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_dtype(address: *const Model, input: usize) -> i32 {
    // SAFETY: guaranteed by the caller.
    let input = unsafe { address.as_ref() }.and_then(|model| model.signature.inputs.get(input));
    let dtype = input.and_then(|input| match input.ty.starts_with("R.Shape") {
        true => Some(DType::Int64),
        false => input.dtype.as_deref()?.parse().ok(),
    });
    dtype.map_or(0, dtype_number)
}

/// Returns the rank of an input; -1 if it is unknown.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_rank(address: *const Model, input: usize) -> i64 {
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { address.as_ref() }.and_then(|model| model.dims(input));
    dims.map_or(-1, |dims| dims.len() as i64)
}

/// Returns the size of a dim of an input; -1 if it is known only at run time.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_dim(address: *const Model, input: usize, axis: usize) -> i64 {
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { address.as_ref() }.and_then(|model| model.dims(input));
    match dims.as_ref().and_then(|dims| dims.get(axis)) {
        Some(Dim::Constant(size)) => *size,
        _ => SYMBOLIC,
    }
}

/// Returns the size of a dim of an input as text; null if there is no such dim.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_input_dim_text(
    address: *const Model,
    input: usize,
    axis: usize,
) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let model = unsafe { address.as_ref() };
    text_address(model.and_then(|model| model.inputs.get(input)?.1.get(axis)))
}

/// Sets an input of a model to a tensor, whose memory is not copied.
///
/// # Safety
/// `address` is null or that of a model. `tensor` is null or a tensor whose elements stay valid until the input is set again or the
/// model is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_set_input(
    address: *mut Model,
    input: usize,
    tensor: *const CTensor,
) -> Status {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let (model, tensor) = unsafe { (model(address)?, tensor.as_ref()) };
        let tensor = tensor.ok_or_else(|| argument_error("the argument 'tensor' is null"))?;
        let count = model.inputs.len();
        if input >= count {
            return Err(argument_error(format!(
                "the model has no input {input}; it has {count} inputs"
            )));
        }
        // SAFETY: guaranteed by the caller.
        let tensor = unsafe { borrowed_tensor(tensor, model.output_at(tensor.data)) }?;
        model.state().inputs[input] = Some(tensor);
        Ok(())
    })
}

/// Writes the value of a symbolic dim to `size`. The shapes of the inputs that are set determine it.
///
/// # Safety
/// `address` is null or that of a model; `symbol` is null or a C string; `size` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_symbol(
    address: *const Model,
    symbol: *const c_char,
    size: *mut i64,
) -> Status {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let (model, symbol) = unsafe { (model(address)?, text(symbol, "the name of the symbol")?) };
        if size.is_null() {
            return Err(argument_error(
                "the argument 'size', which receives the size of the symbol, is null",
            ));
        }
        let state = model.state();
        let mut is_known = false;
        for (input, tensor) in model.signature.inputs.iter().zip(&state.inputs) {
            let is_symbol = |dim: &Dim| matches!(dim, Dim::Symbolic(name) if name == symbol);
            let Some(axis) = input.shape.iter().flatten().position(is_symbol) else { continue };
            is_known = true;
            // The dims of a shape are the elements of its tensor.
            let bound = tensor.as_ref().and_then(|tensor| match input.ty.starts_with("R.Shape") {
                true => tensor.to_i64_vec().ok()?.get(axis).copied(),
                false => tensor.shape().get(axis).copied(),
            });
            if let Some(bound) = bound {
                // SAFETY: guaranteed by the caller.
                unsafe { size.write(bound) };
                return Ok(());
            }
        }
        Err(argument_error(match is_known {
            true => format!("no input with the symbol '{symbol}' is set"),
            false => format!("no dim of an input is the symbol '{symbol}'"),
        }))
    })
}

/// Returns the number of outputs of the last run.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_output_count(address: *const Model) -> usize {
    // SAFETY: guaranteed by the caller.
    guard_value(0, || unsafe { address.as_ref() }.map_or(0, |model| model.state().outputs.len()))
}

/// Returns the name of an output; null if the program has no name for it.
///
/// # Safety
/// `address` is null or that of a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_output_name(address: *const Model, output: usize) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    text_address(unsafe { address.as_ref() }.and_then(|model| model.output_names.get(output)))
}

/// Writes address, shape and element type of an output to `tensor`.
///
/// # Safety
/// `address` is null or that of a model; `tensor` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pliant_output(
    address: *const Model,
    output: usize,
    tensor: *mut CTensor,
) -> Status {
    guard(|| {
        // SAFETY: guaranteed by the caller.
        let model = unsafe { model(address) }?;
        if tensor.is_null() {
            return Err(argument_error(
                "the argument 'tensor', which receives the output, is null",
            ));
        }
        let result = model.output(output)?;
        let description = CTensor {
            data: result.data_ptr(),
            // The shape belongs to the tensor, which the model keeps.
            shape: result.shape().as_ptr(),
            rank: result.ndim(),
            dtype: dtype_number(result.dtype()),
        };
        // SAFETY: guaranteed by the caller.
        unsafe { tensor.write(description) };
        Ok(())
    })
}

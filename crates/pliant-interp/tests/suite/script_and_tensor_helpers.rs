//! Helpers of the tests: parse scripts, and convert between tensors and numbers.

use pliant_interp::{InterpError, NoPacked, PackedFuncs, Value, run};
use pliant_ir::{DType, IRModule};
use pliant_ops::registry;
use pliant_tensor::Tensor;

pub const HEADER: &str = "from pliant.script import ir as I, relax as R, tir as T\n\n";

/// Parses a script that contains a module.
pub fn module(text: &str) -> IRModule {
    match pliant_script::parse_module(&format!("{HEADER}{text}"), registry()) {
        Ok(module) => module,
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
            panic!("{}\n{text}", list.join("\n"));
        }
    }
}

/// Runs the function `main` of a script.
pub fn run_script(text: &str, args: &[Value]) -> Result<Value, InterpError> {
    run(&module(text), "main", args, &NoPacked)
}

/// Runs the function `main` of a script that calls the given packed functions.
pub fn run_packed(
    text: &str,
    args: &[Value],
    packed: &dyn PackedFuncs,
) -> Result<Value, InterpError> {
    run(&module(text), "main", args, packed)
}

/// Runs the function `main` of a script, which must fail, and returns the message of the error.
pub fn fails(text: &str, args: &[Value]) -> String {
    run_script(text, args).expect_err("the script should fail").to_string()
}

/// Creates a float32 tensor of the given shape from its elements.
pub fn f32s(shape: &[i64], data: &[f32]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// Creates an int64 tensor of the given shape from its elements.
pub fn i64s(shape: &[i64], data: &[i64]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// Creates a bool tensor of the given shape from its elements.
pub fn bools(shape: &[i64], data: &[bool]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// Creates a tensor of the given shape and data type that is filled with zeros.
pub fn zeros(shape: &[i64], dtype: DType) -> Value {
    Tensor::zeros(shape, dtype).unwrap().into()
}

/// Returns the shape and the elements of a tensor.
pub fn numbers(value: &Value) -> (Vec<i64>, Vec<f64>) {
    let t = value.as_tensor().unwrap_or_else(|| panic!("{value:?} is no tensor"));
    (t.shape().to_vec(), t.to_f64_vec().unwrap())
}

/// Returns the elements of a tensor in row-major order.
pub fn flat(value: &Value) -> Vec<f64> {
    numbers(value).1
}

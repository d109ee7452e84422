//! Helpers of the tests: scripts to modules, tensors to and from numbers.

use pliant_interp::{InterpError, NoPacked, PackedFuncs, Value, run};
use pliant_ir::{DType, IRModule};
use pliant_ops::registry;
use pliant_tensor::Tensor;

pub const HEADER: &str = "from pliant.script import ir as I, relax as R, tir as T\n\n";

/// The module of a script.
pub fn module(text: &str) -> IRModule {
    match pliant_script::parse_module(&format!("{HEADER}{text}"), registry()) {
        Ok(module) => module,
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
            panic!("{}\n{text}", list.join("\n"));
        }
    }
}

/// Runs `main` of a script.
pub fn run_script(text: &str, args: &[Value]) -> Result<Value, InterpError> {
    run(&module(text), "main", args, &NoPacked)
}

/// Runs `main` of a script with packed functions.
pub fn run_packed(
    text: &str,
    args: &[Value],
    packed: &dyn PackedFuncs,
) -> Result<Value, InterpError> {
    run(&module(text), "main", args, packed)
}

/// The message of the error of a failing script.
pub fn fails(text: &str, args: &[Value]) -> String {
    run_script(text, args).expect_err("the script should fail").to_string()
}

/// A float32 tensor.
pub fn f32s(shape: &[i64], data: &[f32]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// An int64 tensor.
pub fn i64s(shape: &[i64], data: &[i64]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// A bool tensor.
pub fn bools(shape: &[i64], data: &[bool]) -> Value {
    Tensor::from_slice(shape, data).unwrap().into()
}

/// A tensor of zeros.
pub fn zeros(shape: &[i64], dtype: DType) -> Value {
    Tensor::zeros(shape, dtype).unwrap().into()
}

/// Shape and elements of a tensor.
pub fn numbers(value: &Value) -> (Vec<i64>, Vec<f64>) {
    let t = value.as_tensor().unwrap_or_else(|| panic!("{value:?} is no tensor"));
    (t.shape().to_vec(), t.to_f64_vec().unwrap())
}

/// The elements of a tensor.
pub fn flat(value: &Value) -> Vec<f64> {
    numbers(value).1
}

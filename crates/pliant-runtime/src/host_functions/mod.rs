//! The host functions that imported ONNX models call ([`pliant_kernel_api::host_function_names`]): functions on sequences,
//! optionals and chains, and tensor functions that loop functions do not provide.

mod determinants;
mod input_checks;
mod linked_list;
mod sequence_functions;

use std::sync::Arc;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::host_function_names;
use pliant_tensor::Tensor;
use pliant_vm::{CheckKind, Value, VmError, register_func, register_library_func};

/// The result of a host function.
type Outcome = Result<Value, VmError>;
type HostFn = fn(&[Value]) -> Outcome;
type InterruptibleHostFn = fn(&KernelRuntime, &[Value]) -> Outcome;

/// The functions that imported ONNX models call, by name, except those of [`INTERRUPTIBLE_FUNCTIONS`].
const FUNCTIONS: &[(&str, HostFn)] = &[
    (host_function_names::SEQUENCE, sequence_functions::make),
    (host_function_names::SEQUENCE_INSERT, sequence_functions::insert),
    (host_function_names::SEQUENCE_ERASE, sequence_functions::erase),
    (host_function_names::SEQUENCE_AT, sequence_functions::at),
    (host_function_names::SEQUENCE_LENGTH, sequence_functions::length),
    (host_function_names::SEQUENCE_CONCAT, sequence_functions::concat),
    (host_function_names::SEQUENCE_SPLIT, sequence_functions::split),
    (host_function_names::OPTIONAL_HAS, sequence_functions::has),
    (host_function_names::OPTIONAL_GET, sequence_functions::get),
    (host_function_names::CHAIN_PUSH, linked_list::push),
    (host_function_names::CHAIN_STACK, linked_list::stack),
    (host_function_names::CHAIN_SEQUENCE, linked_list::sequence),
    (host_function_names::INPUT, input_checks::check),
];

/// The functions that imported ONNX models call and that can run for a long time, by name. They stop when the calling run is
/// interrupted.
const INTERRUPTIBLE_FUNCTIONS: &[(&str, InterruptibleHostFn)] =
    &[(host_function_names::DET, determinants::det)];

/// Registers the functions that imported ONNX models call. Functions that the user has registered under these names are kept.
pub(crate) fn register() {
    for &(name, func) in FUNCTIONS {
        let with_plain_error =
            move |args: &[Value]| func(args).map_err(|e| VmError::Plain(Box::new(e)));
        register_func(name, Arc::new(with_plain_error), false);
    }
    for &(name, func) in INTERRUPTIBLE_FUNCTIONS {
        let with_plain_error = move |runtime: &KernelRuntime, args: &[Value]| {
            func(runtime, args).map_err(|e| VmError::Plain(Box::new(e)))
        };
        register_library_func(name, Arc::new(with_plain_error), false);
    }
}

/// Creates the error for wrong arguments of a function that imported models call, named `name`: the first argument is not a
/// sequence where one is required, or the call does not come from an imported model.
pub fn argument_error(name: &str, args: &[Value]) -> VmError {
    match args.first() {
        Some(first) if name.starts_with("pliant.sequence.") && first.as_tuple().is_none() => {
            value_error(format!(
                "{name}: the first argument must be a sequence, but is {}",
                first.kind()
            ))
        }
        _ => {
            let kinds: Vec<&str> = args.iter().map(Value::kind).collect();
            VmError::type_error(format!(
                "{name}: this function, which imported ONNX models call, does not accept arguments of the kinds ({})",
                kinds.join(", ")
            ))
        }
    }
}

/// Creates the error for an argument of a host function whose value is invalid.
fn value_error(message: impl Into<String>) -> VmError {
    VmError::check(CheckKind::Value, message)
}

/// Returns the integer in a tensor of one element. `what` names the tensor in errors.
fn integer(tensor: &Tensor, what: &str) -> Result<i64, VmError> {
    match tensor.to_i64_vec()?.as_slice() {
        [one] => Ok(*one),
        all => Err(value_error(format!(
            "{what} must be one integer, but the tensor has {} elements",
            all.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_function_that_does_not_compile_is_implemented() {
        let interruptible = INTERRUPTIBLE_FUNCTIONS.iter().map(|f| f.0);
        let mut names: Vec<&str> = FUNCTIONS.iter().map(|f| f.0).chain(interruptible).collect();
        let mut all = host_function_names::ALL.to_vec();
        all.retain(|&name| name != host_function_names::NODE);
        names.sort_unstable();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    #[test]
    fn invalid_arguments_do_not_panic() {
        let tensor = Value::Tensor(Tensor::zeros(&[2, 0], pliant_tensor::DType::Float32).unwrap());
        let unusual_values = [
            Value::None,
            Value::Int(-1),
            Value::Bool(true),
            Value::shape(&[-1, i64::MAX]),
            tensor.clone(),
            Value::tuple([tensor, Value::None]),
            Value::tuple([]),
            Value::DType(pliant_tensor::DType::Int64),
            Value::Object(Arc::new(7)),
        ];
        let runtime = &KernelRuntime::serial();
        let functions =
            FUNCTIONS.iter().map(|&(_, func)| Box::new(func) as Box<dyn Fn(&[Value]) -> Outcome>);
        let interruptible = INTERRUPTIBLE_FUNCTIONS
            .iter()
            .map(|&(_, func)| Box::new(move |args: &[Value]| func(runtime, args)) as Box<_>);
        for func in functions.chain(interruptible) {
            let _ = func(&[]);
            for a in &unusual_values {
                let _ = func(std::slice::from_ref(a));
                for b in &unusual_values {
                    let _ = func(&[a.clone(), b.clone()]);
                    for c in &unusual_values {
                        let _ = func(&[a.clone(), b.clone(), c.clone()]);
                        for d in &unusual_values {
                            let _ = func(&[a.clone(), b.clone(), c.clone(), d.clone()]);
                        }
                    }
                }
            }
        }
    }
}

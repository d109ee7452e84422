//! Checks inputs of an imported model that are sequences or optionals against the model's
//! declarations, before the model runs.

use pliant_kernel_api::host_function_names;
use pliant_tensor::Tensor;
use pliant_vm::{CheckKind, Value, VmError};

use super::{Outcome, argument_error};

/// Implements `pliant.onnx.input`, called with `(value, name, declaration)`: returns the value if it matches the declaration of the
/// input `name`, otherwise fails.
pub(super) fn check(args: &[Value]) -> Outcome {
    let [value, Value::Str(name), Value::Str(kind)] = args else {
        return Err(argument_error(host_function_names::INPUT, args));
    };
    check_value(value, &format!("input '{name}'"), kind)?;
    Ok(value.clone())
}

/// Checks a value against a declaration in the form that [`pliant_kernel_api::host_function_names::INPUT`] describes.
/// `what` names the value in errors.
fn check_value(value: &Value, what: &str, kind: &str) -> Result<(), VmError> {
    let inner = |word: &str| kind.strip_prefix(word)?.strip_suffix(')');
    if let Some(item) = inner("optional(") {
        return if matches!(value, Value::None) { Ok(()) } else { check_value(value, what, item) };
    }
    if let Some(item) = inner("sequence(") {
        let Value::Tuple(items) = value else {
            let text = format!("{what} must be a sequence, but is {}", value.kind());
            return Err(VmError::check(CheckKind::Type, text));
        };
        let each = |(i, value)| check_value(value, &format!("item {i} of {what}"), item);
        return items.iter().enumerate().try_for_each(each);
    }
    let Value::Tensor(tensor) = value else {
        let text = format!("{what} must be a tensor, but is {}", value.kind());
        return Err(VmError::check(CheckKind::Type, text));
    };
    check_tensor(tensor, what, kind)
}

fn check_tensor(tensor: &Tensor, what: &str, kind: &str) -> Result<(), VmError> {
    let (dtype, dims) = kind.split_once('[').unwrap_or((kind, ""));
    if tensor.dtype().name() != dtype {
        let text = format!("{what} must be of dtype {dtype}, but is of {}", tensor.dtype());
        return Err(VmError::check(CheckKind::DType, text));
    }
    let Some(dims) = dims.strip_suffix(']') else { return Ok(()) };
    let dims: Vec<&str> = dims.split(", ").filter(|d| !d.is_empty()).collect();
    let shape = tensor.shape();
    let dim_matches = |(dim, size): (&&str, &i64)| *dim == "?" || dim.parse() == Ok(*size);
    if dims.len() == shape.len() && dims.iter().zip(shape).all(dim_matches) {
        return Ok(());
    }
    let text = format!("{what} must be of shape [{}], but is of {shape:?}", dims.join(", "));
    Err(VmError::check(CheckKind::Shape, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatches_are_reported_with_the_input_name_and_item() {
        let tensor = Value::Tensor(Tensor::from_slice(&[2, 1], &[1.0f32, 2.0]).unwrap());
        let message = |value: Value, kind: &str| {
            let result = check(&[value, Value::Str("s".into()), Value::Str(kind.into())]);
            result.err().map_or_else(String::new, |e| e.to_string())
        };
        let items = || Value::tuple([tensor.clone(), tensor.clone()]);
        assert_eq!(message(items(), "sequence(float32)"), "");
        assert_eq!(message(items(), "optional(sequence(float32[?, 1]))"), "");
        assert_eq!(message(Value::None, "optional(float32[])"), "");
        let scalar = Value::Tensor(Tensor::scalar(1.0f32).unwrap());
        assert_eq!(message(scalar, "float32[]"), "");
        assert!(
            message(tensor.clone(), "sequence(float32)")
                .contains("'s' must be a sequence, but is a tensor")
        );
        let dtype = message(items(), "sequence(int64)");
        assert!(
            dtype.contains("item 0 of input 's' must be of dtype int64, but is of float32"),
            "{dtype}"
        );
        let shape = message(items(), "sequence(float32[2, 3])");
        assert!(shape.contains("must be of shape [2, 3], but is of [2, 1]"), "{shape}");
    }
}

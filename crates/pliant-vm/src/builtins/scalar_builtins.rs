//! Builtins that return a scalar: the element of a tensor, and the number of iterations of a range.

use pliant_tensor::{DType, Tensor};

use crate::builtin_operands::Args;
use crate::{CheckKind, Value, VmError};

/// `item(tensor)`: returns the element of a one-element tensor as a scalar.
pub(super) fn item(args: Args<'_>) -> Result<Value, VmError> {
    element(args.tensor(0)?)
}

/// Returns the element of a one-element tensor as a scalar value.
pub(crate) fn element(tensor: &Tensor) -> Result<Value, VmError> {
    if tensor.numel() != 1 {
        let text = format!(
            "vm.builtin.item: the operand must be a tensor of one element, but is {tensor:?}"
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let dtype = tensor.dtype();
    if dtype.is_float() {
        return Ok(Value::Float(tensor.to_f64_vec()?[0]));
    }
    let value = tensor.to_i64_vec()?[0];
    match dtype {
        DType::Bool => Ok(Value::Bool(value != 0)),
        DType::UInt64 if value < 0 => {
            let text = format!(
                "item: the uint64 value {} does not fit a signed 64-bit integer",
                value as u64
            );
            Err(VmError::check(CheckKind::Value, text))
        }
        _ => Ok(Value::Int(value)),
    }
}

/// `trip_count(start, stop, step)`: returns the number of integers in the range, as in Python's `range`.
pub(super) fn trip_count(args: Args<'_>) -> Result<Value, VmError> {
    iterations(args.int(0)?, args.int(1)?, args.int(2)?).map(Value::Int)
}

fn iterations(start: i64, stop: i64, step: i64) -> Result<i64, VmError> {
    if step == 0 {
        let text = format!("R.range({start}, {stop}, 0): the step must not be 0");
        return Err(VmError::check(CheckKind::Division, text));
    }
    let way = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
    let step = i128::from(step).abs();
    let count = if way <= 0 { 0 } else { (way + step - 1) / step };
    i64::try_from(count).map_err(|_| {
        let text = format!("R.range({start}, {stop}) has more than 2^63 iterations");
        VmError::check(CheckKind::Value, text)
    })
}

#[cfg(test)]
mod tests {
    use super::iterations;

    #[test]
    fn the_trip_count_equals_the_length_of_a_python_range() {
        for (start, stop, step, expected) in [
            (0, 5, 2, Some(3)),
            (0, 6, 2, Some(3)),
            (5, 0, -2, Some(3)),
            (5, 0, 2, Some(0)),
            (0, 5, -1, Some(0)),
            (-3, -3, 1, Some(0)),
            (0, 5, 0, None),
            (i64::MIN, i64::MAX, 1, None),
            (i64::MIN, i64::MAX, i64::MAX, Some(3)),
            (i64::MAX, i64::MIN, i64::MIN, Some(2)),
        ] {
            assert_eq!(iterations(start, stop, step).ok(), expected, "{start} {stop} {step}");
        }
    }
}

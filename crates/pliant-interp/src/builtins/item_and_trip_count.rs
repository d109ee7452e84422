//! Builtins that compute scalars: the element of a one-element tensor, and the number of iterations
//! of a range.

use pliant_tensor::{DType, Tensor};

use super::Args;
use crate::interp_error::{ErrorKind, Result};
use crate::{InterpError, Value};

/// `item(tensor)`: returns the element of a one-element tensor as a scalar.
pub(super) fn item(a: Args<'_>) -> Result<Value> {
    let t = a.tensor(0)?;
    if t.numel() != 1 {
        return a.type_mismatch(0, "a tensor of one element");
    }
    element(t)
}

/// Returns the element of a one-element tensor as a scalar.
pub(crate) fn element(t: &Tensor) -> Result<Value> {
    if t.numel() != 1 {
        let text =
            format!("item: expected a tensor of one element, but got {} elements", t.numel());
        return Err(InterpError::check(text));
    }
    Ok(match t.dtype() {
        d if d.is_float() => Value::Float(t.to_f64_vec()?[0]),
        DType::Bool => Value::Bool(t.to_i64_vec()?[0] != 0),
        d => match t.to_i64_vec()?[0] {
            v if v < 0 && d.is_uint() => {
                let text = format!(
                    "item: the uint64 value {} does not fit a signed 64-bit integer",
                    v as u64
                );
                return Err(InterpError::check(text));
            }
            v => Value::Int(v),
        },
    })
}

/// `trip_count(start, stop, step)`: returns the number of iterations of `range(start, stop, step)`.
pub(super) fn trip_count(a: Args<'_>) -> Result<Value> {
    let (start, stop, step) = (a.int(0)?, a.int(1)?, a.int(2)?);
    if step == 0 {
        let text = format!("R.range({start}, {stop}, 0): the step must not be 0");
        return Err(InterpError::new(ErrorKind::DivideByZero, text));
    }
    let (distance, step) = (i128::from(stop) - i128::from(start), i128::from(step));
    let count = if (distance > 0) == (step > 0) {
        distance / step + i128::from(distance % step != 0)
    } else {
        0
    };
    let text = || format!("R.range({start}, {stop}) has more than 2^63 iterations");
    i64::try_from(count).map(Value::Int).map_err(|_| InterpError::check(text()))
}

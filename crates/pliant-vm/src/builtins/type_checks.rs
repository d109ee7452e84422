//! Builtins that check the kind of a value, mostly of an argument. The last operand of each builtin
//! is a context string that names the value, such as `main: 'x'`. On failure, the error states the
//! expected and the actual kind.

use pliant_tensor::{DType, format_shape};

use crate::builtin_operands::Args;
use crate::runtime_value::holds_int;
use crate::{CheckKind, Value, VmError};

/// Describes a value in error messages: a tensor by dtype and shape, a shape by rank, a tuple by length, any other value by kind.
fn describe(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => {
            let (dtype, shape) = (tensor.dtype().with_article(), format_shape(tensor.shape()));
            format!("{dtype} tensor of shape {shape}")
        }
        Value::Shape(shape) => format!("a shape of {}", dims(shape.len() as i64)),
        Value::Tuple(items) => format!("a tuple of {}", values(items.len() as i64)),
        other => other.kind().to_string(),
    }
}

fn dims(n: i64) -> String {
    format!("{n} dim{}", if n == 1 { "" } else { "s" })
}

fn values(n: i64) -> String {
    format!("{n} value{}", if n == 1 { "" } else { "s" })
}

fn subject<'a>(args: &Args<'a>, at: usize) -> &'a str {
    args.text_or(at, "value").lines().next().unwrap_or("value")
}

#[cold]
fn failed(args: &Args<'_>, kind: CheckKind, context_at: usize, wanted: &str) -> VmError {
    VmError::check(kind, mismatch(args, context_at, wanted))
}

/// Returns the error message that operand 0 is not `wanted`, such as `a tensor`. The string at operand `context_at` names the
/// checked value.
fn mismatch(args: &Args<'_>, context_at: usize, wanted: &str) -> String {
    let actual = args.get(0).map_or_else(|| "missing".to_string(), describe);
    format!("{} must be {wanted}, but is {actual}", subject(args, context_at))
}

fn optional_dtype(args: &Args<'_>, i: usize) -> Result<Option<DType>, VmError> {
    match args.get(i) {
        None | Some(Value::None) => Ok(None),
        Some(Value::Str(text)) if text.is_empty() => Ok(None),
        Some(_) => args.dtype(i).map(Some),
    }
}

/// `check_tensor_info(value, ndim or -1, dtype or none, context)`: checks that the value is a tensor of this rank and dtype.
pub(super) fn tensor_info(args: Args<'_>) -> Result<Value, VmError> {
    let (ndim, dtype) = (args.int(1)?, optional_dtype(&args, 2)?);
    if let Value::Tensor(tensor) = args.value(0)?
        && (ndim < 0 || tensor.ndim() as i64 == ndim)
        && dtype.is_none_or(|dtype| dtype == tensor.dtype())
    {
        return Ok(Value::None);
    }
    let kind = match args.value(0)? {
        Value::Tensor(tensor) if dtype.is_some_and(|d| d != tensor.dtype()) => CheckKind::DType,
        Value::Tensor(_) => CheckKind::Shape,
        _ => CheckKind::Type,
    };
    let help = conversion_help(args.value(0)?, dtype);
    let wanted = dtype.map_or("a".to_string(), DType::with_article);
    let rank = if ndim < 0 { String::new() } else { format!(" of {}", dims(ndim)) };
    let text = mismatch(&args, 3, &format!("{wanted} tensor{rank}"));
    Err(VmError::check(kind, text + &help))
}

/// Returns a help text about the conversion of `value` to a tensor of the dtype, if it is a tensor of another dtype, or a tuple
/// or shape, to which a Python list is converted; otherwise an empty string.
fn conversion_help(value: &Value, dtype: Option<DType>) -> String {
    match (value, dtype) {
        (Value::Tensor(tensor), Some(dtype)) if tensor.dtype() != dtype => {
            format!(" (help: convert the tensor with .astype(\"{dtype}\"))")
        }
        (Value::Tuple(_) | Value::Shape(_), Some(dtype)) => {
            format!(" (help: convert a list to an array with np.array(..., dtype=\"{dtype}\"))")
        }
        (Value::Tuple(_) | Value::Shape(_), None) => {
            " (help: convert a list to an array with np.array(...))".to_string()
        }
        _ => String::new(),
    }
}

/// `check_apart(output, other, strided, name of output, name of other)`: fails if the two tensors
/// overlap in memory. `strided` states whether the loop function reads strides. If it does not, it
/// receives a row-major copy of a strided tensor. The copy cannot overlap, so a strided tensor
/// passes the check.
pub(super) fn no_overlap(args: Args<'_>) -> Result<Value, VmError> {
    let (output, other) = (args.tensor(0)?, args.tensor(1)?);
    if (other.is_row_major_aligned() || args.int(2)? != 0) && output.overlaps(other) {
        let [output, other] = [3, 4].map(|i| subject(&args, i));
        let text = format!(
            "{output} is written, but shares memory with {other}; pass a tensor with memory of its own"
        );
        return Err(VmError::check(CheckKind::Value, text));
    }
    Ok(Value::None)
}

/// `check_shape_info(value, ndim or -1, context)`: checks that the value is a shape of this rank.
pub(super) fn shape_info(args: Args<'_>) -> Result<Value, VmError> {
    let ndim = args.int(1)?;
    if let Value::Shape(shape) = args.value(0)?
        && (ndim < 0 || shape.len() as i64 == ndim)
    {
        return Ok(Value::None);
    }
    let rank = if ndim < 0 { String::new() } else { format!(" of {}", dims(ndim)) };
    let kind =
        if matches!(args.value(0)?, Value::Shape(_)) { CheckKind::Shape } else { CheckKind::Type };
    Err(failed(&args, kind, 2, &format!("a shape{rank}")))
}

/// `check_tuple_info(value, length or -1, context)`: checks that the value is a tuple of this length.
pub(super) fn tuple_info(args: Args<'_>) -> Result<Value, VmError> {
    let len = args.int(1)?;
    if let Value::Tuple(items) = args.value(0)?
        && (len < 0 || items.len() as i64 == len)
    {
        return Ok(Value::None);
    }
    let size = if len < 0 { String::new() } else { format!(" of {}", values(len)) };
    Err(failed(&args, CheckKind::Type, 2, &format!("a tuple{size}")))
}

/// `check_prim_value_info(value, dtype, context)`: checks that the value is a scalar of the dtype's kind (integer, float or bool)
/// and in its range.
pub(super) fn prim_value_info(args: Args<'_>) -> Result<Value, VmError> {
    let dtype = optional_dtype(&args, 1)?;
    let fits = match (args.value(0)?, dtype) {
        (Value::Int(_) | Value::Float(_) | Value::Bool(_), None) => true,
        (Value::Int(v), Some(dtype)) => dtype.is_integer() && holds_int(dtype, *v),
        (Value::Float(v), Some(dtype)) => dtype.has_float(*v),
        (Value::Bool(_), Some(dtype)) => dtype.is_bool(),
        _ => false,
    };
    if fits {
        return Ok(Value::None);
    }
    let wanted =
        dtype.map_or("a scalar".to_string(), |dtype| format!("{} scalar", dtype.with_article()));
    let scalar = matches!(args.value(0)?, Value::Int(_) | Value::Float(_) | Value::Bool(_));
    let kind = if scalar { CheckKind::DType } else { CheckKind::Type };
    if let (Value::Int(v), Some(dtype)) = (args.value(0)?, dtype)
        && dtype.is_integer()
    {
        let text = format!(
            "{} must be {wanted}, but {v} is out of the range of this type",
            subject(&args, 2)
        );
        return Err(VmError::check(kind, text));
    }
    Err(failed(&args, kind, 2, &wanted))
}

/// `check_func_info(value, context)`: checks that the value is a function.
pub(super) fn func_info(args: Args<'_>) -> Result<Value, VmError> {
    match args.value(0)? {
        Value::Func(_) => Ok(Value::None),
        _ => Err(failed(&args, CheckKind::Type, 1, "a function")),
    }
}

//! The builtins `print` and `assert_op`, which format values as text. Both return an empty tuple.

use std::io::Write;

use pliant_tensor::{fill_format, format_elements, format_shape};

use crate::builtin_operands::Args;
use crate::interpreter::condition;
use crate::{CheckKind, Value, VmError};

/// `print(format, values..)`: prints a line to standard output. The format supports Python's `{}`, `{0}`, `{{` and `}}`. An empty
/// format prints the values separated by spaces.
pub(super) fn print(args: Args<'_>) -> Result<Value, VmError> {
    let mut line = text(&args, 0, " ")?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(VmError::external)?;
    Ok(Value::tuple([]))
}

/// `assert_op(condition, format, values..)`: fails with the formatted message if the condition is false.
pub(super) fn assert_op(args: Args<'_>) -> Result<Value, VmError> {
    if condition(args.value(0)?)? {
        return Ok(Value::tuple([]));
    }
    let text = if args.len() > 1 { text(&args, 1, ", ")? } else { String::new() };
    let colon = if text.is_empty() { "" } else { ": " };
    let text = format!("an assertion of the program failed{colon}{text}");
    Err(VmError::check(CheckKind::Assertion, text))
}

/// Formats the operands after operand `at` with the format string in operand `at`. If the format
/// string is empty, separates the values by `separator`.
fn text(args: &Args<'_>, at: usize, separator: &str) -> Result<String, VmError> {
    let Some(Value::Str(format)) = args.get(at) else {
        return Err(VmError::type_error(format!("{}: operand {at} must be a string", args.name)));
    };
    let values: Vec<String> = args.iter().skip(at + 1).map(display_value).collect();
    fill_format(format, &values, separator).map_err(VmError::type_error)
}

/// Formats a value as text for users. The text of a tensor lists its elements.
fn display_value(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Shape(dims) => format_shape(dims),
        Value::Tensor(tensor) => format_elements(tensor).unwrap_or_else(|_| format!("{tensor:?}")),
        other => format!("{other:?}"),
    }
}

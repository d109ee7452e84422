//! The builtins `print` and `assert_op`, which format values as text in the same way as the VM.

use std::io::Write;

use pliant_tensor::{fill_format, format_elements, format_shape};

use super::{Args, condition};
use crate::interp_error::Result;
use crate::{InterpError, Value};

/// `print(format, values..)`: prints a line to standard output.
pub(super) fn print(a: Args<'_>) -> Result<()> {
    let line = format_operands(a, 0, " ")?;
    // An error, such as a closed pipe, does not stop the program.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
    Ok(())
}

/// `assert_op(condition, format, values..)`: fails with the formatted text if the condition is false.
pub(super) fn assert_op(a: Args<'_>) -> Result<()> {
    if condition(a.value(0)?)? {
        return Ok(());
    }
    let text = if a.0.len() > 1 { format_operands(a, 1, ", ")? } else { String::new() };
    let colon = if text.is_empty() { "" } else { ": " };
    Err(InterpError::check(format!("an assertion of the program failed{colon}{text}")))
}

/// Formats the operands after operand `i`. Operand `i` is the format string.
fn format_operands(a: Args<'_>, i: usize, separator: &str) -> Result<String> {
    let Value::Str(format) = a.value(i)? else { return a.type_mismatch(i, "a string") };
    let values: Vec<String> = a.0[i + 1..].iter().map(display_text).collect();
    fill_format(format, &values, separator).map_err(InterpError::type_error)
}

/// Formats a value as text for users. The text of a tensor lists its elements.
fn display_text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Shape(dims) => format_shape(dims),
        Value::Tensor(tensor) => format_elements(tensor).unwrap_or_else(|_| format!("{tensor:?}")),
        other => format!("{other:?}"),
    }
}

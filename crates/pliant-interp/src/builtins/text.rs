//! Builtins that format values as text, like the VM.

use std::io::Write;

use pliant_tensor::{fill_format, format_elements, format_shape};

use super::{Args, condition};
use crate::error::Result;
use crate::{InterpError, Value};

/// `print(format, values..)`: a line on standard output.
pub(super) fn print(a: Args<'_>) -> Result<()> {
    let line = filled(a, 0, " ")?;
    // A closed pipe does not stop the program.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
    Ok(())
}

/// `assert_op(condition, format, values..)`: fails with the formatted text unless the bool scalar
/// is true.
pub(super) fn assert_op(a: Args<'_>) -> Result<()> {
    if condition(a.value(0)?)? {
        return Ok(());
    }
    let text = if a.0.len() > 1 { filled(a, 1, ", ")? } else { String::new() };
    let colon = if text.is_empty() { "" } else { ": " };
    Err(InterpError::check(format!("an assertion of the program failed{colon}{text}")))
}

/// The format at operand `at`, applied to the operands after it.
fn filled(a: Args<'_>, at: usize, separator: &str) -> Result<String> {
    let Value::Str(format) = a.value(at)? else { return a.wrong(at, "a text") };
    let values: Vec<String> = a.0[at + 1..].iter().map(show).collect();
    fill_format(format, &values, separator).map_err(InterpError::type_error)
}

/// A value as text for users: tensors by their elements.
fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Shape(dims) => format_shape(dims),
        Value::Tensor(tensor) => format_elements(tensor).unwrap_or_else(|_| format!("{tensor:?}")),
        other => format!("{other:?}"),
    }
}

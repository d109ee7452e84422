//! Builtins that write values as text: prints and assertions of a program. They return the empty tuple.

use std::io::Write;

use pliant_tensor::{DType, Tensor};

use crate::args::Args;
use crate::run::condition;
use crate::{CheckKind, Value, VmError};

/// Tensors of more elements are shown by their first and last ones.
const MAX_ELEMENTS: usize = 1000;
/// So many at each end of each dim.
const EDGE: i64 = 3;

/// `print(format, values..)`: a line on standard output. The format is Python's with `{}`, `{0}`, `{{` and `}}`; an
/// empty one stands for the values with spaces between.
pub(super) fn print(args: Args<'_>) -> Result<Value, VmError> {
    let mut line = text(&args, 0, " ")?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(VmError::external)?;
    Ok(Value::tuple([]))
}

/// `assert_op(condition, format, values..)`: fails unless the bool scalar holds, with the format's text.
pub(super) fn assert_op(args: Args<'_>) -> Result<Value, VmError> {
    if condition(args.value(0)?)? {
        return Ok(Value::tuple([]));
    }
    let text = if args.len() > 1 { text(&args, 1, ", ")? } else { String::new() };
    let colon = if text.is_empty() { "" } else { ": " };
    let text = format!("an assertion of the program failed{colon}{text}");
    Err(VmError::check(CheckKind::Assertion, text))
}

/// The format at operand `at`, filled with the operands after it.
fn text(args: &Args<'_>, at: usize, separator: &str) -> Result<String, VmError> {
    let Some(Value::Str(format)) = args.get(at) else {
        return Err(VmError::type_error(format!("{}: operand {at} must be a text", args.name)));
    };
    let values: Vec<&Value> = args.iter().skip(at + 1).collect();
    if format.is_empty() {
        let texts: Vec<String> = values.into_iter().map(show).collect();
        return Ok(texts.join(separator));
    }
    fill(format, &values)
}

fn fill(format: &str, values: &[&Value]) -> Result<String, VmError> {
    let wrong = |what: String| VmError::type_error(format!("the format {format:?} {what}"));
    let (mut out, mut next) = (String::new(), 0usize);
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let Some((field, after)) = rest.split_once('}').filter(|_| brace == "{") else {
            return Err(wrong(format!("has a single '{brace}'")));
        };
        rest = after;
        let index = match field {
            "" => {
                next += 1;
                next - 1
            }
            _ => field.parse().map_err(|_| {
                wrong(format!("has the field '{{{field}}}'; only '{{}}' and '{{0}}' are known"))
            })?,
        };
        let value = values.get(index).ok_or_else(|| {
            wrong(format!("asks for value {index}, but there are {}", values.len()))
        })?;
        out.push_str(&show(value));
    }
    out.push_str(rest);
    Ok(out)
}

/// A value as a program's reader expects it: tensors by their elements.
fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Shape(dims) => {
            let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
            format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" })
        }
        Value::Tensor(tensor) => elements(tensor).unwrap_or_else(|_| format!("{tensor:?}")),
        other => format!("{other:?}"),
    }
}

fn elements(tensor: &Tensor) -> Result<String, VmError> {
    let texts: Vec<String> = match tensor.dtype() {
        DType::Bool => tensor.to_i64_vec()?.iter().map(|&v| (v != 0).to_string()).collect(),
        DType::UInt64 => tensor.to_i64_vec()?.iter().map(|&v| (v as u64).to_string()).collect(),
        // As float32, so that what was written as 0.1 reads so.
        dtype if dtype.is_float() && dtype != DType::Float64 => {
            tensor.to_f64_vec()?.iter().map(|&v| format!("{:?}", v as f32)).collect()
        }
        DType::Float64 => tensor.to_f64_vec()?.iter().map(|v| format!("{v:?}")).collect(),
        _ => tensor.to_i64_vec()?.iter().map(i64::to_string).collect(),
    };
    let edge = if texts.len() > MAX_ELEMENTS { EDGE } else { i64::MAX };
    let mut out = String::new();
    nested(tensor.shape(), &texts, edge, &mut out);
    Ok(out)
}

fn nested(shape: &[i64], texts: &[String], edge: i64, out: &mut String) {
    let [dim, inner @ ..] = shape else {
        out.push_str(texts.first().map_or("", String::as_str));
        return;
    };
    out.push('[');
    // What has no elements has dims of any size, whose brackets say nothing.
    let (dim, size) = if texts.is_empty() { (0, 0) } else { (*dim, texts.len() / *dim as usize) };
    let mut i = 0;
    while i < dim {
        out.push_str(if i == 0 { "" } else { ", " });
        if i == edge && edge < dim - edge {
            out.push_str("..");
            i = dim - edge;
            continue;
        }
        nested(inner, &texts[i as usize * size..(i as usize + 1) * size], edge, out);
        i += 1;
    }
    out.push(']');
}

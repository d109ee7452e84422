//! Formats tensors and shapes as text, and fills in format strings.

use crate::{DType, Tensor, TensorError};

/// Maximum number of elements that are printed in full. Larger tensors are abbreviated.
const MAX_ELEMENTS: usize = 1000;
/// Number of elements that are printed at each end of a dim of a large tensor. The elements between them are omitted.
const EDGE: i64 = 3;

/// Formats a shape in Python syntax: `(2, 3)`, `(2,)`.
pub fn format_shape(dims: &[i64]) -> String {
    let texts: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("({}{})", texts.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// Fills a Python format string that contains `{}`, `{0}`, `{{` and `}}`. An empty format joins the values with `separator`.
///
/// # Errors
/// A message if the format is invalid.
pub fn fill_format(format: &str, values: &[String], separator: &str) -> Result<String, String> {
    if format.is_empty() {
        return Ok(values.join(separator));
    }
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
            return Err(format!(
                "the format {format:?} has a single '{brace}'; write '{brace}{brace}' for a literal '{brace}'"
            ));
        };
        rest = after;
        let index = match field {
            "" => {
                next += 1;
                next - 1
            }
            _ => field.parse().map_err(|_| {
                format!("the format {format:?} has the field '{{{field}}}'; only '{{}}' and '{{0}}' are supported")
            })?,
        };
        let value = values.get(index).ok_or_else(|| {
            format!("the format {format:?} asks for value {index}, but there are {}", values.len())
        })?;
        out.push_str(value);
    }
    out.push_str(rest);
    Ok(out)
}

/// Formats the elements of a tensor as text in brackets. For a large tensor, only the first and
/// last elements of each dim are included.
///
/// # Errors
/// The elements cannot be read.
pub fn format_elements(tensor: &Tensor) -> Result<String, TensorError> {
    let texts: Vec<String> = match tensor.dtype() {
        DType::Bool => tensor.to_i64_vec()?.iter().map(|&v| (v != 0).to_string()).collect(),
        DType::UInt64 => tensor.to_i64_vec()?.iter().map(|&v| (v as u64).to_string()).collect(),
        // Format as float32, so that 0.1 prints as 0.1.
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
    // The dims of a tensor without elements can be arbitrarily large, so print no brackets for them.
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

//! Values as the reader of a program's output expects them, and formats that they are put into.

use crate::{DType, Tensor, TensorError};

/// Tensors of more elements are shown by their first and last ones.
const MAX_ELEMENTS: usize = 1000;
/// So many at each end of each dim.
const EDGE: i64 = 3;

/// A shape as Python writes it: `(2, 3)`, `(2,)`.
pub fn shape_text(dims: &[i64]) -> String {
    let texts: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("({}{})", texts.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// A format of Python's with `{}`, `{0}`, `{{` and `}}`, filled with values as text. An empty one stands for the values
/// with `separator` between.
///
/// # Errors
/// What is wrong with the format, in words.
pub fn fill_format(format: &str, values: &[String], separator: &str) -> Result<String, String> {
    if format.is_empty() {
        return Ok(values.join(separator));
    }
    let wrong = |what: String| format!("the format {format:?} {what}");
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
        out.push_str(value);
    }
    out.push_str(rest);
    Ok(out)
}

/// A tensor by its elements, in brackets; of a large one the first and last of each dim.
///
/// # Errors
/// Where the elements cannot be read.
pub fn elements_text(tensor: &Tensor) -> Result<String, TensorError> {
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

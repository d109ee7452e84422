//! Formats literals of scripts: strings, numbers, attribute values, small tensors.

use std::fmt::Write;

use pliant_tensor::{DType, Tensor};

use crate::attr_values::{AttrValue, FuncAttrs};

/// Formats a text as a Python string literal.
pub(crate) fn py_str(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a float as a literal that parses to the same `f64`.
pub(crate) fn py_float(value: f64) -> String {
    if value.is_nan() {
        format!("float(\"{}\")", nan_text(value))
    } else if value.is_infinite() {
        if value > 0.0 { "float(\"inf\")".into() } else { "float(\"-inf\")".into() }
    } else {
        finite_float(value)
    }
}

/// Returns the text of a NaN with the sign of `value`: `nan` or `-nan`.
fn nan_text(value: f64) -> &'static str {
    if value.is_sign_negative() { "-nan" } else { "nan" }
}

/// Formats a finite float, always with a decimal point or an exponent.
fn finite_float(value: f64) -> String {
    // `Debug` of f64 prints the shortest text that parses to the same value, in Python's syntax.
    format!("{value:?}")
}

/// The shortest text that parses to the same element of the data type `dtype`.
pub(crate) fn float_digits(value: f64, dtype: DType) -> String {
    if dtype != DType::Float64 {
        let short = format!("{:?}", value as f32);
        if short.parse::<f64>().is_ok_and(|v| round_to(v, dtype) == round_to(value, dtype))
            && round_to(value, dtype) == value
        {
            return short;
        }
    }
    finite_float(value)
}

/// Rounds `value` to the nearest value of a float data type.
pub(crate) fn round_to(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => pliant_tensor::round_to_f16(value).to_f64(),
        DType::BFloat16 => pliant_tensor::round_to_bf16(value).to_f64(),
        DType::Float32 => f64::from(value as f32),
        _ => value,
    }
}

/// Formats a float constant with its type, such as `T.float32(1.5)` or `T.float32("inf")`.
pub(crate) fn typed_float(value: f64, dtype: DType) -> String {
    if value.is_finite() {
        return format!("T.{dtype}({})", float_digits(value, dtype));
    }
    let text = match value {
        v if v.is_nan() => nan_text(v),
        v if v > 0.0 => "inf",
        _ => "-inf",
    };
    format!("T.{dtype}(\"{text}\")")
}

/// Appends the script text of an attribute value to `out`.
pub(crate) fn attr_value(out: &mut String, value: &AttrValue) {
    match value {
        AttrValue::None => out.push_str("None"),
        AttrValue::Bool(true) => out.push_str("True"),
        AttrValue::Bool(false) => out.push_str("False"),
        AttrValue::Int(v) => {
            let _ = write!(out, "{v}");
        }
        AttrValue::Float(bits) => out.push_str(&py_float(f64::from_bits(*bits))),
        AttrValue::Str(s) => out.push_str(&py_str(s)),
        AttrValue::DType(d) => {
            let _ = write!(out, "\"{d}\"");
        }
        AttrValue::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                attr_value(out, item);
            }
            out.push(']');
        }
        AttrValue::Map(items) => attr_map(out, items.iter().map(|(k, v)| (&**k, v))),
    }
}

/// Appends attributes to `out` as a Python dictionary.
pub(crate) fn attr_map<'a>(
    out: &mut String,
    items: impl Iterator<Item = (&'a str, &'a AttrValue)>,
) {
    out.push('{');
    for (i, (key, value)) in items.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(&py_str(key));
        out.push_str(": ");
        attr_value(out, value);
    }
    out.push('}');
}

/// Formats the attributes of a function or module as a Python dictionary.
pub(crate) fn func_attrs(attrs: &FuncAttrs) -> String {
    let mut out = String::new();
    attr_map(&mut out, attrs.iter().map(|(k, v)| (&**k, v)));
    out
}

/// Formats a small tensor as a number or nested lists; `None` for a large tensor, which scripts contain in the table `metadata`.
pub(crate) fn small_tensor(tensor: &Tensor) -> Option<String> {
    const LIMIT: usize = 16;
    if tensor.numel() == 0 || tensor.numel() > LIMIT || tensor.ndim() > 4 || has_nan_payload(tensor)
    {
        return None;
    }
    number_lists(tensor)
}

/// Whether an element is a NaN with other bits than those of the literals `nan` and `-nan`.
fn has_nan_payload(tensor: &Tensor) -> bool {
    let (size, exponent, quiet): (usize, u64, u64) = match tensor.dtype() {
        DType::Float16 => (2, 0x7c00, 0x7e00),
        DType::BFloat16 => (2, 0x7f80, 0x7fc0),
        DType::Float32 => (4, 0x7f80_0000, 0x7fc0_0000),
        DType::Float64 => (8, 0x7ff0 << 48, 0x7ff8 << 48),
        _ => return false,
    };
    let contiguous = tensor.to_contiguous();
    let Some(bytes) = contiguous.as_ref().ok().and_then(|t| t.as_bytes().ok()) else {
        return false;
    };
    bytes.chunks_exact(size).any(|element| {
        let bits = element.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        let magnitude = bits & ((1 << (8 * size - 1)) - 1);
        magnitude > exponent && magnitude != quiet
    })
}

/// Formats the elements of a large constant for the table `metadata`: as nested lists of numbers, wrapped to lines, if there are at
/// most 512 elements and none is NaN; otherwise as base64 text. Numbers do not state the bits of a NaN.
pub(crate) fn metadata_elements(tensor: &Tensor) -> String {
    const LIMIT: usize = 512;
    let has_nan = || tensor.to_f64_vec().is_ok_and(|values| values.iter().any(|v| v.is_nan()));
    let is_readable = (1..=LIMIT).contains(&tensor.numel()) && !has_nan();
    match is_readable.then(|| number_lists(tensor)).flatten() {
        Some(text) => wrapped(&text),
        None => format!("\"{}\"", base64(tensor).unwrap_or_default()),
    }
}

/// Breaks a list between elements, so that lines have at most about 120 columns.
fn wrapped(list: &str) -> String {
    let mut out = String::with_capacity(list.len());
    let mut column = 40;
    for (i, element) in list.split(", ").enumerate() {
        column += element.len() + 2;
        if i > 0 {
            out.push_str(if column > 110 { ",\n            " } else { ", " });
        }
        if column > 110 {
            column = 12 + element.len();
        }
        out.push_str(element);
    }
    out
}

/// Formats the elements of a tensor as a number or nested lists of numbers. `None` if they cannot be read.
fn number_lists(tensor: &Tensor) -> Option<String> {
    let dtype = tensor.dtype();
    let items: Vec<String> = if dtype.is_float() {
        let values = tensor.to_f64_vec().ok()?;
        let digits = |v: f64| if v.is_finite() { float_digits(v, dtype) } else { py_float(v) };
        values.into_iter().map(digits).collect()
    } else {
        let values = tensor.to_i64_vec().ok()?;
        let text = |v: i64| match dtype {
            DType::Bool => if v != 0 { "True" } else { "False" }.to_string(),
            DType::UInt64 => (v as u64).to_string(),
            _ => v.to_string(),
        };
        values.into_iter().map(text).collect()
    };
    Some(nested_lists(tensor.shape(), &items))
}

/// Formats the elements of a tensor as nested lists.
fn nested_lists(shape: &[i64], items: &[String]) -> String {
    let Some((&dim, rest)) = shape.split_first() else { return items[0].clone() };
    let chunk = items.len() / dim as usize;
    let rows: Vec<String> = items.chunks(chunk).map(|row| nested_lists(rest, row)).collect();
    format!("[{}]", rows.join(", "))
}

/// Encodes the elements of a tensor, as little-endian bytes, in base64. `None` if they cannot be read.
pub(crate) fn base64(tensor: &Tensor) -> Option<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let tensor = tensor.to_contiguous().ok()?;
    let bytes = tensor.as_bytes().ok()?;
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(DIGITS[(word >> (18 - 6 * i)) as usize & 63] as char);
            } else {
                out.push('=');
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_floats_parse_to_the_same_value() {
        assert_eq!(typed_float(f64::from(0.1f32), DType::Float32), "T.float32(0.1)");
        assert_eq!(typed_float(0.1, DType::Float64), "T.float64(0.1)");
        assert_eq!(typed_float(f64::NEG_INFINITY, DType::Float32), "T.float32(\"-inf\")");
        assert_eq!(py_float(1.0), "1.0");
        assert_eq!(py_float(1e300), "1e300");
    }

    #[test]
    fn small_tensors_are_lists() {
        let t = Tensor::from_slice(&[2, 2], &[1i64, 2, 3, 4]).unwrap();
        assert_eq!(small_tensor(&t).unwrap(), "[[1, 2], [3, 4]]");
        let s = Tensor::scalar(true).unwrap();
        assert_eq!(small_tensor(&s).unwrap(), "True");
        assert!(small_tensor(&Tensor::zeros(&[0, 2], DType::Float32).unwrap()).is_none());
    }

    #[test]
    fn elements_of_the_metadata_are_wrapped_lists_or_base64() {
        let of = |n: i64, value: f32| {
            let values: Vec<f32> = (0..n).map(|i| i as f32 * value).collect();
            metadata_elements(&Tensor::from_slice(&[n], &values).unwrap())
        };
        let text = of(100, 0.25);
        assert!(text.starts_with("[0.0, 0.25, 0.5, ") && text.ends_with(", 24.75]"), "{text}");
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.len() <= 120), "{text}");
        assert!(of(513, 0.25).starts_with('"'));
        assert!(of(17, f32::NAN).starts_with('"'));
    }

    #[test]
    fn base64_is_padded() {
        let t = |b: &[u8]| Tensor::from_slice(&[b.len() as i64], b).unwrap();
        assert_eq!(base64(&t(b"Man")).unwrap(), "TWFu");
        assert_eq!(base64(&t(b"Ma")).unwrap(), "TWE=");
        assert_eq!(base64(&t(b"M")).unwrap(), "TQ==");
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(py_str("a\"b\\\n\u{1}é"), "\"a\\\"b\\\\\\n\\u0001é\"");
    }
}

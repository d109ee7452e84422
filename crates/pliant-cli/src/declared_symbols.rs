//! Parses the sizes and ranges of a model's symbols that `pliant compile --shape` declares before
//! the compilation.

use pliant::onnx::{self, DeclaredSize, DeclaredValue, DynamicDim, ImportOptions, evaluate_dim};

use crate::Failure;
use crate::shape_option::Axis;

/// Returns the ONNX import options for the declared symbols. A symbol with one size becomes that
/// constant. A symbol with several sizes gets the range that they span, which is checked at run
/// time.
///
/// # Errors
/// If no input of the model has a declared symbol.
pub fn options(model: &onnx::Model, declared: &[Axis]) -> Result<ImportOptions, Failure> {
    let inputs = model.required_inputs();
    let mut known = Vec::new();
    for (_, text) in inputs.iter().flat_map(symbolic_dims) {
        known.extend(symbol_names(text));
    }
    known.sort();
    known.dedup();
    if let Some(axis) = declared.iter().find(|f| !known.contains(&f.symbol)) {
        let symbol = &axis.symbol;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let text = format!(
            "error: --shape {symbol}: no input of the model has the symbol '{symbol}' (the symbols are: {known})"
        );
        return Err(Failure::new(text));
    }
    let mut options = ImportOptions::default();
    for input in &inputs {
        let declarations = symbolic_dims(input)
            .filter_map(|(axis, text)| Some((axis, declaration(text, declared)?)));
        let declarations: Vec<(usize, DynamicDim)> = declarations.collect();
        if !declarations.is_empty() {
            options.dynamic.insert(input.name.clone(), declarations.into_iter().collect());
        }
    }
    Ok(options)
}

/// The axes of an input with symbolic sizes, and the texts of these sizes, such as `n * 2`.
fn symbolic_dims(input: &DeclaredValue) -> impl Iterator<Item = (usize, &str)> {
    input.dims.iter().flatten().enumerate().filter_map(|(axis, dim)| match &dim.size {
        DeclaredSize::Symbol(text) if text.contains(char::is_alphanumeric) => {
            Some((axis, text.trim()))
        }
        _ => None,
    })
}

/// The names of the symbols in the text of a dim, such as `n` in `n * 2`.
fn symbol_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    evaluate_dim(text, &mut |name| {
        names.push(name.to_owned());
        Some(1)
    });
    // Text that is not an arithmetic expression is the name of a symbol.
    if names.is_empty() && !text.is_empty() && text.parse::<i64>().is_err() {
        names.push(text.to_owned());
    }
    names
}

/// Returns what `--shape` declares about a dim of a model input, given the dim's text such as `n * 2`: a range if the dim is a
/// symbol with several sizes, otherwise the text with the sizes of symbols inserted. `None` if nothing is declared.
fn declaration(text: &str, declared: &[Axis]) -> Option<DynamicDim> {
    if let Some(axis) = declared.iter().find(|f| f.symbol == text)
        && let (Some(&min), Some(&max)) = (axis.sizes.iter().min(), axis.sizes.iter().max())
        && min < max
    {
        return Some(DynamicDim { name: None, min: Some(min), max: Some(max) });
    }
    let mut substituted = text.to_owned();
    for axis in declared {
        if let [size] = axis.sizes[..] {
            substituted = substitute(&substituted, &axis.symbol, size);
        }
    }
    (substituted != text).then_some(DynamicDim { name: Some(substituted), min: None, max: None })
}

/// The text with each occurrence of a name replaced by a number.
fn substitute(text: &str, name: &str, size: i64) -> String {
    if text == name {
        return size.to_string();
    }
    let is_name_char = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_name_char(first) {
            true => rest.find(|c| !is_name_char(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, remainder) = rest.split_at(end);
        if token == name {
            out += &size.to_string();
        } else {
            out += token;
        }
        rest = remainder;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_symbols_are_substituted_in_dims() {
        let axis =
            |symbol: &str, sizes: &[i64]| Axis { symbol: symbol.into(), sizes: sizes.into() };
        let declared = [axis("batch", &[1, 2, 32]), axis("seq", &[8])];
        let declarations =
            |text: &str| declaration(text, &declared).map(|d| (d.name, d.min, d.max));
        assert_eq!(declarations("batch"), Some((None, Some(1), Some(32))));
        assert_eq!(declarations("seq"), Some((Some("8".into()), None, None)));
        assert_eq!(declarations("2*seq + past"), Some((Some("2*8 + past".into()), None, None)));
        assert_eq!(declarations("seq_2"), None);
        assert_eq!(symbol_names("past + seq // 2"), ["past", "seq"]);
        assert_eq!(symbol_names("batch size"), ["batch size"]);
        assert_eq!(symbol_names("12"), [""; 0]);
    }
}

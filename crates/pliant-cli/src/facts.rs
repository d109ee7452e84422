//! `pliant compile --shape`: declares the symbols of a model before it is compiled.

use pliant::onnx::{self, DynamicDim, ImportOptions, evaluate_dim};

use crate::Failure;
use crate::shapes::Axis;

/// The import options for the declared symbols: a symbol with one size becomes that number, one
/// with a range is checked at run time.
///
/// # Errors
/// If no input of the model has a symbol.
pub fn options(model: &onnx::Model, facts: &[Axis]) -> Result<ImportOptions, Failure> {
    let inputs = model.inputs();
    let mut known = Vec::new();
    for text in inputs.iter().flat_map(|(_, dims)| dims) {
        known.extend(names(text));
    }
    known.sort();
    known.dedup();
    if let Some(fact) = facts.iter().find(|f| !known.contains(&f.symbol)) {
        let symbol = &fact.symbol;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let text =
            format!("error: --shape {symbol}: no input has that symbol (they have: {known})");
        return Err(Failure::new(text));
    }
    let mut options = ImportOptions::default();
    for (input, dims) in &inputs {
        let said =
            dims.iter().enumerate().filter_map(|(axis, text)| Some((axis, dim(text, facts)?)));
        let said: Vec<(usize, DynamicDim)> = said.collect();
        if !said.is_empty() {
            options.dynamic.insert(input.clone(), said.into_iter().collect());
        }
    }
    Ok(options)
}

/// The names in the text of a dim.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    evaluate_dim(text, &mut |name| {
        names.push(name.to_owned());
        Some(1)
    });
    // Text that is not arithmetic is a name.
    if names.is_empty() && !text.is_empty() && text.parse::<i64>().is_err() {
        names.push(text.to_owned());
    }
    names
}

/// The declaration for a dim.
fn dim(text: &str, facts: &[Axis]) -> Option<DynamicDim> {
    if let Some(fact) = facts.iter().find(|f| f.symbol == text)
        && let (Some(&min), Some(&max)) = (fact.sizes.iter().min(), fact.sizes.iter().max())
        && min < max
    {
        return Some(DynamicDim { name: None, min: Some(min), max: Some(max) });
    }
    let mut written = text.to_owned();
    for fact in facts {
        if let [size] = fact.sizes[..] {
            written = replaced(&written, &fact.symbol, size);
        }
    }
    (written != text).then_some(DynamicDim { name: Some(written), min: None, max: None })
}

/// The text with a name replaced by a number.
fn replaced(text: &str, name: &str, size: i64) -> String {
    if text == name {
        return size.to_string();
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match word(first) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(end);
        if token == name {
            out += &size.to_string();
        } else {
            out += token;
        }
        rest = behind;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_put_into_dims() {
        let fact =
            |symbol: &str, sizes: &[i64]| Axis { symbol: symbol.into(), sizes: sizes.into() };
        let facts = [fact("batch", &[1, 2, 32]), fact("seq", &[8])];
        let said = |text: &str| dim(text, &facts).map(|d| (d.name, d.min, d.max));
        assert_eq!(said("batch"), Some((None, Some(1), Some(32))));
        assert_eq!(said("seq"), Some((Some("8".into()), None, None)));
        assert_eq!(said("2*seq + past"), Some((Some("2*8 + past".into()), None, None)));
        assert_eq!(said("seq_2"), None);
        assert_eq!(names("past + seq // 2"), ["past", "seq"]);
        assert_eq!(names("batch size"), ["batch size"]);
        assert_eq!(names("12"), [""; 0]);
    }
}

//! Mutates the tokens, bracketed expressions and lines of a script.

use std::ops::Range;

use pliant_kernels::extern_fns;

use super::super::random_numbers::{Rng, mutate_bytes};

/// Words that replace other words of a script, such as `T.parallel`.
const WORDS: &[&str] = &[
    "T.parallel",
    "T.serial",
    "T.vectorized",
    "T.unroll",
    "T.grid",
    "range",
    "T.block",
    "T.reads",
    "T.writes",
    "T.init",
    "T.min",
    "T.max",
    "T.floordiv",
    "T.floormod",
    "T.truncdiv",
    "T.if_then_else",
    "T.Select",
    "T.exp",
    "T.sin",
    "T.abs",
    "T.int64",
    "T.int32",
    "T.int8",
    "T.uint8",
    "T.float32",
    "T.float64",
    "T.bool",
    "T.cast",
    "T.address_of",
    "T.likely",
    "T.decl_buffer",
    "T.alloc_buffer",
    "T.match_buffer",
    "T.reinterpret",
    "T.shift_left",
    "T.shift_right",
    "T.Ramp",
    "T.Broadcast",
    "R.call_tir",
    "R.call_tir_inplace",
    "R.add",
    "R.matmul",
    "R.take",
    "R.reshape",
    "R.concat",
    "R.sum",
    "R.strided_slice",
    "R.gather_elements",
    "R.scatter_elements",
    "R.permute_dims",
    "R.topk",
    "R.nonzero",
    "R.unique",
    "True",
    "False",
    "None",
    "if",
    "while",
    "and",
    "or",
    "not",
];

const DTYPES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "handle",
    "float32x4",
    "int64x4",
    "n",
    "m",
    "n + 1",
    "2 * n",
    "n - 1",
    "n // 2",
];

const OPERATORS: &[&str] =
    &["+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=", "/", "&", "|", "^", "<<", ">>"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TokenKind {
    Integer,
    Word,
    Text,
    Operator,
}

/// Returns the byte ranges of the tokens that may be replaced, with their kinds.
fn tokens(text: &str) -> Vec<(TokenKind, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut position = 0;
    let run = |mut position: usize, predicate: &dyn Fn(u8) -> bool| {
        while position < bytes.len() && predicate(bytes[position]) {
            position += 1;
        }
        position
    };
    while position < bytes.len() {
        let start = position;
        let kind = match bytes[position] {
            b'0'..=b'9' => {
                position = run(position, &|b| b.is_ascii_alphanumeric() || b == b'.');
                let plain = bytes[start..position].iter().all(u8::is_ascii_digit);
                plain.then_some(TokenKind::Integer)
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                position = run(position, &|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                Some(TokenKind::Word)
            }
            b'"' => {
                position = (run(position + 1, &|b| b != b'"' && b != b'\n') + 1).min(bytes.len());
                Some(TokenKind::Text)
            }
            b'#' => {
                position = run(position, &|b| b != b'\n');
                None
            }
            b if b"+-*/%<>=!&|^".contains(&b) => {
                position = run(position, &|b| b"+-*/%<>=!&|^".contains(&b));
                OPERATORS.contains(&&text[start..position]).then_some(TokenKind::Operator)
            }
            _ => {
                position += 1;
                None
            }
        };
        if let Some(kind) = kind {
            out.push((kind, start..position));
        }
    }
    out
}

/// Mutates tokens, bracketed expressions or lines of a script, one to five times.
pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let text = match std::str::from_utf8(input) {
        Ok(text) if !rng.one_in(40) => text,
        _ => return mutate_bytes(input, other, rng),
    };
    let other = String::from_utf8_lossy(other);
    let mut text = text.to_string();
    for _ in 0..=rng.below(4) {
        match rng.below(8) {
            0 => mutate_lines(&mut text, &other, rng),
            1 => mutate_group(&mut text, &other, rng),
            _ => mutate_token(&mut text, &other, rng),
        }
    }
    text.into_bytes()
}

fn mutate_token(text: &mut String, other: &str, rng: &mut Rng) {
    let all = tokens(text);
    let kind_to_replace = *rng.pick(&[
        TokenKind::Integer,
        TokenKind::Integer,
        TokenKind::Word,
        TokenKind::Text,
        TokenKind::Operator,
    ]);
    let of_kind: Vec<Range<usize>> = all
        .iter()
        .filter(|(kind, _)| *kind == kind_to_replace)
        .map(|(_, range)| range.clone())
        .collect();
    if of_kind.is_empty() {
        return;
    }
    let range = rng.pick(&of_kind).clone();
    let old = &text[range.clone()];
    let token_of_kind = |text: &str, rng: &mut Rng| {
        let all = tokens(text);
        let list: Vec<_> = all.into_iter().filter(|(kind, _)| *kind == kind_to_replace).collect();
        if list.is_empty() { None } else { Some(text[rng.pick(&list).1.clone()].to_string()) }
    };
    let new = match kind_to_replace {
        _ if rng.one_in(3) => token_of_kind(text, rng),
        _ if rng.one_in(8) => token_of_kind(other, rng),
        TokenKind::Integer => Some(rng.boundary_value(old.parse().unwrap_or(0)).to_string()),
        TokenKind::Word => Some(rng.pick(WORDS).to_string()),
        TokenKind::Text if old.starts_with("\"pliant_") => {
            Some(format!("\"{}\"", rng.pick(extern_fns()).name))
        }
        TokenKind::Text => Some(format!("\"{}\"", rng.pick(DTYPES))),
        TokenKind::Operator => Some(rng.pick(OPERATORS).to_string()),
    };
    if let Some(new) = new {
        text.replace_range(range, &new);
    }
}

/// Returns the byte ranges between matching brackets.
fn groups(text: &str) -> Vec<Range<usize>> {
    let (mut open, mut out) = (Vec::new(), Vec::new());
    for (position, b) in text.bytes().enumerate() {
        match b {
            b'(' | b'[' => open.push(position),
            b')' | b']' => {
                if let Some(start) = open.pop().filter(|start| position - start < 200) {
                    out.push(start + 1..position);
                }
            }
            _ => {}
        }
    }
    out
}

/// Replaces the text between two brackets by the text between two other brackets, or by an operation on the old text.
fn mutate_group(text: &mut String, other: &str, rng: &mut Rng) {
    let all = groups(text);
    if all.is_empty() {
        return;
    }
    let range = rng.pick(&all).clone();
    let source = if rng.one_in(3) { other } else { &*text };
    let source_groups = groups(source);
    let new = match rng.below(4) {
        0 => format!("{} {} {}", &text[range.clone()], rng.pick(OPERATORS), rng.boundary_value(1)),
        1 if !text[range.clone()].contains(',') => {
            format!("{} {} {}", &text[range.clone()], rng.pick(OPERATORS), &text[range.clone()])
        }
        _ if source_groups.is_empty() => return,
        _ => source[rng.pick(&source_groups).clone()].to_string(),
    };
    text.replace_range(range, &new);
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Removes, repeats or swaps lines, or inserts one of another script. Lines that are exchanged have the same indentation.
fn mutate_lines(text: &mut String, other: &str, rng: &mut Rng) {
    let mut list: Vec<String> = text.lines().map(str::to_string).collect();
    if list.is_empty() {
        return;
    }
    let index = rng.below(list.len());
    let depth = indent(&list[index]);
    let line_with_indent = |list: &[String], rng: &mut Rng| {
        let same: Vec<&String> = list.iter().filter(|l| indent(l) == depth).collect();
        if same.is_empty() { None } else { Some((*rng.pick(&same)).clone()) }
    };
    match rng.below(4) {
        0 => drop(list.remove(index)),
        1 => {
            if let Some(line) = line_with_indent(&list, rng) {
                list.insert(index, line);
            }
        }
        2 => {
            let other_lines: Vec<String> = other.lines().map(str::to_string).collect();
            if let Some(line) = line_with_indent(&other_lines, rng) {
                list.insert(index, line);
            }
        }
        _ => {
            let other_index = rng.below(list.len());
            if indent(&list[other_index]) == depth {
                list.swap(index, other_index);
            }
        }
    }
    *text = list.join("\n");
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_kind() {
        let text = "x[i] = T.exp(\"a b\") + 12 # 3";
        let actual: Vec<(TokenKind, &str)> =
            tokens(text).into_iter().map(|(kind, range)| (kind, &text[range])).collect();
        use TokenKind::{Integer, Operator, Text, Word};
        let expected = [
            (Word, "x"),
            (Word, "i"),
            (Word, "T.exp"),
            (Text, "\"a b\""),
            (Operator, "+"),
            (Integer, "12"),
        ];
        assert_eq!(actual, expected);
    }
}

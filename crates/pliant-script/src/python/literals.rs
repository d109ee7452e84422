//! Evaluates Python's string and number literals.

use std::borrow::Cow;

/// The value of a string literal.
pub(super) enum Literal<'a> {
    /// The text of the literal, with its escapes resolved.
    Text(Cow<'a, str>),
    /// An f-string or bytes literal, which the parser does not evaluate. Only the surrounding Python program can evaluate it.
    Host,
    /// The literal contains an invalid escape.
    BadEscape,
}

/// Evaluates a string literal with its prefix and quotes.
pub(super) fn string_value(literal: &str) -> Literal<'_> {
    let quote = literal.find(['"', '\'']).unwrap_or(0);
    let (prefix, body) = literal.split_at(quote);
    let prefix = prefix.to_ascii_lowercase();
    if prefix.contains('f') || prefix.contains('b') {
        return Literal::Host;
    }
    let triple = body.len() >= 6 && (body.starts_with("\"\"\"") || body.starts_with("'''"));
    let trim = if triple { 3 } else { 1 };
    let Some(inner) = body.get(trim..body.len().saturating_sub(trim)) else {
        return Literal::BadEscape;
    };
    if prefix.contains('r') || !inner.contains('\\') {
        return Literal::Text(Cow::Borrowed(inner));
    }
    match unescape(inner) {
        Some(text) => Literal::Text(Cow::Owned(text)),
        None => Literal::BadEscape,
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            '\n' => {}
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0c'),
            'v' => out.push('\x0b'),
            'x' => out.push(hex(&mut chars, 2)?),
            'u' => out.push(hex(&mut chars, 4)?),
            'U' => out.push(hex(&mut chars, 8)?),
            c @ ('\\' | '\'' | '"') => out.push(c),
            // As in Python, keep the backslash before any other character.
            c => {
                out.push('\\');
                out.push(c);
            }
        }
    }
    Some(out)
}

fn hex(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let text: String = chars.by_ref().take(digits).collect();
    if text.len() != digits {
        return None;
    }
    char::from_u32(u32::from_str_radix(&text, 16).ok()?)
}

/// The value of a number literal.
pub(super) enum Number {
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer that fits `u64` but not `i64`.
    BigInt(u64),
    /// A floating-point number.
    Float(f64),
    /// An integer that fits neither `i64` nor `u64`.
    TooLarge,
    /// The text is not a number.
    Bad,
}

/// Evaluates a number token of the lexer.
pub(super) fn number_value(text: &str) -> Number {
    let owned;
    let text = if text.contains('_') {
        owned = text.replace('_', "");
        owned.as_str()
    } else {
        text
    };
    let radix = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => 10,
    };
    let digits = if radix == 10 { text } else { &text[2..] };
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return Number::Bad;
    }
    if digits.chars().all(|c| c.is_digit(radix)) {
        return match u64::from_str_radix(digits, radix) {
            Ok(v) => i64::try_from(v).map_or(Number::BigInt(v), Number::Int),
            Err(_) => Number::TooLarge,
        };
    }
    let plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match text.parse::<f64>() {
        Ok(v) if radix == 10 && plain => Number::Float(v),
        _ => Number::Bad,
    }
}

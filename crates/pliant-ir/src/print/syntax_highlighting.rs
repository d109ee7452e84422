//! Syntax highlighting of printed scripts in terminals.

use std::fmt::Write;

const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "class", "def", "else", "for", "from", "if", "import", "in", "not",
    "or", "pass", "return", "while", "with", "True", "False", "None",
];

const KEYWORD: &str = "\x1b[1;34m";
const STRING: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[90m";
const DECORATOR: &str = "\x1b[35m";
const NAMESPACE: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// Adds ANSI colours to a script: to keywords, strings, numbers, comments, decorators and names that start with `R.`, `T.` or `I.`.
/// Apart from the escape codes, the text does not change.
pub fn highlight(script: &str) -> String {
    let mut out = String::with_capacity(script.len() * 2);
    let bytes = script.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let (end, colour) = token(bytes, i);
        let text = &script[i..end];
        match colour {
            Some(c) => {
                let _ = write!(out, "{c}{text}{RESET}");
            }
            None => out.push_str(text),
        }
        i = end;
    }
    out
}

/// The end index and the colour of the token that starts at byte `i`. The end is a character boundary.
fn token(bytes: &[u8], i: usize) -> (usize, Option<&'static str>) {
    let run = |mut j: usize, f: fn(u8) -> bool| {
        while j < bytes.len() && f(bytes[j]) {
            j += 1;
        }
        j
    };
    match bytes[i] {
        b'#' => (run(i, |b| b != b'\n'), Some(COMMENT)),
        b'"' => (string_end(bytes, i), Some(STRING)),
        b'@' => {
            (run(i + 1, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.'), Some(DECORATOR))
        }
        b if b.is_ascii_digit() => {
            (run(i, |b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_'), Some(NUMBER))
        }
        b if b.is_ascii_alphabetic() || b == b'_' => {
            let end = run(i, |b| b.is_ascii_alphanumeric() || b == b'_');
            let word = std::str::from_utf8(&bytes[i..end]).unwrap_or("");
            if KEYWORDS.contains(&word) {
                (end, Some(KEYWORD))
            } else if matches!(word, "R" | "T" | "I") && bytes.get(end) == Some(&b'.') {
                let end = run(end, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
                (end, Some(NAMESPACE))
            } else {
                (end, None)
            }
        }
        b if b.is_ascii() => (i + 1, None),
        _ => (run(i, |b| !b.is_ascii()), None),
    }
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_are_added() {
        let script = "@R.function\ndef f(x): # é\n    return R.add(x, \"a\\\"é\", 1.5)\n";
        let coloured = highlight(script);
        let mut plain = coloured.clone();
        for c in [KEYWORD, STRING, NUMBER, COMMENT, DECORATOR, NAMESPACE, RESET] {
            plain = plain.replace(c, "");
        }
        assert_eq!(plain, script);
        assert!(coloured.contains("\x1b[1;34mdef\x1b[0m"));
        assert!(coloured.contains("\x1b[33mR.add\x1b[0m"));
    }

    #[test]
    fn an_unterminated_string_with_a_trailing_backslash_is_printed() {
        assert!(highlight("\"a\\").contains("\"a\\"));
    }
}

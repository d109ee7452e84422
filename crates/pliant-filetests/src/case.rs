//! Parses a test file.

use std::path::Path;

/// What a test does with the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Parse and print.
    Print,
    /// Only verify.
    Verify,
    /// Run passes.
    Opt(Vec<String>),
    /// Execute the module.
    Run,
}

/// An expected error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its line, if it has one.
    pub line: Option<u32>,
    /// Its code, or an empty string.
    pub code: String,
    /// A substring of its message.
    pub text: String,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name, for spans.
    pub name: String,
    /// What is done.
    pub kind: Kind,
    /// The whole text up to the expectation, with the line numbers of the file.
    pub script: String,
    /// The expected errors.
    pub errors: Vec<Expected>,
    /// Whether the module is executed.
    pub execute: bool,
    /// A substring of the message with which the compiler refuses the module.
    pub refusal: Option<String>,
    /// A substring of the message with which the test currently fails.
    pub known_bug: Option<String>,
    /// The expectation.
    pub expect: String,
}

const EXPECT: &str = "# expect";

impl Case {
    /// Parses a file.
    ///
    /// # Errors
    /// If the header is unknown.
    pub fn parse(path: &Path, text: &str) -> Result<Case, String> {
        let header = text.lines().next().unwrap_or("");
        let words: Vec<&str> = header.split_whitespace().collect();
        let kind = match words.as_slice() {
            ["#", "test", "print"] => Kind::Print,
            ["#", "test", "verify"] => Kind::Verify,
            ["#", "test", "run"] => Kind::Run,
            ["#", "test", "opt", passes] => match passes.strip_prefix("--passes=") {
                Some(list) => Kind::Opt(list.split(',').map(str::to_string).collect()),
                None => return Err(format!("'{passes}' is not --passes=A,B")),
            },
            _ => return Err(format!("the first line is no test header: {header}")),
        };
        let (script, expect) = match text.split_once(&format!("\n{EXPECT}\n")) {
            Some((script, expect)) => (format!("{script}\n"), uncomment(expect)),
            None => (text.to_string(), String::new()),
        };
        let comments: Vec<&str> =
            script.lines().skip(1).take_while(|l| l.starts_with('#') || l.is_empty()).collect();
        let execute = !comments.iter().any(|l| l.starts_with("# no-run"));
        let note = |key: &str| {
            comments.iter().find_map(|l| l.strip_prefix(key)).map(|text| text.trim().to_string())
        };
        let (refusal, known_bug) = (note("# no-compile:"), note("# known-bug:"));
        let mut errors = Vec::new();
        for line in &comments {
            if let Some(text) = line.strip_prefix("# fails:") {
                errors.push(expected(None, text));
            }
        }
        for (i, line) in script.lines().enumerate() {
            if let Some((_, text)) = line.split_once("# error:") {
                errors.push(expected(Some(i as u32 + 1), text));
            }
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Case { name, kind, script, errors, execute, refusal, known_bug, expect })
    }

    /// The file's text with a new expectation.
    pub fn blessed(&self, text: &str, found: &str) -> String {
        let script = text.split_once(&format!("\n{EXPECT}\n")).map_or(text, |(script, _)| script);
        let script = script.trim_end_matches('\n');
        if found.is_empty() {
            return format!("{script}\n");
        }
        let mut out = format!("{script}\n\n{EXPECT}\n");
        for line in found.lines() {
            out.push_str(if line.is_empty() { "#" } else { "# " });
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

fn expected(line: Option<u32>, text: &str) -> Expected {
    let text = text.trim();
    let (code, rest) = match text.split_once(' ') {
        Some((code, rest)) if code.starts_with("PL") => (code, rest),
        None if text.starts_with("PL") => (text, ""),
        _ => ("", text),
    };
    Expected { line, code: code.into(), text: rest.trim().into() }
}

fn uncomment(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line.strip_prefix("# ").or_else(|| line.strip_prefix('#')).unwrap_or(line));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart_and_put_together() {
        let text = "# test opt --passes=A,B\n# fails: no line\n\nx = y # error: PL0103 y\n\n# expect\n# a\n#\n#   b\n";
        let case = Case::parse(Path::new("t.py"), text).unwrap();
        assert_eq!(case.kind, Kind::Opt(vec!["A".into(), "B".into()]));
        assert_eq!(case.expect, "a\n\n  b\n");
        assert_eq!(case.errors.len(), 2);
        assert_eq!((case.errors[1].line, case.errors[1].code.as_str()), (Some(4), "PL0103"));
        assert_eq!(case.blessed(text, &case.expect), text);
        assert!(Case::parse(Path::new("t.py"), "x = 1\n").is_err());
    }
}

//! Parses test files into test cases ([`Case`]).

use std::path::Path;

/// What a file test does with its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestKind {
    /// The script is parsed and printed.
    Print,
    /// The script is verified, and the verifier must reject it.
    Verify,
    /// The passes with these names run on the script.
    Opt(Vec<String>),
    /// The script is executed by the interpreter.
    Run,
}

/// An error that the script of a test must cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedError {
    /// The line of the error; `None` if the error may have any line or none.
    pub line: Option<u32>,
    /// The error code, such as `PL0203`; empty if the error may have any code.
    pub code: String,
    /// A part of the expected error message.
    pub text: String,
}

/// A file test, parsed from its file.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the test file. Error locations contain this name.
    pub name: String,
    /// The kind of the test.
    pub kind: TestKind,
    /// The text of the file up to the expectation. The header is included, so that line numbers in errors are line numbers of the
    /// file.
    pub script: String,
    /// The errors that the script must cause.
    pub errors: Vec<ExpectedError>,
    /// Whether the script is executed.
    pub execute: bool,
    /// A part of the message with which the compiler must reject the module; `None` if it must
    /// compile.
    pub compile_error: Option<String>,
    /// A part of the message with which the test currently fails because of a known bug.
    pub known_bug: Option<String>,
    /// The expected output of the test.
    pub expect: String,
}

const EXPECT_LINE: &str = "# expect";

impl Case {
    /// Parses a test file.
    ///
    /// # Errors
    /// If the file does not start with a description, or if its header does not state a valid kind of test.
    pub fn parse(path: &Path, text: &str) -> Result<Case, String> {
        let header_lines: Vec<&str> = text.lines().take_while(|l| l.starts_with('#')).collect();
        let kind = parse_kind(&header_lines)?;
        let (script, expect) = match text.split_once(&format!("\n{EXPECT_LINE}\n")) {
            Some((script, expect)) => (format!("{script}\n"), strip_comment_prefix(expect)),
            None => (text.to_string(), String::new()),
        };
        let execute = !header_lines.iter().any(|l| l.starts_with("# no-run"));
        let header_value = |key: &str| {
            header_lines
                .iter()
                .find_map(|l| l.strip_prefix(key))
                .map(|text| text.trim().to_string())
        };
        let (compile_error, known_bug) =
            (header_value("# no-compile:"), header_value("# known-bug:"));
        let mut errors = Vec::new();
        for line in &header_lines {
            if let Some(text) = line.strip_prefix("# fails:") {
                errors.push(parse_expected_error(None, text));
            }
        }
        for (i, line) in script.lines().enumerate() {
            if let Some((_, text)) = line.split_once("# error:") {
                errors.push(parse_expected_error(Some(i as u32 + 1), text));
            }
        }
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Case { name, kind, script, errors, execute, compile_error, known_bug, expect })
    }

    /// The text of the test file with its expectation replaced by `actual`.
    pub fn blessed(&self, text: &str, actual: &str) -> String {
        let script =
            text.split_once(&format!("\n{EXPECT_LINE}\n")).map_or(text, |(script, _)| script);
        let script = script.trim_end_matches('\n');
        if actual.is_empty() {
            return format!("{script}\n");
        }
        let mut out = format!("{script}\n\n{EXPECT_LINE}\n");
        for line in actual.lines() {
            out.push_str(if line.is_empty() { "#" } else { "# " });
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

/// The prefixes of header lines that are directives. Other header lines describe the test.
const DIRECTIVES: [&str; 5] = ["# test ", "# fails:", "# no-run", "# no-compile:", "# known-bug:"];

/// Returns the kind of a test from its header, the comment lines at the start of the file.
fn parse_kind(header_lines: &[&str]) -> Result<TestKind, String> {
    let is_directive = |line: &str| DIRECTIVES.iter().any(|prefix| line.starts_with(prefix));
    if header_lines.first().is_none_or(|line| is_directive(line)) {
        return Err("the first line must be a comment that says what the test shows".into());
    }
    let kinds: Vec<&str> =
        header_lines.iter().filter_map(|line| line.strip_prefix("# test ")).collect();
    let [kind] = kinds[..] else {
        return Err(format!(
            "the header has {} lines `# test KIND`, but must have one",
            kinds.len()
        ));
    };
    match kind.split_whitespace().collect::<Vec<_>>()[..] {
        ["print"] => Ok(TestKind::Print),
        ["verify"] => Ok(TestKind::Verify),
        ["run"] => Ok(TestKind::Run),
        ["opt", passes] => match passes.strip_prefix("--passes=") {
            Some(list) => Ok(TestKind::Opt(list.split(',').map(str::to_string).collect())),
            None => {
                Err(format!("the argument '{passes}' of a test must have the form --passes=A,B"))
            }
        },
        _ => Err(format!(
            "`# test {kind}` is not a kind of test: expected print, verify, run, or opt --passes=A,B"
        )),
    }
}

fn parse_expected_error(line: Option<u32>, text: &str) -> ExpectedError {
    let text = text.trim();
    let (code, rest) = match text.split_once(' ') {
        Some((code, rest)) if code.starts_with("PL") => (code, rest),
        None if text.starts_with("PL") => (text, ""),
        _ => ("", text),
    };
    ExpectedError { line, code: code.into(), text: rest.trim().into() }
}

fn strip_comment_prefix(text: &str) -> String {
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
    fn files_are_parsed_and_blessed() {
        let text = "# The passes fail.\n# test opt --passes=A,B\n# fails: no line\n\nx = y # error: PL0103 y\n\n# expect\n# a\n#\n#   b\n";
        let case = Case::parse(Path::new("t.py"), text).unwrap();
        assert_eq!(case.kind, TestKind::Opt(vec!["A".into(), "B".into()]));
        assert_eq!(case.expect, "a\n\n  b\n");
        assert_eq!(case.errors.len(), 2);
        assert_eq!((case.errors[1].line, case.errors[1].code.as_str()), (Some(5), "PL0103"));
        assert_eq!(case.blessed(text, &case.expect), text);
        for invalid in ["x = 1\n", "# test run\n", "# A title.\n", "# A title.\n# test walk\n"] {
            assert!(Case::parse(Path::new("t.py"), invalid).is_err(), "{invalid}");
        }
    }
}

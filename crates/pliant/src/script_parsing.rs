//! Parses modules from script text and files, and keeps the sources for error messages.

use std::path::Path;

use pliant_diag::{SourceFile, SourceMap};
use pliant_ir::IRModule;
use pliant_script::NoHost;

use crate::error::Error;

/// A parsed module with its source text.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{CompileOptions, compile, parse};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let script = parse("double.py", text).map_err(|(error, _)| error)?;
/// // With the sources, errors at run time contain source lines.
/// let sources = Some(Arc::new(script.sources));
/// let program = compile(script.module, &CompileOptions { sources, ..CompileOptions::default() })?;
/// assert_eq!(program.signatures()[0].name, "main");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    /// The parsed module.
    pub module: IRModule,
    /// The sources to which the spans of diagnostics refer, for [`Error::render`].
    pub sources: SourceMap,
}

/// Parses a module, or a single function, from text. `name` is the file's name in messages.
///
/// # Examples
/// ```
/// use pliant::parse;
///
/// let text = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let Ok(script) = parse("double.py", text) else { panic!("the script is valid") };
/// assert!(script.module.get("main").is_some());
/// let Err((error, sources)) = parse("wrong.py", "def main(") else { panic!("a syntax error") };
/// assert!(error.render(&sources).contains("wrong.py"));
/// ```
///
/// # Errors
/// All errors in the text; the sources are for [`Error::render`].
pub fn parse(name: &str, text: &str) -> Result<Script, (Error, SourceMap)> {
    let mut sources = SourceMap::new();
    let file =
        sources.add(SourceFile { name: name.into(), text: text.into(), first_line: 1, dedent: 0 });
    match pliant_script::parse(text, file, &NoHost, pliant_ops::registry()) {
        (Some(parsed), _) => Ok(Script { module: parsed.into_module(), sources }),
        (None, errors) => Err((Error::Compile(pliant_diag::Error::User(errors)), sources)),
    }
}

/// Reads and parses a module from a file.
///
/// # Examples
/// ```
/// use pliant::parse_file;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let path = std::env::temp_dir().join(format!("pliant-doc-{}.py", std::process::id()));
/// std::fs::write(&path, text)?;
/// let script = parse_file(&path).map_err(|(error, _)| error)?;
/// assert!(script.module.get("main").is_some());
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error if the file cannot be read, or else the errors of [`parse`].
pub fn parse_file(path: &Path) -> Result<Script, (Error, SourceMap)> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        let error = Error::option(
            format!("cannot read the script {}: {e}", path.display()),
            "pass the path of a text file in UTF-8",
        );
        (error, SourceMap::new())
    })?;
    parse(&path.display().to_string(), &text)
}

/// Parses script that the compiler generated. The error is the message of the first diagnostic,
/// without its location.
pub(crate) fn parse_generated(text: &str) -> Result<IRModule, String> {
    pliant_script::parse_module(text, pliant_ops::registry()).map_err(|errors| {
        errors.first().map_or_else(|| "unreadable".to_string(), |e| e.message.clone())
    })
}

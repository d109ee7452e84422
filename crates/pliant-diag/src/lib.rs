//! Source locations, diagnostics, error codes, and their rendering as text.
//!
//! | file | contents |
//! |---|---|
//! | `source_spans` | source locations: [`Span`], [`SourceMap`] |
//! | `error_codes` | the table of all error codes |
//! | `diagnostic` | [`Diagnostic`]: one error, warning or note about a program |
//! | `render_diagnostics` | rendering of diagnostics with source lines |
//! | `spelling_suggestions` | suggestions for misspelt names |
//! | `compile_error` | [`Error`]: a user error, an unsupported feature, or a compiler bug |
//!
//! # Examples
//! ```
//! use pliant_diag::{Diagnostic, SourceFile, SourceMap, Span, error_codes, render};
//!
//! let mut sources = SourceMap::new();
//! let text = "def f(x):\n    y = R.ad(x, x)\n    return y\n".into();
//! let file = sources.add(SourceFile { name: "model.py".into(), text, first_line: 1, dedent: 0 });
//! let diagnostic = Diagnostic::error(error_codes::PL0104, "no operator 'ad'")
//!     .with_span(Span { file, start: 18, end: 22 })
//!     .with_help("did you mean 'add'?");
//! let text = render(&diagnostic, &sources, false);
//! assert!(text.starts_with("error[PL0104]: no operator 'ad'"));
//! assert!(text.contains("model.py:2:9") && text.contains("help: did you mean 'add'?"));
//! ```

pub mod compile_error;
pub mod diagnostic;
pub mod error_codes;
pub mod render_diagnostics;
pub mod source_spans;
pub mod spelling_suggestions;

pub use compile_error::Error;
pub use diagnostic::{Diagnostic, Label, Severity};
pub use render_diagnostics::{render, render_all};
pub use source_spans::{FileId, SourceFile, SourceMap, Span};

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

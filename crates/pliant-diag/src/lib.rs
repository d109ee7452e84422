//! Spans, diagnostics, the table of error codes, and their rendering.
//!
//! | file | owns |
//! |---|---|
//! | `span` | source locations: [`Span`], [`SourceMap`] |
//! | `codes` | the table of all error codes |
//! | `diagnostic` | [`Diagnostic`]: one finding about a program |
//! | `render` | diagnostics as text with the user's source lines |
//! | `suggest` | suggestions for misspelt names |
//! | `error` | [`Error`]: a user error, an unsupported feature, or a compiler bug |

pub mod codes;
pub mod diagnostic;
pub mod error;
pub mod render;
pub mod span;
pub mod suggest;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use error::Error;
pub use render::{render, render_all};
pub use span::{FileId, SourceFile, SourceMap, Span};

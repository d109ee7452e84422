//! Spans, diagnostics, the table of error codes, and their rendering.
//!
//! | file | owns |
//! |---|---|
//! | `span` | where something was written: [`Span`], [`SourceMap`] |
//! | `codes` | the table of all error codes |
//! | `diagnostic` | [`Diagnostic`]: one finding about a program |
//! | `render` | diagnostics as text with the user's own lines |
//! | `suggest` | suggestions for misspelt names |
//! | `error` | [`Error`]: the user's mistake, a missing feature, or a bug; never mixed |

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

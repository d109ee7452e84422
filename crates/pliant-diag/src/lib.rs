//! Source locations, diagnostics, error codes, and their rendering as text.
//!
//! | file | contents |
//! |---|---|
//! | `span` | source locations: [`Span`], [`SourceMap`] |
//! | `codes` | the table of all error codes |
//! | `diagnostic` | [`Diagnostic`]: one error, warning or note about a program |
//! | `render` | rendering of diagnostics with source lines |
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

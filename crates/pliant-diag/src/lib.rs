//! Spans, diagnostics, the table of error codes, and their rendering.

pub mod span;

pub use span::{FileId, SourceFile, SourceMap, Span};

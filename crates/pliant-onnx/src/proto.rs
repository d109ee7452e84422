//! The messages of an ONNX file, as `xtask/onnx-proto` writes them from the schema.
//!
//! Bytes are slices of the buffer that was decoded, so weights inside a mapped file stay where they are.

#![allow(missing_docs, clippy::all, reason = "generated; the schema is documented by ONNX")]

include!("generated/onnx.rs");

//! The protobuf messages of an ONNX file, generated from the schema by `xtask/onnx-proto`.
//!
//! Byte fields are slices of the decoded buffer, so weights in a mapped file are not copied.

#![allow(missing_docs, clippy::all, reason = "generated; the schema is documented by ONNX")]

include!("generated/onnx.rs");

//! The integration tests of `pliant-script`. They are one binary, which links faster than one binary per file.

mod common;
mod dialects;
mod errors;
mod host;
mod robustness;
mod tir;

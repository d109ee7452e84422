//! The graph passes of Pliant, in folders by phase: one file per pass, except that the three passes that apply offload rules share
//! `offload/offload_kernels.rs`.
//!
//! [`passes`] is the table of all passes, [`pass_contracts`] defines the properties of modules that passes require and ensure,
//! and [`pipelines`] defines named sequences of passes. The documentation of each pass states what the pass does, with an example
//! before and after, what it requires, what it keeps and what it never does. Every pass can run alone and skips parts of the
//! module that are already lowered. The output of a pass can be printed, parsed and compiled.
//!
//! | folder | passes |
//! |---|---|
//! | [`canonicalize`] | simplify graph functions and bring them into the form that later phases expect |
//! | [`params`] | bind, bundle, retype or precompute the parameters of a model |
//! | [`rewrite`] | algebraic rewrites of operators |
//! | [`offload`] | replace operators by calls of library kernels or of external code generators |
//! | [`fuse`] | merge operators and loop functions |
//! | [`lower`] | lower operators to what the virtual machine runs |
//! | [`memory`] | share, free and copy memory |
//! | [`differentiate`] | automatic differentiation |
//! | [`analysis`] | no passes: analyses that passes query |
//! | [`common`] | no passes: code that several phases share |

pub mod analysis;
pub mod canonicalize;
pub mod common;
pub mod differentiate;
pub mod fuse;
pub mod lower;
pub mod memory;
pub mod offload;
pub mod params;
pub mod pass_contracts;
pub mod passes;
pub mod pipelines;
pub mod rewrite;

pub use passes::{PASSES, PassInfo};
pub use pipelines::pipeline;

//! The graph passes of Pliant, one file each, in folders by phase.
//!
//! [`passes`] is the table of all passes, [`contract`] states what they require and ensure, and
//! [`pipelines`] names sequences of them. Each pass file opens with what the pass does, an example
//! before and after, what the pass requires, what it keeps and what it never does. Every pass can
//! run alone and skips what is already lowered. The output of a pass can be printed, parsed and
//! built.
//!
//! | folder | passes |
//! |---|---|
//! | [`canonicalize`] | simplify graph functions and bring them to the form that later phases read |
//! | [`params`] | bind, bundle, retype or precompute the parameters of a model |
//! | [`rewrite`] | algebraic rewrites of operators |
//! | [`offload`] | replace operators by calls of library kernels or of external code generators |
//! | [`fuse`] | merge operators and loop functions |
//! | [`lower`] | lower operators to what the virtual machine runs |
//! | [`memory`] | share, free and copy memory |
//! | [`analysis`] | no passes: side tables that passes query |
//! | [`common`] | no passes: code that several phases share |

pub mod analysis;
pub mod canonicalize;
pub mod common;
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

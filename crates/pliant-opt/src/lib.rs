//! The graph passes of Pliant, one file each.
//!
//! [`passes`] is the table of all passes, and [`pipelines`] names sequences of them. Each pass
//! file opens with what the pass does, an example before and after, what it requires,
//! keeps and never does. Every pass runs alone, leaves alone what is lowered already, and what it
//! makes can be printed,
//! parsed and built.

pub mod attach_global_symbol;
pub mod call_tir_rewrite;
pub mod eliminate_unused;
pub mod kill_after_last_use;
pub mod legalize_ops;
pub mod liveness;
pub mod lower_alloc_tensor;
pub mod lower_runtime_builtin;
pub mod names;
pub mod normalize;
pub mod passes;
pub mod pipelines;
pub mod plan_memory;
pub mod remove_purity_checking;
pub mod to_non_dataflow;
pub mod vm_shape_lower;

pub use passes::{PASSES, PassInfo};
pub use pipelines::pipeline;

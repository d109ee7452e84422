//! Analyses of graph functions and of the loop functions that they call, one file each: side tables that passes ask,
//! never fields of the IR. They change nothing.

pub mod call_graph;
pub mod dominators;
pub mod effects;
pub mod has_reshape_pattern;
pub mod memory;
pub mod op_pattern;
pub mod recursion;
pub mod tir_call;
pub mod written;

pub use call_graph::CallGraph;
pub use effects::Effects;
pub use written::{may_write, written_vars};

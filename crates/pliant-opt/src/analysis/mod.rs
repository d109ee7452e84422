//! Analyses: side tables about graph functions and the loop functions that they call. They do not change functions; passes and
//! bytecode generation query them.
//!
//! | module | what |
//! |---|---|
//! | `aliases` | which variables may share memory, and which of that memory calls may write to |
//! | `call_graph` | which graph functions call each other |
//! | `dominators` | post-dominators of a dataflow graph |
//! | `effects` | which expressions have side effects |
//! | `has_reshape_pattern` | whether a loop function is a reshape |
//! | `liveness` | the last use of each variable |
//! | `loop_closures` | loops and the closures that they call, in lowered functions |
//! | `op_pattern` | how a loop function can be fused |
//! | `recursion` | functions that call themselves, directly or through others |
//! | `tail_binding` | the binding whose value a sequence returns |
//! | `tir_call` | calls of loop functions, with the sizes at the call |
//! | `written_vars` | the variables whose memory a call may write to |

pub mod aliases;
pub mod call_graph;
pub mod dominators;
pub mod effects;
pub mod has_reshape_pattern;
pub mod liveness;
pub mod loop_closures;
pub mod op_pattern;
pub mod recursion;
pub mod tail_binding;
pub mod tir_call;
pub mod written_vars;

pub use call_graph::CallGraph;
pub use effects::Effects;
pub use written_vars::{may_write_tensors, written_vars};

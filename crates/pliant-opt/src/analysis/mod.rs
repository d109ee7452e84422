//! Analyses: side tables about graph functions and the loop functions that they call. They do not
//! change functions; passes and bytecode generation query them.
//!
//! | module | what |
//! |---|---|
//! | `call_graph` | which graph functions call each other |
//! | `dominators` | post-dominators of a dataflow graph |
//! | `effects` | which expressions have side effects |
//! | `has_reshape_pattern` | whether a loop function is a reshape |
//! | `liveness` | the last use of each variable |
//! | `loop_closures` | loops and the closures that they call, in lowered functions |
//! | `memory` | which variables may alias, and which of them calls may write |
//! | `op_pattern` | how far a loop function can be fused |
//! | `recursion` | functions that call themselves, directly or through others |
//! | `tail` | the binding whose value a sequence returns |
//! | `tir_call` | calls of loop functions, with the sizes at the call |
//! | `written` | which values a call may write |

pub mod call_graph;
pub mod dominators;
pub mod effects;
pub mod has_reshape_pattern;
pub mod liveness;
pub mod loop_closures;
pub mod memory;
pub mod op_pattern;
pub mod recursion;
pub mod tail;
pub mod tir_call;
pub mod written;

pub use call_graph::CallGraph;
pub use effects::Effects;
pub use written::{may_write, written_vars};

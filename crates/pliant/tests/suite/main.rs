//! The integration tests of `pliant`. They are one program, because Cargo links each test program separately.

#[cfg(feature = "cross")]
mod aarch64_objects;
mod ahead_of_time;
mod background_optimization;
mod bytecode_generation;
mod compile_stages;
mod control_flow;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod data_races;
mod dynamic_shapes_and_effects;
mod encoder_block;
mod end_to_end;
mod full_write_analysis;
mod fuzz_corpora;
mod native_function_bodies;
mod onnx_clip;
mod onnx_damaged_models;
mod onnx_generated_models;
#[path = "../../../../fuzz/src/onnx_grammar/mod.rs"]
mod onnx_grammar;
mod onnx_import_memory;
mod onnx_input_output_counts;
mod onnx_rust_api;
mod packed_function_calls;
mod symbolic_broadcasting;
mod test_helpers;
mod unknown_ranks;

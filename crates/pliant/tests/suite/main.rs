//! The integration tests of `pliant`. They are one program, because Cargo links each test program separately.

mod broadcast;
mod bytecode;
mod calls;
mod common;
mod control;
mod corpora;
mod dynamic;
mod encoder;
mod full_writes;
mod native;
mod onnx;
mod onnx_arity;
mod onnx_clip;
mod onnx_generated;
#[path = "../../../../fuzz/src/onnx_grammar/mod.rs"]
mod onnx_grammar;
mod onnx_memory;
mod onnx_mutate;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod races;
mod run;
mod stages;
mod unknown_ranks;

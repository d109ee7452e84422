//! The tests of the code generator. They are those of `pliant-cranelift`, run with LLVM.
#![cfg(feature = "llvm")]

#[path = "../../../pliant-cranelift/tests/suite/control_flow.rs"]
mod control_flow;
#[path = "../../../pliant-cranelift/tests/suite/debug_bounds_checks.rs"]
mod debug_bounds_checks;
#[path = "../../../pliant-cranelift/tests/suite/element_type_casts.rs"]
mod element_type_casts;
#[path = "../../../pliant-cranelift/tests/suite/exhaustive_loop_extents.rs"]
mod exhaustive_loop_extents;
#[path = "../../../pliant-cranelift/tests/suite/full_compile_pipeline.rs"]
mod full_compile_pipeline;
#[allow(dead_code, reason = "the tests of pliant-kernels use all of it")]
#[path = "../../../pliant-kernels/tests/suite/guard_pages.rs"]
mod guard;
#[path = "../../../pliant-cranelift/tests/suite/index_overflow.rs"]
mod index_overflow;
#[path = "../../../pliant-cranelift/tests/suite/integer_expressions/mod.rs"]
mod integer_expressions;
#[path = "../../../pliant-cranelift/tests/suite/loop_function_harness.rs"]
mod loop_function_harness;
#[path = "../../../pliant-cranelift/tests/suite/lowered_functions.rs"]
mod lowered_functions;
#[path = "../../../pliant-cranelift/tests/suite/racing_loads.rs"]
mod racing_loads;
#[path = "../../../pliant-cranelift/tests/suite/random_loop_extents.rs"]
mod random_loop_extents;
#[path = "../../../pliant-cranelift/tests/suite/transposes.rs"]
mod transposes;
#[path = "../../../pliant-cranelift/tests/suite/vector_math_on_tiles.rs"]
mod vector_math_on_tiles;

/// Creates the code generator that the tests use.
fn backend() -> pliant_llvm::LlvmBackend {
    pliant_llvm::LlvmBackend::new()
}

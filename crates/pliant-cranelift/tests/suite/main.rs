//! The integration tests of `pliant-cranelift`. They are one program, because Cargo links each test program separately.

mod control_flow;
mod debug_bounds_checks;
mod element_type_casts;
mod exhaustive_loop_extents;
mod full_compile_pipeline;
#[allow(dead_code, reason = "the tests of pliant-kernels use all of it")]
#[path = "../../../pliant-kernels/tests/suite/guard_pages.rs"]
mod guard;
mod index_overflow;
mod integer_expressions;
mod loop_function_harness;
mod lowered_functions;
mod racing_loads;
mod random_loop_extents;
mod transposes;
mod vector_math_on_tiles;

/// Creates the code generator that the tests use.
fn backend() -> pliant_cranelift::CraneliftBackend {
    pliant_cranelift::CraneliftBackend::new()
}

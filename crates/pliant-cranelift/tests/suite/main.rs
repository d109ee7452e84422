//! The integration tests of `pliant-cranelift`. They are one program, because Cargo links each test program separately.

mod access_checks;
mod common;
mod control_flow;
mod conversions;
mod exhaustive_loop_extents;
#[allow(dead_code, reason = "the tests of pliant-kernels use all of it")]
#[path = "../../../pliant-kernels/tests/suite/guard_pages.rs"]
mod guard;
mod index_overflow;
mod integers;
mod lowered_functions;
mod pipeline;
mod racing_loads;
mod random_loop_extents;
mod slice_function_tiles;
mod transposes;

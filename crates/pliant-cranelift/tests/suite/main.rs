//! The integration tests of `pliant-cranelift`. They are one program, because Cargo links each test program separately.

mod access_checks;
mod all_extents;
mod common;
mod control;
mod conversions;
#[allow(dead_code, reason = "the tests of pliant-kernels use all of it")]
#[path = "../../../pliant-kernels/tests/suite/guard_pages.rs"]
mod guard;
mod integers;
mod loaded_once;
mod loop_extents;
mod lowered;
mod overflow;
mod pipeline;
mod tiles;
mod transposed;

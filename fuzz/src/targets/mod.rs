//! The fuzz targets. Each of them runs inputs, mutates inputs and generates seeds.
//!
//! | target | input |
//! |---|---|
//! | [`executable`] | a saved executable; lengths and checksums are corrected before it is loaded |
//! | [`kernels`] | a line that describes a call of a library kernel |
//! | [`kernel_calls`] | the random seed of the operands and attributes of a declared kernel's call |
//! | [`script`] | a script |
//!
//! A plain test of the workspace includes these files (`crates/pliant/tests/suite/fuzz_corpora.rs`) and replays the corpora.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod changing_memory;
pub mod executable;
pub mod function_inputs;
pub mod guarded_memory;
pub mod kernel_calls;
pub mod kernels;
pub mod random_numbers;
pub mod script;

use pliant::{Error, ErrorKind};

/// Asserts that the error of a rejected program is not an internal one.
///
/// # Panics
/// If it is an internal error.
pub fn assert_not_internal(error: &Error) {
    assert!(error.kind() != ErrorKind::Internal, "{error}");
}

/// A fuzz target: its name and its functions on inputs.
pub struct Target {
    /// The name of the target on the command line.
    pub name: &'static str,
    /// Runs an input, which must end with a result or an error. Returns whether it was valid enough to be run.
    pub run: fn(&[u8]) -> bool,
    /// Mutates an input. May copy a part of a second input into it.
    pub mutate: fn(&[u8], &[u8], &mut random_numbers::Rng) -> Vec<u8>,
}

/// The fuzz targets that are defined in this module.
pub const TARGETS: [Target; 4] = [
    Target { name: "executable", run: executable::run, mutate: executable::mutate },
    Target { name: "kernels", run: kernels::run, mutate: kernels::mutate },
    Target { name: "kernel_calls", run: kernel_calls::run, mutate: kernel_calls::mutate },
    Target { name: "script", run: script::run, mutate: script::mutate },
];

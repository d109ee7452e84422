//! Tests data races: the memory of inputs changes during a run, as if another thread wrote it. Results are arbitrary, but no
//! access may be outside a buffer.
//!
//! Each load of an index, size or condition returns a valid value or one far out of range
//! (`fuzz/src/targets/changing_memory.rs`), and tensors lie between guard pages. Each case runs in a child process, since a
//! failure ends the process.

mod cases;

use std::process::Command;

use pliant::{CompileOptions, Model, Tensor, Value};
use pliant_kernel_api::vector_math_functions::{
    VectorMathOperation::Elementary, vector_math_function,
};
use pliant_tensor::{DType, Storage};

use crate::fuzz_corpora::targets::changing_memory::{self, ChangingValue};
use crate::fuzz_corpora::targets::guarded_memory::Guarded;
use crate::fuzz_corpora::targets::kernels;
use cases::{CASES, Case, Group, Input};

/// The environment variable that contains the name of the case that a child process runs.
const CASE: &str = "PLIANT_RACE";
/// The values that an input takes during a run in addition to its valid value. They are out of range as indices and as sizes.
const OUT_OF_RANGE: [i64; 4] = [1 << 20, -(1 << 20), 1 << 30, -(1 << 30)];
/// Size in bytes of the guard region on each side of a tensor.
const GUARD_BYTES: usize = 16 << 20;
/// The number of times that each test program for data races runs.
const RUNS: usize = 400;
/// The number of times that a test for data races calls each library kernel.
const CALLS: usize = 40;

/// Runs the data-race test program `name` in a child process. Returns a description of the failure, or `None` if the process
/// succeeds.
fn failure(name: &str) -> Option<String> {
    // `changing_memory` leaks its state.
    let sanitizer = std::env::var("ASAN_OPTIONS").unwrap_or_default() + ":detect_leaks=0";
    let child = Command::new(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", "races::child", "--ignored", "--quiet"])
        .env(CASE, name)
        .env("ASAN_OPTIONS", sanitizer)
        .output()
        .expect("a child process");
    let text = String::from_utf8_lossy(&child.stderr);
    (!child.status.success()).then(|| format!("{name}: {}\n{text}", child.status))
}

/// Runs the data-race test program of each name in a child process, and fails unless all of them succeed.
fn assert_all_pass(names: impl Iterator<Item = String>) {
    let failed: Vec<String> = names.filter_map(|name| failure(&name)).collect();
    assert!(
        failed.is_empty(),
        "{} cases accessed memory outside a buffer:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

fn run_group(group: Group) {
    assert_all_pass(CASES.iter().filter(|c| c.group == group).map(|c| c.name.to_string()));
}

#[test]
fn loop_functions_stay_inside_buffers_that_change() {
    run_group(Group::Loops);
}

#[test]
fn operators_stay_inside_buffers_that_change() {
    run_group(Group::Operators);
}

#[test]
fn builtins_stay_inside_buffers_that_change() {
    run_group(Group::Builtins);
}

#[test]
fn calls_of_kernels_stay_inside_buffers_that_change() {
    // Vector math functions access memory in the same way, so one is tested for all.
    let names = kernels::names().into_iter();
    let names = names.filter(|name| match vector_math_function(name) {
        Some(f) => (f.operation, f.operand_dtype) == (Elementary("exp"), DType::Float32),
        None => true,
    });
    assert_all_pass(names.map(String::from));
}

#[test]
#[ignore = "started by the other tests, with the case to run"]
fn child() {
    let Ok(name) = std::env::var(CASE) else { return };
    // Out-of-range sizes request much memory. Refusing it is faster than zeroing it.
    pliant::set_memory_limit(Some(64 << 20));
    match CASES.iter().find(|case| case.name == name) {
        Some(case) => race(case),
        None => kernels::data_races::run(&name, CALLS, 1),
    }
}

/// Creates a zeroed tensor between guard pages. Returns it with the address of its data.
fn tensor(input: &Input) -> (Tensor, *mut u8) {
    let count: i64 = input.shape.iter().product();
    let bytes = count as usize * input.dtype.size();
    let mut memory = Guarded::with_margin(bytes, GUARD_BYTES);
    memory.place(bytes, true);
    let data = memory.as_ptr();
    // SAFETY: the memory has `bytes` bytes, which belong to a new mapping.
    unsafe { data.write_bytes(0, bytes) };
    // SAFETY: the memory lives until the storage releases it.
    let storage = unsafe { Storage::from_foreign(data, bytes, false, move || drop(memory)) };
    (Tensor::from_storage(storage, 0, input.shape, input.dtype).expect("it fits"), data)
}

/// Runs a program repeatedly while another thread changes its inputs.
fn race(case: &Case) {
    let text = format!("{}{}", crate::test_helpers::HEADER, case.script());
    let script = pliant::parse("race.py", &text);
    let module = script.unwrap_or_else(|(e, sources)| panic!("{}", e.render(&sources))).module;
    let model =
        Model::compile(module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let (mut values, mut args) = (Vec::new(), Vec::new());
    for input in case.inputs {
        let (tensor, data) = tensor(input);
        if let Some(valid) = input.valid {
            let size = input.dtype.size();
            for i in 0..tensor.numel() {
                let (at, valid) = (data.wrapping_add(i * size), valid.of(i));
                values.push(ChangingValue { at, size, valid, invalid: OUT_OF_RANGE });
            }
        }
        args.push(Value::Tensor(tensor));
    }
    // SAFETY: the values lie in mappings of their own, which live as long as the tensors.
    unsafe { changing_memory::run(values.clone(), || ()) };
    let first = model.run("main", &args);
    assert!(first.is_ok(), "the run fails with valid values: {first:?}");
    let run = || {
        for _ in 0..RUNS {
            // Errors are expected, since some values are out of range.
            let _ = model.run("main", &args);
        }
    };
    // SAFETY: as above.
    unsafe { changing_memory::run(values, run) };
}

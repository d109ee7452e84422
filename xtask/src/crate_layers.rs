//! Checks the dependencies between crates against their layers, which ARCHITECTURE.md describes.
//!
//! A crate may depend on crates of lower layers, and on the crates of its own layer that its entry lists. The crates that run
//! programs must not depend on crates of the compiler. Development dependencies are not checked, since tests may use any crate.

use std::path::Path;

use crate::workspace_packages::packages;

/// The layer of each crate, with the crates of the same layer that it may depend on.
const LAYERS: &[(&str, u32, &[&str])] = &[
    ("pliant-sym", 0, &[]),
    ("pliant-machine", 0, &[]),
    ("pliant-tensor", 0, &["pliant-pool"]),
    ("pliant-kernel-api", 0, &["pliant-tensor"]),
    ("pliant-pool", 0, &[]),
    ("pliant-diag", 0, &[]),
    ("pliant-ir", 1, &[]),
    ("pliant-script", 1, &["pliant-ir"]),
    ("pliant-ops", 2, &[]),
    ("pliant-interp", 2, &["pliant-ops"]),
    ("pliant-pass", 3, &[]),
    ("pliant-opt", 3, &["pliant-pass"]),
    ("pliant-tir", 3, &["pliant-pass"]),
    ("pliant-schedule", 3, &["pliant-tir"]),
    ("pliant-exec", 4, &[]),
    ("pliant-kernels", 4, &["pliant-exec"]),
    ("pliant-codegen", 4, &["pliant-exec"]),
    ("pliant-cranelift", 4, &["pliant-codegen", "pliant-kernels", "pliant-exec"]),
    ("pliant-llvm", 4, &["pliant-codegen", "pliant-kernels", "pliant-exec"]),
    ("pliant-vm", 4, &["pliant-exec"]),
    ("pliant-runtime", 4, &["pliant-exec", "pliant-kernels", "pliant-vm"]),
    ("pliant-onnx", 5, &[]),
    ("pliant", 5, &["pliant-onnx"]),
    ("pliant-cli", 6, &[]),
    ("pliant-py", 6, &["pliant-cli"]),
    ("pliant-filetests", 6, &[]),
    ("pliant-bench", 6, &[]),
    ("xtask", 6, &[]),
];

/// The crates that run programs, which must not depend on the compiler.
const RUNTIME_ONLY: &[&str] = &["pliant-exec", "pliant-vm", "pliant-kernels", "pliant-runtime"];

/// The crates of the compiler. No crate of [`RUNTIME_ONLY`] may depend on them.
const COMPILER: &[&str] = &[
    "pliant-ir",
    "pliant-script",
    "pliant-ops",
    "pliant-interp",
    "pliant-pass",
    "pliant-opt",
    "pliant-tir",
    "pliant-schedule",
    "pliant-codegen",
    "pliant-cranelift",
    "pliant-llvm",
    "pliant-diag",
];

fn entry(name: &str) -> Option<&'static (&'static str, u32, &'static [&'static str])> {
    LAYERS.iter().find(|(n, ..)| *n == name)
}

/// Returns a message for every dependency that is not allowed, and for every crate without an entry in [`LAYERS`].
///
/// # Errors
/// If `cargo metadata` fails or its output cannot be read.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for package in &packages(root)? {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, layer, same_layer)) = entry(name) else {
            problems.push(format!("{name} has no layer: add it to xtask/src/crate_layers.rs"));
            continue;
        };
        for dep in package["dependencies"].as_array().into_iter().flatten() {
            if dep["kind"] == "dev" {
                continue;
            }
            let dep = dep["name"].as_str().unwrap_or_default();
            let Some((_, dep_layer, _)) = entry(dep) else { continue };
            if dep_layer > layer || (dep_layer == layer && !same_layer.contains(&dep)) {
                problems
                    .push(format!("{name} (layer {layer}) must not use {dep} (layer {dep_layer})"));
            }
            if RUNTIME_ONLY.contains(&name) && COMPILER.contains(&dep) {
                problems.push(format!(
                    "{name} runs programs and must not use {dep}, which belongs to the compiler"
                ));
            }
        }
    }
    Ok(problems)
}

//! The floors: which crate may depend on which.
//!
//! The table below is the house of ARCHITECTURE.md. A crate uses crates of lower floors, and of its own floor
//! only those named after it. Tests may reach anywhere: development dependencies are not checked.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A crate, its floor, and its neighbours on that floor that it may use.
const FLOORS: &[(&str, u32, &[&str])] = &[
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
    ("pliant-exec", 4, &[]),
    ("pliant-kernels", 4, &["pliant-exec"]),
    ("pliant-codegen", 4, &["pliant-exec"]),
    ("pliant-cranelift", 4, &["pliant-codegen", "pliant-kernels", "pliant-exec"]),
    ("pliant-vm", 4, &["pliant-exec"]),
    ("pliant-onnx", 5, &[]),
    ("pliant", 5, &["pliant-onnx"]),
    ("pliant-cli", 6, &[]),
    ("pliant-py", 6, &["pliant-cli"]),
    ("pliant-filetests", 6, &[]),
    ("pliant-bench", 6, &[]),
    ("xtask", 6, &[]),
];

/// The crates below the VM: what a program needs to run, and no compiler.
const RUNTIME_ONLY: &[&str] = &["pliant-exec", "pliant-vm", "pliant-kernels"];

/// The compiler's crates, which no crate of [`RUNTIME_ONLY`] may use.
const COMPILER: &[&str] = &[
    "pliant-ir",
    "pliant-script",
    "pliant-ops",
    "pliant-interp",
    "pliant-pass",
    "pliant-opt",
    "pliant-tir",
    "pliant-codegen",
    "pliant-cranelift",
    "pliant-diag",
];

fn entry(name: &str) -> Option<&'static (&'static str, u32, &'static [&'static str])> {
    FLOORS.iter().find(|(n, ..)| *n == name)
}

/// Every edge that points up, and every crate without a floor.
///
/// # Errors
/// When `cargo metadata` cannot be run or read.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version=1", "--no-deps"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, floor, neighbours)) = entry(name) else {
            problems.push(format!("{name} has no floor: add it to xtask/src/floors.rs"));
            continue;
        };
        for dep in package["dependencies"].as_array().into_iter().flatten() {
            if dep["kind"] == "dev" {
                continue;
            }
            let dep = dep["name"].as_str().unwrap_or_default();
            let Some((_, below, _)) = entry(dep) else { continue };
            if below > floor || (below == floor && !neighbours.contains(&dep)) {
                problems.push(format!("{name} (floor {floor}) must not use {dep} (floor {below})"));
            }
            if RUNTIME_ONLY.contains(&name) && COMPILER.contains(&dep) {
                problems
                    .push(format!("{name} runs programs and must not use the compiler's {dep}"));
            }
        }
    }
    Ok(problems)
}

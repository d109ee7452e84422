//! The packages of the workspace, as `cargo metadata` describes them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Returns the description of each package of the workspace.
///
/// # Errors
/// If `cargo metadata` fails or its output cannot be read.
pub fn packages(root: &Path) -> Result<Vec<Value>, String> {
    let output = cargo(root)
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("cannot parse the output of cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.clone())
}

/// Creates a command that runs the same cargo as this program, in the root of the workspace.
pub fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

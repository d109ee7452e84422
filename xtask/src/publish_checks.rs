//! Checks that every public crate can be published: its metadata, its README, and that cargo can package it.

use std::path::Path;

use serde_json::Value;

use crate::workspace_packages::{cargo, packages};

/// The package metadata that crates.io requires or shows.
const FIELDS: &[&str] = &["description", "license", "repository", "readme"];

/// Returns a message for every crate that cannot be published.
///
/// # Errors
/// If cargo cannot be run.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let mut package = cargo(root);
    // The packages are only listed and their manifests rewritten. Tests have compiled the crates.
    package.args(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    for crate_ in packages(root)?.iter().filter(|p| is_public(p)) {
        let name = crate_["name"].as_str().unwrap_or_default();
        package.args(["--package", name]);
        for field in FIELDS.iter().filter(|f| crate_[**f].is_null()) {
            problems.push(format!("{name}: Cargo.toml has no `{field}`"));
        }
        problems.extend(readme_problem(name, crate_));
    }
    let output = package.output().map_err(|e| format!("cannot run cargo package: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || errors.contains("warning:") {
        problems.push(format!("cargo package reports problems: {errors}"));
    }
    Ok(problems)
}

/// Whether a package may be published. Cargo reports `publish = false` as an empty list of registries.
fn is_public(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// Describes what is wrong with the README of a crate, which must start with the name of the crate and contain its
/// description. `None` if the README is correct.
fn readme_problem(name: &str, package: &Value) -> Option<String> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let readme = package["readme"].as_str()?;
    let description = package["description"].as_str()?;
    let text = match std::fs::read_to_string(manifest.with_file_name(readme)) {
        Ok(text) => text,
        Err(e) => return Some(format!("{name}: {readme}: {e}")),
    };
    let wrapped_description = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.starts_with(&format!("# {name}\n")) {
        return Some(format!("{name}: {readme} does not start with `# {name}`"));
    }
    (!wrapped_description.contains(description))
        .then(|| format!("{name}: {readme} does not contain the description of Cargo.toml"))
}

//! Reduced models: for each finding of a report a file that shows it and nothing else.

use std::path::{Path, PathBuf};

use prost::Message;

use crate::graph::{ImportOptions, import};
use crate::limits::Limits;
use crate::model::Model;
use crate::report::Finding;

/// Writes the models of the findings that show alone what they show in the whole.
///
/// # Errors
/// When the directory or a file cannot be written.
pub(crate) fn write(findings: &[Finding], dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir)?;
    let mut files = Vec::new();
    for (i, finding) in findings.iter().enumerate() {
        let Some(bytes) = shown(finding) else { continue };
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let name: String = finding.operator.chars().take(60).map(plain).collect();
        let path = dir.join(format!("{}-{name}.onnx", i + 1));
        std::fs::write(&path, bytes)?;
        files.push(path);
    }
    Ok(files)
}

/// The file of a finding, if importing it fails with the same words.
fn shown(finding: &Finding) -> Option<Vec<u8>> {
    let bytes = finding.alone.as_ref()?.encode_to_vec();
    let model = Model::from_bytes(bytes.clone(), Limits::default()).ok()?;
    let told = import(&model, &ImportOptions::default()).err()?;
    let same = told.problems.iter().any(|p| {
        p.kind == finding.kind && p.operator == finding.operator && p.message == finding.message
    });
    same.then_some(bytes)
}

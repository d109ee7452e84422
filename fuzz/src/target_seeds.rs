//! The seeds (initial inputs) of each fuzz target, from the corpora in `tests` and from generators.

use std::path::{Path, PathBuf};

use crate::targets::random_numbers::Rng;
use crate::targets::{executable, kernel_calls, kernels, script};

/// Returns all files in a folder and its subfolders, sorted by path.
///
/// # Errors
/// If a folder cannot be read.
pub fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut pending, mut out) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(path) = pending.pop() {
        if !path.is_dir() {
            out.push(path);
            continue;
        }
        for entry in std::fs::read_dir(&path)? {
            pending.push(entry?.path());
        }
    }
    out.sort();
    Ok(out)
}

fn read(tests: &Path, folders: &[&str]) -> std::io::Result<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    for folder in folders.iter().map(|f| tests.join(f)).filter(|f| f.exists()) {
        for file in files(&folder)? {
            out.push(std::fs::read(file)?);
        }
    }
    Ok(out)
}

/// Returns the seeds of the fuzz target with this name. `tests` is the path of the folder `tests`.
///
/// # Errors
/// If a folder or file cannot be read.
pub fn initial_inputs(target: &str, tests: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let scripts =
        || read(tests, &["filetests", "corpus/scripts"]).map(|files| script::seeds(&files));
    Ok(match target {
        "script" => scripts()?,
        "executable" => {
            let mut out = read(tests, &["corpus/executables"])?;
            out.extend(executable::seeds(&scripts()?));
            out
        }
        "kernels" => {
            let text = read(tests, &["corpus/kernels"])?.concat();
            let mut out: Vec<Vec<u8>> =
                text.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect();
            out.extend(kernels::seeds());
            out
        }
        "kernel_calls" => kernel_calls::seeds(),
        // The grammar generates a model from any bytes.
        "onnx_grammar" => (0..64).map(random_bytes).collect(),
        _ => read(tests, &["corpus/onnx", "attacks"])?,
    })
}

/// Creates a sequence of 20 to 519 random bytes.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let count = 20 + rng.below(500);
    (0..count).map(|_| rng.below(256) as u8).collect()
}

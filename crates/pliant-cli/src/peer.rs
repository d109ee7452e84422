//! Peers: other runtimes, which run in a Python interpreter that has them.

use std::path::{Path, PathBuf};
use std::process::Command;

use pliant::Tensor;
use serde::{Deserialize, Serialize};

use crate::args::Peer;
use crate::{Failure, npy};

/// Runs a model on a peer. It reads `job.json` in the folder that is its argument.
const PROGRAM: &str = include_str!("peer.py");
/// The exit code of the program if the peer is not installed.
const MISSING: i32 = 3;

/// The input of the program.
#[derive(Serialize)]
struct Job<'a> {
    peer: &'a str,
    model: &'a Path,
    /// Names and files.
    feeds: Vec<(&'a str, String)>,
    /// Whether nodes run without optimisations.
    plain: bool,
}

/// The output of the program: names, with files for arrays that NumPy can save.
#[derive(Deserialize)]
struct Answer {
    outputs: Vec<(String, Option<String>)>,
}

/// The results of a peer by name; `None` for values that are not tensors of a type that files
/// support.
pub type Results = Vec<(String, Option<Tensor>)>;

/// A temporary folder of this process, removed on drop.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates it.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new() -> Result<Scratch, Failure> {
        let base = std::env::temp_dir();
        for n in 0..1000 {
            let path = base.join(format!("pliant-diff-{}-{n}", std::process::id()));
            // Only a newly created folder is ours.
            if std::fs::create_dir(&path).is_ok() {
                return Ok(Scratch(path));
            }
        }
        Err(Failure::new(format!("error: no folder can be made in {}", base.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // There is nowhere to report an error.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the model on the peer.
///
/// # Errors
/// If Python or the peer is missing, or fails.
pub fn run(
    peer: Peer,
    python: Option<&Path>,
    model: &Path,
    feeds: &[(&str, &Tensor)],
    plain: bool,
) -> Result<Results, Failure> {
    let folder = Scratch::new()?;
    let name = match peer {
        Peer::Onnxruntime => "onnxruntime",
        Peer::Reference => "reference",
    };
    let failed = |why: String| Failure::new(format!("error: {why}"));
    let mut files = Vec::with_capacity(feeds.len());
    for (i, (name, tensor)) in feeds.iter().enumerate() {
        let file = format!("in{i}.npy");
        npy::write(&folder.0.join(&file), tensor).map_err(failed)?;
        files.push((*name, file));
    }
    let model = std::path::absolute(model)?;
    let job = Job { peer: name, model: &model, feeds: files, plain };
    let job = serde_json::to_vec(&job).map_err(|e| failed(e.to_string()))?;
    std::fs::write(folder.0.join("job.json"), job)?;
    let python = python.map_or_else(
        || std::env::var_os("PLIANT_PYTHON").map_or_else(|| "python3".into(), PathBuf::from),
        Path::to_path_buf,
    );
    let output =
        Command::new(&python).arg("-c").arg(PROGRAM).arg(&folder.0).output().map_err(|e| {
            failed(format!(
                "{} cannot be run: {e} (say which Python has {name} with --python or PLIANT_PYTHON)",
                python.display()
            ))
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(MISSING) {
        let package = if peer == Peer::Reference { "onnx" } else { name };
        return Err(failed(format!(
            "{} has no package {package} (`{} -m pip install {package}`, or say which Python has it with --python)",
            python.display(),
            python.display()
        )));
    }
    if !output.status.success() {
        // A process killed by a signal prints nothing, so the status is reported.
        let how = match output.status.code() {
            Some(_) => String::new(),
            None => format!(" ({})", output.status),
        };
        return Err(failed(format!("{name} failed{how}:\n{}", said.trim_end()).trim_end().into()));
    }
    read(&folder.0).map_err(failed)
}

fn read(folder: &Path) -> Result<Results, String> {
    let bytes = std::fs::read(folder.join("answer.json")).map_err(|e| e.to_string())?;
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    let tensor = |file: Option<String>| file.map(|f| npy::read(&folder.join(f))).transpose();
    answer.outputs.into_iter().map(|(name, file)| Ok((name, tensor(file)?))).collect()
}

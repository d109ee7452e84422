//! Runs scripts in a Python interpreter that has another runtime (the "peer", such as ONNX Runtime), and runs models with it for
//! `pliant diff`.

use std::path::{Path, PathBuf};
use std::process::Command;

use pliant::Tensor;
use serde::{Deserialize, Serialize};

use crate::args::Peer;
use pliant_runtime::npy;

use crate::Failure;

/// The Python script that runs a model with a peer: another runtime, such as ONNX Runtime. Its argument is a folder with
/// `job.json`.
const PEER_SCRIPT: &str = include_str!("peer_runtime.py");
/// The exit code of the Python script if the peer is not installed.
const PEER_MISSING: i32 = 3;

/// The job that the Python script reads from `job.json`.
#[derive(Serialize)]
struct Job<'a> {
    peer: &'a str,
    model: &'a Path,
    /// The names of the model's inputs, each with the file that contains its array.
    feeds: Vec<(&'a str, String)>,
    /// Whether the peer (the other runtime) runs the model without graph optimizations.
    unoptimized: bool,
}

/// The outputs of the run, which the Python script writes to `answer.json`: their names, with a file for each numeric array.
#[derive(Deserialize)]
struct PeerOutputs {
    outputs: Vec<(String, Option<String>)>,
}

/// Results of a run by name; `None` for values that are not tensors of a type that `.npy` files
/// support.
pub type Results = Vec<(String, Option<Tensor>)>;

/// A temporary folder of this process, removed on drop.
pub struct ScratchDir(pub PathBuf);

impl ScratchDir {
    /// Creates a folder with a new name.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new() -> Result<ScratchDir, Failure> {
        let base = std::env::temp_dir();
        for n in 0..1000 {
            let path = base.join(format!("pliant-peer-{}-{n}", std::process::id()));
            // A folder that exists already belongs to another process.
            if std::fs::create_dir(&path).is_ok() {
                return Ok(ScratchDir(path));
            }
        }
        Err(Failure::new(format!("error: cannot create a temporary folder in {}", base.display())))
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // A failure cannot be reported here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the model on the peer. With `unoptimized`, the peer's graph optimizations are disabled.
///
/// # Errors
/// If Python or the peer is missing, or the run fails.
pub fn run(
    peer: Peer,
    python: Option<&Path>,
    model: &Path,
    feeds: &[(&str, &Tensor)],
    unoptimized: bool,
) -> Result<Results, Failure> {
    let folder = ScratchDir::new()?;
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
    let job = Job { peer: name, model: &model, feeds: files, unoptimized };
    let job = serde_json::to_vec(&job).map_err(|e| failed(e.to_string()))?;
    std::fs::write(folder.0.join("job.json"), job)?;
    let package = if peer == Peer::Reference { "onnx" } else { name };
    run_script(PEER_SCRIPT, python, &folder.0, package)?;
    read_outputs(&folder.0).map_err(failed)
}

/// Runs a script of this crate in a Python interpreter. Its argument is a folder with the file `job.json`. The script needs a
/// package, and exits with [`PEER_MISSING`] if the interpreter does not have it.
///
/// # Errors
/// If Python or the package is missing, or the script fails.
pub fn run_script(
    script: &str,
    python: Option<&Path>,
    folder: &Path,
    package: &str,
) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("error: {why}"));
    let python = python.map_or_else(
        || std::env::var_os("PLIANT_PYTHON").map_or_else(|| "python3".into(), PathBuf::from),
        Path::to_path_buf,
    );
    let output =
        Command::new(&python).arg("-c").arg(script).arg(folder).output().map_err(|e| {
            failed(format!(
                "the Python interpreter {} cannot be run: {e} (select a Python that has the package {package} \
                 with --python or PLIANT_PYTHON)",
                python.display()
            ))
        })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(PEER_MISSING) {
        return Err(failed(format!(
            "the Python interpreter {python} has no package {package} (run `{python} -m pip install {package}`, or \
             select a Python that has it with --python)",
            python = python.display()
        )));
    }
    if !output.status.success() {
        // A process killed by a signal prints nothing, so its status is shown.
        let status = match output.status.code() {
            Some(_) => String::new(),
            None => format!(" ({})", output.status),
        };
        return Err(failed(
            format!(
                "the runtime {package} failed to run the model{status}:\n{}",
                stderr.trim_end()
            )
            .trim_end()
            .into(),
        ));
    }
    Ok(())
}

/// Reads the outputs of the run from the folder of the Python script.
fn read_outputs(folder: &Path) -> Result<Results, String> {
    let bytes = std::fs::read(folder.join("answer.json")).map_err(|e| e.to_string())?;
    let outputs: PeerOutputs = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
    let tensor = |file: Option<String>| file.map(|f| npy::read(&folder.join(f))).transpose();
    outputs.outputs.into_iter().map(|(name, file)| Ok((name, tensor(file)?))).collect()
}

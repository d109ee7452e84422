//! Times a model with another runtime in a Python interpreter, for `pliant bench --against`.

use std::path::Path;

use pliant::{Signature, Value};
use pliant_runtime::npy;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::args::{BenchArgs, BenchPeer};
use crate::peer_runtime::{ScratchDir, run_script};

/// The Python script that times a model with a peer. Its argument is a folder with `job.json`.
const SCRIPT: &str = include_str!("peer_benchmark.py");

/// The job that the Python script reads from `job.json`.
#[derive(Serialize)]
struct Job<'a> {
    peer: &'a str,
    model: &'a Path,
    /// For each measurement, the inputs' names, each with the file that contains its array.
    points: Vec<Vec<(String, String)>>,
    seconds: f64,
    warm_up: f64,
    streams: usize,
    threads: Option<usize>,
}

/// The measurements that the Python script writes to `answer.json`.
#[derive(Deserialize)]
pub struct PeerTimes {
    /// The version of the peer.
    pub version: String,
    /// The time to load the model in seconds.
    pub load_seconds: f64,
    /// For each point, the times of all runs in milliseconds, and the time of the whole measurement in seconds.
    pub points: Vec<(Vec<f64>, f64)>,
}

/// Times an ONNX model with a peer, once for each list of inputs.
///
/// # Errors
/// If an input is not a tensor, Python or the peer is missing, or a run fails.
pub fn run(
    peer: BenchPeer,
    args: &BenchArgs,
    signature: &Signature,
    inputs: &[Vec<Value>],
) -> Result<PeerTimes, Failure> {
    let folder = ScratchDir::new()?;
    let failed = |why: String| Failure::new(format!("error: {why}"));
    let mut points = Vec::with_capacity(inputs.len());
    for (k, values) in inputs.iter().enumerate() {
        let mut files = Vec::with_capacity(values.len());
        for (i, (name, value)) in signature.feed_names().into_iter().zip(values).enumerate() {
            let Some(tensor) = value.as_tensor() else {
                return Err(failed(format!(
                    "--against: the input '{name}' is {}, but only tensors can be passed to other runtimes",
                    value.kind()
                )));
            };
            let file = format!("p{k}-in{i}.npy");
            npy::write(&folder.0.join(&file), tensor).map_err(failed)?;
            files.push((name.to_string(), file));
        }
        points.push(files);
    }
    let model = std::path::absolute(&args.file)?;
    let job = Job {
        peer: peer.name(),
        model: &model,
        points,
        seconds: args.time,
        warm_up: args.warm_up,
        streams: args.streams.get(),
        threads: args.build.threads.map(Into::into),
    };
    let job = serde_json::to_vec(&job).map_err(|e| failed(e.to_string()))?;
    std::fs::write(folder.0.join("job.json"), job)?;
    run_script(SCRIPT, args.python.as_deref(), &folder.0, peer.name())?;
    let answer = std::fs::read(folder.0.join("answer.json"))?;
    serde_json::from_slice(&answer).map_err(|e| failed(e.to_string()))
}

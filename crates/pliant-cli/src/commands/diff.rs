//! `pliant diff`: runs an ONNX model with Pliant and with a peer, and finds the first node that
//! differs.

use std::fmt;
use std::io::Write;
use std::path::Path;

use pliant::onnx::{self, ImportOptions};
use pliant::{DType, Model, SourceMap, Tensor, Value};

use crate::args::DiffArgs;
use crate::commands::run::signature;
use crate::inputs::Feed;
use crate::peer::{self, Results, Scratch};
use crate::program::{self, Kind};
use crate::{Failure, progress};

/// Runs the command. Fails if a result differs.
pub fn diff(args: &DiffArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    if Kind::of(&args.file) != Kind::Onnx {
        let file = args.file.display();
        return Err(Failure::new(format!("error: {file}: only ONNX models run on a peer (.onnx)")));
    }
    let file = program::open_onnx(&args.file)?;
    let (ours, feeds) = here(args, &file, false, err)?;
    let theirs = there(args, &args.file, &feeds, false)?;
    let pairs = compare(args, &ours, &theirs);
    for (name, verdict) in &pairs {
        writeln!(out, "{name}: {verdict}")?;
    }
    if pairs.iter().all(|(_, v)| v.agrees()) {
        writeln!(out, "all outputs agree (rtol {}, atol {})", args.rtol, args.atol)?;
        return Ok(());
    }
    let place = first_node(args, &file, &feeds, err)?;
    writeln!(out, "{place}")?;
    let differ = pairs.iter().filter(|(_, v)| !v.agrees()).count();
    Err(Failure::new(format!("error: {differ} of {} outputs differ", pairs.len())))
}

/// The feeds of a run, by name.
type Feeds = Vec<(String, Tensor)>;

/// Compiles and runs the model with Pliant.
fn here(
    args: &DiffArgs,
    file: &onnx::Model,
    intermediates: bool,
    err: &mut dyn Write,
) -> Result<(Results, Feeds), Failure> {
    let waiting = progress::spinner(format!("compiling {}", args.file.display()));
    let options =
        ImportOptions { intermediates, allow_specialization: true, ..ImportOptions::default() };
    let mut sources = SourceMap::new();
    let imported = onnx::import_with(file, &options, &mut sources)
        .map_err(|e| Failure::new(format!("error: {}: {e}", args.file.display())))?;
    let compiled = program::compile(imported.module, &sources, &args.build, err)?;
    waiting.finish_and_clear();
    let feed = Feed::new(&args.feed)?;
    let signature = signature(&compiled, &args.feed.func)?.clone();
    let values = feed.values(&signature, &feed.only_point()?)?;
    let tensors = values.iter().filter_map(|v| v.as_tensor().cloned());
    let feeds = imported.inputs.into_iter().zip(tensors).collect();
    let options = args.feed.run_options();
    let result = Model::new(compiled)?.run_with(&args.feed.func, &values, &options)?;
    let results = match (&imported.outputs[..], result.as_tuple()) {
        ([one], _) => vec![(one.clone(), tensor(&result))],
        (names, fields) => {
            let fields = fields.unwrap_or_default();
            names.iter().cloned().zip(fields.iter().map(tensor)).collect()
        }
    };
    Ok((results, feeds))
}

fn tensor(value: &Value) -> Option<Tensor> {
    value.as_tensor().cloned()
}

/// Runs the model with the peer.
fn there(args: &DiffArgs, model: &Path, feeds: &Feeds, plain: bool) -> Result<Results, Failure> {
    let waiting = progress::spinner("running the peer".into());
    let feeds: Vec<(&str, &Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let results = peer::run(args.against, args.python.as_deref(), model, &feeds, plain);
    waiting.finish_and_clear();
    results
}

/// Finds the first node whose result differs, by making every node's result an output.
fn first_node(
    args: &DiffArgs,
    file: &onnx::Model,
    feeds: &Feeds,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let folder = Scratch::new()?;
    let path = folder.0.join("model.onnx");
    if file.has_external_data() {
        return Ok(
            "the nodes are not compared: the weights lie in other files, which a copy of the \
                   model would not find"
                .into(),
        );
    }
    std::fs::write(&path, file.with_all_outputs())?;
    let (ours, _) = here(args, file, true, err)?;
    let theirs = there(args, &path, feeds, true)?;
    let pairs = compare(args, &ours, &theirs);
    for (label, outputs) in file.nodes() {
        for output in outputs {
            let Some((_, verdict)) = pairs.iter().find(|(n, _)| *n == output) else { continue };
            if !verdict.agrees() {
                return Ok(format!("the first node that differs is {label}: '{output}' {verdict}"));
            }
        }
    }
    Ok("every node agrees when its result is asked for: the difference is in how nodes are run \
        together (`--pipeline minimum` runs them one by one)"
        .into())
}

/// The comparison of two results.
enum Verdict {
    /// They agree; the largest difference.
    Agrees(f64),
    /// They differ; the number of different elements, and the largest difference.
    Differs { elements: usize, of: usize, most: f64 },
    /// Neither has elements; the shapes.
    Empty(String),
    /// They have different types or shapes.
    Unlike(String),
    /// One of them is not a tensor of numbers, or the peer does not return it.
    Unknown,
}

impl Verdict {
    fn agrees(&self) -> bool {
        matches!(self, Verdict::Agrees(_) | Verdict::Empty(_) | Verdict::Unknown)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Agrees(most) => write!(f, "agrees, largest difference {most:.3e}"),
            Verdict::Differs { elements, of, most } => {
                write!(f, "differs in {elements} of {of} elements, by {most:.3e} at most")
            }
            Verdict::Empty(shapes) => write!(f, "agrees, without elements: {shapes}"),
            Verdict::Unlike(how) => write!(f, "differs: {how}"),
            Verdict::Unknown => write!(f, "not compared"),
        }
    }
}

fn compare(args: &DiffArgs, ours: &Results, theirs: &Results) -> Vec<(String, Verdict)> {
    let verdict = |(name, our): &(String, Option<Tensor>)| {
        let their = theirs.iter().find(|(n, _)| n == name).and_then(|(_, t)| t.as_ref());
        let verdict = match (our, their) {
            (Some(our), Some(their)) => judge(args, our, their),
            _ => Verdict::Unknown,
        };
        (name.clone(), verdict)
    };
    ours.iter().map(verdict).collect()
}

fn judge(args: &DiffArgs, our: &Tensor, their: &Tensor) -> Verdict {
    let kind = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
    // Peers do not know the dims of what a loop without iterations collects.
    let empty = our.numel() == 0 && their.numel() == 0 && our.ndim() == their.ndim();
    if empty && our.dtype() == their.dtype() && our.shape() != their.shape() {
        return Verdict::Empty(format!("{} here, {} there", kind(our), kind(their)));
    }
    if our.shape() != their.shape() || our.dtype() != their.dtype() {
        return Verdict::Unlike(format!("{} here, {} there", kind(our), kind(their)));
    }
    let (Ok(a), Ok(b)) = (our.to_f64_vec(), their.to_f64_vec()) else { return Verdict::Unknown };
    // Integers and bools must be equal.
    let exact =
        !matches!(our.dtype(), DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64);
    let (rtol, atol) = if exact { (0.0, 0.0) } else { (args.rtol, args.atol) };
    let (mut elements, mut most) = (0, 0.0f64);
    for (x, y) in a.iter().zip(&b) {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let by = (x - y).abs();
        most = if by.is_nan() { f64::INFINITY } else { most.max(by) };
        if by.is_nan() || by > atol + rtol * y.abs() {
            elements += 1;
        }
    }
    match elements {
        0 => Verdict::Agrees(most),
        _ => Verdict::Differs { elements, of: a.len(), most },
    }
}

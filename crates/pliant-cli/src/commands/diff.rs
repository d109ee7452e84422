//! `pliant diff`: runs an ONNX model with Pliant and with another runtime (the peer), and finds the
//! first node whose results differ.

use std::fmt;
use std::io::Write;
use std::path::Path;

use pliant::onnx::{self, ImportOptions};
use pliant::{DType, Model, SourceMap, Tensor, Value};

use crate::args::DiffArgs;
use crate::commands::run::signature;
use crate::peer_runtime::{self, Results, ScratchDir};
use crate::program_loading::{self, FileKind};
use crate::run_inputs::Feed;
use crate::{Failure, progress};

/// Runs `pliant diff`. Fails if a result differs.
pub fn diff(args: &DiffArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    if FileKind::of(&args.file) != FileKind::Onnx {
        let file = args.file.display();
        return Err(Failure::new(format!(
            "error: {file} is not an ONNX model (.onnx), but `pliant diff` compares only ONNX models"
        )));
    }
    let file = program_loading::open_onnx(&args.file)?;
    let (ours, feeds) = run_pliant(args, &file, false, err)?;
    let theirs = run_peer(args, &args.file, &feeds, false)?;
    let pairs = compare(args, &ours, &theirs);
    for (name, verdict) in &pairs {
        writeln!(out, "{name}: {verdict}")?;
    }
    if pairs.iter().all(|(_, v)| v.agrees()) {
        writeln!(out, "all outputs agree (rtol {}, atol {})", args.rtol, args.atol)?;
        return Ok(());
    }
    let location = first_node(args, &file, &feeds, err)?;
    writeln!(out, "{location}")?;
    let differ = pairs.iter().filter(|(_, v)| !v.agrees()).count();
    Err(Failure::new(format!(
        "error: {differ} of {} outputs differ from those of the peer",
        pairs.len()
    )))
}

/// The inputs of a run, by name.
type Feeds = Vec<(String, Tensor)>;

/// Compiles and runs the model with Pliant. With `intermediates`, every node's result is an output.
/// Returns the results and the inputs.
fn run_pliant(
    args: &DiffArgs,
    file: &onnx::Model,
    intermediates: bool,
    err: &mut dyn Write,
) -> Result<(Results, Feeds), Failure> {
    let spinner = progress::spinner(format!("compiling {}", args.file.display()));
    let options =
        ImportOptions { intermediates, allow_specialization: true, ..ImportOptions::default() };
    let mut sources = SourceMap::new();
    let imported = onnx::import_with(file, &options, &mut sources).map_err(|e| {
        Failure::new(format!("error: the ONNX model {} cannot be run: {e}", args.file.display()))
    })?;
    let compiled = program_loading::compile(imported.module, &sources, &args.build, err)?;
    spinner.finish_and_clear();
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

/// Runs the model with the other runtime (the peer). With `unoptimized`, its graph optimizations
/// are disabled.
fn run_peer(
    args: &DiffArgs,
    model: &Path,
    feeds: &Feeds,
    unoptimized: bool,
) -> Result<Results, Failure> {
    let spinner = progress::spinner("running the peer".into());
    let feeds: Vec<(&str, &Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let results =
        peer_runtime::run(args.against, args.python.as_deref(), model, &feeds, unoptimized);
    spinner.finish_and_clear();
    results
}

/// Finds the first node whose result differs, by making every node's result an output.
fn first_node(
    args: &DiffArgs,
    file: &onnx::Model,
    feeds: &Feeds,
    err: &mut dyn Write,
) -> Result<String, Failure> {
    let folder = ScratchDir::new()?;
    let path = folder.0.join("model.onnx");
    if file.has_external_data() {
        return Ok(
            "the nodes are not compared: the weights are in external files, which a copy of the \
                   model would not find"
                .into(),
        );
    }
    std::fs::write(&path, file.with_all_outputs())?;
    let (ours, _) = run_pliant(args, file, true, err)?;
    let theirs = run_peer(args, &path, feeds, true)?;
    let pairs = compare(args, &ours, &theirs);
    for (label, outputs) in file.nodes() {
        for output in outputs {
            let Some((_, verdict)) = pairs.iter().find(|(n, _)| *n == output) else { continue };
            if !verdict.agrees() {
                return Ok(format!("the first node that differs is {label}: '{output}' {verdict}"));
            }
        }
    }
    Ok("every node agrees if its result is an output: the difference comes from the fusion of nodes \
        (`--pipeline minimum` runs nodes one by one)"
        .into())
}

/// The result of comparing two tensors.
enum Verdict {
    /// The tensors agree within the tolerances. The field is the largest difference.
    Agrees(f64),
    /// The tensors have the same type and shape, but differ in `different` of `total` elements.
    Different { different: usize, total: usize, max_difference: f64 },
    /// Both tensors are empty, but their shapes differ. The field describes both shapes.
    Empty(String),
    /// The tensors have different element types or shapes. The field describes both.
    TypesDiffer(String),
    /// One of the two values is not a tensor of numbers, or the peer did not return it.
    NotCompared,
}

impl Verdict {
    fn agrees(&self) -> bool {
        matches!(self, Verdict::Agrees(_) | Verdict::Empty(_) | Verdict::NotCompared)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Agrees(max_difference) => {
                write!(f, "agrees, largest difference {max_difference:.3e}")
            }
            Verdict::Different { different, total, max_difference } => {
                write!(
                    f,
                    "differs in {different} of {total} elements, by {max_difference:.3e} at most"
                )
            }
            Verdict::Empty(shapes) => {
                write!(f, "agrees, although the shapes without elements differ: {shapes}")
            }
            Verdict::TypesDiffer(how) => write!(f, "differs: {how}"),
            Verdict::NotCompared => {
                write!(f, "was not compared, because it is not a tensor on both sides")
            }
        }
    }
}

/// Compares each result of Pliant with the peer's result of the same name.
fn compare(args: &DiffArgs, ours: &Results, theirs: &Results) -> Vec<(String, Verdict)> {
    let verdict = |(name, our): &(String, Option<Tensor>)| {
        let their = theirs.iter().find(|(n, _)| n == name).and_then(|(_, t)| t.as_ref());
        let verdict = match (our, their) {
            (Some(our), Some(their)) => compare_tensors(args, our, their),
            _ => Verdict::NotCompared,
        };
        (name.clone(), verdict)
    };
    ours.iter().map(verdict).collect()
}

/// Compares a tensor of Pliant with the peer's tensor under the tolerances of the command line.
fn compare_tensors(args: &DiffArgs, our: &Tensor, their: &Tensor) -> Verdict {
    let describe = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
    // A peer does not know the item shape of a loop output that no iteration has produced.
    let empty = our.numel() == 0 && their.numel() == 0 && our.ndim() == their.ndim();
    if empty && our.dtype() == their.dtype() && our.shape() != their.shape() {
        return Verdict::Empty(format!(
            "Pliant returns {}, the peer {}",
            describe(our),
            describe(their)
        ));
    }
    if our.shape() != their.shape() || our.dtype() != their.dtype() {
        return Verdict::TypesDiffer(format!(
            "Pliant returns {}, the peer {}",
            describe(our),
            describe(their)
        ));
    }
    let (Ok(a), Ok(b)) = (our.to_f64_vec(), their.to_f64_vec()) else {
        return Verdict::NotCompared;
    };
    // Integers and bools must be equal.
    let is_exact =
        !matches!(our.dtype(), DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64);
    let (rtol, atol) = if is_exact { (0.0, 0.0) } else { (args.rtol, args.atol) };
    let (mut different, mut max_difference) = (0, 0.0f64);
    for (x, y) in a.iter().zip(&b) {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let difference = (x - y).abs();
        max_difference =
            if difference.is_nan() { f64::INFINITY } else { max_difference.max(difference) };
        if difference.is_nan() || difference > atol + rtol * y.abs() {
            different += 1;
        }
    }
    match different {
        0 => Verdict::Agrees(max_difference),
        _ => Verdict::Different { different, total: a.len(), max_difference },
    }
}

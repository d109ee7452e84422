//! Tests damaged ONNX models: importing, compiling and running any bytes must end with a result or
//! an error.

use std::path::{Path, PathBuf};

use pliant::onnx::proto::tensor_proto::DataType;
use pliant::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, DType, Dim, Model, Tensor, Value};
use prost::Message;

/// Returns the files of a folder of the tests, in order of their names.
fn files(folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "onnx"))
        .collect();
    files.sort();
    files
}

/// Returns import limits that bound the memory use of a damaged file.
fn test_limits() -> Limits {
    Limits { tensor_bytes: 1 << 20, nodes: 10_000, decoded_bytes: 64 << 20, ..Limits::default() }
}

/// Imports and checks the bytes; if they are a model, compiles and runs it. Returns whether it ran.
fn import_and_run(bytes: &[u8]) -> bool {
    let Ok(file) = onnx::Model::from_bytes(bytes.to_vec(), test_limits()) else { return false };
    let report = onnx::check(&file, &ImportOptions::default());
    let imported = onnx::import(&file, &ImportOptions::default());
    assert_eq!(imported.is_ok(), report.is_ok(), "the report and the import disagree: {report}");
    let Ok(imported) = imported else { return false };
    let Ok(model) = Model::compile(imported.module, &CompileOptions::default()) else {
        return false;
    };
    let Some(args) = small_inputs(&model) else { return false };
    model.run("main", &args).is_ok()
}

/// Creates small inputs for a model; `None` if the model declares a large constant size.
fn small_inputs(model: &Model) -> Option<Vec<Value>> {
    let value = |info: &pliant::ValueInfo| {
        let size = |dim: &Dim| match dim {
            Dim::Constant(n) => (*n <= 64).then_some(*n),
            Dim::Symbolic(_) => Some(2),
        };
        let dims: Vec<i64> = info.shape.as_ref()?.iter().map(size).collect::<Option<_>>()?;
        let dtype: DType = info.dtype.as_ref()?.parse().ok()?;
        let is_small = dims.iter().product::<i64>() <= 1 << 16;
        is_small.then(|| Tensor::zeros(&dims, dtype).ok()).flatten().map(Value::Tensor)
    };
    model.inputs().iter().map(value).collect()
}

#[test]
fn corpus_models_run() {
    let files = files("corpus/onnx");
    assert!(files.len() >= 8, "{} files", files.len());
    for file in files {
        assert!(import_and_run(&std::fs::read(&file).unwrap()), "{}", file.display());
    }
}

#[test]
fn malicious_models_are_rejected() {
    let files = files("attacks");
    assert!(files.len() >= 20, "{} files", files.len());
    for file in files {
        assert!(!import_and_run(&std::fs::read(&file).unwrap()), "{} runs", file.display());
    }
}

/// A xorshift random number generator, with its current state.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Damages a file one to three times: changes a byte or a bit, truncates the file, duplicates a range of its bytes, or inserts a
/// range of the bytes in `other`.
fn mutate(bytes: &[u8], other: &[u8], rng: &mut Xorshift) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        if out.is_empty() {
            break;
        }
        let at = rng.below(out.len());
        let end = (at + 1 + rng.below(16)).min(out.len());
        match rng.below(5) {
            0 => out[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5)],
            1 => out[at] ^= 1 << rng.below(8),
            2 => drop(out.drain(at..end)),
            3 => {
                let piece = out[at..end].to_vec();
                out.splice(at..at, piece);
            }
            _ => {
                let from = rng.below(other.len());
                let piece = &other[from..(from + end - at).min(other.len())];
                out.splice(at..end, piece.iter().copied());
            }
        }
    }
    out
}

/// Whether all integers in a model file are small. A valid model with large integers may create
/// large tensors.
fn has_small_integers(bytes: &[u8]) -> bool {
    let Ok(file) = ModelProto::decode(bytes) else { return true };
    let functions = file.functions.iter().flat_map(|f| &f.node);
    let mut nodes: Vec<&NodeProto> = functions.collect();
    let mut graphs: Vec<&GraphProto> = file.graph.iter().collect();
    let mut largest = 0;
    while let Some(graph) = graphs.pop() {
        largest = graph.initializer.iter().map(largest_integer).fold(largest, i64::max);
        nodes.extend(&graph.node);
        for attr in nodes.drain(..).flat_map(|n| &n.attribute) {
            largest = attr.ints.iter().chain(&attr.i).copied().fold(largest, i64::max);
            largest = attr.t.iter().map(largest_integer).fold(largest, i64::max);
            graphs.extend(attr.g.iter().chain(&attr.graphs));
        }
    }
    largest <= 4096
}

/// Returns the largest element of a tensor of 64-bit integers.
fn largest_integer(tensor: &TensorProto) -> i64 {
    let raw = tensor.raw_data.as_deref().unwrap_or_default().chunks_exact(8);
    let raw = raw.map(|c| i64::from_le_bytes(c.try_into().unwrap()));
    let is_int64 = tensor.data_type() == DataType::Int64 as i32;
    let raw = raw.filter(|_| is_int64);
    raw.chain(tensor.int64_data.iter().copied()).max().unwrap_or(0)
}

#[test]
fn damaged_models_do_not_panic() {
    let corpus: Vec<Vec<u8>> = files("corpus/onnx")
        .iter()
        .chain(&files("attacks"))
        .map(|f| std::fs::read(f).unwrap())
        .filter(|b| b.len() < 1 << 14)
        .collect();
    let mut rng = Xorshift(0x9e37_79b9_7f4a_7c15);
    let mut ran = 0;
    for _ in 0..600 {
        let (a, b) = (rng.below(corpus.len()), rng.below(corpus.len()));
        let bytes = mutate(&corpus[a], &corpus[b], &mut rng);
        if has_small_integers(&bytes) {
            ran += usize::from(import_and_run(&bytes));
        }
    }
    // Some must run; otherwise only the decoder is tested.
    assert!(ran > 0, "none ran");
}

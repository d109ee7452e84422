//! The fuzz targets by name. Every input must end with a result or an error.

pub mod target_seeds;
pub mod targets;

pub mod onnx_grammar;

use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, DType, Dim, Model, Tensor, Value, ValueInfo};
use prost::Message;

use targets::random_numbers::mutate_bytes;
use targets::{TARGETS, Target};

/// The fuzz targets for ONNX models. Inputs are the bytes of model files, or bytes that determine the choices of a
/// grammar.
const ONNX_TARGETS: [Target; 3] = [
    Target { name: "import", run: import, mutate: mutate_bytes },
    Target { name: "run", run, mutate: mutate_bytes },
    Target { name: "onnx_grammar", run: run_grammar, mutate: mutate_bytes },
];

/// Returns all fuzz targets.
pub fn all() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(&ONNX_TARGETS)
}

/// Returns the fuzz target with this name.
///
/// # Errors
/// If there is no such target; the message lists all.
pub fn target(name: &str) -> Result<&'static Target, String> {
    let names = || all().map(|t| t.name).collect::<Vec<_>>().join(", ");
    all()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("unknown target '{name}', expected one of {}", names()))
}

/// Generates an ONNX model by a grammar whose choices the bytes determine; imports, compiles and runs the model.
/// Returns whether it was imported.
///
/// # Panics
/// If a bug of Pliant is detected.
pub fn run_grammar(bytes: &[u8]) -> bool {
    let model = onnx_grammar::model(bytes).encode_to_vec();
    match onnx_grammar::run_model::run(&model) {
        Ok(reached) => !matches!(reached, onnx_grammar::run_model::LastStage::Rejected),
        Err(bug) => panic!("{bug}"),
    }
}

/// Imports bytes as an ONNX model, and checks that the importer's report on the model agrees with the result. Returns
/// whether the import succeeded.
pub fn import(bytes: &[u8]) -> bool {
    let limits = Limits {
        tensor_bytes: 1 << 20,
        nodes: 10_000,
        decoded_bytes: 64 << 20,
        ..Limits::default()
    };
    let Ok(model) = onnx::Model::from_bytes(bytes.to_vec(), limits) else { return false };
    let imported = onnx::import(&model, &ImportOptions::default());
    assert_eq!(imported.is_ok(), onnx::check(&model, &ImportOptions::default()).is_ok());
    imported.is_ok()
}

fn tiny_input(info: &ValueInfo) -> Option<Value> {
    let size = |dim: &Dim| match dim {
        Dim::Constant(n) => (*n <= 16).then_some(*n),
        Dim::Symbolic(_) => Some(2),
    };
    let dims: Vec<i64> = info.shape.as_ref()?.iter().map(size).collect::<Option<_>>()?;
    let dtype: DType = info.dtype.as_ref()?.parse().ok()?;
    Some(Value::Tensor(Tensor::zeros(&dims, dtype).ok()?))
}

/// Imports bytes as an ONNX model, compiles it and runs it on tiny inputs. Returns whether it ran.
pub fn run(bytes: &[u8]) -> bool {
    let limits =
        Limits { tensor_bytes: 1 << 16, nodes: 100, decoded_bytes: 1 << 20, ..Limits::default() };
    let Ok(model) = onnx::Model::from_bytes(bytes.to_vec(), limits) else { return false };
    let Ok(imported) = onnx::import(&model, &ImportOptions::default()) else { return false };
    let Ok(model) = Model::compile(imported.module, &CompileOptions::default()) else {
        return false;
    };
    let args: Option<Vec<Value>> = model.inputs().iter().map(tiny_input).collect();
    args.is_some_and(|args| model.run("main", &args).is_ok())
}

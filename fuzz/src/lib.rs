//! The fuzz targets by name. Each ends with a result or an error for every input.

pub mod seeds;
pub mod targets;

pub mod onnx_grammar;

use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, DType, Dim, Model, Tensor, Value, ValueInfo};
use prost::Message;

use targets::rng::damage;
use targets::{TARGETS, Target};

/// Targets over ONNX models: the bytes of files, and the choices of a grammar.
const ONNX: [Target; 3] = [
    Target { name: "import", run: import, mutate: damage },
    Target { name: "run", run, mutate: damage },
    Target { name: "onnx_grammar", run: grammar, mutate: damage },
];

/// Every target.
pub fn all() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().chain(&ONNX)
}

/// A target by its name.
///
/// # Errors
/// There is no such target; the message lists all.
pub fn target(name: &str) -> Result<&'static Target, String> {
    let names = || all().map(|t| t.name).collect::<Vec<_>>().join(", ");
    all()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("unknown target '{name}', expected one of {}", names()))
}

/// Bytes as choices in a grammar of models; the model is imported, compiled and run.
///
/// # Panics
/// Pliant reports an internal error or is otherwise inconsistent.
pub fn grammar(bytes: &[u8]) -> bool {
    let model = onnx_grammar::model(bytes).encode_to_vec();
    match onnx_grammar::run::run(&model) {
        Ok(reached) => !matches!(reached, onnx_grammar::run::Reached::Refused),
        Err(bug) => panic!("{bug}"),
    }
}

/// Bytes to the importer: a module, or an error, and the report agrees.
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

fn input(info: &ValueInfo) -> Option<Value> {
    let size = |dim: &Dim| match dim {
        Dim::Constant(n) => (*n <= 16).then_some(*n),
        Dim::Symbolic(_) => Some(2),
    };
    let dims: Vec<i64> = info.shape.as_ref()?.iter().map(size).collect::<Option<_>>()?;
    let dtype: DType = info.dtype.as_ref()?.parse().ok()?;
    Some(Value::Tensor(Tensor::zeros(&dims, dtype).ok()?))
}

/// Bytes to a run: what imports is compiled and run on tiny inputs.
pub fn run(bytes: &[u8]) -> bool {
    let limits =
        Limits { tensor_bytes: 1 << 16, nodes: 100, decoded_bytes: 1 << 20, ..Limits::default() };
    let Ok(model) = onnx::Model::from_bytes(bytes.to_vec(), limits) else { return false };
    let Ok(imported) = onnx::import(&model, &ImportOptions::default()) else { return false };
    let Ok(model) = Model::compile(imported.module, &CompileOptions::default()) else {
        return false;
    };
    let args: Option<Vec<Value>> = model.inputs().iter().map(input).collect();
    args.is_some_and(|args| model.run("main", &args).is_ok())
}

//! What the fuzz targets do with bytes. Each ends with a result or an error, whatever the bytes are.

use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, DType, Dim, Model, Tensor, Value, ValueInfo};

/// A target by its name.
pub fn target(name: &str) -> Option<fn(&[u8])> {
    match name {
        "import" => Some(import),
        "run" => Some(run),
        _ => None,
    }
}

/// Bytes to the importer: a module, or an error, and the report agrees.
pub fn import(bytes: &[u8]) {
    let limits = Limits {
        tensor_bytes: 1 << 20,
        nodes: 10_000,
        decoded_bytes: 64 << 20,
        ..Limits::default()
    };
    let Ok(model) = onnx::Model::from_bytes(bytes.to_vec(), limits) else { return };
    let imported = onnx::import(&model, &ImportOptions::default());
    assert_eq!(imported.is_ok(), onnx::check(&model, &ImportOptions::default()).is_ok());
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
pub fn run(bytes: &[u8]) {
    let limits = Limits {
        tensor_bytes: 1 << 16,
        nodes: 100,
        decoded_bytes: 1 << 20,
        ..Limits::default()
    };
    let Ok(model) = onnx::Model::from_bytes(bytes.to_vec(), limits) else { return };
    let Ok(imported) = onnx::import(&model, &ImportOptions::default()) else { return };
    let Ok(model) = Model::compile(imported.module, &CompileOptions::default()) else { return };
    let args: Option<Vec<Value>> = model.inputs().iter().map(input).collect();
    if let Some(args) = args {
        let _ = model.run("main", &args);
    }
}

//! Imports, compiles and runs a model. Each step must end with a result or with an error of the model. Internal errors,
//! inconsistent reports and panics are bugs.

use pliant::onnx::{self, ImportOptions, Limits, ProblemKind};
use pliant::{
    CompileOptions, DType, Dim, Error, ErrorKind, Model, Tensor, Value, ValueInfo, VmError,
};

/// The last stage that a model reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastStage {
    /// The importer rejected the model.
    Rejected,
    /// The model was imported, but the compiler rejected it.
    Imported,
    /// The model was compiled, but inputs cannot be generated for it.
    Compiled,
    /// The model was run, and the run failed.
    Failed,
    /// The model was run successfully.
    Ran,
}

/// Returns import limits that bound the memory use and the time.
pub fn limits() -> Limits {
    Limits { tensor_bytes: 1 << 20, nodes: 1000, decoded_bytes: 16 << 20, ..Limits::default() }
}

/// Imports, compiles and runs a model file. Returns the last stage that the model reached.
///
/// # Errors
/// A description of a bug of Pliant.
pub fn run(bytes: &[u8]) -> Result<LastStage, String> {
    let Ok(file) = onnx::Model::from_bytes(bytes.to_vec(), limits()) else {
        return Ok(LastStage::Rejected);
    };
    let options = ImportOptions::default();
    let report = onnx::check(&file, &options);
    let imported = match onnx::import(&file, &options) {
        Ok(imported) if report.is_ok() => imported,
        Ok(_) => {
            return Err(format!(
                "onnx::import succeeds, but onnx::check reports problems: {report}"
            ));
        }
        Err(e) if report.is_ok() => {
            return Err(format!("onnx::import fails, but onnx::check reports no problem: {e}"));
        }
        Err(e) => {
            let bug = e.problems.iter().find(|p| p.kind == ProblemKind::Internal);
            return match bug {
                Some(bug) => Err(format!("onnx::import reports an internal error: {bug}")),
                None if e.problems.iter().any(|p| p.message.is_empty()) => {
                    Err(format!("onnx::import reports a problem with an empty message: {e:?}"))
                }
                None if e.problems.is_empty() => {
                    Err("onnx::import fails with an error that lists no problems".into())
                }
                None => Ok(LastStage::Rejected),
            };
        }
    };
    let model = match Model::compile(imported.module, &CompileOptions::default()) {
        Ok(model) => model,
        Err(e) if is_bug(&e) => return Err(format!("the compilation fails because of a bug: {e}")),
        Err(_) => return Ok(LastStage::Imported),
    };
    let Some(args) = model.inputs().iter().map(input).collect::<Option<Vec<Value>>>() else {
        return Ok(LastStage::Compiled);
    };
    match model.run("main", &args) {
        Ok(_) => Ok(LastStage::Ran),
        Err(e) if is_bug(&e) => Err(format!("the run fails because of a bug: {e}")),
        Err(_) => Ok(LastStage::Failed),
    }
}

/// Whether an error is caused by a bug of Pliant and not by the model.
fn is_bug(error: &Error) -> bool {
    fn is_vm_bug(error: &VmError) -> bool {
        match error {
            VmError::Traced { error, .. } => is_vm_bug(error),
            VmError::Plain(error) => is_vm_bug(error),
            VmError::Type(_)
            | VmError::MissingFunctions { .. }
            | VmError::UnknownFunction { .. } => true,
            VmError::Arity { .. } | VmError::Interrupted => true,
            other => other.to_string().contains("bug in Pliant"),
        }
    }
    match error {
        Error::Runtime(error) => is_vm_bug(error),
        other => matches!(other.kind(), ErrorKind::Internal | ErrorKind::Executable),
    }
}

/// Creates a small tensor for an input of the model; `None` if the input is not a tensor or is too large.
fn input(info: &ValueInfo) -> Option<Value> {
    let size = |dim: &Dim| match dim {
        Dim::Constant(n) => (*n <= 64).then_some(*n),
        // The generator writes the usual size into the names of symbolic dims.
        Dim::Symbolic(name) => {
            let digit = name.trim_start_matches(|c: char| !c.is_ascii_digit()).get(..1);
            Some(digit.and_then(|d| d.parse().ok()).unwrap_or(2))
        }
    };
    let dims: Vec<i64> = info.shape.as_ref()?.iter().map(size).collect::<Option<_>>()?;
    let dtype: DType = info.dtype.as_ref()?.parse().ok()?;
    let count = dims.iter().product::<i64>();
    if !(0..=1 << 16).contains(&count) {
        return None;
    }
    let numbers = 0..count;
    let tensor = match dtype {
        DType::Float32 => {
            Tensor::from_slice(&dims, &numbers.map(|i| (i % 5) as f32 - 1.0).collect::<Vec<_>>())
        }
        DType::Int64 => {
            Tensor::from_slice(&dims, &numbers.map(|i| (i + 1) % 3).collect::<Vec<_>>())
        }
        DType::Bool => Tensor::from_slice(&dims, &numbers.map(|i| i % 2 == 0).collect::<Vec<_>>()),
        _ => Tensor::zeros(&dims, dtype),
    };
    tensor.ok().map(Value::Tensor)
}

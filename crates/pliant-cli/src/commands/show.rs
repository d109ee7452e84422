//! Prints results, and saves them to NumPy files.

use std::io::Write;
use std::path::{Path, PathBuf};

use pliant::{DType, Value};

use crate::Failure;
use pliant_runtime::npy;

/// Prints a run-time value. For a tensor, prints the type, the shape and the first 16 elements.
pub fn show(value: &Value, indent: &str, out: &mut dyn Write) -> Result<(), Failure> {
    match value {
        Value::Tensor(t) => {
            let values = t.to_f64_vec().map_err(|e| Failure::new(format!("error: {e}")))?;
            let shown: Vec<String> =
                values.iter().take(16).map(|&v| shortest_decimal(t.dtype(), v)).collect();
            let rest = if values.len() > 16 { ", ..." } else { "" };
            writeln!(out, "{indent}{} {:?} [{}{rest}]", t.dtype(), t.shape(), shown.join(", "))?;
        }
        Value::Shape(dims) => writeln!(out, "{indent}shape {dims:?}")?,
        _ => match value.as_tuple() {
            Some(fields) => {
                writeln!(out, "{indent}tuple of {}", fields.len())?;
                for field in fields {
                    show(field, &format!("{indent}  "), out)?;
                }
            }
            None => writeln!(out, "{indent}{value:?}")?,
        },
    }
    Ok(())
}

/// Returns the shortest decimal that parses back to the same value of this data type.
fn shortest_decimal(dtype: DType, value: f64) -> String {
    match dtype {
        DType::Float16 | DType::BFloat16 | DType::Float32 => (value as f32).to_string(),
        _ => value.to_string(),
    }
}

/// Writes a tensor to a NumPy file, or each tensor of a tuple to its own file.
pub fn save(value: &Value, path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("error: {why}"));
    if let Some(fields) = value.as_tuple() {
        for (i, field) in fields.iter().enumerate() {
            save(field, &numbered_path(path, i))?;
        }
        return Ok(());
    }
    match value.as_tensor() {
        Some(tensor) => npy::write(path, tensor).map_err(failed),
        None => Err(failed(format!(
            "only tensors and tuples can be saved, but the result is {}",
            value.kind()
        ))),
    }
}

/// Inserts an index before the extension of a path: `out.npy` becomes `out.0.npy`.
fn numbered_path(path: &Path, index: usize) -> PathBuf {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
    path.with_extension(format!("{index}.{}", extension.as_deref().unwrap_or("npy")))
}

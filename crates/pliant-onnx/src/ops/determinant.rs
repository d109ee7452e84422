//! Converter of the ONNX operator `Det`, which emits a call of a function of the runtime.

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, Node};
use pliant_kernel_api::host_function_names;

pub(super) static OPS: &[OnnxOp] = &[op("Det", det)];

/// Converts `Det`: computes the determinants of the matrices in the last two dims.
fn det(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let (dims, dtype) = (n.dims(x)?, n.dtype(x)?);
    let [batch @ .., rows, columns] = dims.as_slice() else {
        let rank = dims.len();
        let text = format!("the input must have at least 2 dims, but has {rank}");
        return Err(Problem::invalid(text));
    };
    let square = n.func().syms.eq(*rows, *columns);
    n.importer.record_constraint(square);
    let y = n.call_host(host_function_names::DET, &[x])?;
    Ok(vec![n.object_to_tensor(y, Some(batch), dtype).into()])
}

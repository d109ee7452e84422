//! Creates loop functions that pack non-constant weights at run time, before a kernel reads them.

use pliant_ir::DType;
use pliant_ir::relax::{Expr, Function};
use pliant_ops::legalize::TirCall;
use pliant_ops::te;
use pliant_ops::{LegalizeError, te_call};

/// Creates a loop function `name` that packs an operand into a new float32 tensor of shape `shape`, and a call of it. `write`
/// emits the body of the function; it receives the operand and the new tensor.
///
/// # Errors
/// If the shape or data type of the operand is unknown.
pub(crate) fn packing_call(
    func: &mut Function,
    name: &str,
    operand: Expr,
    shape: &[i64],
    write: impl FnOnce(&mut te::Body, &te::Tensor, &te::Tensor),
) -> Result<TirCall, LegalizeError> {
    let shape = shape.iter().map(|&size| te::int(size)).collect();
    te_call(func, name, &[operand], |t| {
        Ok(te::extern_("packed", &[(shape, DType::Float32)], |b, out| write(b, &t[0], &out[0])))
    })
}

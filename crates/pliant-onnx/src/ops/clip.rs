//! Converter of `Clip`, and the clipping of fused activations.

use pliant_ir::relax::Expr;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::shape_folding::{self, FoldOp};

pub(super) static OPS: &[OnnxOp] = &[op("Clip", clip)];

/// Converts `Clip`. The bounds are attributes before opset 11, and inputs since then.
fn clip(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Some(result) = clip_symbolic(n) {
        return Ok(vec![result]);
    }
    let x = n.tensor(0)?;
    let low = match n.attrs().float("min")? {
        Some(v) => constant_bound(n, x, v)?,
        None => bound_input(n, 1, f64::NEG_INFINITY)?,
    };
    let high = match n.attrs().float("max")? {
        Some(v) => constant_bound(n, x, v)?,
        None => bound_input(n, 2, f64::INFINITY)?,
    };
    Ok(vec![clip_to_bounds(n, x, low, high)?.into()])
}

/// Clips `x` to the bounds that are present. The upper bound is applied last, so the result is the
/// upper bound if the lower bound exceeds it.
pub(super) fn clip_to_bounds(
    n: &mut Node<'_, '_>,
    x: Expr,
    low: Option<Expr>,
    high: Option<Expr>,
) -> ExprResult {
    let mut y = x;
    if let Some(low) = low {
        y = n.op("relax.maximum", &[y, low])?;
    }
    if let Some(high) = high {
        y = n.op("relax.minimum", &[y, high])?;
    }
    Ok(y)
}

/// Creates a constant bound in the dtype of `x`. `None` for NaN, which ONNX Runtime ignores.
pub(super) fn constant_bound(
    n: &mut Node<'_, '_>,
    x: Expr,
    value: f64,
) -> Result<Option<Expr>, Problem> {
    if value.is_nan() {
        return Ok(None);
    }
    let dtype = n.dtype(x)?;
    n.scalar_as(value, dtype).map(Some)
}

/// Reads input `i` as a bound; `None` if it is absent. As in ONNX Runtime, NaN elements have no effect: they are replaced by
/// `neutral`.
fn bound_input(n: &mut Node<'_, '_>, i: usize, neutral: f64) -> Result<Option<Expr>, Problem> {
    let Some(bound) = n.optional_tensor(i)? else { return Ok(None) };
    let dtype = n.dtype(bound)?;
    if !dtype.is_float() {
        return Ok(Some(bound));
    }
    match n.const_floats(i) {
        Some(values) if values.iter().all(|v| !v.is_nan()) => Ok(Some(bound)),
        Some(values) if values.iter().all(|v| v.is_nan()) => Ok(None),
        _ => {
            let (nan, neutral) = (n.op("relax.isnan", &[bound])?, n.scalar_as(neutral, dtype)?);
            n.op("relax.where", &[nan, neutral, bound]).map(Some)
        }
    }
}

/// Folds a clip of a shape computation. `None` if a bound is not known symbolically.
fn clip_symbolic(n: &mut Node<'_, '_>) -> Option<Value> {
    if !n.is_symbolic(0) {
        return None;
    }
    let mut t = n.symbolic(0)?;
    for (i, fold) in [(1, FoldOp::Max), (2, FoldOp::Min)] {
        if n.has_input(i) {
            let bound = n.symbolic(i)?;
            let shape = t.shape.clone();
            t = shape_folding::binary(n.func(), fold, &t, &bound).filter(|t| t.shape == shape)?;
        }
    }
    Some(Value::Symbolic(t))
}

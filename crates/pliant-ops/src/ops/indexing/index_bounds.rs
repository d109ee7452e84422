//! Bounds handling for non-constant indices: negative indices and indices out of range.
//!
//! A negative index counts from the end and is normalized to `0 .. size`, unless the operator rejects negative indices
//! ([`Negative`]). An index out of range is a run-time error that names the operator, the index and the size. Tensor
//! expressions also clamp the index, so that their accesses stay in bounds even if a pass
//! moves them before the check. Loops clamp it only if indices are trusted (the setting `relax.trust_indices`).

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_tensor::{CheckFailure, DType};

use crate::te::{self, Body, Check, Expr};
use crate::type_inference::InferCtx;

/// How an operator treats negative indices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Negative {
    /// They count from the end.
    FromEnd,
    /// They are out of range.
    OutOfRange,
}

impl Negative {
    /// The treatment that the attribute `wrap_negative` of a call selects.
    ///
    /// # Errors
    /// If the attribute is not a bool.
    pub fn of_attr(ctx: &InferCtx<'_>) -> Result<Negative, InferError> {
        Ok(if ctx.bool(WRAP_NEGATIVE)? { Negative::FromEnd } else { Negative::OutOfRange })
    }
}

/// The attribute that selects how negative indices are treated ([`Negative::of_attr`]).
pub const WRAP_NEGATIVE: &str = "wrap_negative";

/// Clamps an index to `0 .. size`.
pub fn clamp(index: &Expr, size: &Expr) -> Expr {
    te::maximum(&te::minimum(index, &(size - 1)), &te::int(0))
}

/// Converts an index of any integer type to int64. A uint64 index that exceeds int64 becomes the largest int64, so that it is out
/// of range instead of negative.
pub fn as_int64(index: &Expr) -> Expr {
    if index.ty().dtype != DType::UInt64 {
        return te::cast(index, te::Ty::I64);
    }
    te::cast(&te::minimum(index, &te::int_of(i64::MAX, DType::UInt64)), te::Ty::I64)
}

/// Converts an index to int64, and counts a negative index from the end if `negative` says so.
fn position(index: &Expr, size: &Expr, negative: Negative) -> Expr {
    let index = as_int64(index);
    if negative == Negative::OutOfRange {
        return index;
    }
    te::select(&te::lt(&index, &te::int(0)), &(&index + size), &index)
}

/// Converts an index to int64, counts a negative index from the end if `negative` says so, and clamps the result to `0 .. size`.
pub fn normalize(index: &Expr, size: &Expr, negative: Negative) -> Expr {
    clamp(&position(index, size, negative), size)
}

/// Returns the condition that an index is in `-size .. size`, or in `0 .. size` if negative indices are out of range, and its
/// error message. The index and the size are attached to the condition as values for the message ([`te::explain`]).
///
/// The condition compares the position that [`normalize`] clamps, so lowering can prove that the clamps change nothing.
pub fn range_condition(
    op: &str,
    (axis, index, size): (usize, &Expr, &Expr),
    negative: Negative,
) -> (Expr, Arc<str>) {
    let position = position(index, size, negative);
    explained_condition(op, &position, (axis, index, size))
}

/// Returns the condition that a position is in `0 .. size`, and an error message that names the index from which the position
/// was computed.
fn explained_condition(
    op: &str,
    position: &Expr,
    (axis, index, size): (usize, &Expr, &Expr),
) -> (Expr, Arc<str>) {
    let cond = te::and(&te::ge(position, &te::int(0)), &te::lt(position, size));
    let index_text = if index.ty().dtype == DType::UInt64 { "{0u}" } else { "{0}" };
    let message = format!("{op}: index {index_text} is out of range for axis {axis} of size {{1}}");
    (te::explain(&cond, &[index.clone(), size.clone()]), CheckFailure::Index.mark(&message).into())
}

/// Creates a run-time check that `cond` is true for all indices of a shape.
pub fn check_all(shape: &[Expr], cond: impl FnOnce(&[Expr]) -> (Expr, Arc<str>)) -> Check {
    let axes = te::check_axes(shape);
    let at: Vec<Expr> = axes.iter().map(|a| a.var.expr()).collect();
    let (cond, message) = cond(&at);
    Check { axes, cond, message }
}

/// Emits a run-time check that the index is in range, and returns the normalized index. With
/// `trust_indices`, emits no check.
pub fn emit_checked_index(
    b: &mut Body,
    op: &str,
    trust_indices: bool,
    (axis, index, size): (usize, &Expr, &Expr),
    negative: Negative,
) -> Expr {
    let index = match index.ty().dtype {
        DType::UInt64 => b.let_("index", index),
        _ => b.let_("index", &te::cast(index, te::Ty::I64)),
    };
    let position = b.let_("position", &position(&index, size, negative));
    if trust_indices {
        return b.let_("clamped", &clamp(&position, size));
    }
    let (cond, message) = explained_condition(op, &position, (axis, &index, size));
    b.assert(&cond, message);
    position
}

//! Recognizes operators that replace the softmax weights of fully masked queries by zeros. A query is fully masked if all its
//! keys are hidden.

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Op};
use pliant_pass::pattern::RewriteCx;

use super::attention_matcher::OTHER_READERS;
use super::attention_score_matcher::Scores;
use super::half_precision_casts::{
    before_widening, uncast, uncast_single_reader, uncast_with_readers,
};
use super::positional_masks::is_constant_false;
use super::score_scale_factors::scalar_value;
use super::{ReadCounts, SOFTMAX, WHERE};
use crate::common::matmul_and_conv_operands::{defining_attrs, defining_operands};
use crate::offload::offload_rule::KeepReason;

/// The reason, for remarks, why no kernel call replaces an attention whose softmax weights are replaced by zeros under a condition
/// that the kernel does not support.
const OTHER_CONDITION: &str =
    "the kernel does not support the condition under which softmax weights are replaced by zeros";

const EQUAL: Op = Op::new("relax.equal");
const ISNAN: Op = Op::new("relax.isnan");
const MAX: Op = Op::new("relax.max");

/// The result of attention for fully masked queries, whose scores are all minus infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FullyMaskedResult {
    /// The result for a fully masked query is zeros.
    Zeros,
    /// The result for a fully masked query is that of softmax, which is NaN.
    Nan,
    /// The result is zeros for fully masked queries and for queries with a score that is NaN or plus infinity.
    ZerosForNan,
}

/// The condition under which softmax weights are replaced by zeros.
#[derive(Clone, Copy)]
pub(super) enum ZeroGuard {
    /// Softmax weights are never replaced by zeros.
    None,
    /// Softmax weights are replaced by zeros where they are NaN.
    Nan,
    /// All softmax weights of a query are replaced by zeros if this tensor, the sum of scores and bias, is minus infinity for all
    /// keys of the query.
    Sum(Expr),
}

impl ZeroGuard {
    /// Returns the result for fully masked queries; `None` if the kernel does not support it.
    pub(super) fn fully_masked_result(
        self,
        cx: &RewriteCx<'_>,
        scores: &Scores,
    ) -> Option<FullyMaskedResult> {
        match self {
            ZeroGuard::None => Some(FullyMaskedResult::Nan),
            ZeroGuard::Nan => Some(FullyMaskedResult::ZerosForNan),
            ZeroGuard::Sum(sum) => {
                same_var(cx, sum, scores.sum?).then_some(FullyMaskedResult::Zeros)
            }
        }
    }
}

/// Whether a value is a softmax, or a softmax some of whose elements `R.where` replaces, possibly cast to another float type.
pub(super) fn is_softmax(cx: &RewriteCx<'_>, weights: Expr) -> bool {
    let weights = uncast(cx, weights);
    let softmax = match defining_operands(cx, weights, WHERE).as_deref() {
        Some(&[_, _, kept]) => uncast(cx, kept),
        _ => weights,
    };
    defining_operands(cx, softmax, SOFTMAX).is_some()
}

/// Returns the softmax that computes attention weights, and the condition under which the weights are replaced by zeros.
///
/// # Errors
/// The reason why no kernel call replaces the attention, for example because anything else reads the softmax or the intermediate
/// values.
pub(super) fn guarded_softmax(
    cx: &RewriteCx<'_>,
    read_counts: &ReadCounts,
    weights: Expr,
) -> Result<(Expr, ZeroGuard), KeepReason> {
    let weights = uncast_single_reader(cx, read_counts, weights).ok_or(OTHER_READERS)?;
    if defining_operands(cx, weights, SOFTMAX).is_some() {
        return Ok((weights, ZeroGuard::None));
    }
    let Some(&[condition, zero, kept]) = defining_operands(cx, weights, WHERE).as_deref() else {
        return Err(KeepReason::NotApplicable);
    };
    if scalar_value(cx, zero) != Some(0.0) || cx.func.ty(weights).dims() != cx.func.ty(kept).dims()
    {
        return Err(
            "the model replaces the softmax weights of some positions by values other than the number 0, which the attention \
             kernel does not support"
                .into(),
        );
    }
    if let Some(args) = defining_operands(cx, condition, ISNAN) {
        // `isnan` reads the softmax too.
        let softmax = uncast_with_readers(cx, read_counts, kept, 2).ok_or(OTHER_READERS)?;
        let is_guard =
            same_var(cx, args[0], kept) && read_counts.read_at_most(cx.func, condition, 1);
        return if is_guard { Ok((softmax, ZeroGuard::Nan)) } else { Err(OTHER_CONDITION.into()) };
    }
    let softmax = uncast_single_reader(cx, read_counts, kept).ok_or(OTHER_READERS)?;
    if is_constant_false(cx, condition) {
        return Ok((softmax, ZeroGuard::None));
    }
    let sum = fully_masked_sum(cx, condition).ok_or(OTHER_CONDITION)?;
    Ok((softmax, ZeroGuard::Sum(sum)))
}

/// If a condition holds for the queries with minus infinity in all elements of a tensor, returns this tensor; `None` for other
/// conditions.
fn fully_masked_sum(cx: &RewriteCx<'_>, condition: Expr) -> Option<Expr> {
    let args = defining_operands(cx, condition, EQUAL)?;
    let largest = match (scalar_value(cx, args[0]), scalar_value(cx, args[1])) {
        (None, Some(f64::NEG_INFINITY)) => args[0],
        (Some(f64::NEG_INFINITY), None) => args[1],
        _ => return None,
    };
    // A rounded maximum may be minus infinity although the scores are not, so only exact casts are looked through.
    let largest = before_widening(cx, largest);
    let (of, attrs) = (defining_operands(cx, largest, MAX)?[0], defining_attrs(cx, largest)?);
    let axes = match attrs.get("axis")? {
        axis if axis.as_int().is_some() => vec![axis.as_int()?],
        axes => axes.as_ints()?,
    };
    let rank = cx.func.ty(of).dims()?.len() as i64;
    let last = matches!(axes[..], [axis] if axis == -1 || axis == rank - 1);
    let kept = attrs.get("keepdims").and_then(AttrValue::as_bool) == Some(true);
    (last && kept).then_some(of)
}

/// Whether two operands are the same variable.
fn same_var(cx: &RewriteCx<'_>, a: Expr, b: Expr) -> bool {
    matches!((cx.func.expr(a), cx.func.expr(b)), (ExprData::Var(a), ExprData::Var(b)) if a == b)
}

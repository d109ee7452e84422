//! Recognises operators that replace the softmax weights of fully masked queries by zeros. A query is fully masked if all its
//! keys are hidden.

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Op};
use pliant_pass::pattern::RewriteCx;

use super::attention_score_matcher::Scores;
use super::half_precision_casts::{before_widening, uncast_single_reader, uncast_with_readers};
use super::positional_masks::is_constant_false;
use super::score_scale_factors::scalar_value;
use super::{ReadCounts, SOFTMAX, WHERE};
use crate::common::matmul_and_conv_operands::{defining_attrs, defining_operands};

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
    /// The weights are never replaced.
    None,
    /// The weights are replaced where they are NaN.
    Nan,
    /// The weights of a query are replaced if this sum of scores and bias is minus infinity for all keys of the query.
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

/// Returns the softmax that computes attention weights, and the condition under which the weights are replaced by zeros. `None`
/// if anything else reads the softmax or the intermediate values.
pub(super) fn guarded_softmax(
    cx: &RewriteCx<'_>,
    read_counts: &ReadCounts,
    weights: Expr,
) -> Option<(Expr, ZeroGuard)> {
    let weights = uncast_single_reader(cx, read_counts, weights)?;
    if defining_operands(cx, weights, SOFTMAX).is_some() {
        return Some((weights, ZeroGuard::None));
    }
    let [condition, zero, kept] = defining_operands(cx, weights, WHERE)?[..] else { return None };
    if scalar_value(cx, zero) != Some(0.0) || cx.func.ty(weights).dims() != cx.func.ty(kept).dims()
    {
        return None;
    }
    if let Some(args) = defining_operands(cx, condition, ISNAN) {
        // `isnan` reads the softmax too.
        let softmax = uncast_with_readers(cx, read_counts, kept, 2)?;
        let is_guard =
            same_var(cx, args[0], kept) && read_counts.read_at_most(cx.func, condition, 1);
        return is_guard.then_some((softmax, ZeroGuard::Nan));
    }
    let softmax = uncast_single_reader(cx, read_counts, kept)?;
    if is_constant_false(cx, condition) {
        return Some((softmax, ZeroGuard::None));
    }
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
    (last && kept).then_some((softmax, ZeroGuard::Sum(of)))
}

/// Whether two operands are the same variable.
fn same_var(cx: &RewriteCx<'_>, a: Expr, b: Expr) -> bool {
    matches!((cx.func.expr(a), cx.func.expr(b)), (ExprData::Var(a), ExprData::Var(b)) if a == b)
}

//! Matches operators between the softmax and the product with the values that give zeros to queries without visible keys.

use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::{AttrValue, Op};
use pliant_pass::pattern::RewriteCx;

use super::casts::{narrow, uncast_alone, uncast_read};
use super::factors::number;
use super::positional_masks::is_never;
use super::scores::Scores;
use super::{SOFTMAX, Uses, WHERE};
use crate::common::products::{defining_attrs, defining_operands};

const EQUAL: Op = Op::new("relax.equal");
const ISNAN: Op = Op::new("relax.isnan");
const MAX: Op = Op::new("relax.max");

/// The result of queries all of whose scores are minus infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blind {
    /// Zeros.
    Zeros,
    /// The result of softmax, which is NaN.
    Nan,
    /// Zeros, also for queries with a score that is NaN or plus infinity.
    ZerosForNan,
}

/// The condition under which weights are replaced by zeros.
#[derive(Clone, Copy)]
pub(super) enum Guard {
    /// Never.
    None,
    /// If they are NaN.
    Nan,
    /// If a sum is minus infinity for all keys of a query.
    Sum(Expr),
}

impl Guard {
    /// The result of queries without visible keys; `None` if the kernel does not support it.
    pub(super) fn blind(self, cx: &RewriteCx<'_>, scores: &Scores) -> Option<Blind> {
        match self {
            Guard::None => Some(Blind::Nan),
            Guard::Nan => Some(Blind::ZerosForNan),
            Guard::Sum(sum) => same(cx, sum, scores.sum?).then_some(Blind::Zeros),
        }
    }
}

/// The softmax that weights are, and the condition under which they are replaced by zeros; `None` if either has other readers.
pub(super) fn softmax_of(cx: &RewriteCx<'_>, uses: &Uses, weights: Expr) -> Option<(Expr, Guard)> {
    let weights = uncast_alone(cx, uses, weights)?;
    if defining_operands(cx, weights, SOFTMAX).is_some() {
        return Some((weights, Guard::None));
    }
    let [condition, yes, kept] = defining_operands(cx, weights, WHERE)?[..] else { return None };
    if number(cx, yes) != Some(0.0) || cx.func.ty(weights).dims() != cx.func.ty(kept).dims() {
        return None;
    }
    if let Some(args) = defining_operands(cx, condition, ISNAN) {
        // `isnan` reads the weights too.
        let softmax = uncast_read(cx, uses, kept, 2)?;
        let own = same(cx, args[0], kept) && uses.at_most(cx.func, condition, 1);
        return own.then_some((softmax, Guard::Nan));
    }
    let softmax = uncast_alone(cx, uses, kept)?;
    if is_never(cx, condition) {
        return Some((softmax, Guard::None));
    }
    let args = defining_operands(cx, condition, EQUAL)?;
    let largest = match (number(cx, args[0]), number(cx, args[1])) {
        (None, Some(f64::NEG_INFINITY)) => args[0],
        (Some(f64::NEG_INFINITY), None) => args[1],
        _ => return None,
    };
    // A rounded maximum may be minus infinity where the numbers are not, so only exact casts are looked through.
    let largest = narrow(cx, largest);
    let (of, attrs) = (defining_operands(cx, largest, MAX)?[0], defining_attrs(cx, largest)?);
    let axes = match attrs.get("axis")? {
        axis if axis.as_int().is_some() => vec![axis.as_int()?],
        axes => axes.as_ints()?,
    };
    let rank = cx.func.ty(of).dims()?.len() as i64;
    let last = matches!(axes[..], [axis] if axis == -1 || axis == rank - 1);
    let kept = attrs.get("keepdims").and_then(AttrValue::as_bool) == Some(true);
    (last && kept).then_some((softmax, Guard::Sum(of)))
}

/// Whether two operands are the same variable.
fn same(cx: &RewriteCx<'_>, a: Expr, b: Expr) -> bool {
    matches!((cx.func.expr(a), cx.func.expr(b)), (ExprData::Var(a), ExprData::Var(b)) if a == b)
}

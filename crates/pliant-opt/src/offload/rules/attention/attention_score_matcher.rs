//! Recognizes attention scores in a graph function: the matmul of queries and keys, with scaling, soft-capping, masks and added
//! biases.

use pliant_ir::relax::Expr;
use pliant_ir::{DType, Op, Sym};
use pliant_pass::pattern::RewriteCx;

use super::half_precision_casts::{Rounding, look_through_rounding, round_to, uncast};
use super::positional_masks::{Condition, KeyBound, additive_bound, condition_bound};
use super::score_scale_factors::{combine_factors, scalar_value, strip_factors};
use super::{LOGICAL_AND, LOGICAL_NOT, WHERE};
use crate::common::matmul_and_conv_operands::{ADD, MATMUL, defining_operands};

const TANH: Op = Op::new("relax.tanh");
const LOGICAL_OR: Op = Op::new("relax.logical_or");

/// Maximum number of additions and masks that are applied to the scores of one attention. The search gives up if there are more.
const MAX_LAYERS: usize = 6;
/// Maximum magnitude of the offset between the positions of queries and keys in a positional mask.
const MAX_DISTANCE: i64 = 1 << 30;
/// Maximum number of values that the search visits for one attention. Either operand of an addition may be the scores, so both
/// are tried.
const MAX_VISITED: u32 = 32;
/// Maximum soft cap. `tanh` is already 1 for scores of 16 times the cap, so such scores must still be in the range of float32
/// before the division.
const MAX_SOFTCAP: f64 = f32::MAX as f64 / 16.0;

/// A mask that replaces the scores of hidden keys by a number.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    /// The boolean conditions of the mask. A score is kept if no condition hides its key.
    pub conditions: Vec<Condition>,
    /// The number by which the mask replaces the scores of hidden keys.
    pub masked_score: f64,
    /// Whether the mask is applied before the bias is added.
    pub before_bias: bool,
}

/// The recognized computation of attention scores, with its operands and parameters.
pub(super) struct Scores {
    /// The matmul of queries and transposed keys.
    pub product: Expr,
    /// The factor by which the dot products of queries and keys are multiplied.
    pub scale: f64,
    /// The soft cap `c` of the scores, `c * tanh(score / c)`; 0 if there is none.
    pub cap: f64,
    /// The bias that is added to the scores, and the 16-bit type to which the bias is rounded first.
    pub bias: Option<(Expr, Rounding)>,
    /// The mask that replaces scores by a number where boolean tensors, such as the condition of an `R.where`, hide keys; `None` if
    /// there is no such mask.
    pub mask: Option<Mask>,
    /// The offset of the causal mask: a query attends only to keys up to its own position plus the offset. `None` if there is no
    /// causal mask.
    pub causal: Option<Sym>,
    /// The number of keys, counted back from the causal limit, to which a query attends (sliding window); 0 for all keys.
    pub window: i64,
    /// The only tensor that is added to the scores. `None` if several tensors are added, if the added tensor is rounded, or if a
    /// mask hides keys.
    pub sum: Option<Expr>,
}

/// Recognizes the scores of an attention. `e` is the operand of the softmax, `dims` are the dims of the scores.
pub(super) fn match_scores(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Option<Scores> {
    let mut remaining_visits = MAX_VISITED;
    match_layers(cx, e, dims, ScoreMatch::default(), &mut remaining_visits)
}

/// Returns the reason why [`match_scores`] does not recognize the scores of an attention in `e`, the operand of the softmax.
pub(super) fn scores_problem(cx: &RewriteCx<'_>, e: Expr) -> &'static str {
    let mut pending = vec![e];
    for _ in 0..MAX_VISITED {
        let Some(e) = pending.pop() else { break };
        let e = uncast(cx, strip_factors(cx, uncast(cx, e), &mut { 1.0 }));
        if defining_operands(cx, e, MATMUL).is_some() {
            return "the kernel does not support the operators between the matmul of queries and keys and the softmax";
        }
        for op in [ADD, WHERE, TANH] {
            pending.extend(defining_operands(cx, e, op).into_iter().flatten());
        }
    }
    "the operand of the softmax is not computed by a matmul of queries and keys"
}

/// The state of the search: the operators on the scores that have been matched so far, from the softmax towards the matmul.
#[derive(Clone, Default)]
struct ScoreMatch {
    /// The tensors that are added to the attention scores. An entry is `None` if the scores are 16-bit floats and the tensor has
    /// another type, because its elements are then rounded before they are added.
    sums: Vec<Option<Expr>>,
    /// The number of masks on the attention scores that the search has matched so far.
    num_masks: usize,
    /// The 16-bit type of the casts that have been followed since the last matched operator. Operands that are matched next are
    /// rounded to it. `None` if they are not rounded.
    rounding: Rounding,
    bias: Option<(Expr, Rounding)>,
    mask: Option<Mask>,
    /// The bounds on the positions of visible keys, each with the condition that it was derived from.
    bounds: Vec<(KeyBound, Condition)>,
}

/// Matches the additions and masks on the scores, down to the matmul of queries and keys.
fn match_layers(
    cx: &mut RewriteCx<'_>,
    e: Expr,
    dims: &[Sym],
    mut matched: ScoreMatch,
    remaining_visits: &mut u32,
) -> Option<Scores> {
    *remaining_visits = remaining_visits.checked_sub(1)?;
    let e = look_through_rounding(cx, e, &mut matched.rounding);
    if matched.sums.len() + matched.num_masks > MAX_LAYERS || !has_dims(cx, e, dims) {
        return None;
    }
    if let Some((condition, masked_score, inner)) = match_mask(cx, e, dims, matched.rounding) {
        matched.num_masks += 1;
        matched.add_condition(cx, condition, masked_score, dims)?;
        return match_layers(cx, inner, dims, matched, remaining_visits);
    }
    if let Some(&[a, b]) = defining_operands(cx, e, ADD).as_deref() {
        return [(a, b), (b, a)].into_iter().find_map(|(inner, added)| {
            let mut matched = matched.clone();
            matched.add_sum(cx, added, dims)?;
            match_layers(cx, inner, dims, matched, remaining_visits)
        });
    }
    let mut outer = 1.0;
    let capped = uncast(cx, strip_factors(cx, e, &mut outer));
    let (product, scale, cap) = match defining_operands(cx, capped, TANH) {
        Some(args) if outer > 0.0 && outer <= MAX_SOFTCAP => {
            let mut scale = 1.0;
            let product = strip_factors(cx, uncast(cx, args[0]), &mut scale);
            (uncast(cx, product), combine_factors(scale, outer)?, outer)
        }
        _ => (capped, outer, 0.0),
    };
    defining_operands(cx, product, MATMUL)?;
    if !has_dims(cx, product, dims) {
        return None;
    }
    matched.into_scores(cx, (product, scale, cap))
}

impl ScoreMatch {
    /// Adds a condition of a mask. If hidden scores become minus infinity, the parts of the condition that depend only on
    /// positions become bounds.
    fn add_condition(
        &mut self,
        cx: &mut RewriteCx<'_>,
        c: Condition,
        masked_score: f64,
        dims: &[Sym],
    ) -> Option<()> {
        let before = self.bounds.len();
        let mut rest = Vec::new();
        if masked_score == f64::NEG_INFINITY {
            for part in split_condition(cx, c) {
                match condition_bound(cx, part, dims) {
                    Some(KeyBound::All) => {}
                    Some(bound) => self.add_bound(bound, part)?,
                    None => rest.push(part),
                }
            }
        }
        // A condition without positional parts is not split.
        let rest = if self.bounds.len() == before { vec![c] } else { rest };
        self.add_mask(rest, masked_score)
    }

    /// Adds a bound on the positions of visible keys. `None` if a mask that is applied later may replace the hidden scores by a
    /// number other than minus infinity.
    fn add_bound(&mut self, bound: KeyBound, by: Condition) -> Option<()> {
        self.bounds.push((bound, by));
        self.mask.as_ref().is_none_or(|mask| mask.masked_score == f64::NEG_INFINITY).then_some(())
    }

    /// Adds a mask: the number `masked_score` replaces the scores of keys that one of the conditions hides. `None` if this mask
    /// cannot be combined with the mask that has already been matched.
    fn add_mask(&mut self, conditions: Vec<Condition>, masked_score: f64) -> Option<()> {
        if conditions.is_empty() {
            return Some(());
        }
        match &mut self.mask {
            None => {
                self.mask =
                    Some(Mask { conditions, masked_score, before_bias: self.bias.is_some() })
            }
            // A score is hidden if either mask hides it.
            Some(mask)
                if mask.masked_score == f64::NEG_INFINITY && masked_score == f64::NEG_INFINITY =>
            {
                mask.conditions.extend(conditions);
            }
            Some(_) => return None,
        }
        Some(())
    }

    /// Records a tensor that is added to the scores. The elements of the tensor that are minus infinity become a mask, and its
    /// other elements become the bias.
    fn add_sum(&mut self, cx: &mut RewriteCx<'_>, added: Expr, dims: &[Sym]) -> Option<()> {
        let mut rounding = self.rounding;
        let is_exact = rounding.is_none_or(|to| cx.func.ty(added).dtype() == Some(to));
        self.sums.push(is_exact.then_some(added));
        let mut e = look_through_rounding(cx, added, &mut rounding);
        for _ in 0..MAX_LAYERS {
            if let Some(bound) = additive_bound(cx, e, dims) {
                if bound != KeyBound::All {
                    self.add_bound(bound, Condition { tensor: e, hides: false })?;
                }
                return Some(());
            }
            let Some((condition, left)) = match_additive_mask(cx, e, rounding) else { break };
            self.add_condition(cx, condition, f64::NEG_INFINITY, dims)?;
            e = look_through_rounding(cx, left, &mut rounding);
        }
        if scalar_value(cx, e) == Some(0.0) {
            return Some(());
        }
        self.bias.replace((e, rounding)).is_none().then_some(())
    }

    /// Completes the search and builds the [`Scores`]. The kernel supports one upper bound on key positions and a window below
    /// it; other bounds become masks.
    fn into_scores(
        mut self,
        cx: &mut RewriteCx<'_>,
        (product, scale, cap): (Expr, f64, f64),
    ) -> Option<Scores> {
        // The kernel limits the magnitude of offsets.
        let is_in_range = |&r: &Sym| {
            cx.func.syms.as_int(r).is_none_or(|r| (-MAX_DISTANCE..MAX_DISTANCE).contains(&r))
        };
        let causal = self.bounds.iter().find_map(|(bound, _)| match *bound {
            KeyBound::UpTo(r) => Some(r).filter(is_in_range),
            _ => None,
        });
        let (mut window, mut rest) = (0, Vec::new());
        for (bound, condition) in std::mem::take(&mut self.bounds) {
            let width = match (bound, causal) {
                (KeyBound::UpTo(r), Some(last)) if r == last => continue,
                (KeyBound::From(r), Some(last)) if window == 0 => {
                    let distance = cx.func.syms.sub(last, r);
                    cx.func.syms.as_int(distance).and_then(|distance| distance.checked_add(1))
                }
                _ => None,
            };
            match width.filter(|w| (1..MAX_DISTANCE).contains(w)) {
                Some(width) => window = width,
                None => rest.push(condition),
            }
        }
        // Additive masks are not boolean, so they cannot become a part of the mask.
        if rest.iter().any(|c| cx.func.ty(c.tensor).dtype() != Some(DType::Bool)) {
            return None;
        }
        self.add_mask(rest, f64::NEG_INFINITY)?;
        let sum = match self.sums[..] {
            [one] if self.num_masks == 0 => one,
            _ => None,
        };
        let (bias, mask) = (self.bias, self.mask);
        Some(Scores { product, scale, cap, bias, mask, causal, window, sum })
    }
}

/// Splits a condition into parts, such as the operands of a conjunction, so that a key is hidden if any part hides it.
fn split_condition(cx: &RewriteCx<'_>, c: Condition) -> Vec<Condition> {
    let (mut pending, mut parts) = (vec![c], Vec::new());
    while let Some(c) = pending.pop() {
        let (op, hides) = if c.hides { (LOGICAL_OR, true) } else { (LOGICAL_AND, false) };
        match (defining_operands(cx, c.tensor, op), defining_operands(cx, c.tensor, LOGICAL_NOT)) {
            (Some(args), _) if pending.len() + parts.len() < MAX_LAYERS => {
                pending.extend(args.into_iter().rev().map(|tensor| Condition { tensor, hides }));
            }
            (None, Some(args)) => pending.push(Condition { tensor: args[0], hides: !hides }),
            _ => parts.push(c),
        }
    }
    parts
}

/// Matches a mask. Returns (condition, number that replaces hidden scores, scores).
fn match_mask(
    cx: &RewriteCx<'_>,
    e: Expr,
    dims: &[Sym],
    rounding: Rounding,
) -> Option<(Condition, f64, Expr)> {
    let [tensor, if_true, if_false] = defining_operands(cx, e, WHERE)?[..] else { return None };
    let (masked_score, inner, hides) = match (scalar_value(cx, if_true), scalar_value(cx, if_false))
    {
        (None, Some(masked_score)) => (masked_score, if_true, false),
        (Some(masked_score), None) => (masked_score, if_false, true),
        _ => return None,
    };
    let masked_score = round_to(masked_score, rounding);
    // A score of plus infinity leaves no weight to other keys, and a NaN makes all weights NaN.
    let is_supported =
        masked_score < f64::INFINITY && cx.func.ty(tensor).dtype() == Some(DType::Bool);
    (is_supported && has_dims(cx, inner, dims)).then_some((
        Condition { tensor, hides },
        masked_score,
        inner,
    ))
}

/// Matches an additive mask: an `R.where` that selects between added numbers and minus infinity, or a number that rounds to minus
/// infinity. Returns (condition, added numbers).
fn match_additive_mask(
    cx: &RewriteCx<'_>,
    e: Expr,
    rounding: Rounding,
) -> Option<(Condition, Expr)> {
    let [tensor, if_true, if_false] = defining_operands(cx, e, WHERE)?[..] else { return None };
    if cx.func.ty(tensor).dtype() != Some(DType::Bool) {
        return None;
    }
    let is_minus_infinity =
        |e: Expr| scalar_value(cx, e).is_some_and(|x| round_to(x, rounding) == f64::NEG_INFINITY);
    match (is_minus_infinity(if_true), is_minus_infinity(if_false)) {
        (false, true) => Some((Condition { tensor, hides: false }, if_true)),
        (true, false) => Some((Condition { tensor, hides: true }, if_false)),
        _ => None,
    }
}

fn has_dims(cx: &RewriteCx<'_>, e: Expr, dims: &[Sym]) -> bool {
    cx.func.ty(e).dims().is_some_and(|d| d == dims)
}

//! Matches scores in a graph: products that are scaled, soft-capped, masked, and to which biases are added.

use pliant_ir::relax::Expr;
use pliant_ir::{DType, Op, Sym};
use pliant_pass::pattern::RewriteCx;

use super::casts::{Rounding, rounded, uncast, unrounded};
use super::factors::{both, factored, number};
use super::positional_masks::{Bound, Condition, bound, bound_of_sum};
use super::{LOGICAL_AND, LOGICAL_NOT, WHERE};
use crate::common::products::{ADD, MATMUL, defining_operands};

const TANH: Op = Op::new("relax.tanh");
const LOGICAL_OR: Op = Op::new("relax.logical_or");

/// Maximum number of sums and masks of one attention.
const MOST: usize = 6;
/// Maximum distance between positions.
const MOST_APART: i64 = 1 << 30;
/// Maximum number of values that are visited for one attention, since either operand of a sum may be the scores.
const TRIES: u32 = 32;
/// Maximum soft cap: scores of 16 times the cap, for which `tanh` is already 1, are in the range of float32 before the division.
const MOST_CAP: f64 = f32::MAX as f64 / 16.0;

/// A mask that replaces scores by a number.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    /// The conditions. A score stays if none of them hides it.
    pub all: Vec<Condition>,
    /// The number that replaces hidden scores.
    pub hidden: f64,
    /// Whether the mask is applied before the bias is added.
    pub first: bool,
}

/// The parts of scores.
pub(super) struct Scores {
    /// The product of queries and keys.
    pub product: Expr,
    /// Its factor.
    pub scale: f64,
    /// The soft cap; 0 for none.
    pub cap: f64,
    /// The bias, and the type to which it is rounded before.
    pub bias: Option<(Expr, Rounding)>,
    /// The mask of boolean conditions.
    pub mask: Option<Mask>,
    /// If set, queries see keys up to their own position plus this number.
    pub causal: Option<Sym>,
    /// The number of keys up to there that queries see; 0 for all.
    pub window: i64,
    /// The only tensor that is added, if it alone hides keys and is not rounded.
    pub sum: Option<Expr>,
}

/// Matches the scores that a value holds.
pub(super) fn scores(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Option<Scores> {
    let mut tries = TRIES;
    peel(cx, e, dims, Peeled::default(), &mut tries)
}

/// The operators that were removed from scores so far, from the outermost on.
#[derive(Clone, Default)]
struct Peeled {
    /// The tensors that are added; `None` for one that is rounded when it is added.
    sums: Vec<Option<Expr>>,
    /// The number of masks.
    wheres: usize,
    /// The type that rounds all operands that are found from here on.
    rounding: Rounding,
    bias: Option<(Expr, Rounding)>,
    mask: Option<Mask>,
    /// The positional bounds, and the conditions that express them.
    bounds: Vec<(Bound, Condition)>,
}

/// Removes sums and masks, down to the product.
fn peel(
    cx: &mut RewriteCx<'_>,
    e: Expr,
    dims: &[Sym],
    mut so_far: Peeled,
    tries: &mut u32,
) -> Option<Scores> {
    *tries = tries.checked_sub(1)?;
    let e = unrounded(cx, e, &mut so_far.rounding);
    if so_far.sums.len() + so_far.wheres > MOST || !has_dims(cx, e, dims) {
        return None;
    }
    if let Some((condition, hidden, inner)) = masked(cx, e, dims, so_far.rounding) {
        so_far.wheres += 1;
        so_far.hide(cx, condition, hidden, dims)?;
        return peel(cx, inner, dims, so_far, tries);
    }
    if let Some(&[a, b]) = defining_operands(cx, e, ADD).as_deref() {
        return [(a, b), (b, a)].into_iter().find_map(|(inner, added)| {
            let mut so_far = so_far.clone();
            so_far.add(cx, added, dims)?;
            peel(cx, inner, dims, so_far, tries)
        });
    }
    let mut outer = 1.0;
    let limited = uncast(cx, factored(cx, e, &mut outer));
    let (product, scale, cap) = match defining_operands(cx, limited, TANH) {
        Some(args) if outer > 0.0 && outer <= MOST_CAP => {
            let mut scale = 1.0;
            let product = factored(cx, uncast(cx, args[0]), &mut scale);
            (uncast(cx, product), both(scale, outer)?, outer)
        }
        _ => (limited, outer, 0.0),
    };
    defining_operands(cx, product, MATMUL)?;
    if !has_dims(cx, product, dims) {
        return None;
    }
    so_far.finish(cx, (product, scale, cap))
}

impl Peeled {
    /// Adds a condition that hides scores. If hidden scores are minus infinity, its positional parts become bounds.
    fn hide(
        &mut self,
        cx: &mut RewriteCx<'_>,
        c: Condition,
        hidden: f64,
        dims: &[Sym],
    ) -> Option<()> {
        let before = self.bounds.len();
        let mut rest = Vec::new();
        if hidden == f64::NEG_INFINITY {
            for part in parts(cx, c) {
                match bound(cx, part, dims) {
                    Some(Bound::All) => {}
                    Some(bound) => self.say(bound, part)?,
                    None => rest.push(part),
                }
            }
        }
        // A condition without positional parts stays as it is.
        let rest = if self.bounds.len() == before { vec![c] } else { rest };
        self.mask_by(rest, hidden)
    }

    /// Adds a positional bound; `None` if a mask around it may replace the hidden scores by another number than minus infinity.
    fn say(&mut self, bound: Bound, by: Condition) -> Option<()> {
        self.bounds.push((bound, by));
        self.mask.as_ref().is_none_or(|mask| mask.hidden == f64::NEG_INFINITY).then_some(())
    }

    /// Adds conditions by which a mask replaces scores by a number.
    fn mask_by(&mut self, all: Vec<Condition>, hidden: f64) -> Option<()> {
        if all.is_empty() {
            return Some(());
        }
        match &mut self.mask {
            None => self.mask = Some(Mask { all, hidden, first: self.bias.is_some() }),
            // A score is hidden if either mask hides it.
            Some(mask) if mask.hidden == f64::NEG_INFINITY && hidden == f64::NEG_INFINITY => {
                mask.all.extend(all);
            }
            Some(_) => return None,
        }
        Some(())
    }

    /// Adds a tensor that is added to scores. Where it is minus infinity it becomes a mask, and the rest becomes the bias.
    fn add(&mut self, cx: &mut RewriteCx<'_>, added: Expr, dims: &[Sym]) -> Option<()> {
        let mut rounding = self.rounding;
        let exact = rounding.is_none_or(|to| cx.func.ty(added).dtype() == Some(to));
        self.sums.push(exact.then_some(added));
        let mut e = unrounded(cx, added, &mut rounding);
        for _ in 0..MOST {
            if let Some(bound) = bound_of_sum(cx, e, dims) {
                if bound != Bound::All {
                    self.say(bound, Condition { tensor: e, hides: false })?;
                }
                return Some(());
            }
            let Some((condition, left)) = hiding(cx, e, rounding) else { break };
            self.hide(cx, condition, f64::NEG_INFINITY, dims)?;
            e = unrounded(cx, left, &mut rounding);
        }
        if number(cx, e) == Some(0.0) {
            return Some(());
        }
        self.bias.replace((e, rounding)).is_none().then_some(())
    }

    /// Builds the scores. Of the positional bounds, the kernel supports one upper bound and a window before it.
    fn finish(
        mut self,
        cx: &mut RewriteCx<'_>,
        (product, scale, cap): (Expr, f64, f64),
    ) -> Option<Scores> {
        // The kernel limits the magnitude of offsets.
        let small = |&r: &Sym| {
            cx.func.syms.as_int(r).is_none_or(|r| (-MOST_APART..MOST_APART).contains(&r))
        };
        let causal = self.bounds.iter().find_map(|(bound, _)| match *bound {
            Bound::UpTo(r) => Some(r).filter(small),
            _ => None,
        });
        let (mut window, mut rest) = (0, Vec::new());
        for (bound, condition) in std::mem::take(&mut self.bounds) {
            let width = match (bound, causal) {
                (Bound::UpTo(r), Some(last)) if r == last => continue,
                (Bound::From(r), Some(last)) if window == 0 => {
                    let apart = cx.func.syms.sub(last, r);
                    cx.func.syms.as_int(apart).and_then(|apart| apart.checked_add(1))
                }
                _ => None,
            };
            match width.filter(|w| (1..MOST_APART).contains(w)) {
                Some(width) => window = width,
                None => rest.push(condition),
            }
        }
        // Additive masks are not boolean, so they cannot be added to the mask.
        if rest.iter().any(|c| cx.func.ty(c.tensor).dtype() != Some(DType::Bool)) {
            return None;
        }
        self.mask_by(rest, f64::NEG_INFINITY)?;
        let sum = match self.sums[..] {
            [one] if self.wheres == 0 => one,
            _ => None,
        };
        let (bias, mask) = (self.bias, self.mask);
        Some(Scores { product, scale, cap, bias, mask, causal, window, sum })
    }
}

/// Splits a condition into parts. A key is hidden if any part hides it.
fn parts(cx: &RewriteCx<'_>, c: Condition) -> Vec<Condition> {
    let (mut open, mut found) = (vec![c], Vec::new());
    while let Some(c) = open.pop() {
        let (op, hides) = if c.hides { (LOGICAL_OR, true) } else { (LOGICAL_AND, false) };
        match (defining_operands(cx, c.tensor, op), defining_operands(cx, c.tensor, LOGICAL_NOT)) {
            (Some(args), _) if open.len() + found.len() < MOST => {
                open.extend(args.into_iter().rev().map(|tensor| Condition { tensor, hides }));
            }
            (None, Some(args)) => open.push(Condition { tensor: args[0], hides: !hides }),
            _ => found.push(c),
        }
    }
    found
}

/// The condition of a mask, the number by which it replaces scores, and the scores.
fn masked(
    cx: &RewriteCx<'_>,
    e: Expr,
    dims: &[Sym],
    rounding: Rounding,
) -> Option<(Condition, f64, Expr)> {
    let [tensor, yes, no] = defining_operands(cx, e, WHERE)?[..] else { return None };
    let (hidden, inner, hides) = match (number(cx, yes), number(cx, no)) {
        (None, Some(hidden)) => (hidden, yes, false),
        (Some(hidden), None) => (hidden, no, true),
        _ => return None,
    };
    let hidden = rounded(hidden, rounding);
    // A score of plus infinity leaves no weight to other keys, and NaN none to its own.
    let usual = hidden < f64::INFINITY && cx.func.ty(tensor).dtype() == Some(DType::Bool);
    (usual && has_dims(cx, inner, dims)).then_some((Condition { tensor, hides }, hidden, inner))
}

/// The condition by which `R.where` replaces added numbers by minus infinity, or by a number that is rounded to it, and the added
/// numbers.
fn hiding(cx: &RewriteCx<'_>, e: Expr, rounding: Rounding) -> Option<(Condition, Expr)> {
    let [tensor, yes, no] = defining_operands(cx, e, WHERE)?[..] else { return None };
    if cx.func.ty(tensor).dtype() != Some(DType::Bool) {
        return None;
    }
    let never = |e: Expr| number(cx, e).is_some_and(|x| rounded(x, rounding) == f64::NEG_INFINITY);
    match (never(yes), never(no)) {
        (false, true) => Some((Condition { tensor, hides: false }, yes)),
        (true, false) => Some((Condition { tensor, hides: true }, no)),
        _ => None,
    }
}

fn has_dims(cx: &RewriteCx<'_>, e: Expr, want: &[Sym]) -> bool {
    cx.func.ty(e).dims().is_some_and(|d| d == want)
}

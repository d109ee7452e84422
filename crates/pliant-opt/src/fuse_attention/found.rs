//! Attention as it is found in a graph.

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, DType, Op, Sym};
use pliant_pass::pattern::RewriteCx;

use super::casts::{is_float, uncast, uncast_alone};
use super::factors::{factored, number};
use super::sources::{Layout, Source, source, transposed};
use super::{ATTENTION, ATTENTION_BIAS, SOFTMAX, Uses};
use crate::names::is_left_out;
use crate::products::{ADD, MATMUL, attrs_of, operands_of};

const WHERE: Op = Op("relax.where");

/// Which keys a query sees, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Causal {
    #[default]
    No,
    /// Places are counted from the first of both.
    First,
    /// Places are counted from the last of both.
    Last,
}

/// Which scores are replaced by a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    /// Truth values that broadcast to the scores.
    pub tensor: Expr,
    /// Whether true hides.
    pub hides: bool,
    /// What hidden scores become.
    pub hidden: f64,
    /// Whether the bias is added to them too.
    pub first: bool,
}

/// An attention.
pub(super) struct Attention {
    /// Queries, keys and values.
    pub sources: [Source; 3],
    /// What is added to the scores.
    pub bias: Option<Expr>,
    /// Whether each dim of the bias, from the last, is that of the scores; it is 1 otherwise.
    pub bias_dims: Vec<bool>,
    /// What hides scores, and which of its dims are those of the scores, as of the bias.
    pub mask: Option<(Mask, Vec<bool>)>,
    /// Factor of the products; none for one over the root of the size.
    pub scale: Option<f64>,
    pub causal: Causal,
    pub window: i64,
    /// Whether the result is `(batch, heads, rows, size)`.
    pub heads: bool,
    /// Whether queries that see nothing get NaN.
    pub blind_is_nan: bool,
}

/// The attention that a product of a softmax is.
pub(super) fn written(cx: &RewriteCx<'_>, uses: &Uses, root: Expr) -> Option<Attention> {
    let [weights, v] = operands_of(cx, root, MATMUL)?[..] else { return None };
    let weights = uncast_alone(cx, uses, weights)?;
    let softmax = attrs_of(cx, weights)?;
    let scores = uncast(cx, operands_of(cx, weights, SOFTMAX)?[0]);
    let dims = cx.func.ty(scores).dims()?.to_vec();
    let axis = softmax.get("axis").and_then(AttrValue::as_int).unwrap_or(-1);
    if axis != -1 && axis != dims.len() as i64 - 1 {
        return None;
    }
    let (product, bias, mask, mut scale) = summands(cx, scores, &dims)?;
    let [q, kt] = operands_of(cx, product, MATMUL)?[..] else { return None };
    let (q, kt) = (factored(cx, q, &mut scale), factored(cx, kt, &mut scale));
    let floats = [q, kt, v, scores].iter().all(|&e| is_float(cx.func, e));
    if !floats || !self_dims(cx, product, &dims) || !all_float32(cx.func, &[root, product]) {
        return None;
    }
    let k = transposed(cx, kt, &mut scale)?;
    let sources = [source(cx, q)?, k, source(cx, v)?];
    fits(cx.func, [q, kt, v], root, &dims)?;
    let bias_dims = match bias {
        Some(bias) => bias_dims(cx.func, bias, &dims)?,
        None => Vec::new(),
    };
    let mask = match mask {
        Some(mask) => Some((mask, broadcast_dims(cx.func, mask.tensor, &dims)?)),
        None => None,
    };
    Some(Attention {
        sources,
        bias,
        bias_dims,
        mask,
        scale: Some(scale),
        causal: Causal::No,
        window: 0,
        heads: dims.len() == 4,
        blind_is_nan: true,
    })
}

/// The product that scores are made of, what is added, what hides some of them, and the factor of the product.
fn summands(
    cx: &RewriteCx<'_>,
    scores: Expr,
    dims: &[Sym],
) -> Option<(Expr, Option<Expr>, Option<Mask>, f64)> {
    let (outer, inner) = masked(cx, scores, dims);
    // What is added to may be hidden before, if nothing hides the sum.
    let of = |e: Expr| {
        let e = uncast(cx, e);
        let (mask, e) = if outer.is_none() { masked(cx, e, dims) } else { (None, e) };
        let mut scale = 1.0;
        let product = scaled(cx, e, &mut scale).filter(|&p| self_dims(cx, p, dims))?;
        Some((product, mask.map(|m| Mask { first: true, ..m }).or(outer), scale))
    };
    let with = |bias| move |(product, mask, scale)| (product, bias, mask, scale);
    match operands_of(cx, inner, ADD).as_deref() {
        Some(&[a, b]) => of(a).map(with(Some(b))).or_else(|| of(b).map(with(Some(a)))),
        _ => of(inner).map(with(None)),
    }
}

/// What hides some of the scores, and the scores; themselves where nothing does.
fn masked(cx: &RewriteCx<'_>, scores: Expr, dims: &[Sym]) -> (Option<Mask>, Expr) {
    let found = || {
        let [tensor, yes, no] = operands_of(cx, scores, WHERE)?[..] else { return None };
        let (hidden, inner, hides) = match (number(cx, yes), number(cx, no)) {
            (None, Some(hidden)) => (hidden, yes, false),
            (Some(hidden), None) => (hidden, no, true),
            _ => return None,
        };
        // A score of plus infinity leaves no weight to others, and NaN none to itself.
        let usual = hidden < f64::INFINITY && cx.func.ty(tensor).dtype() == Some(DType::Bool);
        let fits = self_dims(cx, scores, dims) && self_dims(cx, inner, dims);
        (usual && fits).then_some((Mask { tensor, hides, hidden, first: false }, inner))
    };
    match found() {
        Some((mask, inner)) => (Some(mask), uncast(cx, inner)),
        None => (None, scores),
    }
}

/// The attention that a call of the operator is.
pub(super) fn called(cx: &RewriteCx<'_>, root: Expr) -> Option<Attention> {
    let args =
        operands_of(cx, root, ATTENTION).or_else(|| operands_of(cx, root, ATTENTION_BIAS))?;
    let &[q, k, v, ..] = &args[..] else { return None };
    let bias = args.get(3).copied().filter(|&e| !is_left_out(cx.func, e));
    if !all_float32(cx.func, &[q, k, v, root]) {
        return None;
    }
    let (of_q, of_k, of_v) = (cx.func.ty(q).dims()?, cx.func.ty(k).dims()?, cx.func.ty(v).dims()?);
    if [of_q, of_k, of_v].iter().any(|d| d.len() != 4) {
        return None;
    }
    let same =
        of_q[0] == of_k[0] && of_k[0] == of_v[0] && of_q[3] == of_k[3] && of_k[1..3] == of_v[1..3];
    let count = |s: Sym| cx.func.syms.as_int(s);
    let grouped = match (count(of_q[2]), count(of_k[2])) {
        (Some(own), Some(shared)) => shared > 0 && own % shared == 0,
        _ => of_q[2] == of_k[2],
    };
    if !same || !grouped {
        return None;
    }
    let scores = [of_q[0], of_q[2], of_q[1], of_k[1]];
    let bias_dims = match bias {
        Some(bias) => bias_dims(cx.func, bias, &scores)?,
        None => Vec::new(),
    };
    let attrs = attrs_of(cx, root)?;
    let given = |key: &str| attrs.get(key).filter(|v| !v.is_none());
    let causal = match given("causal_mask").map(|v| v.as_str()) {
        None => Causal::No,
        Some(Some("TopLeft")) => Causal::First,
        Some(Some("BottomRight")) => Causal::Last,
        Some(_) => return None,
    };
    let window = match given("window_size") {
        Some(v) => v.as_int().filter(|&w| w > 0 && w < 1 << 30)?,
        None => 0,
    };
    let scale = match given("scale") {
        Some(v) => Some(v.as_float()?),
        None => None,
    };
    let sources = [q, k, v].map(|tensor| Source { tensor, layout: Layout::Tokens });
    let heads = false;
    Some(Attention {
        sources,
        bias,
        bias_dims,
        mask: None,
        scale,
        causal,
        window,
        heads,
        blind_is_nan: false,
    })
}

fn all_float32(func: &Function, list: &[Expr]) -> bool {
    list.iter().all(|&e| func.ty(e).dtype() == Some(DType::Float32))
}

fn self_dims(cx: &RewriteCx<'_>, e: Expr, want: &[Sym]) -> bool {
    cx.func.ty(e).dims().is_some_and(|d| d == want)
}

/// The product that scores are a constant multiple of.
fn scaled(cx: &RewriteCx<'_>, e: Expr, scale: &mut f64) -> Option<Expr> {
    let product = uncast(cx, factored(cx, e, scale));
    operands_of(cx, product, MATMUL).map(|_| product)
}

/// Whether sizes are the same where they must be: queries, transposed keys, values, results and scores.
fn fits(func: &Function, [q, kt, v]: [Expr; 3], out: Expr, scores: &[Sym]) -> Option<()> {
    let (q, kt, v, out) =
        (func.ty(q).dims()?, func.ty(kt).dims()?, func.ty(v).dims()?, func.ty(out).dims()?);
    let rank = scores.len();
    if !(3..=4).contains(&rank) || [q, kt, v, out].iter().any(|d| d.len() != rank) {
        return None;
    }
    let lead = rank - 2;
    let same = [q, kt, v, out].iter().all(|d| d[..lead] == scores[..lead]);
    let (rows, keys) = (scores[lead], scores[lead + 1]);
    let sized = q[lead] == rows
        && q[lead + 1] == kt[lead]
        && kt[lead + 1] == keys
        && v[lead] == keys
        && out[lead] == rows
        && out[lead + 1] == v[lead + 1];
    (same && sized).then_some(())
}

/// [`broadcast_dims`] of a bias of floats.
fn bias_dims(func: &Function, bias: Expr, scores: &[Sym]) -> Option<Vec<bool>> {
    if is_float(func, bias) { broadcast_dims(func, bias, scores) } else { None }
}

/// Whether each dim of a bias or mask, from the last, is that of the scores; `None` where one is neither that nor 1.
fn broadcast_dims(func: &Function, e: Expr, scores: &[Sym]) -> Option<Vec<bool>> {
    let own = func.ty(e).dims()?;
    if own.len() > scores.len() {
        return None;
    }
    let pairs = own.iter().rev().zip(scores.iter().rev());
    pairs
        .map(|(&own, &want)| match func.syms.as_int(own) {
            _ if own == want => Some(true),
            Some(1) => Some(false),
            _ => None,
        })
        .collect()
}

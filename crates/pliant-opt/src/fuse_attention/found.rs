//! Attention as it is found in a graph.

use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_ir::{AttrValue, DType, Op, Sym};
use pliant_pass::pattern::RewriteCx;

use super::{ATTENTION, ATTENTION_BIAS, EXCHANGED, SOFTMAX, Uses};
use crate::names::{NULL_VALUE, RESHAPE};
use crate::products::{MATMUL, PERMUTE, attrs_of, operands_of, permutation};

const MULTIPLY: Op = Op("relax.multiply");
const DIVIDE: Op = Op("relax.divide");
const ADD: Op = Op("relax.add");
const WHERE: Op = Op("relax.where");
const SPLIT: Op = Op("relax.split");

/// How queries, keys or values lie in a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `(batch, rows, size)`: one head.
    One,
    /// `(batch, heads, rows, size)`.
    Heads,
    /// `(batch, rows, heads, size)`.
    Tokens,
    /// `(batch, rows, width)`: heads of a size side by side from a column on.
    Within { column: i64, heads: i64, size: i64 },
}

/// Queries, keys or values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub tensor: Expr,
    pub layout: Layout,
}

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
    let softmax = attrs_of(cx, weights)?;
    let scores = operands_of(cx, weights, SOFTMAX)?[0];
    let dims = dims(cx.func, scores)?.to_vec();
    let axis = softmax.get("axis").and_then(AttrValue::as_int).unwrap_or(-1);
    if !uses.once(cx.func, weights) || axis != -1 && axis != dims.len() as i64 - 1 {
        return None;
    }
    let (product, bias, mask, mut scale) = summands(cx, scores, &dims)?;
    let [q, kt] = operands_of(cx, product, MATMUL)?[..] else { return None };
    let (q, kt) = (factored(cx, q, &mut scale), factored(cx, kt, &mut scale));
    if !self_dims(cx, product, &dims) || !all_float32(cx.func, &[root, q, kt, v, scores]) {
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
        Some((mask, inner)) => (Some(mask), inner),
        None => (None, scores),
    }
}

/// The attention that a call of the operator is.
pub(super) fn called(cx: &RewriteCx<'_>, root: Expr) -> Option<Attention> {
    let args =
        operands_of(cx, root, ATTENTION).or_else(|| operands_of(cx, root, ATTENTION_BIAS))?;
    let &[q, k, v, ..] = &args[..] else { return None };
    let absent = |e: &Expr| matches!(cx.func.expr(*e), ExprData::Call { callee: Callee::Op(op), .. } if *op == NULL_VALUE);
    let bias = args.get(3).copied().filter(|e| !absent(e));
    if !all_float32(cx.func, &[q, k, v, root]) {
        return None;
    }
    let (of_q, of_k, of_v) = (dims(cx.func, q)?, dims(cx.func, k)?, dims(cx.func, v)?);
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

fn dims(func: &Function, e: Expr) -> Option<&[Sym]> {
    func.ty(e).dims()
}

fn all_float32(func: &Function, list: &[Expr]) -> bool {
    list.iter().all(|&e| func.ty(e).dtype() == Some(DType::Float32))
}

fn self_dims(cx: &RewriteCx<'_>, e: Expr, want: &[Sym]) -> bool {
    dims(cx.func, e).is_some_and(|d| d == want)
}

/// A constant of one element.
fn number(cx: &RewriteCx<'_>, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = cx.func.expr(cx.value(e)) else { return None };
    let tensor = cx.func.const_tensor(*c);
    let one = tensor.dtype() == DType::Float32 && tensor.shape().iter().all(|&d| d == 1);
    if one { tensor.to_vec::<f32>().ok()?.first().map(|&v| f64::from(v)) } else { None }
}

/// What a value is a constant multiple of, whose factor goes into `scale`; the value itself where it is none.
fn factored(cx: &RewriteCx<'_>, e: Expr, scale: &mut f64) -> Expr {
    let mut e = e;
    // Each turn goes to an operand, of which there are finitely many.
    loop {
        let parts = match (operands_of(cx, e, MULTIPLY), operands_of(cx, e, DIVIDE)) {
            (Some(args), _) => match (number(cx, args[0]), number(cx, args[1])) {
                (_, Some(factor)) => Some((args[0], factor)),
                (Some(factor), _) => Some((args[1], factor)),
                _ => None,
            },
            (_, Some(args)) => number(cx, args[1]).map(|by| (args[0], 1.0 / by)),
            _ => None,
        };
        match parts {
            Some((inner, factor)) if same_type(cx.func, inner, e) => match both(*scale, factor) {
                Some(both) => (*scale, e) = (both, inner),
                None => return e,
            },
            _ => return e,
        }
    }
}

/// Two factors as one, where that is an ordinary number of float32: what leaves its range need not do so factor by factor.
/// 0 goes with nothing but 1 and itself, since what it is applied to may have left it.
fn both(scale: f64, factor: f64) -> Option<f64> {
    let both = scale * factor;
    let alone = factor == 1.0 || scale == 1.0 && factor == 0.0;
    (alone || (both as f32).is_normal() || scale == 0.0 && factor == 0.0).then_some(both)
}

fn same_type(func: &Function, a: Expr, b: Expr) -> bool {
    func.expr_ty(a) == func.expr_ty(b)
}

/// The product that scores are a constant multiple of.
fn scaled(cx: &RewriteCx<'_>, e: Expr, scale: &mut f64) -> Option<Expr> {
    let product = factored(cx, e, scale);
    operands_of(cx, product, MATMUL).map(|_| product)
}

/// The order of dims that a value is a permutation with, and of what.
fn permuted(cx: &RewriteCx<'_>, e: Expr) -> Option<(Vec<usize>, Expr)> {
    let inner = operands_of(cx, e, PERMUTE)?[0];
    let rank = dims(cx.func, inner)?.len();
    Some((permutation(&attrs_of(cx, e)?, rank)?, inner))
}

/// The keys whose transpose a value is.
fn transposed(cx: &RewriteCx<'_>, kt: Expr, scale: &mut f64) -> Option<Source> {
    if let Some(keys) = turned_as_one(cx, kt, scale) {
        return source(cx, keys);
    }
    let (order, inner) = permuted(cx, kt)?;
    match order[..] {
        [0, 2, 1] | [0, 1, 3, 2] => {
            let inner = factored(cx, inner, scale);
            source(cx, inner)
        }
        [0, 2, 3, 1] => Some(tokens(cx, inner)),
        _ => None,
    }
}

/// The keys that become a value where batches and heads are made one dim, rows and elements exchanged, and both parted again, as
/// the exporter of PyTorch writes it.
fn turned_as_one(cx: &RewriteCx<'_>, kt: Expr, scale: &mut f64) -> Option<Expr> {
    let &[batch, heads, size, rows] = dims(cx.func, kt)? else { return None };
    let mut whole = *scale;
    let one = factored(cx, operands_of(cx, kt, RESHAPE)?[0], &mut whole);
    let (order, flat) = permuted(cx, one)?;
    let flat = factored(cx, flat, &mut whole);
    let keys = operands_of(cx, flat, RESHAPE)?[0];
    let as_one = order == [0, 2, 1] && dims(cx.func, flat)?[1..] == [rows, size];
    if !as_one || dims(cx.func, keys)? != [batch, heads, rows, size] {
        return None;
    }
    *scale = whole;
    Some(factored(cx, keys, scale))
}

/// Where heads, rows and elements of a value of that form lie.
fn source(cx: &RewriteCx<'_>, e: Expr) -> Option<Source> {
    if dims(cx.func, e)?.len() == 3 {
        return Some(Source { tensor: e, layout: Layout::One });
    }
    match permuted(cx, e) {
        Some((order, inner)) if order == EXCHANGED => Some(tokens(cx, inner)),
        _ => Some(Source { tensor: e, layout: Layout::Heads }),
    }
}

/// The same of `(batch, rows, heads, size)`, which may be a part of a wider tensor.
fn tokens(cx: &RewriteCx<'_>, e: Expr) -> Source {
    within(cx, e).unwrap_or(Source { tensor: e, layout: Layout::Tokens })
}

/// The part of a tensor that is split along its last axis.
fn within(cx: &RewriteCx<'_>, e: Expr) -> Option<Source> {
    let &[batch, rows, heads, size] = dims(cx.func, e)? else { return None };
    let (heads, size) = (cx.func.syms.as_int(heads)?, cx.func.syms.as_int(size)?);
    let flat = operands_of(cx, e, RESHAPE)?[0];
    let &[b, r, width] = dims(cx.func, flat)? else { return None };
    let width = cx.func.syms.as_int(width)?;
    if (b, r) != (batch, rows) || Some(width) != heads.checked_mul(size) {
        return None;
    }
    let ExprData::TupleGetItem(parts, index) = *cx.func.expr(cx.value(flat)) else { return None };
    let tensor = operands_of(cx, parts, SPLIT)?[0];
    let attrs = attrs_of(cx, parts)?;
    let axis = attrs.get("axis").and_then(AttrValue::as_int).unwrap_or(0);
    let whole = dims(cx.func, tensor)?;
    if whole.len() != 3 || (axis != -1 && axis != 2) || whole[..2] != [batch, rows] {
        return None;
    }
    let whole = cx.func.syms.as_int(whole[2])?;
    let column = match attrs.get("indices_or_sections")? {
        sections if sections.as_int().is_some() => {
            let sections = sections.as_int().filter(|&n| n > 0 && whole % n == 0)?;
            whole / sections * i64::from(index)
        }
        cuts => match index {
            0 => 0,
            _ => *cuts.as_ints()?.get(index as usize - 1)?,
        },
    };
    let inside = column >= 0 && column.checked_add(width)? <= whole;
    let layout = Layout::Within { column, heads, size };
    inside.then_some(Source { tensor, layout })
}

/// Whether sizes are the same where they must be: queries, transposed keys, values, results and scores.
fn fits(func: &Function, [q, kt, v]: [Expr; 3], out: Expr, scores: &[Sym]) -> Option<()> {
    let (q, kt, v, out) = (dims(func, q)?, dims(func, kt)?, dims(func, v)?, dims(func, out)?);
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

/// [`broadcast_dims`] of a bias of float32.
fn bias_dims(func: &Function, bias: Expr, scores: &[Sym]) -> Option<Vec<bool>> {
    if all_float32(func, &[bias]) { broadcast_dims(func, bias, scores) } else { None }
}

/// Whether each dim of a bias or mask, from the last, is that of the scores; `None` where one is neither that nor 1.
fn broadcast_dims(func: &Function, e: Expr, scores: &[Sym]) -> Option<Vec<bool>> {
    let own = dims(func, e)?;
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

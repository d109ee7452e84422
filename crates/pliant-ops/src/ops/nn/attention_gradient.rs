//! The gradient of attention. It computes the probabilities again from the queries and keys, so that the forward pass need not
//! store them.

use pliant_ir::AttrValue;

use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// A finite number that masked scores are replaced by, so that a row without visible keys has no NaN.
const MASKED_SCORE: f64 = -1e30;

/// The gradient of `attention`.
pub fn attention<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (query, key, value) = (g.arg(0), g.arg(1), g.arg(2));
    let groups = head_groups(g)?;
    let heads_first = |x: Term<'g>| x.permute(&[0, 2, 1, 3]);
    let repeated = |x: Term<'g>| if groups == 1 { x } else { repeat_heads(x, groups) };
    let (q, k, v) = (heads_first(query), heads_first(repeated(key)), heads_first(repeated(value)));
    let dy = heads_first(g.dy());
    let scale = scale(g)?;
    let mut scores = q.matmul(k.swap_last()) * scale;
    if g.has_arg(3) {
        scores = scores + g.arg(3);
    }
    let mask = visible(g, scores)?;
    if let Some(mask) = mask {
        scores = mask.select(scores, scores.constant(MASKED_SCORE));
    }
    let mut p = scores.call("relax.nn.softmax", &[], &[("axis", AttrValue::Int(-1))]);
    if let Some(mask) = mask {
        p = mask.select(p, p.constant(0.0));
    }
    let dp = dy.matmul(v.swap_last());
    let of_scores = p * (dp - (dp * p).sum(&[3], true));
    let of_products = of_scores * scale;
    let grouped = |x: Term<'g>, target: Term<'g>| {
        let x = heads_first(x);
        if groups == 1 { x } else { sum_of_groups(x, target, groups) }
    };
    let mut adjoints = vec![
        g.wants(0).then(|| heads_first(of_products.matmul(k))),
        g.wants(1).then(|| grouped(of_products.swap_last().matmul(q), key)),
        g.wants(2).then(|| grouped(p.swap_last().matmul(dy), value)),
    ];
    if g.args().len() > 3 {
        adjoints.push((g.wants(3) && g.has_arg(3)).then(|| of_scores.fit(g.arg(3))));
    }
    Ok(adjoints)
}

/// The number of query heads that share a key head.
fn head_groups(g: &GradientCtx<'_>) -> Result<i64, GradientError> {
    let unknown = || {
        g.error("the gradient needs the shapes of query and key; declare them with R.match_cast")
    };
    let (q, k) = (g.arg(0).dims().ok_or_else(unknown)?, g.arg(1).dims().ok_or_else(unknown)?);
    if q[2] == k[2] {
        return Ok(1);
    }
    let counts = g.builder.read(|f| f.syms.as_int(q[2]).zip(f.syms.as_int(k[2])));
    match counts {
        Some((heads, key_heads)) if key_heads > 0 => Ok(heads / key_heads),
        _ => Err(g.error("the gradient needs constant numbers of heads if they may differ")),
    }
}

fn repeat_heads(x: Term<'_>, groups: i64) -> Term<'_> {
    x.call("relax.repeat", &[], &[("repeats", AttrValue::Int(groups)), ("axis", AttrValue::Int(2))])
}

/// The sum over the query heads that share a head of `target`.
fn sum_of_groups<'g>(x: Term<'g>, target: Term<'g>, groups: i64) -> Term<'g> {
    let Some(mut dims) = target.dims() else { return x };
    let builder = x.builder();
    let count = builder.edit(|f| f.syms.int(groups));
    dims.insert(3, count);
    x.reshape(builder.shape(&dims)).sum(&[3], false)
}

/// The factor of the scores.
fn scale<'g>(g: &GradientCtx<'g>) -> Result<Term<'g>, GradientError> {
    let query = g.arg(0);
    if let Some(scale) = g.attr("scale").as_float() {
        return Ok(query.constant(scale));
    }
    let dims = query.dims().ok_or_else(|| g.error("the gradient needs the shape of query"))?;
    match g.builder.read(|f| f.syms.as_int(dims[3])) {
        Some(size) => Ok(query.constant(1.0 / (size as f64).sqrt())),
        None => Ok(query.size_value(dims[3]).rsqrt()),
    }
}

/// The mask of visible keys; `None` if all are visible.
fn visible<'g>(g: &GradientCtx<'g>, scores: Term<'g>) -> Result<Option<Term<'g>>, GradientError> {
    let mask = g.attr("causal_mask");
    let Some(mask) = mask.as_str() else { return Ok(None) };
    let unknown = || g.error("the gradient needs the shapes of query and key");
    let (q, k) = (g.arg(0).dims().ok_or_else(unknown)?, g.arg(1).dims().ok_or_else(unknown)?);
    // Key j is visible to query i if j - i is at most this offset.
    let offset = g.builder.edit(|f| match mask {
        "BottomRight" => f.syms.sub(k[1], q[1]),
        _ => f.syms.int(0),
    });
    let triangle = |op: &'static str, x: Term<'g>, diagonal: pliant_ir::Sym| {
        let constant = g.builder.read(|f| f.syms.as_int(diagonal));
        match constant {
            Some(k) => x.call(op, &[], &[("k", AttrValue::Int(k))]),
            None => {
                let k = g.builder.edit(|f| f.int_value(diagonal, pliant_ir::DType::Int64));
                x.call(op, &[k], &[])
            }
        }
    };
    let mut ones = triangle("relax.tril", scores.ones_like(), offset);
    if let Some(window) = g.attr("window_size").as_int() {
        let first = g.builder.edit(|f| {
            let window = f.syms.int(window - 1);
            f.syms.sub(offset, window)
        });
        ones = triangle("relax.triu", ones, first);
    }
    Ok(Some(ones.astype(pliant_ir::DType::Bool)))
}

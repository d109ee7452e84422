//! Attention operators: the softmax of the scaled matrix product of queries and keys, multiplied by
//! the values.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};
use pliant_tensor::CheckFailure;

use super::super::indexing::index_bounds;
use super::super::reductions::accumulator;
use super::attention_gradient;
use crate::broadcast::{BroadcastOperand, BroadcastTarget, may_broadcast_to};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{
    SizeCheck, operand_types, require_divisible, require_float, require_integer, require_scalar,
    shared_dim, te_converted,
};
use crate::te::{self, Check, Expr, IterVar, Tensor};
use crate::type_inference::{InferCtx, TensorTy};

const ATTRS: &[(&str, Default)] =
    &[("scale", Default::None), ("causal_mask", Default::None), ("window_size", Default::None)];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.attention",
        infer,
        "Scaled dot-product attention (Vaswani et al., 2017) of queries (batch, len, heads, size) to keys (batch, len_kv, \
        heads_kv, size) and values (batch, len_kv, heads_kv, size_v), with an optional bias that broadcasts to (batch, heads, \
        len, len_kv). If there are fewer key heads than query heads, groups of query heads share a key head. The default scale \
        is 1 / sqrt(size). With `causal_mask`, a query sees the keys up to its own position; the mask is aligned to the first \
        (\"TopLeft\") or the last (\"BottomRight\") query and key. With `window_size`, a query sees at most that number of these \
        keys. A query that sees no key results in zeros.",
    )
    .operands(&["query", "key", "value", "bias?"])
    .attrs(ATTRS)
    .te(Pattern::OutEWiseFusable, te_attention)
    .onnx(&["Attention"])
    .errors(
        "the sizes of query, key and value do not match, `bias` cannot be broadcast, or `window_size` is set without \
        `causal_mask`",
    )
    .gradient(attention_gradient::attention),
    OpDecl::new("relax.nn.attention_bias", infer, "The same as relax.nn.attention; the name exists for compatibility.")
        .operands(&["query", "key", "value", "bias?"])
        .attrs(ATTRS)
        .te(Pattern::OutEWiseFusable, te_attention)
        .errors(
            "the sizes of query, key and value do not match, `bias` cannot be broadcast, or `window_size` is set without \
            `causal_mask`",
        )
    .gradient(attention_gradient::attention),
    OpDecl::new(
        "relax.nn.attention_var_len",
        infer_var_len,
        "Attention within concatenated sequences of different lengths: queries (1, len, heads, size), keys and values (1, \
        len_kv, heads_kv, ...). Sequence `b` consists of the positions from `seqstart[b]` (inclusive) to `seqstart[b + 1]` \
        (exclusive). By default, the starts of the keys are those of the queries. Masks are relative to each sequence.",
    )
    .operands(&[
        "queries",
        "keys",
        "values",
        "seqstart_q: index",
        "max_seqlen_q: index",
        "seqstart_k?: index",
        "max_seqlen_k?: index",
    ])
    .attrs(ATTRS)
    .te(Pattern::OutEWiseFusable, te_var_len)
    .errors("the sizes of queries, keys and values do not match, their first dim is not 1, or a sequence is out of range"),
];

// ---- types ----

/// Whether keys after a query are masked, and the corner of the score matrix from which the
/// diagonal of the causal mask starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CausalMask {
    No,
    TopLeft,
    BottomRight,
}

/// The attributes of attention: the scale of the scores, the causal mask and the sliding window.
struct AttentionAttrs {
    scale: Option<f64>,
    causal: CausalMask,
    window: Option<i64>,
}

fn attention_attrs(ctx: &InferCtx<'_>) -> Result<AttentionAttrs, InferError> {
    let scale = if ctx.attr("scale").is_none() { None } else { Some(ctx.float("scale")?) };
    let causal = if ctx.attr("causal_mask").is_none() {
        CausalMask::No
    } else {
        [CausalMask::TopLeft, CausalMask::BottomRight]
            [ctx.choice("causal_mask", &["TopLeft", "BottomRight"])?]
    };
    let window =
        if ctx.attr("window_size").is_none() { None } else { Some(ctx.int("window_size")?) };
    if let Some(window) = window {
        ctx.check_range("window_size", &[window], 1)?;
        if causal == CausalMask::No {
            return Err(
                ctx.error("window_size requires causal_mask to be \"TopLeft\" or \"BottomRight\"")
            );
        }
    }
    Ok(AttentionAttrs { scale, causal, window })
}

/// The sizes of queries, keys and values. Sizes that must be equal are assumed to be equal, unless they provably differ.
struct AttentionSizes {
    batch: Sym,
    len: Sym,
    heads: Sym,
    size: Sym,
    len_kv: Sym,
    heads_kv: Sym,
    size_v: Sym,
    grouped: Option<SizeCheck>,
}

/// Checks the ranks and types of queries, keys and values. Returns their sizes, if all are known, and the element type.
fn attention_sizes(
    ctx: &mut InferCtx<'_>,
) -> Result<(Option<AttentionSizes>, Option<DType>), InferError> {
    let mut all: Vec<TensorTy> = Vec::new();
    for i in 0..3 {
        let t = ctx.tensor(i)?;
        require_float(ctx, i, &t)?;
        if t.ndim.is_some_and(|n| n != 4) {
            return Err(ctx.error(format!(
                "{operand} must have 4 dims, but is {ty}",
                operand = ctx.operand_name(i),
                ty = ctx.operand_type_text(i)
            )));
        }
        all.push(t);
    }
    let dtype = ctx.same_dtype(0, 1)?.or(ctx.same_dtype(0, 2)?).or(ctx.same_dtype(1, 2)?);
    let (Some(q), Some(k), Some(v)) = (&all[0].dims, &all[1].dims, &all[2].dims) else {
        return Ok((None, dtype));
    };
    let mut same = |a: Sym, b: Sym, sizes: &str| {
        shared_dim(ctx, a, b).ok_or_else(|| {
            let (first, second) = (ctx.dim_text(a), ctx.dim_text(b));
            ctx.error(format!(
                "{sizes} must be equal, but are {first} and {second}: {types}",
                types = operand_types(ctx)
            ))
        })
    };
    let batch = same(q[0], k[0], "the batch sizes of query and key")?;
    let batch = same(batch, v[0], "the batch sizes of query and value")?;
    let size = same(q[3], k[3], "the head sizes of query and key")?;
    let len_kv = same(k[1], v[1], "the lengths of key and value")?;
    let heads_kv = same(k[2], v[2], "the numbers of heads of key and value")?;
    let (len, heads, size_v) = (q[1], q[2], v[3]);
    let grouped =
        require_divisible(ctx, heads, heads_kv, "the number of heads of query", "that of key")?;
    Ok((Some(AttentionSizes { batch, len, heads, size, len_kv, heads_kv, size_v, grouped }), dtype))
}

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    attention_attrs(ctx)?;
    let (sizes, dtype) = attention_sizes(ctx)?;
    if ctx.has_operand(3) {
        let bias = ctx.tensor(3)?;
        ctx.same_dtype(0, 3)?;
        if bias.ndim.is_some_and(|n| n > 4) {
            return Err(ctx.error(format!(
                "bias must have at most 4 dims, but is {ty}",
                ty = ctx.operand_type_text(3)
            )));
        }
        if let (Some(s), Some(bias_dims)) = (&sizes, &bias.dims) {
            let scores = [s.batch, s.heads, s.len, s.len_kv];
            for (&expected, &actual) in scores[4 - bias_dims.len()..].iter().zip(bias_dims) {
                if !may_broadcast_to(ctx.func, actual, expected) {
                    let (expected, actual) = (ctx.dim_text(expected), ctx.dim_text(actual));
                    return Err(ctx.error(format!(
                        "bias does not broadcast to (batch, heads, len, len_kv): it has a \
                         dim of size {actual} where {expected} is required"
                    )));
                }
            }
        }
    }
    let dims = sizes.map(|s| vec![s.batch, s.len, s.heads, s.size_v]);
    Ok(ctx.tensor_type(dims, Some(4), dtype))
}

fn infer_var_len(ctx: &mut InferCtx<'_>) -> InferResult {
    attention_attrs(ctx)?;
    let (sizes, dtype) = attention_sizes(ctx)?;
    for i in [3, 5] {
        if !ctx.has_operand(i) {
            continue;
        }
        let t = ctx.tensor(i)?;
        require_integer(ctx, i, &t)?;
        if t.ndim.is_some_and(|n| n != 1) {
            return Err(ctx.error(format!(
                "{operand} must have 1 dim, but is {ty}",
                operand = ctx.operand_name(i),
                ty = ctx.operand_type_text(i)
            )));
        }
        let empty = t.dims.is_some_and(|d| ctx.func.syms.as_int(d[0]) == Some(0));
        if empty {
            return Err(ctx.error(format!(
                "{operand} must have at least one element",
                operand = ctx.operand_name(i)
            )));
        }
    }
    for i in [4, 6] {
        if ctx.has_operand(i) {
            require_scalar(ctx, i)?;
        }
    }
    if let Some(s) = &sizes {
        let one = ctx.func.syms.int(1);
        if shared_dim(ctx, s.batch, one).is_none() {
            return Err(ctx.error(format!(
                "the first dim of query, key and value must be 1: {types}",
                types = operand_types(ctx)
            )));
        }
    }
    let dims = sizes.map(|s| vec![s.batch, s.len, s.heads, s.size_v]);
    Ok(ctx.tensor_type(dims, Some(4), dtype))
}

// ---- lowering ----

/// The operands of an attention (queries, keys and values) and its parameters.
struct Attention {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    /// The number of query heads that share one key head; `None` if there is one key head for each
    /// query head.
    group: Option<Expr>,
    scale: Expr,
    acc_dtype: DType,
    dtype: DType,
    checks: Vec<Check>,
}

impl Attention {
    fn new(ctx: &mut LegalizeCtx<'_>, scale: Option<f64>) -> Result<Attention, LegalizeError> {
        let (sizes, _) = attention_sizes(&mut ctx.infer())?;
        let s = sizes.ok_or_else(|| {
            LegalizeError::unknown(format!(
                "{op}: the shapes of query, key and value must be known",
                op = ctx.decl.name
            ))
        })?;
        let q = ctx.tensor_with_dims(0, &[s.batch, s.len, s.heads, s.size])?;
        let k = ctx.tensor_with_dims(1, &[s.batch, s.len_kv, s.heads_kv, s.size])?;
        let v = ctx.tensor_with_dims(2, &[s.batch, s.len_kv, s.heads_kv, s.size_v])?;
        let (dtype, acc_dtype) = (q.dtype(), accumulator(q.dtype()));
        let group_size = ctx.func.syms.floordiv(s.heads, s.heads_kv);
        let group = (s.heads != s.heads_kv).then(|| ctx.size(group_size));
        let scale = match scale {
            Some(v) => te::const_of(v, acc_dtype),
            None => te::rsqrt(&te::cast(&ctx.size(s.size), acc_dtype)),
        };
        let checks = s.grouped.map(|c| ctx.size_check(c)).into_iter().collect();
        Ok(Attention { q, k, v, group, scale, acc_dtype, dtype, checks })
    }

    fn key_head(&self, head: &Expr) -> Expr {
        self.group.as_ref().map_or_else(|| head.clone(), |g| te::floordiv(head, g))
    }

    fn read(&self, t: &Tensor, at: [&Expr; 4]) -> Expr {
        te::cast(&t.at(&at.map(Expr::clone)), self.acc_dtype)
    }

    /// Creates the stages of the attention. For the indices (batch, head, query, key), `bias` returns the addend of the score,
    /// and `is_visible` whether the query attends to the key.
    fn output(
        &self,
        bias: impl Fn(&[Expr]) -> Option<Expr>,
        is_visible: impl Fn(&[Expr]) -> Expr,
    ) -> Vec<Tensor> {
        let (q, k) = (self.q.shape(), self.k.shape());
        let scores_shape = vec![q[0].clone(), q[2].clone(), q[1].clone(), k[1].clone()];
        let d = te::reduce_axis(q[3].clone(), "k");
        let products = te::compute_named(
            scores_shape.clone(),
            "attention_scores",
            &["b", "h", "i", "j"],
            |i| {
                let key_head = self.key_head(&i[1]);
                let left = self.read(&self.q, [&i[0], &i[2], &i[1], &d.var.expr()]);
                let right = self.read(&self.k, [&i[0], &i[3], &key_head, &d.var.expr()]);
                te::sum(&(left * right), std::slice::from_ref(&d))
            },
        );
        let products = self.checks.iter().fold(products, |t, c| t.with_check(c.clone()));
        let lowest = te::const_of(f64::NEG_INFINITY, self.acc_dtype);
        let masked = te::compute(scores_shape, "attention_masked", |i| {
            let scaled = products.at(i) * &self.scale;
            let score = bias(i).map_or(scaled.clone(), |b| scaled + te::cast(&b, self.acc_dtype));
            te::select(&is_visible(i), &score, &lowest)
        });
        let rows = masked.shape()[..3].to_vec();
        let over = |name: &str| -> IterVar { te::reduce_axis(k[1].clone(), name) };
        let j = over("j");
        let row = |i: &[Expr], j: &IterVar| [&i[..3], &[j.var.expr()]].concat();
        let max_score = te::compute(rows.clone(), "attention_max", |i| {
            te::max(&masked.at(&row(i, &j)), std::slice::from_ref(&j))
        });
        let zero = te::const_of(0.0, self.acc_dtype);
        let exps = te::compute(masked.shape().to_vec(), "attention_exp", |i| {
            // If no key is visible, the maximum is minus infinity, and subtracting it would result in NaN.
            let score = masked.at(i);
            let weight = te::exp(&(&score - max_score.at(&i[..3])));
            te::select(&te::eq(&score, &lowest), &zero, &weight)
        });
        let j = over("j");
        let sums = te::compute(rows, "attention_sum", |i| {
            te::sum(&exps.at(&row(i, &j)), std::slice::from_ref(&j))
        });
        let j = over("j");
        let v = self.v.shape();
        let out_shape = vec![q[0].clone(), q[1].clone(), q[2].clone(), v[3].clone()];
        let weighted =
            te::compute_named(out_shape.clone(), "attention_values", &["b", "i", "h", "d"], |i| {
                let key_head = self.key_head(&i[2]);
                let weight = exps.at(&[i[0].clone(), i[2].clone(), i[1].clone(), j.var.expr()]);
                let value = self.read(&self.v, [&i[0], &j.var.expr(), &key_head, &i[3]]);
                te::sum(&(weight * value), std::slice::from_ref(&j))
            });
        let out = te::compute(out_shape, "T_attention", |i| {
            let total = sums.at(&[i[0].clone(), i[2].clone(), i[1].clone()]);
            te::select(&te::eq(&total, &zero), &zero, &(weighted.at(i) / total))
        });
        vec![te_converted(out, self.dtype)]
    }
}

/// Whether the masks let the query at position `i` of a sequence attend to the key at position `j`. `extra_keys` is the number of
/// keys minus the number of queries.
fn is_visible(attention_attrs: &AttentionAttrs, i: &Expr, j: &Expr, extra_keys: &Expr) -> Expr {
    let last_visible = match attention_attrs.causal {
        CausalMask::No => return te::bool_const(true),
        CausalMask::TopLeft => i.clone(),
        CausalMask::BottomRight => i + extra_keys,
    };
    let up_to = te::le(j, &last_visible);
    match attention_attrs.window {
        Some(window) => te::and(&up_to, &te::lt(&(last_visible - j), &te::int(window))),
        None => up_to,
    }
}

fn te_attention(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let attention_attrs = attention_attrs(&ctx.infer())?;
    let mut a = Attention::new(ctx, attention_attrs.scale)?;
    let bias: Option<BroadcastOperand> = if ctx.has_operand(3) {
        let (sizes, _) = attention_sizes(&mut ctx.infer())?;
        match sizes {
            Some(s) => {
                let mut target = BroadcastTarget::new(&[s.batch, s.heads, s.len, s.len_kv]);
                let bias = target.operand(ctx, 3)?;
                a.checks.extend(target.checks(ctx));
                Some(bias)
            }
            None => None,
        }
    } else {
        None
    };
    let extra_keys = &a.k.shape()[1] - &a.q.shape()[1];
    Ok(a.output(
        |i| bias.as_ref().map(|b| b.at(i)),
        |i| is_visible(&attention_attrs, &i[2], &i[3], &extra_keys),
    ))
}

/// Sequences of queries or keys that are packed into one dim: the start of each sequence, and the
/// sequence to which each position belongs.
struct Sequences {
    starts: Tensor,
    sequence_of: Tensor,
}

impl Sequences {
    fn new(starts: Tensor, len: &Expr, name: &str) -> Sequences {
        let bounds = &starts.shape()[0] - 1;
        let b = te::reduce_axis(bounds, "b");
        let sequence_of = te::compute(vec![len.clone()], name, |i| {
            let end = index_bounds::as_int64(&starts.at(&[b.var.expr() + 1]));
            let past = te::select(&te::le(&end, &i[0]), &te::int(1), &te::int(0));
            te::sum(&past, std::slice::from_ref(&b))
        });
        Sequences { starts, sequence_of }
    }

    /// The run-time check that `0 <= start <= end <= len` for each of the packed sequences, whose starts are in `starts`. `what`
    /// names them in the message.
    fn check(starts: &Tensor, what: &str, len: &Expr) -> Check {
        index_bounds::check_all(&[&starts.shape()[0] - 1], |c| {
            let at = |b: Expr| index_bounds::as_int64(&starts.at(&[b]));
            let (from, to) = (at(c[0].clone()), at(&c[0] + 1));
            let inside =
                te::all([&te::ge(&from, &te::int(0)), &te::le(&from, &to), &te::le(&to, len)]);
            let message = format!(
                "relax.nn.attention_var_len: the sequence of {what} from {{0}} to {{1}} is out of range for {{2}} positions"
            );
            let message = CheckFailure::Index.mark(&message);
            (te::explain(&inside, &[from, to, len.clone()]), message.into())
        })
    }

    /// The start and the length of sequence `b`; both 0 if `b` is not less than the number of
    /// sequences.
    fn range(&self, b: &Expr) -> (Expr, Expr) {
        let zero = te::int(0);
        let exists = te::lt(b, &(&self.starts.shape()[0] - 1));
        let at = |b: Expr| {
            let start = index_bounds::as_int64(&self.starts.at(&[b]));
            te::if_then_else(&exists, &start, &zero)
        };
        let first = at(b.clone());
        (first.clone(), at(b + 1) - first)
    }
}

fn te_var_len(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let attention_attrs = attention_attrs(&ctx.infer())?;
    let mut a = Attention::new(ctx, attention_attrs.scale)?;
    let start_dims = ctx.dims(3)?;
    let starts = ctx.tensor(3)?;
    // The loop function checks that there are as many sequences of keys as of queries.
    let starts_k =
        if ctx.has_operand(5) { ctx.tensor_with_dims(5, &start_dims)? } else { starts.clone() };
    if !ctx.trust_indices {
        let sequences = [
            (&starts, "queries", a.q.shape()[1].clone()),
            (&starts_k, "keys", a.k.shape()[1].clone()),
        ];
        a.checks.extend(sequences.map(|(starts, what, len)| Sequences::check(starts, what, &len)));
    }
    let queries = Sequences::new(starts, &a.q.shape()[1], "sequence_of_query");
    let keys = Sequences::new(starts_k, &a.k.shape()[1], "sequence_of_key");
    Ok(a.output(
        |_| None,
        |i| {
            let (b, other) =
                (queries.sequence_of.at(&[i[2].clone()]), keys.sequence_of.at(&[i[3].clone()]));
            let ((q, q_len), (k, k_len)) = (queries.range(&b), keys.range(&b));
            let (q_position, k_position) = (&i[2] - q, &i[3] - k);
            // Positions before the first and after the last sequence belong to none.
            let inside = te::all([
                &te::eq(&b, &other),
                &te::lt(&b, &(&queries.starts.shape()[0] - 1)),
                &te::ge(&q_position, &te::int(0)),
                &te::ge(&k_position, &te::int(0)),
            ]);
            te::and(
                &inside,
                &is_visible(&attention_attrs, &q_position, &k_position, &(k_len - q_len)),
            )
        },
    ))
}

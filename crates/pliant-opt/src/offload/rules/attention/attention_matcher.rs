//! Recognizes attention in a graph function, as operators (matmul, softmax, matmul) or as one operator call.

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType, Sym};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;

use super::attention_score_matcher::{Mask, match_scores, scores_problem};
use super::fully_masked_queries::{FullyMaskedResult, guarded_softmax, is_softmax};
use super::half_precision_casts::{Rounding, is_float};
use super::qkv_operands::{Layout, Source, shared_heads, source_of, transposed_keys};
use super::score_scale_factors::strip_factors;
use super::{ATTENTION, ATTENTION_BIAS, ReadCounts, SOFTMAX};
use crate::common::matmul_and_conv_operands::{
    MATMUL, PERMUTE_DIMS, defining_attrs, defining_operands, permute_axes,
};
use crate::common::operators_after_lowering::is_absent;
use crate::offload::offload_rule::KeepReason;

// Reasons why an attention is kept, which several functions return.
pub(super) const OTHER_READERS: &str = "the softmax weights are also read outside of the attention";
const NOT_FLOAT32: &str = "the attention is not computed in float32";
const OTHER_RANK: &str = "the queries, keys and values must all have 3 dims or all have 4 dims";
const UNKNOWN_DIMS: &str = "the dims of the queries, keys or values are unknown";
const UNKNOWN_SIZES: &str = "the sizes of the queries, keys and values are not known to match";

/// A recognized attention, with the operands and parameters for the kernel call.
pub(super) struct Attention {
    /// The tensors of the queries, keys and values, in this order.
    pub sources: [Source; 3],
    /// The bias tensor that is added to the scores; `None` if there is none.
    pub bias: Option<Expr>,
    /// The 16-bit type to which the bias is rounded before it is added; `None` if it is not rounded.
    pub bias_rounding: Rounding,
    /// For each dim of the bias, counted from the last, whether its size is that of the scores; otherwise its size is 1.
    pub bias_dims: Vec<bool>,
    /// The mask, with a flag for each of its dims, counted from the last: whether its size is that of the scores.
    pub mask: Option<(Mask, Vec<bool>)>,
    /// The factor by which the dot products of queries and keys are multiplied; `None` for 1 / sqrt(size of a head).
    pub scale: Option<f64>,
    /// The soft cap `c` of the scores, `c * tanh(score / c)`; 0 if there is none.
    pub cap: f64,
    /// The offset of the causal mask: a query attends only to keys up to its own position plus the offset. `None` if there is no
    /// causal mask.
    pub causal: Option<Sym>,
    /// The number of keys, counted back from the causal limit, to which a query attends (sliding window); 0 for all keys.
    pub window: i64,
    /// Whether the result has the dims (batch, heads, rows, size) instead of (batch, rows, heads, size).
    pub heads_before_rows: bool,
    /// The result for queries whose scores are all minus infinity.
    pub fully_masked_result: FullyMaskedResult,
}

/// Matches attention that is written as a matmul of softmax weights and values.
///
/// # Errors
/// The reason why no kernel call replaces the attention.
pub(super) fn match_operators(
    cx: &mut RewriteCx<'_>,
    read_counts: &ReadCounts,
    root: Expr,
) -> Result<Attention, KeepReason> {
    let Some(&[weights, v]) = defining_operands(cx, root, MATMUL).as_deref() else {
        return Err(KeepReason::NotApplicable);
    };
    if !is_softmax(cx, weights) {
        return Err(KeepReason::NotApplicable);
    }
    let out = float32_dims(cx.func, root)?;
    match_attention(cx, read_counts, (weights, v), &out)
}

/// Matches attention whose last operator is a matmul of transposed values, with the dims (..., size, keys), and transposed
/// softmax weights. Its result is the result of the attention with the last two dims swapped. The values are transposed before
/// the kernel call.
///
/// # Errors
/// The reason why no kernel call replaces the attention.
pub(super) fn match_transposed(
    cx: &mut RewriteCx<'_>,
    read_counts: &ReadCounts,
    root: Expr,
) -> Result<Attention, KeepReason> {
    let Some(&[v, transposed_weights]) = defining_operands(cx, root, MATMUL).as_deref() else {
        return Err(KeepReason::NotApplicable);
    };
    let Some(&[weights]) = defining_operands(cx, transposed_weights, PERMUTE_DIMS).as_deref()
    else {
        return Err(KeepReason::NotApplicable);
    };
    if !is_softmax(cx, weights) {
        return Err(KeepReason::NotApplicable);
    }
    let mut out = float32_dims(cx.func, root)?;
    let order = defining_attrs(cx, transposed_weights)
        .and_then(|attrs| permute_axes(&attrs, out.len()))
        .filter(|order| swaps_last_two(order));
    if order.is_none() {
        return Err(
            "the attention kernel supports a transpose between the softmax and the second matmul only if it swaps the last two dims"
                .into(),
        );
    }
    if !read_counts.read_at_most(cx.func, transposed_weights, 1) {
        return Err(OTHER_READERS.into());
    }
    let last = out.len() - 1;
    out.swap(last - 1, last);
    let v = swap_last_two(cx, v).map_err(|_| OTHER_RANK)?;
    let v = cx.emit(v);
    match_attention(cx, read_counts, (weights, v), &out)
}

/// Returns the dims of `e`, the result of an attention. The error, the reason why no kernel call replaces the attention, is that
/// `e` is not float32 or that its dims are unknown.
fn float32_dims(func: &Function, e: Expr) -> Result<Vec<Sym>, &'static str> {
    if !all_float32(func, &[e]) {
        return Err(NOT_FLOAT32);
    }
    func.ty(e).dims().map(<[_]>::to_vec).ok_or("the dims of the attention's result are unknown")
}

/// Whether a permutation of dims only swaps the last two.
fn swaps_last_two(order: &[usize]) -> bool {
    matches!(order, [0, 2, 1] | [0, 1, 3, 2])
}

/// Emits a transpose that swaps the last two dims of a tensor.
///
/// # Errors
/// If the rank of the tensor is neither 3 nor 4.
pub(super) fn swap_last_two(cx: &mut RewriteCx<'_>, e: Expr) -> Result<Expr, PassError> {
    let order: &[i64] = match cx.func.ty(e).dims().map(<[_]>::len) {
        Some(3) => &[0, 2, 1],
        Some(4) => &[0, 1, 3, 2],
        _ => {
            return Err(PassError::internal(
                "the tensor whose last two dims are swapped for the attention kernel must have rank 3 or 4",
            ));
        }
    };
    let axes = AttrValue::ints(order.iter().copied());
    cx.call(PERMUTE_DIMS, &[e], Attrs::default().with("axes", axes))
}

/// Emits a transpose of `kt`, the right operand of the matmul that computes the scores, to obtain the keys. This is done only if
/// the queries are also transposed, as in attention over images. Otherwise the matmul reads `kt` in place, which is cheaper for
/// few queries.
fn transpose_keys(cx: &mut RewriteCx<'_>, q: Expr, kt: Expr) -> Option<Source> {
    let rank = cx.func.ty(q).dims()?.len();
    defining_operands(cx, q, PERMUTE_DIMS)?;
    if !swaps_last_two(&permute_axes(&defining_attrs(cx, q)?, rank)?) {
        return None;
    }
    let keys = swap_last_two(cx, kt).ok()?;
    let tensor = cx.emit(keys);
    let layout = if rank == 3 { Layout::SingleHead } else { Layout::Heads };
    Some(Source { tensor, layout })
}

/// Matches the attention whose last operator is a matmul of softmax weights and values. `out` contains the dims of the result of
/// this matmul.
fn match_attention(
    cx: &mut RewriteCx<'_>,
    read_counts: &ReadCounts,
    (weights, v): (Expr, Expr),
    out: &[Sym],
) -> Result<Attention, KeepReason> {
    let (weights, zero_guard) = guarded_softmax(cx, read_counts, weights)?;
    let softmax = defining_attrs(cx, weights).ok_or(KeepReason::NotApplicable)?;
    let operands = defining_operands(cx, weights, SOFTMAX).ok_or(KeepReason::NotApplicable)?;
    let softmax_input = operands[0];
    let dims = cx.func.ty(softmax_input).dims().map(<[_]>::to_vec);
    let dims = dims.ok_or("the dims of the scores are unknown")?;
    let axis = softmax.get("axis").and_then(AttrValue::as_int).unwrap_or(-1);
    if axis != -1 && axis != dims.len() as i64 - 1 {
        return Err(
            "the attention kernel requires a softmax over the last axis, but the softmax is over another axis".into(),
        );
    }
    let Some(mut matched) = match_scores(cx, softmax_input, &dims) else {
        return Err(scores_problem(cx, softmax_input).into());
    };
    let fully_masked_result = zero_guard
        .fully_masked_result(cx, &matched)
        .ok_or("softmax weights are replaced by zeros under a condition that does not test for fully masked queries")?;
    let Some(&[q, kt]) = defining_operands(cx, matched.product, MATMUL).as_deref() else {
        return Err(KeepReason::NotApplicable);
    };
    let (q, kt) =
        (strip_factors(cx, q, &mut matched.scale), strip_factors(cx, kt, &mut matched.scale));
    let floats = [q, kt, v, softmax_input].iter().all(|&e| is_float(cx.func, e));
    if !floats || !all_float32(cx.func, &[matched.product]) {
        return Err(NOT_FLOAT32.into());
    }
    check_sizes(cx.func, [q, kt, v], out, &dims)?;
    let k = match transposed_keys(cx, kt, &mut matched.scale) {
        Some(k) => k,
        None => transpose_keys(cx, q, kt)
            .ok_or("the right operand of the matmul with the queries is not a transpose of keys")?,
    };
    let v_source = source_of(cx, v).ok_or(UNKNOWN_DIMS)?;
    let [k, v_source] = shared_heads(cx, [k, v_source]).unwrap_or([k, v_source]);
    let bias_dims = match matched.bias {
        Some((bias, _)) => bias_dims(cx.func, bias, &dims)?,
        None => Vec::new(),
    };
    let mask = match matched.mask {
        Some(mask) => {
            let all = mask.conditions.iter().map(|c| broadcast_dims(cx.func, c.tensor, &dims));
            let all = all
                .collect::<Option<Vec<_>>>()
                .ok_or("a dim of the mask is neither 1 nor known to equal the dim of the scores")?;
            Some((mask, union_dims(&all)))
        }
        None => None,
    };
    Ok(Attention {
        sources: [source_of(cx, q).ok_or(UNKNOWN_DIMS)?, k, v_source],
        bias: matched.bias.map(|(bias, _)| bias),
        bias_rounding: matched.bias.and_then(|(_, rounding)| rounding),
        bias_dims,
        mask,
        scale: Some(matched.scale),
        cap: matched.cap,
        causal: matched.causal,
        window: matched.window,
        heads_before_rows: dims.len() == 4,
        fully_masked_result,
    })
}

/// Combines the flags of several tensors that broadcast to each other. A flag of the result is set if the dim has the size of the
/// scores in any of the tensors. Dims are counted from the last.
fn union_dims(dims: &[Vec<bool>]) -> Vec<bool> {
    let rank = dims.iter().map(Vec::len).max().unwrap_or(0);
    (0..rank).map(|at| dims.iter().any(|tensor_dims| tensor_dims.get(at) == Some(&true))).collect()
}

/// Matches a call of an operator that computes a whole attention, such as `R.nn.attention`.
///
/// # Errors
/// The reason why no kernel call replaces the operator call.
pub(super) fn match_operator_call(
    cx: &mut RewriteCx<'_>,
    root: Expr,
) -> Result<Attention, KeepReason> {
    let args = defining_operands(cx, root, ATTENTION)
        .or_else(|| defining_operands(cx, root, ATTENTION_BIAS))
        .ok_or(KeepReason::NotApplicable)?;
    let &[q, k, v, ..] = &args[..] else { return Err(KeepReason::NotApplicable) };
    let bias = args.get(3).copied().filter(|&e| !is_absent(cx.func, e));
    if !all_float32(cx.func, &[q, k, v, root]) {
        return Err(NOT_FLOAT32.into());
    }
    let [of_q, of_k, of_v] = operand_dims(cx.func, [q, k, v])?;
    if [of_q, of_k, of_v].iter().any(|d| d.len() != 4) {
        return Err("the queries, keys and values of attention must each have 4 dims".into());
    }
    let same_batch =
        of_q[0] == of_k[0] && of_k[0] == of_v[0] && of_q[3] == of_k[3] && of_k[1..3] == of_v[1..3];
    let count = |s: Sym| cx.func.syms.as_int(s);
    let heads_are_grouped = match (count(of_q[2]), count(of_k[2])) {
        (Some(own), Some(shared)) => shared > 0 && own % shared == 0,
        _ => of_q[2] == of_k[2],
    };
    if !same_batch || !heads_are_grouped {
        return Err(UNKNOWN_SIZES.into());
    }
    let scores = [of_q[0], of_q[2], of_q[1], of_k[1]];
    let bias_dims = match bias {
        Some(bias) => bias_dims(cx.func, bias, &scores)?,
        None => Vec::new(),
    };
    let attrs = defining_attrs(cx, root).ok_or(KeepReason::NotApplicable)?;
    let attr_value = |key: &str| attrs.get(key).filter(|v| !v.is_none());
    let (queries, keys) = (scores[2], scores[3]);
    let causal = match attr_value("causal_mask").map(|v| v.as_str()) {
        None => None,
        Some(Some("TopLeft")) => Some(cx.func.syms.int(0)),
        Some(Some("BottomRight")) => Some(cx.func.syms.sub(keys, queries)),
        Some(_) => {
            return Err("the attribute 'causal_mask' must be \"TopLeft\" or \"BottomRight\"".into());
        }
    };
    let window = match attr_value("window_size") {
        Some(v) => v
            .as_int()
            .filter(|&w| w > 0 && w < 1 << 30)
            .ok_or("the kernel does not support this value of `window_size`")?,
        None => 0,
    };
    let scale = match attr_value("scale") {
        Some(v) => Some(v.as_float().ok_or("the attribute `scale` is not a float")?),
        None => None,
    };
    let sources = [q, k, v].map(|tensor| Source { tensor, layout: Layout::Tokens });
    let heads_before_rows = false;
    Ok(Attention {
        sources,
        bias,
        bias_rounding: None,
        bias_dims,
        mask: None,
        scale,
        cap: 0.0,
        causal,
        window,
        heads_before_rows,
        fully_masked_result: FullyMaskedResult::Zeros,
    })
}

fn all_float32(func: &Function, list: &[Expr]) -> bool {
    list.iter().all(|&e| func.ty(e).dtype() == Some(DType::Float32))
}

/// Returns the dims of queries, keys and values. If some dims are unknown, returns an error: the reason why no kernel call replaces
/// the attention.
fn operand_dims(func: &Function, operands: [Expr; 3]) -> Result<[&[Sym]; 3], &'static str> {
    let [q, k, v] = operands.map(|e| func.ty(e).dims().ok_or(UNKNOWN_DIMS));
    Ok([q?, k?, v?])
}

/// Checks that the sizes of queries, transposed keys, values, results (`out`) and scores provably match. The error is the reason
/// why no kernel call replaces the attention.
fn check_sizes(
    func: &Function,
    operands: [Expr; 3],
    out: &[Sym],
    scores: &[Sym],
) -> Result<(), &'static str> {
    let [q, kt, v] = operand_dims(func, operands)?;
    let rank = scores.len();
    if !(3..=4).contains(&rank) || [q, kt, v, out].iter().any(|d| d.len() != rank) {
        return Err(OTHER_RANK);
    }
    let batch_rank = rank - 2;
    let same_batch = [q, kt, v, out].iter().all(|d| d[..batch_rank] == scores[..batch_rank]);
    let (rows, keys) = (scores[batch_rank], scores[batch_rank + 1]);
    let sizes_match = q[batch_rank] == rows
        && q[batch_rank + 1] == kt[batch_rank]
        && kt[batch_rank + 1] == keys
        && v[batch_rank] == keys
        && out[batch_rank] == rows
        && out[batch_rank + 1] == v[batch_rank + 1];
    if same_batch && sizes_match { Ok(()) } else { Err(UNKNOWN_SIZES) }
}

/// Returns, for each dim of a bias, counted from the last, whether its size is that of the scores; otherwise its size
/// is 1. Fails if the bias is not a float tensor, or if a size is not known to be that of the scores or 1.
fn bias_dims(func: &Function, bias: Expr, scores: &[Sym]) -> Result<Vec<bool>, &'static str> {
    if !is_float(func, bias) {
        return Err("the bias of attention must be a float tensor");
    }
    broadcast_dims(func, bias, scores)
        .ok_or("a dim of the bias is neither 1 nor known to equal the dim of the scores")
}

/// Returns, for each dim of a bias or mask, counted from the last, whether its size is that of the scores; otherwise
/// its size is 1. `None` if a size is not known to be that of the scores or 1.
fn broadcast_dims(func: &Function, e: Expr, scores: &[Sym]) -> Option<Vec<bool>> {
    let dims = func.ty(e).dims()?;
    if dims.len() > scores.len() {
        return None;
    }
    let pairs = dims.iter().rev().zip(scores.iter().rev());
    pairs
        .map(|(&dims, &score_dim)| match func.syms.as_int(dims) {
            _ if dims == score_dim => Some(true),
            Some(1) => Some(false),
            _ => None,
        })
        .collect()
}

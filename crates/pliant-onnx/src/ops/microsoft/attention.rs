//! Converters of Microsoft's `Attention`, `MultiHeadAttention` and `RotaryEmbedding`.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_ops::size_proofs;
use pliant_sym::Sym;

use super::op;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::ops::OnnxOp;
use crate::ops::nn::attention::{
    Masks, apply_rotary, attention_scale, merge_heads, qkv_rank_problem, query_key_distances,
    repeat_kv_heads, reshape_per_batch, rotary_angles, softcap, split_heads,
};
use crate::unsupported_features::UnsupportedFeatures;

pub(super) static OPS: &[OnnxOp] = &[
    op("Attention", attention),
    op("MultiHeadAttention", multi_head_attention),
    op("RotaryEmbedding", rotary_embedding),
];

/// Reads a required attribute that is a number of heads.
pub(super) fn head_count(n: &mut Node<'_, '_>, name: &str) -> Result<Sym, Problem> {
    let count = n.attrs().int(name)?.filter(|&h| h > 0);
    let count = count.ok_or_else(|| {
        Problem::attribute(format!("attribute '{name}' must be present and positive"))
    })?;
    Ok(n.func().syms.int(count))
}

/// Emits scaled dot-product attention. Queries, keys and values are `(batch, heads, length, size)`;
/// the result is `(batch, length, heads * size)`.
pub(super) fn attention_product(
    n: &mut Node<'_, '_>,
    qkv: [Expr; 3],
    masks: &Masks,
    cap: f64,
) -> ExprResult {
    let [q, k, v] = qkv;
    let (dims, dtype) = (n.dims_with_min_rank(q, 4)?, n.dtype(q)?);
    let scale = n.attrs().float("scale")?.filter(|&s| s != 0.0);
    let scale = attention_scale(n, scale, dims[3], dtype)?;
    let q = n.op("relax.multiply", &[q, scale])?;
    let (k, v) = (repeat_kv_heads(n, k, dims[1])?, repeat_kv_heads(n, v, dims[1])?);
    let k = n.permute(k, &[0, 1, 3, 2])?;
    let scores = n.op("relax.matmul", &[q, k])?;
    let mut scores = softcap(n, scores, cap)?;
    if let Some(bias) = masks.bias(n, dtype)? {
        scores = n.op("relax.add", &[scores, bias])?;
    }
    let weights = n.op_with("relax.nn.softmax", &[scores], ints_attr("axis", -1))?;
    let y = n.op("relax.matmul", &[weights, v])?;
    merge_heads(n, y)
}

/// Adds a key mask to the score biases. The mask contains zeros and ones, the end position of each sequence, or the end and
/// start positions of each sequence. Masked keys get a finite bias, the attribute `mask_filter_value`, so that a row without
/// allowed keys keeps its relative weights.
fn add_key_mask(
    n: &mut Node<'_, '_>,
    masks: &mut Masks,
    mask: Expr,
    (batch, keys): (Sym, Sym),
) -> Result<(), Problem> {
    let dims = n.dims(mask)?;
    let one = n.func().syms.int(1);
    let zero_scalar = n.scalar(0i64)?;
    let mask = n.cast(mask, DType::Int64)?;
    let allowed = match dims.as_slice() {
        [count] => {
            let positions = n.iota(keys)?;
            let (zero, twice) = (n.func().syms.int(0), n.func().syms.add(batch, batch));
            let both = size_proofs::equal(n.func(), *count, twice) == Some(true);
            if !both {
                let text = "the mask of rank 1 has {} elements, but the batch has {} sequences";
                n.require_equal(*count, batch, text)?;
            }
            let ends = n.slice_axis(mask, 0, zero, batch)?;
            let ends = reshape_per_batch(n, ends)?;
            let before_end = n.op("relax.less", &[positions, ends])?;
            if both {
                let starts = n.slice_axis(mask, 0, batch, twice)?;
                let starts = reshape_per_batch(n, starts)?;
                let after_start = n.op("relax.greater_equal", &[positions, starts])?;
                n.op("relax.logical_and", &[before_end, after_start])?
            } else {
                before_end
            }
        }
        [b, k] => {
            let wide = n.reshape(mask, &[*b, one, one, *k])?;
            n.op("relax.greater", &[wide, zero_scalar])?
        }
        [b, q, k] => {
            let wide = n.reshape(mask, &[*b, one, *q, *k])?;
            n.op("relax.greater", &[wide, zero_scalar])?
        }
        _ => {
            let rank = dims.len();
            let text = format!("a mask of {rank} dims is not supported; 1, 2 and 3 dims are");
            return Err(Problem::unsupported(text));
        }
    };
    let filter_value = n.attrs().float("mask_filter_value")?.unwrap_or(-10000.0);
    let (zero, filter_value) = (n.scalar(0f32)?, n.scalar(filter_value as f32)?);
    let mut added = n.op("relax.where", &[allowed, zero, filter_value])?;
    if let Some(other) = masks.added {
        let other = n.cast(other, DType::Float32)?;
        added = n.op("relax.add", &[added, other])?;
    }
    masks.added = Some(added);
    Ok(())
}

/// Reads inputs `k` and `v` of the node, the keys and values of earlier tokens. `None` if both inputs are absent. Rejects a node
/// that has only one of them.
pub(super) fn past_keys_values(
    n: &mut Node<'_, '_>,
    [k, v]: [usize; 2],
) -> Result<Option<(Expr, Expr)>, Problem> {
    match (n.optional_tensor(k)?, n.optional_tensor(v)?) {
        (Some(k), Some(v)) => Ok(Some((k, v))),
        (None, None) => Ok(None),
        _ => Err(Problem::invalid(format!(
            "past keys and values (inputs {k} and {v}) must both be present or both be absent"
        ))),
    }
}

/// Restricts `masks` to causal attention: a query attends only to the keys up to its own position. The first query follows `past`
/// earlier keys. Returns the differences between the positions of queries and keys.
pub(super) fn causal_mask(
    n: &mut Node<'_, '_>,
    masks: &mut Masks,
    (queries, keys): (Sym, Sym),
    past: Option<Sym>,
) -> ExprResult {
    let first = match past {
        Some(past) => Some(n.size_scalar(past)?),
        None => None,
    };
    let distance = query_key_distances(n, queries, keys, first)?;
    let zero = n.scalar(0i64)?;
    let allowed = n.op("relax.greater_equal", &[distance, zero])?;
    masks.allow(n, allowed)?;
    Ok(distance)
}

/// Converts `Attention`, which includes the projection of the input to queries, keys and values.
fn attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let count = head_count(n, "num_heads")?;
    let (x, weights) = (n.tensor(0)?, n.tensor(1)?);
    UnsupportedFeatures::default()
        .input(n, 6, "past_sequence_length")
        .int(n, "past_present_share_buffer", &[0])?
        .int(n, "do_rotary", &[0])?
        .into_result(
            "rotary positions must be a separate node, and 'present' must be 'past' followed by the new keys",
        )?;
    let mut all = n.op("relax.matmul", &[x, weights])?;
    if let Some(bias) = n.optional_tensor(2)? {
        all = n.op("relax.add", &[all, bias])?;
    }
    let whole = n.dims_with_min_rank(weights, 2)?[1];
    let sizes: Vec<Sym> = match n.attrs().ints("qkv_hidden_sizes")? {
        Some(sizes) => sizes.iter().map(|&s| n.func().syms.int(s)).collect(),
        None => {
            let three = n.func().syms.int(3);
            vec![n.func().syms.floordiv(whole, three); 3]
        }
    };
    let sum = sizes.iter().copied().reduce(|a, b| n.func().syms.add(a, b));
    if let Some(sum) = sum {
        let text =
            "the weights (input 1) have {} columns, but queries, keys and values together need {}";
        n.require_equal(whole, sum, text)?;
    }
    let mut qkv = Vec::with_capacity(3);
    let mut from = n.func().syms.int(0);
    for size in sizes {
        let to = n.func().syms.add(from, size);
        let part = n.slice_axis(all, 2, from, to)?;
        qkv.push(split_heads(n, part, count)?);
        from = to;
    }
    let [q, mut k, mut v] = qkv[..] else {
        let text =
            format!("attribute 'qkv_hidden_sizes' must have 3 numbers, but has {}", qkv.len());
        return Err(Problem::attribute(text));
    };
    let mut past = None;
    let mut present = Value::Absent;
    if let Some(both) = n.optional_tensor(4)? {
        // The input holds past keys and values as (2, batch, heads, length, size).
        let dims = n.dims_with_min_rank(both, 5)?;
        let [zero, one, two] = [0, 1, 2].map(|v| n.func().syms.int(v));
        let (old_k, old_v) = (n.slice_axis(both, 0, zero, one)?, n.slice_axis(both, 0, one, two)?);
        let (old_k, old_v) = (n.reshape(old_k, &dims[1..])?, n.reshape(old_v, &dims[1..])?);
        (k, v) = (n.concat(&[old_k, k], 2)?, n.concat(&[old_v, v], 2)?);
        past = Some(dims[3]);
    }
    if n.proto.output.get(1).is_some_and(|o| !o.is_empty()) {
        let mut parts = Vec::with_capacity(2);
        for part in [k, v] {
            let mut dims = n.dims(part)?;
            dims.insert(0, n.func().syms.int(1));
            parts.push(n.reshape(part, &dims)?);
        }
        present = n.concat(&parts, 0)?.into();
    }
    let (batch, queries, keys) = (n.dims(q)?[0], n.dims(q)?[2], n.dims(k)?[2]);
    let mut masks = Masks { added: n.optional_tensor(5)?, allowed: None };
    if let Some(mask) = n.optional_tensor(3)? {
        add_key_mask(n, &mut masks, mask, (batch, keys))?;
    }
    if n.attrs().int("unidirectional")?.unwrap_or(0) != 0 {
        causal_mask(n, &mut masks, (queries, keys), past)?;
    }
    Ok(vec![attention_product(n, [q, k, v], &masks, 0.0)?.into(), present])
}

fn multi_head_attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let count = head_count(n, "num_heads")?;
    let mut q = n.tensor(0)?;
    let (Some(mut k), Some(mut v)) = (n.optional_tensor(1)?, n.optional_tensor(2)?) else {
        return Err(Problem::unsupported(
            "queries, keys and values packed in one tensor are not supported",
        )
        .with_help("pass keys as input 1 and values as input 2"));
    };
    UnsupportedFeatures::default()
        .input(n, 8, "past_sequence_length")
        .input(n, 9, "cache_indirection")
        .output(n, 3, "qk")
        .into_result(
            "the node must append the new keys to the cache, use a single beam, and not output the attention weights",
        )?;
    if let Some(bias) = n.optional_tensor(3)? {
        add_packed_bias(n, bias, [&mut q, &mut k, &mut v])?;
    }
    let q = split_heads(n, q, count)?;
    // For cross attention, keys and values may already be split into heads.
    let split = |n: &mut Node<'_, '_>, x: Expr| match n.rank(x)? {
        4 => Ok(x),
        _ => split_heads(n, x, count),
    };
    let (mut k, mut v): (Expr, Expr) = (split(n, k)?, split(n, v)?);
    let mut past = None;
    if let Some((old_k, old_v)) = past_keys_values(n, [6, 7])? {
        past = Some(n.dims_with_min_rank(old_k, 3)?[2]);
        (k, v) = (n.concat(&[old_k, k], 2)?, n.concat(&[old_v, v], 2)?);
    }
    let (batch, queries, keys) = (n.dims(q)?[0], n.dims(q)?[2], n.dims(k)?[2]);
    let mut masks = Masks { added: n.optional_tensor(5)?, allowed: None };
    if let Some(mask) = n.optional_tensor(4)? {
        add_key_mask(n, &mut masks, mask, (batch, keys))?;
    }
    if n.attrs().int("unidirectional")?.unwrap_or(0) != 0 {
        let positions_known =
            past.is_some() || size_proofs::equal(n.func(), queries, keys) == Some(true);
        let mut unsupported = UnsupportedFeatures::default();
        if !positions_known {
            unsupported = unsupported.add(
                "unidirectional=1 with a number of keys that may differ from that of the queries",
            );
        }
        unsupported.into_result("a causal mask needs past keys, or as many keys as queries")?;
        causal_mask(n, &mut masks, (queries, keys), past)?;
    }
    let y = attention_product(n, [q, k, v], &masks, 0.0)?;
    Ok(vec![y.into(), k.into(), v.into()])
}

/// Adds a packed bias vector, split into three parts, to queries, keys and values. Keys and values
/// that are already split into heads get no bias.
fn add_packed_bias(n: &mut Node<'_, '_>, bias: Expr, parts: [&mut Expr; 3]) -> Result<(), Problem> {
    let mut ends = vec![n.func().syms.int(0)];
    for part in &parts {
        let width = match n.dims(**part)?.as_slice() {
            [_, heads, _, size] => n.func().syms.mul(*heads, *size),
            [_, _, width] => *width,
            dims => return Err(qkv_rank_problem(dims.len())),
        };
        ends.push(n.func().syms.add(ends[ends.len() - 1], width));
    }
    let bias_part = n.dims_with_min_rank(bias, 1)?[0];
    let text = "the bias (input 3) has {} elements, but queries, keys and values together need {}";
    n.require_equal(bias_part, ends[3], text)?;
    for (part, bounds) in parts.into_iter().zip(ends.windows(2)) {
        if n.rank(*part)? == 3 {
            let bias_part = n.slice_axis(bias, 0, bounds[0], bounds[1])?;
            *part = n.op("relax.add", &[*part, bias_part])?;
        }
    }
    Ok(())
}

fn rotary_embedding(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let mut unsupported = UnsupportedFeatures::default().int(n, "is_packed_batching", &[0])?;
    if let Some(scale) = attrs.float("scale")?.filter(|&s| s != 1.0) {
        unsupported = unsupported.add(format!("scale={scale}"));
    }
    unsupported.into_result("sequences must not be packed, and positions must not be scaled")?;
    let interleaved = attrs.int("interleaved")?.unwrap_or(0) != 0;
    let (num_heads, width) =
        (attrs.int("num_heads")?.unwrap_or(0), attrs.int("rotary_embedding_dim")?.unwrap_or(0));
    let [x, positions, cos, sin] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.tensor(3)?];
    let dims = n.dims_with_min_rank(x, 2)?;
    // A single position is that of the first token in each sequence.
    let length = if dims.len() == 4 { dims[2] } else { dims[1] };
    let positions = match n.rank(positions)? {
        1 => {
            let first = n.reshape_to_scalar(positions)?;
            let first = n.cast(first, DType::Int64)?;
            let indices = n.iota(length)?;
            n.op("relax.add", &[indices, first])?
        }
        _ => positions,
    };
    let heads_dim = if dims.len() == 4 { 1 } else { 2 };
    let [cos, sin] = [cos, sin].map(|cache| rotary_angles(n, cache, Some(positions), heads_dim));
    let (cos, sin) = (cos?, sin?);
    let split = match dims.as_slice() {
        [b, l, hidden] => {
            let half = *n.dims(cos)?.last().ok_or_else(|| {
                Problem::invalid("the cosine cache (input 2) must not be a scalar")
            })?;
            let syms = &mut n.func().syms;
            let (size, heads) = if num_heads > 0 && width > 0 {
                let heads = syms.int(num_heads);
                (syms.floordiv(*hidden, heads), heads)
            } else {
                let two = syms.int(2);
                let size = syms.mul(half, two);
                (size, syms.floordiv(*hidden, size))
            };
            n.reshape(x, &[*b, *l, heads, size])?
        }
        [_, _, _, _] => x,
        _ => {
            let text = format!("the input must have 3 or 4 dims, but has {}", dims.len());
            return Err(Problem::invalid(text));
        }
    };
    let y = apply_rotary(n, split, (cos, sin), interleaved)?;
    Ok(vec![n.reshape(y, &dims)?.into()])
}

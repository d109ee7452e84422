//! Converter of `GroupQueryAttention`, the attention operator that language models use to generate token by token.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_ops::size_proofs;
use pliant_sym::Sym;

use super::attention::{attention_product, causal_mask, head_count, past_keys_values};
use super::op;
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::OnnxOp;
use crate::ops::nn::attention::{
    Masks, apply_rotary, reshape_per_batch, rotary_angles, split_heads,
};
use crate::unsupported_features::UnsupportedFeatures;

pub(super) static OPS: &[OnnxOp] = &[op("GroupQueryAttention", group_query_attention)];

/// Reports the unsupported features that the node uses.
fn check_supported(n: &Node<'_, '_>) -> Result<(), Problem> {
    let mut all = UnsupportedFeatures::default();
    let inputs =
        ["head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"];
    for (i, name) in (11..).zip(inputs) {
        all = all.input(n, i, name);
    }
    all.output(n, 3, "output_qk")
        .int(n, "causal", &[1])?
        // ONNX Runtime treats all values except 1 as off.
        .int(n, "smooth_softmax", &[-1, 0])?
        .int(n, "sliding_window_cache", &[0])?
        .int(n, "qk_output", &[0])?
        .str(n, "k_quant_type", "NONE")?
        .str(n, "v_quant_type", "NONE")?
        .into_result(
            "the attention weights must be a causal softmax over the keys only, and the cache must be floating-point and grow",
        )
}

/// The positions of the new tokens in their sequences, from the input `position_ids`, or computed from the length of the
/// past if this input is absent. For a prompt, ONNX Runtime reads only the first element of `position_ids`.
fn token_positions(n: &mut Node<'_, '_>, length: Sym, past: Option<Sym>) -> ExprResult {
    let zero = n.func().syms.int(0);
    let past = past.unwrap_or(zero);
    let positions = n.iota(length)?;
    let Some(position_ids) = n.optional_tensor(9)? else {
        let first = n.size_scalar(past)?;
        return n.op("relax.add", &[positions, first]);
    };
    let position_ids = n.cast(position_ids, DType::Int64)?;
    let prompt = size_proofs::equal(n.func(), past, zero);
    if prompt == Some(false) {
        return Ok(position_ids);
    }
    let (mut first, one) = (position_ids, n.func().syms.int(1));
    for axis in 0..n.rank(position_ids)? {
        first = n.slice_axis(first, axis, zero, one)?;
    }
    // The sum handles an empty tensor, which has no first element.
    let first = n.op("relax.sum", &[first])?;
    let consecutive = n.op("relax.add", &[positions, first])?;
    if prompt == Some(true) {
        return Ok(consecutive);
    }
    let (past, zero_scalar) = (n.size_scalar(past)?, n.scalar(0i64)?);
    let prompt = n.op("relax.equal", &[past, zero_scalar])?;
    n.op("relax.where", &[prompt, consecutive, position_ids])
}

/// Emits a run-time check of the sequence lengths against the number of keys (past and new). If there are past keys, every
/// sequence length must equal the number of keys. A prompt, which has no past keys, may contain shorter sequences.
fn check_sequence_ends(
    n: &mut Node<'_, '_>,
    last_positions: Expr,
    keys: Sym,
    past: Option<Sym>,
) -> Result<(), Problem> {
    let one = n.scalar(1i64)?;
    let (ends, keys) = (n.op("relax.add", &[last_positions, one])?, n.size_scalar(keys)?);
    let mut holds = n.op("relax.less_equal", &[ends, keys])?;
    let zero = n.func().syms.int(0);
    let prompt = past.map(|past| (past, size_proofs::equal(n.func(), past, zero)));
    if let Some((past, prompt)) = prompt.filter(|(_, prompt)| *prompt != Some(true)) {
        let mut full = n.op("relax.equal", &[ends, keys])?;
        if prompt.is_none() {
            let (past, zero) = (n.size_scalar(past)?, n.scalar(0i64)?);
            let first = n.op("relax.equal", &[past, zero])?;
            full = n.op("relax.logical_or", &[full, first])?;
        }
        holds = n.op("relax.logical_and", &[holds, full])?;
    }
    let text = "the sequences end at different positions: seqlens_k + 1 must be {}, the number of past and new keys together, \
                for each sequence (only a prompt, without past keys, may be shorter)";
    n.require(holds, text, &[keys])
}

/// Converts `GroupQueryAttention`, in which several query heads share a key and value head. Rotary positions are optional, and the
/// cache grows by the new keys.
fn group_query_attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let (count, kv_count) = (head_count(n, "num_heads")?, head_count(n, "kv_num_heads")?);
    let attrs = n.attrs();
    let cap = attrs.float("softcap")?.unwrap_or(0.0);
    let window = attrs.int("local_window_size")?.unwrap_or(-1);
    let rotary = attrs.int("do_rotary")?.unwrap_or(0) != 0;
    let interleaved = attrs.int("rotary_interleaved")?.unwrap_or(0) != 0;
    check_supported(n)?;
    let [q, k, v] = queries_keys_values(n, count, kv_count)?;
    let mut qkv = [(q, count), (k, kv_count), (v, kv_count)];
    let dims = n.dims_with_min_rank(q, 2)?;
    let length = dims[1];
    let past_kv = past_keys_values(n, [3, 4])?;
    let past = match past_kv {
        Some((past_kv, _)) => Some(n.dims_with_min_rank(past_kv, 3)?[2]),
        None => None,
    };
    if rotary {
        let positions = token_positions(n, length, past)?;
        let (cos, sin) = (n.tensor(7)?, n.tensor(8)?);
        let angles = (
            rotary_angles(n, cos, Some(positions), 2)?,
            rotary_angles(n, sin, Some(positions), 2)?,
        );
        for (x, heads) in &mut qkv[..2] {
            let hidden = n.dims_with_min_rank(*x, 3)?;
            let size = n.func().syms.floordiv(hidden[2], *heads);
            let split = n.reshape(*x, &[hidden[0], hidden[1], *heads, size])?;
            let rotated = apply_rotary(n, split, angles, interleaved)?;
            *x = n.reshape(rotated, &hidden)?;
        }
    }
    let mut split = Vec::with_capacity(3);
    for (x, heads) in qkv {
        split.push(split_heads(n, x, heads)?);
    }
    let (q, mut k, mut v) = (split[0], split[1], split[2]);
    if let Some((old_k, old_v)) = past_kv {
        (k, v) = (n.concat(&[old_k, k], 2)?, n.concat(&[old_v, v], 2)?);
    }
    let keys = n.dims(k)?[2];
    let mut masks = Masks { added: n.optional_tensor(10)?, allowed: None };
    let distance = causal_mask(n, &mut masks, (length, keys), past)?;
    if window > 0 {
        let max = n.scalar(window)?;
        let in_window = n.op("relax.less", &[distance, max])?;
        masks.allow(n, in_window)?;
    }
    if let Some(last_positions) = n.optional_tensor(5)? {
        let (last_positions, positions) = (reshape_per_batch(n, last_positions)?, n.iota(keys)?);
        check_sequence_ends(n, last_positions, keys, past)?;
        let in_sequence = n.op("relax.less_equal", &[positions, last_positions])?;
        masks.allow(n, in_sequence)?;
    }
    let mut y = attention_product(n, [q, k, v], &masks, cap)?;
    if window == 0 {
        // The window contains no key.
        let (dims, dtype) = (n.dims(y)?, n.dtype(y)?);
        let zero = n.scalar_as(0.0, dtype)?;
        y = n.full(&dims, zero)?;
    }
    Ok(vec![y.into(), k.into(), v.into()])
}

/// Reads the queries, keys and values, which are three inputs, or packed in the first input.
fn queries_keys_values(
    n: &mut Node<'_, '_>,
    count: Sym,
    kv_count: Sym,
) -> Result<[Expr; 3], Problem> {
    let q = n.tensor(0)?;
    if let (Some(k), Some(v)) = (n.optional_tensor(1)?, n.optional_tensor(2)?) {
        return Ok([q, k, v]);
    }
    let whole = n.dims_with_min_rank(q, 3)?[2];
    let syms = &mut n.func().syms;
    let two = syms.int(2);
    let shared = syms.mul(kv_count, two);
    let all = syms.add(count, shared);
    let size = syms.floordiv(whole, all);
    let (zero, q_end, k_size) = (syms.int(0), syms.mul(count, size), syms.mul(kv_count, size));
    let k_end = syms.add(q_end, k_size);
    let v_end = syms.add(k_end, k_size);
    n.require_equal(
        whole,
        v_end,
        "the packed queries, keys and values (input 0) have {} columns, but their heads need {}",
    )?;
    Ok([
        n.slice_axis(q, 2, zero, q_end)?,
        n.slice_axis(q, 2, q_end, k_end)?,
        n.slice_axis(q, 2, k_end, v_end)?,
    ])
}

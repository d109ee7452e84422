//! Converters of attention operators, and helpers for their parts: heads, masks, key-value caches
//! and rotary positions.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::super::loops::convert_body;
use super::super::quantization::repeat_along;
use super::normalization::to_common_type;
use super::pad::pad_axis;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("Attention", attention),
    OnnxOp { domain: "ai.onnx.preview", name: "FlexAttention", convert: flex_attention },
    op("RotaryEmbedding", rotary_embedding),
];

// ---- heads ----

/// Creates the problem that a query, key or value has a wrong number of dims.
pub(in crate::ops) fn qkv_rank_problem(rank: usize) -> Problem {
    Problem::invalid(format!(
        "the queries, the keys and the values must have 3 or 4 dims each, but one of these inputs has {rank}"
    ))
}

/// Reshapes `(batch, length, heads * size)` to `(batch, heads, length, size)`.
pub(in crate::ops) fn split_heads(n: &mut Node<'_, '_>, x: Expr, heads: Sym) -> ExprResult {
    let dims = n.dims(x)?;
    let [batch, length, hidden] = dims.as_slice() else {
        return Err(qkv_rank_problem(dims.len()));
    };
    let size = n.func().syms.floordiv(*hidden, heads);
    let split = n.reshape(x, &[*batch, *length, heads, size])?;
    n.permute(split, &[0, 2, 1, 3])
}

/// Reshapes `(batch, heads, length, size)` to `(batch, length, heads * size)`.
pub(in crate::ops) fn merge_heads(n: &mut Node<'_, '_>, x: Expr) -> ExprResult {
    let dims = n.dims_with_min_rank(x, 4)?;
    let hidden = n.func().syms.mul(dims[1], dims[3]);
    let y = n.permute(x, &[0, 2, 1, 3])?;
    n.reshape(y, &[dims[0], dims[2], hidden])
}

/// Repeats the heads of keys or values, so that there is one for each query head.
pub(in crate::ops) fn repeat_kv_heads(n: &mut Node<'_, '_>, x: Expr, heads: Sym) -> ExprResult {
    let kv_heads = n.dims_with_min_rank(x, 4)?[1];
    if kv_heads == heads {
        return Ok(x);
    }
    let count = n.func().syms.floordiv(heads, kv_heads);
    repeat_along(n, x, count, 1)
}

/// The factor for the attention scores, as a scalar. Default: `1 / sqrt(size)`.
pub(in crate::ops) fn attention_scale(
    n: &mut Node<'_, '_>,
    mask: Option<f64>,
    size: Sym,
    dtype: DType,
) -> ExprResult {
    if let Some(scale) = mask {
        return n.scalar_as(scale, dtype);
    }
    if let Some(size) = n.func().syms.as_int(size) {
        return n.scalar_as(1.0 / (size as f64).sqrt(), dtype);
    }
    let size = n.size_scalar(size)?;
    let size = n.cast(size, DType::Float32)?;
    let y = n.op("relax.rsqrt", &[size])?;
    n.cast(y, dtype)
}

// ---- masks ----

/// The masks of an attention node: a bias that is added to the scores of queries and keys, and a bool mask that is true for the
/// scores that are allowed.
#[derive(Default)]
pub(in crate::ops) struct Masks {
    pub added: Option<Expr>,
    pub allowed: Option<Expr>,
}

impl Masks {
    /// Restricts the allowed scores: a score stays allowed only if `allowed` is also true for it.
    pub fn allow(&mut self, n: &mut Node<'_, '_>, allowed: Expr) -> Result<(), Problem> {
        self.allowed = Some(match self.allowed {
            None => allowed,
            Some(before) => n.op("relax.logical_and", &[before, allowed])?,
        });
        Ok(())
    }

    /// Combines all masks into one bias, which is minus infinity for scores that are not allowed.
    pub fn bias(&self, n: &mut Node<'_, '_>, dtype: DType) -> Result<Option<Expr>, Problem> {
        let added = match self.added {
            Some(added) => Some(n.cast(added, dtype)?),
            None => None,
        };
        let Some(allowed) = self.allowed else { return Ok(added) };
        let added = match added {
            Some(added) => added,
            None => n.scalar_as(0.0, dtype)?,
        };
        let minus_infinity = n.scalar_as(f64::NEG_INFINITY, dtype)?;
        n.op("relax.where", &[allowed, added, minus_infinity]).map(Some)
    }
}

/// Computes the position of each query minus the position of each key, as a matrix `(queries, keys)`. `first` is the position of
/// the first query. Default: 0.
pub(in crate::ops) fn query_key_distances(
    n: &mut Node<'_, '_>,
    queries: Sym,
    keys: Sym,
    first: Option<Expr>,
) -> ExprResult {
    let (rows, columns) = (n.iota(queries)?, n.iota(keys)?);
    let (rows, columns) = (n.reshape_along(rows, 0, 2)?, n.reshape_along(columns, 1, 2)?);
    let distance = n.op("relax.subtract", &[rows, columns])?;
    match first {
        Some(first) => n.op("relax.add", &[distance, first]),
        None => Ok(distance),
    }
}

/// Reshapes a tensor with one integer per batch element to `(batch, 1, 1, 1)`, as int64.
pub(in crate::ops) fn reshape_per_batch(n: &mut Node<'_, '_>, x: Expr) -> ExprResult {
    let count = n.dims(x)?;
    let (batch, one) = (n.func().syms.product(count), n.func().syms.int(1));
    let x = n.reshape(x, &[batch, one, one, one])?;
    n.cast(x, DType::Int64)
}

/// Adds the mask input of the node to `masks`. This input may be shorter than the keys; the keys beyond its end are not allowed.
fn add_mask_input(n: &mut Node<'_, '_>, masks: &mut Masks, keys: Sym) -> Result<(), Problem> {
    let Some(mut mask) = n.optional_tensor(3)? else { return Ok(()) };
    let dtype = n.dtype(mask)?;
    let dims = n.dims(mask)?;
    let (mask_keys, zero) = (*dims.last().unwrap_or(&keys), n.func().syms.int(0));
    let numbers = (n.func().syms.as_int(mask_keys), n.func().syms.as_int(keys));
    let missing = match numbers {
        (Some(mask_keys), Some(keys)) => {
            (mask_keys < keys).then(|| n.func().syms.int(keys - mask_keys))
        }
        _ if dims.is_empty()
            || pliant_ops::size_proofs::equal(n.func(), mask_keys, keys) == Some(true) =>
        {
            None
        }
        _ => {
            let missing = n.func().syms.sub(keys, mask_keys);
            Some(n.func().syms.max(missing, zero))
        }
    };
    if let Some(missing) = missing {
        let minus_infinity = if dtype.is_bool() { 0.0 } else { f64::NEG_INFINITY };
        let value = n.scalar_as(minus_infinity, dtype)?;
        mask = pad_axis(n, mask, dims.len() - 1, (zero, missing), value)?;
    }
    match dtype.is_bool() {
        true => masks.allow(n, mask),
        false => {
            masks.added = Some(mask);
            Ok(())
        }
    }
}

/// Adds to `masks` the causal mask, the sliding windows, and the mask of keys beyond the valid length.
fn add_window_masks(
    n: &mut Node<'_, '_>,
    masks: &mut Masks,
    (queries, keys): (Sym, Sym),
    past: Option<Sym>,
) -> Result<(), Problem> {
    let attrs = n.attrs();
    let causal = attrs.int("is_causal")?.unwrap_or(0) != 0;
    let left = attrs.int("left_window_size")?.unwrap_or(-1);
    let right = attrs.int("right_window_size")?.unwrap_or(-1);
    let valid_keys = match n.optional_tensor(6)? {
        Some(valid_keys) => Some(reshape_per_batch(n, valid_keys)?),
        None => None,
    };
    if causal || left >= 0 || right >= 0 {
        let first = match (past, valid_keys) {
            (Some(past), _) => Some(n.size_scalar(past)?),
            (None, Some(valid_keys)) => {
                let length = n.size_scalar(queries)?;
                Some(n.op("relax.subtract", &[valid_keys, length])?)
            }
            (None, None) => None,
        };
        let distance = query_key_distances(n, queries, keys, first)?;
        if causal || right >= 0 {
            let ahead = match (causal, right) {
                (true, r) if r < 0 => 0,
                (true, r) => -(r.min(0)),
                (false, r) => -r,
            };
            let min_value = n.scalar(ahead)?;
            let allowed = n.op("relax.greater_equal", &[distance, min_value])?;
            masks.allow(n, allowed)?;
        }
        if left >= 0 {
            let max = n.scalar(left)?;
            let allowed = n.op("relax.less_equal", &[distance, max])?;
            masks.allow(n, allowed)?;
        }
    }
    if let Some(valid_keys) = valid_keys {
        let columns = n.iota(keys)?;
        let allowed = n.op("relax.less", &[columns, valid_keys])?;
        masks.allow(n, allowed)?;
    }
    Ok(())
}

// ---- attention ----

fn attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let heads = [attrs.int("q_num_heads")?, attrs.int("kv_num_heads")?];
    let scale = attrs.float("scale")?;
    let cap = attrs.float("softcap")?.unwrap_or(0.0);
    let mode = attrs.int("qk_matmul_output_mode")?.unwrap_or(0);
    let mut qkv = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let flat = n.rank(qkv[0])? == 3;
    if flat {
        for (i, x) in qkv.iter_mut().enumerate() {
            let count = heads[usize::from(i > 0)].filter(|&h| h > 0);
            let count = count.ok_or_else(|| {
                Problem::invalid(format!(
                    "input {i} has 3 dims, which requires positive attributes 'q_num_heads' and 'kv_num_heads'"
                ))
            })?;
            let count = n.func().syms.int(count);
            *x = split_heads(n, *x, count)?;
        }
    }
    let [q, mut k, mut v] = qkv;
    let past = match n.optional_tensor(4)? {
        Some(past_k) => {
            let past_v = n.tensor(5)?;
            let length = n.dims_with_min_rank(past_k, 4)?[2];
            (k, v) = (n.concat(&[past_k, k], 2)?, n.concat(&[past_v, v], 2)?);
            Some(length)
        }
        None => None,
    };
    let present = (k, v);
    let (dims, dtype) = (n.dims_with_min_rank(q, 4)?, n.dtype(q)?);
    let keys = n.dims_with_min_rank(k, 4)?[2];
    let (k, v) = (repeat_kv_heads(n, k, dims[1])?, repeat_kv_heads(n, v, dims[1])?);
    let mut masks = Masks::default();
    add_mask_input(n, &mut masks, keys)?;
    add_window_masks(n, &mut masks, (dims[2], keys), past)?;
    let bias = masks.bias(n, dtype)?;
    let scale = attention_scale(n, scale, dims[3], dtype)?;
    let sqrt_scale = n.op("relax.sqrt", &[scale])?;
    let (q, k) =
        (n.op("relax.multiply", &[q, sqrt_scale])?, n.op("relax.multiply", &[k, sqrt_scale])?);
    let k = n.permute(k, &[0, 1, 3, 2])?;
    let raw = n.op("relax.matmul", &[q, k])?;
    let capped = softcap(n, raw, cap)?;
    let biased = match bias {
        Some(bias) => n.op("relax.add", &[capped, bias])?,
        None => capped,
    };
    let weights = masked_softmax(n, biased, bias)?;
    // Values may have another dtype. The result has the dtype of the queries.
    let both = to_common_type(n, vec![weights, v])?;
    let y = n.op("relax.matmul", &both)?;
    let y = n.cast(y, dtype)?;
    let y = if flat { merge_heads(n, y)? } else { y };
    let qk_output = match mode {
        0 => raw,
        1 => capped,
        2 => biased,
        _ => weights,
    };
    Ok([y, present.0, present.1, qk_output].map(Value::from).to_vec())
}

/// Emits `cap * tanh(x / cap)`. Returns `x` if there is no cap.
pub(in crate::ops) fn softcap(n: &mut Node<'_, '_>, x: Expr, cap: f64) -> ExprResult {
    if cap <= 0.0 {
        return Ok(x);
    }
    let dtype = n.dtype(x)?;
    let cap = n.scalar_as(cap, dtype)?;
    let y = n.op("relax.divide", &[x, cap])?;
    let y = n.op("relax.tanh", &[y])?;
    n.op("relax.multiply", &[y, cap])
}

/// Emits the softmax of the scores, in the dtype that `softmax_precision` selects. The weights of a query without allowed keys are
/// 0.
fn masked_softmax(n: &mut Node<'_, '_>, x: Expr, bias: Option<Expr>) -> ExprResult {
    let dtype = n.dtype(x)?;
    let precision = match n.attrs().int("softmax_precision")?.filter(|&code| code != 0) {
        Some(code) => crate::initializer_tensors::checked_dtype(code)?,
        None => dtype,
    };
    let wide = n.cast(x, precision)?;
    let y = n.op_with("relax.nn.softmax", &[wide], ints_attr("axis", -1))?;
    let y = n.cast(y, dtype)?;
    let Some(bias) = bias else { return Ok(y) };
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints([-1]))
        .with("keepdims", AttrValue::Bool(true));
    let max_bias = n.op_with("relax.max", &[bias], attrs)?;
    let (minus_infinity, zero) = (n.scalar_as(f64::NEG_INFINITY, dtype)?, n.scalar_as(0.0, dtype)?);
    let none_allowed = n.op("relax.equal", &[max_bias, minus_infinity])?;
    n.op("relax.where", &[none_allowed, zero, y])
}

/// Converts `FlexAttention`, in which graphs in attributes modify the scores and the weights.
fn flex_attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let scale = n.attrs().float("scale")?;
    let [q, k, v] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let (dims, dtype) = (n.dims_with_min_rank(q, 4)?, n.dtype(q)?);
    let wide = match n.attrs().int("softmax_precision")?.filter(|&code| code != 0) {
        Some(code) => crate::initializer_tensors::checked_dtype(code)?,
        None if dtype == DType::Float64 => dtype,
        None => DType::Float32,
    };
    let (k, v) = (repeat_kv_heads(n, k, dims[1])?, repeat_kv_heads(n, v, dims[1])?);
    let scale = attention_scale(n, scale, dims[3], dtype)?;
    let sqrt_scale = n.op("relax.sqrt", &[scale])?;
    let (q, k) =
        (n.op("relax.multiply", &[q, sqrt_scale])?, n.op("relax.multiply", &[k, sqrt_scale])?);
    let k = n.permute(k, &[0, 1, 3, 2])?;
    let scores = n.op("relax.matmul", &[q, k])?;
    let scores = n.cast(scores, wide)?;
    let scores = apply_modifier_graph(n, "score_mod", scores)?;
    let weights = n.op_with("relax.nn.softmax", &[scores], ints_attr("axis", -1))?;
    let weights = apply_modifier_graph(n, "prob_mod", weights)?;
    let v = n.cast(v, wide)?;
    let y = n.op("relax.matmul", &[weights, v])?;
    Ok(vec![n.cast(y, dtype)?.into()])
}

/// Applies the graph in attribute `name` to a tensor, if the attribute is present.
fn apply_modifier_graph(n: &mut Node<'_, '_>, name: &str, x: Expr) -> ExprResult {
    if !n.attrs().has(name) {
        return Ok(x);
    }
    let graph = n.attrs().graph(name)?;
    let outputs = convert_body(n, graph, vec![x.into()])?;
    match outputs.as_slice() {
        [one] => n.materialize(one),
        _ => Err(Problem::invalid(format!(
            "the graph in attribute '{name}' must have one output, but has {}",
            outputs.len()
        ))),
    }
}

// ---- rotary positions ----

/// Emits a rotary embedding: rotates the first `2 * half` elements along the last axis of a tensor with 4 dims by angles that
/// broadcast to the other dims: `(batch, length, heads, size)` by `(batch or 1, length, 1, half)`, or `(batch, heads, length,
/// size)` by `(batch or 1, 1, length, half)`.
pub(in crate::ops) fn apply_rotary(
    n: &mut Node<'_, '_>,
    x: Expr,
    (cos, sin): (Expr, Expr),
    interleaved: bool,
) -> ExprResult {
    let dims = n.dims_with_min_rank(x, 4)?;
    let half = *n
        .dims(cos)?
        .last()
        .ok_or_else(|| Problem::invalid("the cosine and sine caches must not be scalars"))?;
    let syms = &mut n.func().syms;
    let (zero, one, two) = (syms.int(0), syms.int(1), syms.int(2));
    let whole = syms.mul(half, two);
    let rotary_part = n.slice_axis(x, 3, zero, whole)?;
    let [b, d1, d2] = [dims[0], dims[1], dims[2]];
    let (x1, x2) = if interleaved {
        let pairs = n.reshape(rotary_part, &[b, d1, d2, half, two])?;
        let (x1, x2) = (n.slice_axis(pairs, 4, zero, one)?, n.slice_axis(pairs, 4, one, two)?);
        (n.reshape(x1, &[b, d1, d2, half])?, n.reshape(x2, &[b, d1, d2, half])?)
    } else {
        (n.slice_axis(rotary_part, 3, zero, half)?, n.slice_axis(rotary_part, 3, half, whole)?)
    };
    let (a, c) = (n.op("relax.multiply", &[x1, cos])?, n.op("relax.multiply", &[x2, sin])?);
    let real = n.op("relax.subtract", &[a, c])?;
    let (a, c) = (n.op("relax.multiply", &[x1, sin])?, n.op("relax.multiply", &[x2, cos])?);
    let imaginary = n.op("relax.add", &[a, c])?;
    let y = if interleaved {
        let parts = [
            n.reshape(real, &[b, d1, d2, half, one])?,
            n.reshape(imaginary, &[b, d1, d2, half, one])?,
        ];
        let pairs = n.concat(&parts, 4)?;
        n.reshape(pairs, &[b, d1, d2, whole])?
    } else {
        n.concat(&[real, imaginary], 3)?
    };
    if whole == dims[3] {
        return Ok(y);
    }
    let rest = n.slice_axis(x, 3, whole, dims[3])?;
    n.concat(&[y, rest], 3)
}

/// Gathers the rows of a cosine or sine cache at the given positions; without positions, takes the whole cache. Adds a dim of size
/// 1, so that the result broadcasts to the heads of a tensor with 4 dims whose dim `heads_dim` is the heads.
pub(in crate::ops) fn rotary_angles(
    n: &mut Node<'_, '_>,
    cache: Expr,
    positions: Option<Expr>,
    heads_dim: i64,
) -> ExprResult {
    let rows = match positions {
        Some(positions) => n.take(cache, positions, 0)?,
        None => cache,
    };
    let axis = AttrValue::ints([heads_dim - 4]);
    n.op_with("relax.expand_dims", &[rows], Attrs::default().with("axis", axis))
}

fn rotary_embedding(n: &mut Node<'_, '_>) -> ConvertResult {
    let interleaved = n.attrs().int("interleaved")?.unwrap_or(0) != 0;
    let heads = n.attrs().int("num_heads")?.unwrap_or(0);
    let x = n.tensor(0)?;
    let positions = n.optional_tensor(3)?;
    let dims = n.dims(x)?;
    let heads_dim = if dims.len() == 4 { 1 } else { 2 };
    let mut tables = [n.tensor(1)?, n.tensor(2)?];
    for table in &mut tables {
        *table = rotary_angles(n, *table, positions, heads_dim)?;
    }
    let split = match dims.as_slice() {
        [b, l, hidden] if heads > 0 => {
            let heads = n.func().syms.int(heads);
            let size = n.func().syms.floordiv(*hidden, heads);
            n.reshape(x, &[*b, *l, heads, size])?
        }
        [_, _, _, _] => x,
        [_, _, _] => {
            return Err(Problem::attribute(
                "an input with 3 dims requires a positive attribute 'num_heads'",
            ));
        }
        _ => {
            let text = format!("the input must have 3 or 4 dims, but has {}", dims.len());
            return Err(Problem::invalid(text));
        }
    };
    let y = apply_rotary(n, split, (tables[0], tables[1]), interleaved)?;
    Ok(vec![n.reshape(y, &dims)?.into()])
}

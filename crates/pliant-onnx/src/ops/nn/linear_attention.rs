//! Converter of `LinearAttention`: a recurrent attention with one state matrix per head. Each step
//! updates the state matrix with a key and value, and multiplies it by a query.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::Sym;

use super::attention::{attention_scale, merge_heads, repeat_kv_heads, split_heads};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::loops::{collecting_loop, increment, is_below};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[op("LinearAttention", linear_attention)];

/// The operands of a `LinearAttention` node. The tensors are `(batch, heads, steps, size)` in float32.
struct Operands {
    query: Expr,
    key: Expr,
    value: Expr,
    decay: Option<Expr>,
    beta: Option<Expr>,
    scale: Expr,
    heads: Sym,
}

fn linear_attention(n: &mut Node<'_, '_>) -> ConvertResult {
    let rules = ["gated_delta", "gated", "delta", "linear"];
    let rule = n.attrs().choice("update_rule", &rules)?;
    for (i, what, is_used) in
        [(4, "decay", rule.starts_with("gated")), (5, "beta", rule.ends_with("delta"))]
    {
        if n.has_input(i) != is_used {
            return Err(Problem::invalid(match is_used {
                true => format!("{what} (input {i}) is missing, but update_rule '{rule}' needs it"),
                false => format!("{what} (input {i}) is not allowed with update_rule '{rule}'"),
            }));
        }
    }
    let heads = |name: &str| {
        let count = n.attrs().int(name)?.filter(|&h| h > 0);
        count.ok_or_else(|| {
            Problem::attribute(format!("attribute '{name}' must be present and positive"))
        })
    };
    let (q_heads, kv_heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    let [q_heads, kv_heads] = [q_heads, kv_heads].map(|h| n.func().syms.int(h));
    let query = n.tensor(0)?;
    let dtype = n.dtype(query)?;
    let split = |n: &mut Node<'_, '_>, i: usize, heads: Sym| {
        let x = n.tensor(i)?;
        let x = split_heads(n, x, heads)?;
        n.cast(x, DType::Float32)
    };
    let (query, key, value): (Expr, Expr, Expr) =
        (split(n, 0, q_heads)?, split(n, 1, kv_heads)?, split(n, 2, kv_heads)?);
    let decay = if n.has_input(4) { Some(split(n, 4, kv_heads)?) } else { None };
    let beta = match n.optional_tensor(5)? {
        Some(beta) => {
            // One number per head, or one for all heads.
            let dims = n.dims_with_min_rank(beta, 3)?;
            Some(split(n, 5, dims[2])?)
        }
        None => None,
    };
    let (dims, size) = (n.dims(key)?, n.dims(value)?[3]);
    let scale = n.attrs().float("scale")?.filter(|&s| s != 0.0);
    let scale = attention_scale(n, scale, dims[3], DType::Float32)?;
    let (state, state_dtype) = match n.optional_tensor(3)? {
        Some(past) => {
            let dtype = n.dtype(past)?;
            (n.cast(past, DType::Float32)?, dtype)
        }
        None => {
            let zero = n.scalar_as(0.0, DType::Float32)?;
            (n.full(&[dims[0], dims[1], dims[3], size], zero)?, dtype)
        }
    };
    let operands = Operands { query, key, value, decay, beta, scale, heads: q_heads };
    let (y, state) = attention_steps(n, &operands, state, dims[2])?;
    let y = merge_heads(n, y)?;
    Ok(vec![n.cast(y, dtype)?.into(), n.cast(state, state_dtype)?.into()])
}

/// Emits all steps of the attention. Returns the outputs of the steps as `(batch, heads, steps, size)`, and the final state.
fn attention_steps(
    n: &mut Node<'_, '_>,
    operands: &Operands,
    state: Expr,
    count: Sym,
) -> Result<(Expr, Expr), Problem> {
    let first = vec![("i".to_owned(), n.scalar(0i64)?.into()), ("state".to_owned(), state.into())];
    let max = n.size_scalar(count)?;
    let mut condition = |n: &mut Node<'_, '_>, state: &[Value]| is_below(n, &state[0], max);
    let mut iteration = |n: &mut Node<'_, '_>, state: &[Value]| {
        let (index, new_state) = (n.materialize(&state[0])?, n.materialize(&state[1])?);
        let (new_state, y) = attention_step(n, operands, index, new_state)?;
        Ok((vec![increment(n, &state[0])?, new_state.into()], vec![y.into()]))
    };
    let last = collecting_loop(n, first, (1, true), &mut condition, &mut iteration)?;
    let [parts] = &last.parts[..] else {
        return Err(Problem::internal(
            "the converter of LinearAttention",
            "the loop over the tokens has no output",
        ));
    };
    let y = parts.stack(n, count)?;
    let y = n.materialize(&y)?;
    Ok((n.permute(y, &[1, 2, 0, 3])?, n.materialize(&last.state[1])?))
}

/// Emits one step of the attention. Returns the state after the step and the output of the step.
fn attention_step(
    n: &mut Node<'_, '_>,
    operands: &Operands,
    index: Expr,
    state: Expr,
) -> Result<(Expr, Expr), Problem> {
    let column = |n: &mut Node<'_, '_>, x: Expr| -> ExprResult {
        let x = n.take(x, index, 2)?;
        let mut dims = n.dims(x)?;
        dims.push(n.func().syms.int(1));
        n.reshape(x, &dims)
    };
    let row = |n: &mut Node<'_, '_>, x: Expr| -> ExprResult {
        let x = n.take(x, index, 2)?;
        let mut dims = n.dims(x)?;
        dims.insert(2, n.func().syms.int(1));
        n.reshape(x, &dims)
    };
    let mut state = state;
    if let Some(decay) = operands.decay {
        let decay = column(n, decay)?;
        let share = n.op("relax.exp", &[decay])?;
        state = n.op("relax.multiply", &[state, share])?;
    }
    let (key, mut value) = (column(n, operands.key)?, row(n, operands.value)?);
    if let Some(beta) = operands.beta {
        // Delta rule: subtract the value that the state already holds for the key.
        let key_row = row(n, operands.key)?;
        let stored = n.op("relax.matmul", &[key_row, state])?;
        value = n.op("relax.subtract", &[value, stored])?;
        let beta = column(n, beta)?;
        value = n.op("relax.multiply", &[value, beta])?;
    }
    let update = n.op("relax.multiply", &[key, value])?;
    state = n.op("relax.add", &[state, update])?;
    let query_state = repeat_kv_heads(n, state, operands.heads)?;
    let query = row(n, operands.query)?;
    let query = n.op("relax.multiply", &[query, operands.scale])?;
    let y = n.op("relax.matmul", &[query, query_state])?;
    let dims = n.dims(y)?;
    let y = n.reshape(y, &[dims[0], dims[1], dims[3]])?;
    Ok((state, y))
}

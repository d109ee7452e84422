//! Attention as loop functions call it: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use pliant_exec::abi::KernelRuntime;

use super::{Attention, Heads, Scores, pliant_attention_f32};

/// Attention of float32. Sizes: batches, heads, heads of the keys, queries, keys, elements of a query and of a value. Queries,
/// keys, values and results, each by its address and its strides from batch to batch, head to head and row to row. Factor and
/// limit of the scores. Whether there is a bias; its address and its strides from batch to batch, head to head, query to
/// query and key to key. Whether the mask is causal, the key that the first query stands at, and the window, as in
/// [`Attention`]; what queries get that see nothing. Whether there is a mask; its
/// address and strides, as of the bias; what it makes of a score, and whether it comes before the bias. Returns a kernel status.
///
/// # Safety
/// As for [`pliant_attention_f32`]; the addresses of a bias and a mask that are not there are not used.
pub unsafe extern "C" fn pliant_attend_f32(
    runtime: *const KernelRuntime,
    batch: i64,
    heads: i64,
    kv_heads: i64,
    queries: i64,
    keys: i64,
    size: i64,
    value_size: i64,
    q: *const f32,
    q_batch: i64,
    q_head: i64,
    q_row: i64,
    k: *const f32,
    k_batch: i64,
    k_head: i64,
    k_row: i64,
    v: *const f32,
    v_batch: i64,
    v_head: i64,
    v_row: i64,
    out: *mut f32,
    out_batch: i64,
    out_head: i64,
    out_row: i64,
    scale: f64,
    cap: f64,
    has_bias: i64,
    bias: *const f32,
    bias_batch: i64,
    bias_head: i64,
    bias_row: i64,
    bias_column: i64,
    causal: i64,
    offset: i64,
    window: i64,
    blind: i64,
    has_mask: i64,
    mask: *const u8,
    mask_batch: i64,
    mask_head: i64,
    mask_row: i64,
    mask_column: i64,
    hidden: f64,
    mask_first: i64,
) -> i64 {
    let bias = scores(has_bias, bias, [bias_batch, bias_head, bias_row, bias_column]);
    let mask = scores(has_mask, mask, [mask_batch, mask_head, mask_row, mask_column]);
    let attention = Attention {
        batch,
        heads,
        kv_heads,
        queries,
        keys,
        size,
        value_size,
        q: Heads { data: q, batch: q_batch, head: q_head, row: q_row },
        k: Heads { data: k, batch: k_batch, head: k_head, row: k_row },
        v: Heads { data: v, batch: v_batch, head: v_head, row: v_row },
        out: Heads { data: out, batch: out_batch, head: out_head, row: out_row },
        scale,
        cap,
        bias,
        mask,
        hidden,
        mask_first,
        lengths: std::ptr::null(),
        causal,
        offset,
        window,
        blind,
    };
    // SAFETY: the caller's promise.
    unsafe { pliant_attention_f32(runtime, &raw const attention) }
}

/// Numbers for scores, where they are there.
fn scores<T>(there: i64, data: *const T, [batch, head, row, column]: [i64; 4]) -> Scores<T> {
    if there == 0 { Scores::NONE } else { Scores { data, batch, head, row, column } }
}

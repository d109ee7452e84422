"""Cases of attention, compared with a softmax computed row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases


def attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    scale: float | None = None,
    causal: str | None = None,
    window: int | None = None,
) -> Array | Refusal:
    """Computes attention over queries (batch, len, heads, size) with NumPy; keys and values may
    have fewer heads.
    """
    if q.shape[2] % max(k.shape[2], 1) or k.shape[2] == 0 < q.shape[2]:
        return Refusal("must be a multiple of that of key")
    out = np.zeros((*q.shape[:3], v.shape[3]))
    q64, k64, v64 = (t.astype("f8") for t in (q, k, v))
    scale = 1 / math.sqrt(max(q.shape[3], 1)) if scale is None else scale
    ahead = k.shape[1] - q.shape[1] if causal == "BottomRight" else 0
    full = None if bias is None else np.broadcast_to(bias, (q.shape[0], q.shape[2], q.shape[1], k.shape[1]))
    for b, i, h in np.ndindex(*q.shape[:3]):
        own = h * k.shape[2] // q.shape[2]
        scores = k64[b, :, own] @ q64[b, i, h] * scale
        if full is not None:
            scores = scores + full[b, h, i]
        j = np.arange(k.shape[1])
        seen = np.ones(len(j), bool) if causal is None else j <= i + ahead
        if window is not None:
            seen &= i + ahead - j < window
        if seen.any():
            weights = np.where(seen, np.exp(scores - scores[seen].max()), 0)
            out[b, i, h] = weights / weights.sum() @ v64[b, :, own]
    return out.astype(q.dtype)


def in_sequences(q: Array, k: Array, v: Array, starts: Array, starts_k: Array | None = None, **given: Any) -> Array:
    """Computes with NumPy attention within each of several concatenated sequences."""
    out = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
    starts_k = starts if starts_k is None else starts_k
    for a, b, c, d in zip(starts, starts[1:], starts_k, starts_k[1:], strict=False):
        out[:, a:b] = attention(q[:, a:b], k[:, c:d], v[:, c:d], **given)
    return out


def fixed(*values: int) -> Draw:
    return lambda rng, shape: np.array(values)


SCALED = "R.nn.attention(q, k, v"
plain = (f32("q", "b", "s", 2, 8), f32("k", "b", "t", 2, 8), f32("v", "b", "t", 2, 4))
alike = {"sizes": (0, 1, 2, 3, 7, 9), "runs": 8, "cancels": True, "tolerance": 4.0}
CASES: list[Case] = [
    Case("attention", plain, f"{SCALED})", attention, **alike),
    Case("attention_scaled", plain, f"{SCALED}, scale=0.25)", lambda *a: attention(*a, scale=0.25), **alike),
    *(
        Case(
            f"attention_{mask}{'' if window is None else window}",
            plain,
            f'{SCALED}, causal_mask="{mask}"' + (")" if window is None else f", window_size={window})"),
            lambda *a, m=mask, w=window: attention(*a, causal=m, window=w),
            **alike,
        )
        for mask in ("TopLeft", "BottomRight")
        for window in (None, 1, 3)
    ),
    Case(
        "attention_grouped",
        (f32("q", 2, "s", 6, 4), f32("k", 2, "t", 2, 4), f32("v", 2, "t", 2, 4)),
        f"{SCALED})",
        attention,
        **alike,
    ),
    Case(
        "attention_of_symbols",
        (f32("q", "b", "s", "h", "d"), f32("k", "b", "s", "h", "d"), f32("v", "b", "s", "h", "d")),
        f'{SCALED}, causal_mask="TopLeft")',
        lambda *a: attention(*a, causal="TopLeft"),
        **{**alike, "sizes": (0, 1, 2, 3, 5)},
    ),
    Case(
        "attention_grouped_symbols",
        (f32("q", 1, "s", "h", 4), f32("k", 1, "s", "g", 4), f32("v", 1, "s", "g", 4)),
        f"{SCALED})",
        attention,
        **{**alike, "sizes": (1, 2, 3, 6)},
    ),
    Case(
        "attention_with_bias",
        (*plain, f32("w", "b", 2, "s", "t")),
        f"{SCALED}, w)",
        attention,
        **alike,
    ),
    Case(
        "attention_bias",
        (*plain, f32("w", 1, 1, "s", "t")),
        'R.nn.attention_bias(q, k, v, w, causal_mask="BottomRight")',
        lambda *a: attention(*a, causal="BottomRight"),
        **alike,
    ),
    Case(
        "attention_float16",
        tuple(Param(p, "float16", (1, d, 2, 4)) for p, d in (("q", "s"), ("k", "t"), ("v", "t"))),
        f"{SCALED})",
        attention,
        **alike,
    ),
    Case(
        "attention_var_len",
        (
            f32("q", 1, 9, 2, 4),
            f32("k", 1, 9, 2, 4),
            f32("v", 1, 9, 2, 4),
            Param("p", "int32", (4,), fixed(0, 2, 2, 9)),
        ),
        'R.nn.attention_var_len(q, k, v, p, R.const(7, "int32"), causal_mask="TopLeft")',
        lambda *a: in_sequences(*a, causal="TopLeft"),
        **alike,
    ),
    Case(
        "attention_var_len_of_two",
        (
            f32("q", 1, 7, 4, 4),
            f32("k", 1, 9, 2, 4),
            f32("v", 1, 9, 2, 3),
            Param("p", "int32", (3,), fixed(0, 3, 7)),
            Param("r", "int32", (3,), fixed(0, 5, 9)),
        ),
        'R.nn.attention_var_len(q, k, v, p, R.const(4, "int32"), r, R.const(5, "int32"), causal_mask="BottomRight")',
        lambda *a: in_sequences(*a, causal="BottomRight"),
        **alike,
    ),
    Case(
        "attention_var_len_short",
        (f32("q", 1, "s", 2, 4), f32("k", 1, "s", 2, 4), f32("v", 1, "s", 2, 4), i64("p", 3, draw=fixed(0, 2, 5))),
        'R.nn.attention_var_len(q, k, v, p, R.const(3, "int32"))',
        in_sequences,
        **{**alike, "sizes": (5, 6, 9)},
    ),
]

REFUSED: list[Refused] = [
    Refused("attention_rank", (f32("q", 2, 3, 4), *plain[1:]), f"{SCALED})", "query must have 4 dims"),
    Refused("attention_type", (i64("q", "b", "s", 2, 8), *plain[1:]), f"{SCALED})", "must be a tensor of floats"),
    Refused("attention_size", (f32("q", "b", "s", 2, 4), *plain[1:]), f"{SCALED})", "the head sizes of query and key"),
    Refused("attention_heads", (f32("q", "b", "s", 3, 8), *plain[1:]), f"{SCALED})", "must be a multiple of that of key"),
    Refused(
        "attention_lengths", (plain[0], f32("k", 1, 3, 2, 8), f32("v", 1, 4, 2, 8)), f"{SCALED})", "the lengths of"
    ),
    Refused("attention_mask", plain, f'{SCALED}, causal_mask="Left")', "causal_mask must be one of"),
    Refused("attention_window", plain, f"{SCALED}, window_size=2)", "window_size requires causal_mask to be"),
    Refused("attention_no_window", plain, f'{SCALED}, causal_mask="TopLeft", window_size=0)', "must be at least 1"),
    Refused("attention_bias_rank", (*plain, f32("w", 1, 1, 1, 1, 1)), f"{SCALED}, w)", "bias must have at most 4 dims"),
    Refused("attention_bias_shape", (*plain, f32("w", "b", 5, "s", "t")), f"{SCALED}, w)", "does not broadcast to"),
    Refused(
        "attention_var_len_starts",
        (*(f32(p, 1, "s", 2, 4) for p in "qkv"), f32("p", 3)),
        'R.nn.attention_var_len(q, k, v, p, R.const(3, "int32"))',
        "seqstart_q must be a tensor of integers",
    ),
    Refused(
        "attention_var_len_batch",
        (*(f32(p, 2, "s", 2, 4) for p in "qkv"), i64("p", 3)),
        'R.nn.attention_var_len(q, k, v, p, R.const(3, "int32"))',
        "the first dim of query, key and value must be 1",
    ),
]

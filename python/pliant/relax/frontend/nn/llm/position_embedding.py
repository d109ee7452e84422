"""Rotary position embeddings (RoPE)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant import _core, te, tir
from pliant.relax.frontend.nn import op
from pliant.relax.frontend.nn.core import Tensor
from pliant.runtime.kv_cache.rotary import attention_factor, inverse_frequencies, is_interleaved

_relax = _core.relax


def rotary_embedding(
    x: Tensor,
    positions: Tensor,
    theta: float = 10000.0,
    scale: float = 1.0,
    rope_scaling: Mapping[str, Any] | None = None,
    rotary_dim: int | None = None,
) -> Tensor:
    """Rotates ``x`` of shape ``(batch, length, heads, head_dim)`` by the positions of its tokens, a vector of length ``length``.

    ``rope_scaling`` is that of a model's configuration (``rope_type``: default, gptj, linear, llama3, llama4, longrope or yarn). Dims after
    ``rotary_dim`` are not rotated. Raises ``UnsupportedError`` for an unknown ``rope_type``.
    """
    head_dim = int(x.shape[3])
    rotated = head_dim if rotary_dim is None else rotary_dim
    half = rotated // 2
    angles = Tensor.from_const(inverse_frequencies(rotated, theta, rope_scaling) * scale)
    interleaved, factor = is_interleaved(rope_scaling), attention_factor(rope_scaling)

    def rope(x: Any, positions: Any, angles: Any) -> Any:
        def rotate(b: Any, s: Any, h: Any, d: Any) -> Any:
            pair = tir.min(d // 2 if interleaved else tir.if_then_else(d < half, d, d - half), half - 1)
            first = d % 2 == 0 if interleaved else d < half
            step = 1 if interleaved else half
            angle = positions[s].astype("float32") * angles[pair]
            other = tir.if_then_else(
                first, -x[b, s, h, tir.min(d + step, head_dim - 1)], x[b, s, h, tir.max(d - step, 0)]
            ).astype("float32")
            value = x[b, s, h, d].astype("float32") * tir.cos(angle) + other * tir.sin(angle)
            scaled = value if factor == 1.0 else value * factor
            return tir.if_then_else(d < 2 * half, scaled.astype(x.dtype), x[b, s, h, d])

        return te.compute(x.shape, rotate, name="rotary_embedding")

    return op.tensor_expr_op(rope, "rotary_embedding", [x, positions, angles])


def llama_rope(
    qkv: Tensor,
    total_seq_len: Any,
    theta: float,
    scale: float,
    num_q_heads: int,
    num_kv_heads: int,
    rope_scaling: Mapping[str, Any] | None = None,
    rotary_dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Splits ``qkv`` of shape ``(batch, length, num_q_heads + 2 * num_kv_heads, head_dim)`` into queries, keys and values, and
    rotates queries and keys. The tokens are the last of ``total_seq_len`` tokens."""
    query, key, value = op.split(qkv, [num_q_heads, num_q_heads + num_kv_heads], axis=2)
    length = qkv.shape[1]
    start = total_seq_len - length
    positions = op.arange(start, start + length, 1, "int64")
    query, key = (rotary_embedding(t, positions, theta, scale, rope_scaling, rotary_dim) for t in (query, key))
    return query, key, value


__all__ = ["inverse_frequencies", "llama_rope", "rotary_embedding"]

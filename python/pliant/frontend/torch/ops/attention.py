"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _heads(cx: FunctionImporter, x: Any) -> Any:
    """Converts (batch..., heads, len, size) to (batch, len, heads, size). A tensor of rank 3 has one head."""
    *lead, length, size = cx.shape(x)
    if len(lead) < 2:
        x = cx.ops.reshape(x, [math.prod(lead), 1, length, size])
    elif len(lead) > 2:
        x = cx.ops.reshape(x, [math.prod(lead[:-1]), lead[-1], length, size])
    return cx.ops.permute_dims(x, [0, 2, 1, 3])


def _with_joint_batch(cx: FunctionImporter, query: Any, key: Any, value: Any, grouped: bool) -> list[Any]:
    """Broadcasts the batch dims of queries, keys and values. Heads are broadcast, too, unless they are grouped."""
    operands = [query, key, value]
    kept = 3 if grouped else 2
    leads = [cx.shape(x)[:-kept] for x in operands]
    if all(cx.same_shape(lead, leads[0]) for lead in leads):
        return operands
    joint = [next((d for d in sizes if not (isinstance(d, int) and d == 1)), 1) for sizes in zip(*_aligned(leads), strict=True)]
    return [cx.ops.broadcast_to(x, [*joint, *cx.shape(x)[-kept:]]) for x in operands]


def _aligned(shapes: list[list[Any]]) -> list[list[Any]]:
    rank = max(map(len, shapes))
    return [[1] * (rank - len(s)) + s for s in shapes]


def _bias(cx: FunctionImporter, mask: Any, dtype: str, rank: int) -> Any:
    """A mask as a bias of rank 4: a bool mask states which keys are seen."""
    if mask is None:
        return None
    if cx.dtype(mask) == "bool":
        mask = cx.ops.where(mask, cx.tensor(0.0, dtype), cx.tensor(-math.inf, dtype))
    mask = cx.cast(mask, dtype)
    shape = cx.shape(mask)
    if rank == 3 and len(shape) == 3:
        return cx.ops.expand_dims(mask, 1)
    if len(shape) > 4:
        return cx.ops.reshape(mask, [math.prod(shape[:-3]), *shape[-3:]])
    return mask if len(shape) == 4 else cx.ops.reshape(mask, [1] * (4 - len(shape)) + shape)


def scaled_dot_product_attention(
    cx: FunctionImporter, query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0, causal: bool = False, *,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention as one operator, so that it runs in the attention kernel. The causal mask is aligned to the first query and key."""
    if dropout != 0.0:
        raise UnsupportedError("attention with dropout is not supported: call model.eval() first")
    if scale is not None and not isinstance(scale, int | float):
        raise UnsupportedError("attention with a scale that is not a constant is not supported")
    dtype, rank = cx.dtype(query), cx.rank(query)
    query, key, value = _with_joint_batch(cx, query, key, value, enable_gqa)
    operands = [_heads(cx, x) for x in (query, key, value)]
    bias = _bias(cx, mask, dtype, rank)
    if bias is not None:
        operands.append(bias)
    result = cx.ops.nn.attention(*operands, scale=scale, causal_mask="TopLeft" if causal else None)
    shape = [*cx.shape(query)[:-1], cx.shape(value)[-1]]
    return cx.ops.reshape(cx.ops.permute_dims(result, [0, 2, 1, 3]), shape)


def flash_attention_for_cpu(
    cx: FunctionImporter, query: Any, key: Any, value: Any, dropout: float = 0.0, causal: bool = False, *, attn_mask: Any = None,
    scale: Any = None,
) -> Any:  # fmt: skip
    """Attention with the logarithm of the sums of its exponentials, which the backward pass needs."""
    result = scaled_dot_product_attention(cx, query, key, value, attn_mask, dropout, causal, scale=scale)
    return result, log_sum_exp(cx, scores(cx, query, key, attn_mask, causal, scale))


def scores(cx: FunctionImporter, query: Any, key: Any, mask: Any, causal: bool, scale: Any) -> Any:
    """The scaled and masked products of queries and keys."""
    dtype = cx.dtype(query)
    factor = 1 / math.sqrt(cx.shape(query)[-1]) if scale is None else scale
    rank = cx.rank(key)
    swapped = cx.ops.permute_dims(key, [*range(rank - 2), rank - 1, rank - 2])
    product = cx.ops.multiply(cx.ops.matmul(query, swapped), cx.tensor(factor, dtype))
    if causal:
        hidden = cx.ops.triu(cx.ops.full(cx.shape(product)[-2:], cx.tensor(-math.inf, dtype), dtype), k=1)
        product = cx.ops.add(product, hidden)
    return product if mask is None else cx.ops.add(product, mask)


def log_sum_exp(cx: FunctionImporter, x: Any) -> Any:
    """The logarithm of the sum of exponentials along the last dim."""
    peak = cx.ops.max(x, axis=[-1], keepdims=True)
    total = cx.ops.sum(cx.ops.exp(cx.ops.subtract(x, peak)), axis=[-1])
    return cx.ops.add(cx.ops.log(total), cx.ops.squeeze(peak, axis=[cx.rank(x) - 1]))


TABLE: dict[str, Converter] = {
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "_scaled_dot_product_flash_attention_for_cpu": flash_attention_for_cpu,
}
"""The converters of this family."""

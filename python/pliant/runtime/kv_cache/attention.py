"""Attention of new tokens to stored ones. It runs in programs that are compiled once per head size, for all numbers of tokens."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np

from pliant import _core

Array: TypeAlias = np.ndarray[Any, Any]


def attend(query: Array, key: Array, value: Array, scale: float, visible: Array | None = None) -> Array:
    """Attention of one sequence.

    ``query`` has the shape ``(m, heads, d)``; ``key`` and ``value`` have the shapes ``(n, kv_heads, d)`` and ``(n, kv_heads, dv)``,
    where ``kv_heads`` divides ``heads``. All have one floating-point type. ``visible`` is a bool array of shape ``(m, n)`` that
    is true where a query attends to a key, at least once per row. By default, the queries are those of the last keys, and
    attend to the keys up to their own. Returns the result of shape ``(m, heads, dv)``.
    """
    if query.shape[0] == 0:
        return np.zeros((0, query.shape[1], value.shape[2]), query.dtype)
    operands = _operands(query, key, value, scale)
    masks = [] if visible is None else [_bias(visible, query.dtype)[None, None]]
    program = _program(str(query.dtype), query.shape[1:], key.shape[1:], value.shape[2], bool(masks))
    return _array(program(*operands, *masks))[0]


def attend_with_logarithms(query: Array, key: Array, value: Array, scale: float, visible: Array) -> tuple[Array, Array]:
    """Attention as :func:`attend` computes it, for any ``visible``. Also returns the base-2 logarithms of the sums of
    exponentials, of shape ``(m, heads)`` and type float32. For a query without visible keys, the result is 0 and the logarithm
    is minus infinity."""
    count, heads, dim = query.shape
    length, kv_heads, value_dim = value.shape
    if count == 0 or length == 0:
        return np.zeros((count, heads, value_dim), query.dtype), np.full((count, heads), -np.inf, np.float32)
    group = heads // kv_heads
    rows = query.reshape(count, kv_heads, group, dim).transpose(1, 2, 0, 3).astype(np.float32) * np.float32(scale)
    rows = np.ascontiguousarray(rows)
    keys = np.ascontiguousarray(key.transpose(1, 2, 0)).astype(np.float32)
    values = np.ascontiguousarray(value.transpose(1, 0, 2)).astype(np.float32)
    program = _program_with_logarithms(kv_heads, group, dim, value_dim)
    result, logarithms = map(_array, program(rows, keys[:, None], values[:, None], _bias(visible, np.dtype("float32"))))
    output = result.transpose(2, 0, 1, 3).reshape(count, heads, value_dim).astype(query.dtype)
    return output, logarithms.transpose(2, 0, 1).reshape(count, heads)


def _operands(query: Array, key: Array, value: Array, scale: float) -> list[Array]:
    scaled = query * query.dtype.type(scale)
    return [np.ascontiguousarray(array)[None] for array in (scaled, key, value)]


def _bias(visible: Array, dtype: np.dtype[Any]) -> Array:
    """The numbers that are added to scores: 0 for visible keys, minus infinity for others."""
    return np.where(visible, dtype.type(0), dtype.type(-np.inf))


def _array(value: Any) -> Array:
    return value.numpy()  # type: ignore[no-any-return]


@cache
def _program(
    dtype: str, query: tuple[int, int], key: tuple[int, int], value_dim: int, masked: bool
) -> Any:
    """Compiles attention for these numbers of heads and head sizes."""
    from pliant.relax import BlockBuilder, op

    m, n = _core.Var("m", "int64"), _core.Var("n", "int64")
    shapes = {"query": [1, m, *query], "key": [1, n, *key], "value": [1, n, key[0], value_dim]}
    if masked:
        shapes["bias"] = [1, 1, m, n]
    params = [_core.relax.Var(name, _core.relax.TensorStructInfo(dims, dtype)) for name, dims in shapes.items()]
    builder = BlockBuilder()
    with builder.function("attend", params):
        with builder.dataflow():
            causal = None if masked else "BottomRight"
            bias = params[3] if masked else None
            attention = op.nn.attention(params[0], params[1], params[2], bias, scale=1.0, causal_mask=causal)
            result = builder.emit_output(attention)
        builder.emit_func_output(result)
    return _compiled(builder, "attend")


@cache
def _program_with_logarithms(kv_heads: int, group: int, dim: int, value_dim: int) -> Any:
    """Compiles attention that also returns logarithms, for these numbers of heads and head sizes."""
    from pliant.relax import BlockBuilder, const, op

    m, n = _core.Var("m", "int64"), _core.Var("n", "int64")
    shapes = {
        "query": [kv_heads, group, m, dim],
        "key": [kv_heads, 1, dim, n],
        "value": [kv_heads, 1, n, value_dim],
        "bias": [m, n],
    }
    params = [_core.relax.Var(name, _core.relax.TensorStructInfo(dims, "float32")) for name, dims in shapes.items()]
    query, key, value, bias = params
    builder = BlockBuilder()
    with builder.function("attend", params):
        with builder.dataflow():
            scores = builder.emit(op.add(op.matmul(query, key), bias))
            # Finite, so that a row of minus infinities has the weights 0.
            largest = builder.emit(op.maximum(op.max(scores, axis=-1, keepdims=True), const(-1e30, "float32")))
            weights = builder.emit(op.exp(op.subtract(scores, largest)))
            sums = builder.emit(op.sum(weights, axis=-1, keepdims=True))
            divisor = op.where(op.equal(sums, const(0.0, "float32")), const(1.0, "float32"), sums)
            result = builder.emit(op.divide(op.matmul(weights, value), divisor))
            natural = op.add(largest, op.log(sums))
            base2 = op.squeeze(op.multiply(natural, const(1 / np.log(2), "float32")), -1)
            output = builder.emit_output(_core.relax.Tuple([result, builder.emit(base2)]))
        builder.emit_func_output(output)
    return _compiled(builder, "attend")


def _compiled(builder: Any, name: str) -> Any:
    from pliant.relax.vm import VirtualMachine, build

    return VirtualMachine(build(builder.get()), _core.cpu())[name]


def merge(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """Combines the attention of the same queries to two sets of keys. Takes and returns pairs of result and logarithm as
    :func:`attend_with_logarithms` does."""
    (out1, log1), (out2, log2) = first, second
    largest = np.maximum(log1, log2)
    base = np.where(np.isneginf(largest), np.float32(0), largest)
    weight1, weight2 = np.exp2(log1 - base), np.exp2(log2 - base)
    total = weight1 + weight2
    divisor = np.where(total == 0, np.float32(1), total)
    merged = out1 * (weight1 / divisor)[..., None] + out2 * (weight2 / divisor)[..., None]
    with np.errstate(divide="ignore"):
        return merged, np.where(total == 0, np.float32(-np.inf), base + np.log2(total))


__all__ = ["attend", "attend_with_logarithms", "merge"]

"""Operators of neural networks as tensor expressions."""

from __future__ import annotations

from typing import Any

from pliant import te, tir, topi
from pliant._core import PrimExpr, Tensor

__all__ = ["batch_matmul", "bias_add", "dense", "leaky_relu", "log_softmax", "matmul", "relu", "softmax"]


def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``."""
    return te.compute(x.shape, lambda *i: tir.max(x(*i), tir.const(0, x.dtype)), name="T_relu")


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """``exp(x)`` over its sum along an axis."""
    axis %= x.ndim
    rest = [d for i, d in enumerate(x.shape) if i != axis]
    k = te.reduce_axis((0, x.shape[axis]), "k")
    k2 = te.reduce_axis((0, x.shape[axis]), "k")

    def put(index: tuple[PrimExpr, ...], value: PrimExpr) -> list[PrimExpr]:
        return [*index[:axis], value, *index[axis:]]

    def drop(index: tuple[PrimExpr, ...]) -> list[PrimExpr]:
        return [v for i, v in enumerate(index) if i != axis]

    top = te.compute(rest, lambda *i: te.max(x(*put(i, k)), k), name="T_softmax_max")
    exp = te.compute(x.shape, lambda *i: tir.exp(x(*i) - top(*drop(i))), name="T_softmax_exp")
    total = te.compute(rest, lambda *i: te.sum(exp(*put(i, k2)), axis=k2), name="T_softmax_sum")
    return te.compute(x.shape, lambda *i: exp(*i) / total(*drop(i)), name="T_softmax")


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the softmax along an axis."""
    axis %= x.ndim
    k = te.reduce_axis((0, x.shape[axis]), "k")
    k2 = te.reduce_axis((0, x.shape[axis]), "k")
    rest = [d for i, d in enumerate(x.shape) if i != axis]

    def at(index: tuple[PrimExpr, ...], value: PrimExpr) -> list[PrimExpr]:
        return [*index[:axis], value, *index[axis:]]

    def others(index: tuple[PrimExpr, ...]) -> list[PrimExpr]:
        return [v for i, v in enumerate(index) if i != axis]

    top = te.compute(rest, lambda *i: te.max(x(*at(i, k)), k), name="T_softmax_max")
    total = te.compute(rest, lambda *i: te.sum(tir.exp(x(*at(i, k2)) - top(*i)), axis=k2), name="T_softmax_sum")
    return te.compute(
        x.shape, lambda *i: x(*i) - top(*others(i)) - tir.log(total(*others(i))), name="T_log_softmax"
    )


def leaky_relu(x: Tensor, alpha: float = 0.01) -> Tensor:
    """``x`` where it is positive, else ``x * alpha``."""

    def value(*i: PrimExpr) -> PrimExpr:
        return tir.Select(x(*i) > tir.const(0, x.dtype), x(*i), x(*i) * tir.const(alpha, x.dtype))

    return te.compute(x.shape, value, name="T_leaky_relu")


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The matrix product of the last two dims, batch dims broadcast."""
    return topi.matmul(a, b, transp_a, transp_b)


def batch_matmul(
    x: Tensor, y: Tensor, oshape: Any = None, out_dtype: str | None = None, transpose_a: bool = False, transpose_b: bool = True
) -> Tensor:
    """The product of each matrix of ``x`` with one of ``y``, which is transposed unless said."""
    out = topi.matmul(x, y, transpose_a, transpose_b)
    return out if out_dtype in (None, out.dtype) else topi.cast(out, out_dtype)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """``data @ weight.T + bias``."""
    out = topi.matmul(data, weight, False, True)
    if bias is not None:
        out = topi.add(out, bias)
    return out if out_dtype in (None, out.dtype) else topi.cast(out, out_dtype)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """The sum with a vector along an axis."""
    axis %= data.ndim
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[axis]), name="T_bias_add")

"""Operators of neural networks as tensor expressions."""

from __future__ import annotations

from pliant import te, tir
from pliant._core import PrimExpr, Tensor

__all__ = ["relu", "softmax"]


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

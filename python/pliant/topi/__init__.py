"""Tensor operators as tensor expressions, for ``bb.emit_te`` and loop functions of your own.

The graph's operators (``relax.op``) have loop forms of their own; these are the common ones for use with ``te``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pliant import te, tir
from pliant._core import PrimExpr, Tensor
from pliant.topi import nn

__all__ = [
    "abs",
    "add",
    "broadcast_to",
    "cast",
    "concatenate",
    "divide",
    "erf",
    "exp",
    "flatten",
    "full",
    "log",
    "matmul",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply",
    "negative",
    "nn",
    "power",
    "relu",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "subtract",
    "sum",
    "take",
    "tanh",
    "transpose",
]

Index = tuple[PrimExpr, ...]


def _is_one(dim: Any) -> bool:
    return isinstance(dim, tir.IntImm) and int(dim) == 1


def _broadcast_shape(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    shape = []
    for i in range(1, (len(a) if len(a) > len(b) else len(b)) + 1):
        if i > len(a) or (i <= len(b) and _is_one(a[-i])):
            shape.append(b[-i])
        elif i > len(b) or _is_one(b[-i]):
            shape.append(a[-i])
        elif isinstance(a[-i], tir.IntImm) and isinstance(b[-i], tir.IntImm) and int(a[-i]) != int(b[-i]):
            raise ValueError(f"shapes {tuple(a)} and {tuple(b)} do not broadcast: {a[-i]} and {b[-i]}")
        else:
            shape.append(b[-i] if isinstance(b[-i], tir.IntImm) else a[-i])
    return shape[::-1]


def _read(tensor: Tensor, index: Index) -> PrimExpr:
    own = index[len(index) - tensor.ndim :]
    return tensor(*(0 if _is_one(dim) else i for dim, i in zip(tensor.shape, own, strict=True)))


def _elementwise(x: Tensor, name: str, f: Callable[[PrimExpr], PrimExpr]) -> Tensor:
    return te.compute(x.shape, lambda *i: f(x(*i)), name=f"T_{name}")


def _binary(name: str, a: Any, b: Any, f: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Any:
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return f(a, b)
    shapes = [list(t.shape) if isinstance(t, Tensor) else [] for t in (a, b)]
    shape = _broadcast_shape(*shapes)

    def element(*index: PrimExpr) -> PrimExpr:
        x, y = (_read(t, index) if isinstance(t, Tensor) else t for t in (a, b))
        return f(x, y)

    return te.compute(shape, element, name=f"T_{name}")


def add(lhs: Any, rhs: Any) -> Any:
    """The sum, with broadcasting."""
    return _binary("add", lhs, rhs, lambda x, y: x + y)


def subtract(lhs: Any, rhs: Any) -> Any:
    """The difference, with broadcasting."""
    return _binary("subtract", lhs, rhs, lambda x, y: x - y)


def multiply(lhs: Any, rhs: Any) -> Any:
    """The product, with broadcasting."""
    return _binary("multiply", lhs, rhs, lambda x, y: x * y)


def divide(lhs: Any, rhs: Any) -> Any:
    """The quotient, with broadcasting."""
    return _binary("divide", lhs, rhs, tir.div)


def power(lhs: Any, rhs: Any) -> Any:
    """The power, with broadcasting."""
    return _binary("power", lhs, rhs, tir.power)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of two, with broadcasting."""
    return _binary("maximum", lhs, rhs, tir.max)


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of two, with broadcasting."""
    return _binary("minimum", lhs, rhs, tir.min)


def exp(x: Tensor) -> Tensor:
    """``e^x``."""
    return _elementwise(x, "exp", tir.exp)


def log(x: Tensor) -> Tensor:
    """The natural logarithm."""
    return _elementwise(x, "log", tir.log)


def sqrt(x: Tensor) -> Tensor:
    """The square root."""
    return _elementwise(x, "sqrt", tir.sqrt)


def rsqrt(x: Tensor) -> Tensor:
    """``1 / sqrt(x)``."""
    return _elementwise(x, "rsqrt", tir.rsqrt)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return _elementwise(x, "tanh", tir.tanh)


def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + e^-x)``."""
    return _elementwise(x, "sigmoid", tir.sigmoid)


def erf(x: Tensor) -> Tensor:
    """The error function."""
    return _elementwise(x, "erf", tir.erf)


def abs(x: Tensor) -> Tensor:
    """The absolute value."""
    return _elementwise(x, "abs", tir.abs)


def negative(x: Tensor) -> Tensor:
    """The negation."""
    return _elementwise(x, "negative", lambda v: -v)


def cast(x: Tensor, dtype: str) -> Tensor:
    """The elements as another data type."""
    return _elementwise(x, "cast", lambda v: v.astype(dtype))


relu = nn.relu


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> Tensor:
    """A tensor of one value."""
    return te.compute(shape, lambda *i: tir.const(fill_value, dtype), name="T_full")


def broadcast_to(x: Tensor, shape: Sequence[Any]) -> Tensor:
    """The tensor repeated to a larger shape."""
    return te.compute(shape, lambda *i: _read(x, i), name="T_broadcast_to")


def _axes(x: Tensor, axis: Any) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    axes = [axis] if isinstance(axis, int) else list(axis)
    return sorted(a % x.ndim for a in axes)


def _reduce(x: Tensor, axis: Any, keepdims: bool, name: str, f: Callable[..., PrimExpr]) -> Tensor:
    axes = _axes(x, axis)
    reduced = [te.reduce_axis((0, x.shape[a]), f"k{a}") for a in axes]
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keepdims or i not in axes]

    def element(*index: PrimExpr) -> PrimExpr:
        rest = [v for i, v in enumerate(index) if not keepdims or i not in axes]
        full_index = [reduced[axes.index(i)] if i in axes else rest.pop(0) for i in range(x.ndim)]
        return f(x(*full_index), axis=reduced)

    return te.compute(shape, element, name=f"T_{name}")


def sum(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes; all of them by default."""
    return _reduce(x, axis, keepdims, "sum", te.sum)


def max(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest over axes; all of them by default."""
    return _reduce(x, axis, keepdims, "max", te.max)


def min(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest over axes; all of them by default."""
    return _reduce(x, axis, keepdims, "min", te.min)


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The matrix product of the last two dims, batch dims broadcast."""
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("matmul needs tensors of rank 2 or more")
    rows, depth = (a.shape[-1], a.shape[-2]) if transp_a else (a.shape[-2], a.shape[-1])
    columns = b.shape[-2] if transp_b else b.shape[-1]
    batch = _broadcast_shape(a.shape[:-2], b.shape[:-2])
    k = te.reduce_axis((0, depth), "k")

    def element(*index: PrimExpr) -> PrimExpr:
        outer, i, j = index[:-2], index[-2], index[-1]

        def read(t: Tensor, row: PrimExpr, column: PrimExpr) -> PrimExpr:
            outer_own = outer[len(outer) - (t.ndim - 2) :] if t.ndim > 2 else ()
            own = [0 if _is_one(d) else o for d, o in zip(t.shape[:-2], outer_own, strict=True)]
            return t(*own, row, column)

        x = read(a, k, i) if transp_a else read(a, i, k)
        y = read(b, j, k) if transp_b else read(b, k, j)
        return te.sum(x * y, axis=k)

    return te.compute([*batch, rows, columns], element, name="T_matmul")


def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The tensor with its axes in another order; reversed by default."""
    order = [a % x.ndim for a in axes] if axes is not None else list(range(x.ndim))[::-1]
    if sorted(order) != list(range(x.ndim)):
        raise ValueError(f"axes {tuple(axes or ())} are no order of {x.ndim} axes")

    def element(*index: PrimExpr) -> PrimExpr:
        return x(*(index[order.index(i)] for i in range(x.ndim)))

    return te.compute([x.shape[a] for a in order], element, name="T_transpose")


def reshape(x: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The elements in row-major order in another shape of as many elements."""

    def element(*index: PrimExpr) -> PrimExpr:
        flat: Any = 0
        for dim, i in zip(newshape, index, strict=True):
            flat = flat * dim + i
        source: list[Any] = []
        for dim in reversed(x.shape[1:]):
            source.append(flat % dim)
            flat = flat // dim
        return x(*reversed([*source, flat])) if x.ndim else x()

    return te.compute(newshape, element, name="T_reshape")


def flatten(x: Tensor) -> Tensor:
    """All elements in one dim."""
    total: Any = 1
    for dim in x.shape:
        total = total * dim
    return reshape(x, [total])


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    first = a_tuple[0]
    axis %= first.ndim
    total: Any = 0
    for t in a_tuple:
        total = total + t.shape[axis]

    def element(*index: PrimExpr) -> PrimExpr:
        end: Any = total - a_tuple[-1].shape[axis]
        value = a_tuple[-1](*_moved(index, axis, end))
        for t in reversed(a_tuple[:-1]):
            start = end - t.shape[axis]
            value = tir.if_then_else(index[axis] < end, t(*_moved(index, axis, start)), value)
            end = start
        return value

    return te.compute([total if i == axis else d for i, d in enumerate(first.shape)], element, name="T_concat")


def _moved(index: Index, axis: int, by: Any) -> list[Any]:
    return [i - by if k == axis else i for k, i in enumerate(index)]


def take(a: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """The elements at ``indices`` along an axis."""
    axis %= a.ndim
    shape = [*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]]

    def element(*index: PrimExpr) -> PrimExpr:
        where = indices(*index[axis : axis + indices.ndim])
        return a(*index[:axis], where.astype("int64"), *index[axis + indices.ndim :])

    return te.compute(shape, element, name="T_take")

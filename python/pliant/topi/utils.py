"""Helper functions for sizes and indices, as in TVM's ``topi.utils``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant import arith, te, tir
from pliant._core import PrimExpr, Tensor

__all__ = [
    "ceil_div",
    "const_matrix",
    "const_vector",
    "equal_const_int",
    "get_const_int",
    "get_const_tuple",
    "get_max_power2_factor",
    "is_dynamic_shape",
    "is_empty_shape",
    "prod",
    "ravel_index",
    "simplify",
    "swap",
    "unravel_index",
    "within_index",
]


def simplify(expr: Any) -> Any:
    """Simplifies an expression. Other objects are returned unchanged."""
    return arith.Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def get_const_int(expr: Any) -> int:
    """Returns the integer value of an expression.

    Raises ``ValueError`` if the expression is not constant.
    """
    value = simplify(expr)
    number = value if isinstance(value, int) else getattr(value, "value", None)
    if number is None:
        raise ValueError(f"a constant integer is required here, but the value of {expr} is known only at run time")
    return int(number)


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the sizes as a tuple: integers if they are constant, otherwise simplified
    expressions."""
    values = [simplify(v) for v in in_tuple]
    return tuple(v if isinstance(v, int) else getattr(v, "value", v) for v in values)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is constant and equal to an integer."""
    known = simplify(expr)
    return (known if isinstance(known, int) else getattr(known, "value", None)) == value


def prod(x: Sequence[Any]) -> Any:
    """Returns the product of the items, or 1 if there are none."""
    result: Any = 1
    for factor in x:
        result = result * factor
    return result


def ceil_div(a: Any, b: Any) -> Any:
    """Returns ``a / b``, rounded up to an integer."""
    return tir.ceildiv(a, b)


def is_empty_shape(shape: Sequence[Any]) -> bool:
    """Whether at least one size is the constant 0."""
    return any(equal_const_int(dim, 0) for dim in shape)


def is_dynamic_shape(shape: Sequence[Any]) -> bool:
    """Whether at least one size is not constant."""
    return not all(isinstance(dim, int) for dim in get_const_tuple(shape))


def swap(arr: Sequence[Any], axis: int) -> list[Any]:
    """Returns the items as a list, with the last one and the one at ``axis`` exchanged."""
    out = list(arr)
    out[axis], out[-1] = out[-1], out[axis]
    return out


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """Returns the largest power of 2 that divides ``n`` and is at most ``max_value``. Raises
    ``ValueError`` if ``n`` is not positive.
    """
    if n < 1:
        raise ValueError(f"get_max_power2_factor: n must be positive, got {n}")
    factor = n & -n
    while max_value is not None and factor > max(max_value, 1):
        factor //= 2
    return factor


# ---- indices ----


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Converts the indices of an element to its flat index in a tensor of the given shape."""
    flat: Any = 0
    for index, dim in zip(indices, shape, strict=True):
        flat = flat * dim + index
    return flat


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    """Converts the flat index of an element to its indices in a tensor of the given shape."""
    indices = []
    for dim in reversed(shape):
        indices.append(tir.floormod(idx, dim))
        idx = tir.floordiv(idx, dim)
    return indices[::-1]


def within_index(b: Any, e: Any, s: Any, i: Any) -> Any:
    """Whether an index is in ``range(b, e, s)``."""
    step = tir.max(tir.abs(s), 1)
    forward = tir.all(s > 0, i >= b, i < e)
    backward = tir.all(s < 0, i <= b, i > e)
    return tir.all(tir.any(forward, backward), tir.floormod(i - b, step) == 0)


# ---- constants ----


def const_vector(vector: Any, name: str = "const_vector") -> Tensor:
    """Creates a vector from numbers, which become constants in the tensor expression. It should be
    short. Raises ``ValueError`` if the rank of ``vector`` is not 1."""
    return _constants(np.asarray(vector), 1, name)


def const_matrix(matrix: Any, name: str = "const_matrix") -> Tensor:
    """Creates a matrix from numbers, which become constants in the tensor expression. It should be
    small. Raises ``ValueError`` if the rank of ``matrix`` is not 2."""
    return _constants(np.asarray(matrix), 2, name)


def _constants(values: np.ndarray, ndim: int, name: str) -> Tensor:
    if values.ndim != ndim:
        raise ValueError(f"{name}: the array must have {ndim} dims, got {values.ndim}")

    def element(*i: Any) -> Any:
        flat, value = ravel_index(i, values.shape), tir.const(0, str(values.dtype))
        for k, number in enumerate(values.ravel().tolist()):
            value = tir.Select(flat == k, tir.const(number, str(values.dtype)), value)
        return value

    return te.compute(values.shape, element, name=name)

"""Operators that create tensors, change shapes, and select or order elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant import _core
from pliant._core import FloatImm, IntImm, PrimExpr
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Tensor, get_default_dtype, wrap_nested

if TYPE_CHECKING:
    from pliant._core.relax import Expr

_relax = _core.relax
IntExpr: TypeAlias = int | PrimExpr


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """Inserts a dim of size 1."""
    return wrap_nested(_op.expand_dims(x._expr, dim), name)


def squeeze(x: Tensor, axis: int | Sequence[int] | None = -1, name: str = "squeeze") -> Tensor:
    """Removes dims of size 1: those of the given axes, or all if ``axis`` is ``None``. Raises an error if one has another size."""
    return wrap_nested(_op.squeeze(x._expr, axis), name)


def concat(x: Sequence[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Concatenates tensors along a dim."""
    return wrap_nested(_op.concat([t._expr for t in x], dim), name)


def split(
    ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split"
) -> tuple[Tensor, ...]:
    """Splits a tensor along an axis: into a number of equal parts, or at a list of indices."""
    sections = indices_or_sections if isinstance(indices_or_sections, int) else [int(i) for i in indices_or_sections]
    return wrap_nested(_op.split(ary._expr, sections, axis), name)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> tuple[Tensor, ...]:
    """Splits a tensor along a dim into a number of parts."""
    return wrap_nested(_op.split(x._expr, chunks, dim), name)


def reshaped(expr: Expr, shape: Sequence[IntExpr]) -> Expr:
    """Creates a call of ``relax.op.reshape``, with the sizes for which 0 and -1 stand, as TVM does. A -1 stays if the quotient of the
    sizes is not obvious."""
    old = list(expr.struct_info.shape.values)
    dims: list[IntExpr] = [old[i] if isinstance(d, int) and d == 0 and i < len(old) else d for i, d in enumerate(shape)]
    unknown = [i for i, dim in enumerate(dims) if isinstance(dim, int) and dim == -1]
    if len(unknown) == 1:
        quotient = _quotient(old, [dim for i, dim in enumerate(dims) if i != unknown[0]])
        dims[unknown[0]] = -1 if quotient is None else quotient
    return _op.reshape(expr, dims)


def _quotient(sizes: Sequence[IntExpr], divisors: Sequence[IntExpr]) -> IntExpr | None:
    """The product of sizes divided by that of divisors, or ``None`` if symbolic divisors are no factors of it."""
    constant, divisor = 1, 1
    factors: list[PrimExpr] = []
    for size in sizes:
        if isinstance(size, int | IntImm):
            constant *= int(size)
        else:
            factors.append(size)
    for size in divisors:
        if isinstance(size, int | IntImm):
            divisor *= int(size)
            continue
        match = next((i for i, factor in enumerate(factors) if bool(factor == size)), None)
        if match is None:
            return None
        del factors[match]
    if divisor == 0 or constant % divisor:
        return None
    result: IntExpr | None = constant // divisor if constant != divisor or not factors else None
    for factor in factors:
        result = factor if result is None else result * factor
    return result


def reshape(x: Tensor, shape: Sequence[IntExpr], name: str = "reshape") -> Tensor:
    """Changes the shape. One size may be -1, which is inferred; 0 keeps the size of the same dim of ``x``."""
    return wrap_nested(reshaped(x._expr, shape), name)


def broadcast_to(x: Tensor, shape: Sequence[IntExpr], name: str = "broadcast_to") -> Tensor:
    """Broadcasts a tensor to a shape."""
    return wrap_nested(_op.broadcast_to(x._expr, list(shape)), name)


def permute_dims(x: Tensor, axes: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """Permutes the dims; by default, reverses them."""
    if name is None:
        hint = getattr(x._expr, "name_hint", None)
        name = hint.replace("linear", "matmul") if hint is not None and "linear" in hint else "permute_dims"
    return wrap_nested(_op.permute_dims(x._expr, axes=list(axes) if axes else None), name)


def permute(x: Tensor, axes: Sequence[int] | None, name: str = "permute") -> Tensor:
    """The same as :func:`permute_dims`."""
    return permute_dims(x, axes, name)


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Repeats every element, along an axis or of the flattened tensor."""
    return wrap_nested(_op.repeat(x._expr, repeats, axis), name)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """Takes elements at indices along an axis. Without an axis, ``x`` must be a vector. Raises an error at run time for an
    index out of range."""
    return wrap_nested(_op.take(x._expr, indices._expr, axis), name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """Sets the elements below a diagonal of the last two dims to 0."""
    return wrap_nested(_op.triu(x._expr, diagonal), name)


def full(shape: Sequence[IntExpr], fill_value: Tensor | float, dtype: str = "float32", name: str = "full") -> Tensor:
    """A tensor filled with a number or with the element of a scalar tensor."""
    value = fill_value.value if isinstance(fill_value, FloatImm | IntImm) else fill_value
    expr = value._expr if isinstance(value, Tensor) else _relax.relax_const(value, dtype)
    return wrap_nested(_op.full(list(shape), expr, dtype), name)


def zeros(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """A tensor of zeros."""
    return wrap_nested(_op.zeros(list(shape), dtype), name)


def ones(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "ones") -> Tensor:
    """A tensor of ones."""
    return wrap_nested(_op.ones(list(shape), dtype), name)


def empty(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "empty") -> Tensor:
    """A tensor whose elements do not matter. They are 0."""
    return wrap_nested(_op.zeros(list(shape), dtype), name)


def arange(
    start: IntExpr | float,
    end: IntExpr | float | None = None,
    step: IntExpr | float = 1,
    dtype: str | None = "float32",
    name: str = "arange",
) -> Tensor:
    """Evenly spaced values from ``start`` to ``end`` (exclusive). A single bound is ``end``, and ``start`` is 0."""
    return wrap_nested(_op.arange(start, end, step, dtype), name)


def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None, name: str = "cumsum"
) -> Tensor:
    """Cumulative sums along an axis, or of the flattened tensor. With ``exclusive``, a sum does not include its own element."""
    return wrap_nested(_op.cumsum(data._expr, axis, dtype, bool(exclusive)), name)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    """Sorts the elements along an axis."""
    return wrap_nested(_op.sort(x._expr, axis, descending), name)


def argsort(
    data: Tensor, axis: int = -1, descending: bool = False, dtype: str = "int32", name: str = "argsort"
) -> Tensor:
    """The indices that sort the elements along an axis, of type ``dtype``."""
    return wrap_nested(_op.argsort(data._expr, axis, descending, dtype), name)


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
    name: str = "topk",
) -> Any:
    """The ``k`` largest elements along an axis, or the smallest unless ``largest``. ``ret_type`` selects ``"values"``,
    ``"indices"`` (of type ``dtype``) or ``"both"``. ``k`` below 1 means all."""
    return wrap_nested(_op.topk(data._expr, k, axis, ret_type, largest, dtype), name)


def get_timestep_embedding(
    x: Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
    name: str = "get_timestep_embedding",
) -> Tensor:
    """Sinusoidal embeddings of the time steps in the vector ``x``, of shape ``(n, embedding_dim)`` and the default data type:
    sines, then cosines, or the reverse with ``flip_sin_to_cos``. An odd ``embedding_dim`` is padded with a 0."""

    def number(value: float) -> Any:
        return _relax.relax_const(value, "float32")

    half = embedding_dim // 2
    timesteps = _op.astype(x._expr, "float32")
    exponent = _op.multiply(number(-math.log(max_period)), _op.arange(0, half, 1, "float32"))
    frequencies = _op.exp(_op.divide(exponent, number(half - downscale_freq_shift)))
    angles = _op.multiply(_op.expand_dims(timesteps, 1), _op.expand_dims(frequencies, 0))
    if scale != 1:
        angles = _op.multiply(number(scale), angles)
    waves = [_op.cos(angles), _op.sin(angles)] if flip_sin_to_cos else [_op.sin(angles), _op.cos(angles)]
    embedding = _op.concat(waves, axis=-1)
    if embedding_dim % 2 == 1:
        embedding = _op.nn.pad(embedding, (0, 0, 0, 1))
    return wrap_nested(_op.astype(embedding, get_default_dtype()), name)


__all__ = [
    "IntExpr",
    "arange",
    "argsort",
    "broadcast_to",
    "chunk",
    "concat",
    "cumsum",
    "empty",
    "full",
    "get_timestep_embedding",
    "ones",
    "permute",
    "permute_dims",
    "repeat",
    "reshape",
    "sort",
    "split",
    "squeeze",
    "take",
    "topk",
    "triu",
    "unsqueeze",
    "zeros",
]

"""Reductions over dims: sums, extrema, norms, variances and logical reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pliant import te
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import dtype_name, is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def axes_of(cx: FunctionImporter, x: Any, dim: Any) -> list[int] | None:
    """The reduced axes: ``None`` for all of them, which torch expresses as ``None`` or as an empty list."""
    if dim is None or (isinstance(dim, Sequence) and not dim):
        return None
    dims = dim if isinstance(dim, Sequence) else [dim]
    return [cx.axis(x, d) for d in dims] if cx.rank(x) else []


def _typed(cx: FunctionImporter, x: Any, dtype: Any) -> Any:
    """Converts an operand to the type of a sum: ``dtype``, or int64 for integers and bools."""
    if dtype is not None:
        return cx.cast(x, dtype_name(dtype))
    return x if is_float(cx.dtype(x)) else cx.cast(x, "int64")


def reduce(cx: FunctionImporter, name: str, x: Any, dim: Any, keepdim: bool) -> Any:
    """Emits a Relax reduction. A scalar is its own reduction, except for its data type."""
    axes = axes_of(cx, x, dim)
    if axes == []:
        x = cx.ops.reshape(x, [1])
        return getattr(cx.ops, name)(x, axis=[0], keepdims=False)
    return getattr(cx.ops, name)(x, axis=axes, keepdims=keepdim)


def total(name: str) -> Converter:
    """The converter of a sum or product."""

    def convert(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return reduce(cx, name, _typed(cx, x, dtype), dim, keepdim)

    return convert


def mean(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Converts ``mean``. Integers become floats after ``dtype`` is applied."""
    return reduce(cx, "mean", cx.as_float(_typed(cx, x, dtype)), dim, keepdim)


def nansum(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Converts ``nansum``, in which NaN counts as 0."""
    return total("sum")(cx, _without_nan(cx, x), dim, keepdim, dtype=dtype)


def _without_nan(cx: FunctionImporter, x: Any) -> Any:
    return cx.ops.where(cx.ops.isnan(x), cx.tensor(0.0, cx.dtype(x)), x) if is_float(cx.dtype(x)) else x


def nanmean(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Converts ``nanmean``. NaN counts neither in the sum nor in the number of elements; the mean of NaN only is NaN."""
    x = cx.as_float(_typed(cx, x, dtype))
    numbers = cx.cast(cx.ops.logical_not(cx.ops.isnan(x)), cx.dtype(x))
    return cx.ops.divide(reduce(cx, "sum", _without_nan(cx, x), dim, keepdim), reduce(cx, "sum", numbers, dim, keepdim))


def extremum(name: str) -> Converter:
    """The converter of ``amax`` or ``amin``."""

    def convert(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return reduce(cx, name, x, dim, keepdim)

    return convert


def extremum_with_index(name: str) -> Converter:
    """The converter of ``max.dim`` or ``min.dim``: the values and their indices."""

    def convert(cx: FunctionImporter, x: Any, dim: int, keepdim: bool = False) -> Any:
        if cx.rank(x) == 0:
            return x, cx.tensor(0, "int64")
        axis = cx.axis(x, dim)
        values = getattr(cx.ops, name)(x, axis=[axis], keepdims=keepdim)
        return values, getattr(cx.ops, f"arg{name}")(x, axis=axis, keepdims=keepdim)

    return convert


def _index_of_extremum(name: str) -> Converter:
    """The converter of ``argmax`` or ``argmin``: the first extremum or first NaN, in the flattened tensor without ``dim``."""

    def convert(cx: FunctionImporter, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if cx.rank(x) == 0:
            return cx.tensor(0, "int64")
        rule = getattr(cx.ops, name)
        if dim is None:
            index = rule(cx.ops.flatten(x))
            return cx.ops.reshape(index, [1] * cx.rank(x)) if keepdim else index
        return rule(x, axis=cx.axis(x, dim), keepdims=keepdim)

    return convert


def aminmax(cx: FunctionImporter, x: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Converts ``aminmax`` to a minimum and a maximum, over all dims without ``dim``. Both are NaN if any element is."""
    return reduce(cx, "min", x, dim, keepdim), reduce(cx, "max", x, dim, keepdim)


def logical(name: str) -> Converter:
    """The converter of ``any`` or ``all``: the maximum or minimum of truth values."""

    def convert(cx: FunctionImporter, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return reduce(cx, name, cx.cast(x, "bool"), dim, keepdim)

    return convert


def count_nonzero(cx: FunctionImporter, x: Any, dim: Any = None) -> Any:
    """Converts ``count_nonzero`` to a sum of int64. NaN counts as nonzero."""
    return reduce(cx, "sum", cx.cast(cx.cast(x, "bool"), "int64"), dim, False)


def _moments(cx: FunctionImporter, x: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """The variance with a correction, and the mean."""
    axes = axes_of(cx, x, dim)
    reduced = range(cx.rank(x)) if axes is None else axes
    count: Any = math.prod((cx.shape(x)[a] for a in reduced), start=1)
    correction = 1 if correction is None else correction
    average = reduce(cx, "mean", x, dim, keepdim)
    variance = reduce(cx, "variance", x, dim, keepdim)
    if correction != 0:
        dtype = cx.dtype(variance)
        size = cx.tensor(count, dtype)
        divisor = cx.ops.maximum(cx.ops.subtract(size, cx.tensor(float(correction), dtype)), cx.tensor(0.0, dtype))
        variance = cx.ops.multiply(variance, cx.ops.divide(size, divisor))
    return variance, average


def variance(root: bool, with_mean: bool) -> Converter:
    """The converter of ``var``, ``std``, ``var_mean`` or ``std_mean`` with a correction."""

    def convert(cx: FunctionImporter, x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        value, average = _moments(cx, x, dim, correction, keepdim)
        value = cx.ops.sqrt(value) if root else value
        return (value, average) if with_mean else value

    return convert


def _unbiased(root: bool, with_mean: bool) -> Converter:
    """The converter of the older overloads, which have ``unbiased`` instead of a correction."""
    rule = variance(root, with_mean)

    def convert(cx: FunctionImporter, x: Any, *args: Any) -> Any:
        if len(args) == 3:
            dim, unbiased, keepdim = args
            return rule(cx, x, dim, correction=int(unbiased), keepdim=keepdim)
        return rule(cx, x, None, correction=int(args[0]))

    return convert


def logsumexp(cx: FunctionImporter, x: Any, dim: Any, keepdim: bool = False) -> Any:
    """Converts ``logsumexp``. A finite maximum is subtracted before ``exp``, so that it does not overflow."""
    x = cx.as_float(x)
    if cx.rank(x) == 0:
        return x
    dtype = cx.dtype(x)
    axes = axes_of(cx, x, dim)
    peak = cx.ops.max(x, axis=axes, keepdims=True)
    peak = cx.ops.where(cx.ops.isfinite(peak), peak, cx.tensor(0.0, dtype))
    logarithm = cx.ops.log(cx.ops.sum(cx.ops.exp(cx.ops.subtract(x, peak)), axis=axes, keepdims=True))
    result = cx.ops.add(logarithm, peak)
    if keepdim:
        return result
    return cx.ops.squeeze(result, axis=axes if axes is not None else list(range(cx.rank(x))))


def vector_norm(cx: FunctionImporter, x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Converts ``linalg_vector_norm`` of any order: 0 counts nonzero elements, and infinite orders take extrema of magnitudes."""
    x = cx.cast(x, dtype_name(dtype)) if dtype is not None else cx.as_float(x)
    kind = cx.dtype(x)
    order = 2 if order is None else order
    size = cx.ops.abs(x)
    if order == math.inf:
        return reduce(cx, "max", size, dim, keepdim)
    if order == -math.inf:
        return reduce(cx, "min", size, dim, keepdim)
    if order == 0:
        return reduce(cx, "sum", cx.cast(cx.ops.not_equal(x, cx.tensor(0.0, kind)), kind), dim, keepdim)
    if order == 1:
        return reduce(cx, "sum", size, dim, keepdim)
    if order == 2:
        return cx.ops.sqrt(reduce(cx, "sum", cx.ops.multiply(x, x), dim, keepdim))
    powers = cx.ops.power(size, cx.tensor(float(order), kind))
    return cx.ops.power(reduce(cx, "sum", powers, dim, keepdim), cx.tensor(1.0 / float(order), kind))


def norm(cx: FunctionImporter, x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Converts the overloads of ``norm`` without ``dtype``. Matrices have vector norms, too; ``p=None`` stands for 2."""
    return vector_norm(cx, x, p, dim, keepdim, dtype=dtype)


def norm_with_dtype(cx: FunctionImporter, x: Any, p: Any, *rest: Any, dtype: Any = None) -> Any:
    """Converts the overloads of ``norm`` with ``dtype``, to which the operand is converted before the reduction."""
    return vector_norm(cx, x, p, *rest, dtype=dtype)


def median(ignore_nan: bool) -> Converter:
    """``median`` or ``nanmedian``: the lower of the two middle elements, and its index for one dim."""

    def convert(cx: FunctionImporter, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if cx.rank(x) == 0:
            return x if dim is None else (x, cx.tensor(0, "int64"))
        flat = cx.ops.flatten(x) if dim is None else x
        axis = 0 if dim is None else cx.axis(x, dim)
        values, indices = _middle(cx, flat, axis, ignore_nan)
        if dim is None:
            return cx.ops.squeeze(values, axis=[0])
        return (values, indices) if keepdim else tuple(cx.ops.squeeze(v, axis=[axis]) for v in (values, indices))

    return convert


def _middle(cx: FunctionImporter, x: Any, axis: int, ignore_nan: bool) -> tuple[Any, Any]:
    """The median along an axis and its index, with the axis kept."""
    dtype = cx.dtype(x)
    order = cx.ops.argsort(x, axis=axis, dtype="int64")
    if not is_float(dtype):
        middle = (cx.shape(x)[axis] - 1) // 2
        index = cx.ops.strided_slice(order, axes=[axis], begin=[middle], end=[middle + 1])
        return cx.ops.gather_elements(x, index, axis=axis), index
    nan = cx.ops.isnan(x)
    numbers = cx.ops.sum(cx.cast(cx.ops.logical_not(nan), "int64"), axis=[axis], keepdims=True)
    one, two, zero = (cx.tensor(v, "int64") for v in (1, 2, 0))
    middle = cx.ops.maximum(cx.ops.floor_divide(cx.ops.subtract(numbers, one), two), zero)
    index = cx.ops.gather_elements(order, middle, axis=axis)
    if not ignore_nan:
        first = cx.ops.argmax(cx.cast(nan, "uint8"), axis=axis, keepdims=True)
        index = cx.ops.where(cx.ops.max(nan, axis=[axis], keepdims=True), first, index)
    return cx.ops.gather_elements(x, index, axis=axis), index


def distances(cx: FunctionImporter, a: Any, b: Any, p: float = 2.0, mode: Any = None) -> Any:
    """The distances of all pairs of rows of two matrices."""
    left = cx.ops.expand_dims(a, cx.rank(a) - 1)
    right = cx.ops.expand_dims(b, cx.rank(b) - 2)
    return vector_norm(cx, cx.ops.subtract(left, right), p, -1)


def pair_distances(cx: FunctionImporter, x: Any, p: float = 2.0) -> Any:
    """The distances of all pairs of rows of one matrix, each pair once."""
    import torch

    count = cx.shape(x)[0]
    if not isinstance(count, int):
        raise UnsupportedError("pdist of a symbolic number of rows is not supported")
    first, second = (cx.ops.take(x, cx.constant(i), axis=0) for i in torch.triu_indices(count, count, 1))
    return vector_norm(cx, cx.ops.subtract(first, second), p, -1)


def trace(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``trace`` of a matrix, which need not be square. Integers and bools are summed in int64."""
    x = _typed(cx, x, None)

    def compute(a: Any) -> Any:
        k = te.reduce_axis((0, te.min(a.shape[0], a.shape[1])), "k")
        return te.compute((), lambda: te.sum(a[k, k], axis=k), name="trace")

    return cx.te(compute, x)


def _dim_overloads(name: str, convert: Converter, overloads: str) -> dict[str, Converter]:
    return {f"{name}.{overload}": convert for overload in overloads.split()}


def _spread_table() -> dict[str, Converter]:
    table: dict[str, Converter] = {}
    for name, root, with_mean in (("var", False, False), ("std", True, False), ("var_mean", False, True), ("std_mean", True, True)):
        table[f"{name}.correction"] = variance(root, with_mean)
        table[f"{name}.dim"] = table[name] = _unbiased(root, with_mean)
    return table


TABLE: dict[str, Converter] = {
    **_dim_overloads("sum", total("sum"), "default dim_IntList"),
    **_dim_overloads("prod", total("prod"), "default dim_int"),
    **_dim_overloads("mean", mean, "default dim"),
    "nansum": nansum,
    "nanmean": nanmean,
    "amax": extremum("max"),
    "amin": extremum("min"),
    "max": extremum("max"),
    "min": extremum("min"),
    "max.dim": extremum_with_index("max"),
    "min.dim": extremum_with_index("min"),
    "argmax": _index_of_extremum("argmax"),
    "argmin": _index_of_extremum("argmin"),
    "aminmax": aminmax,
    **_dim_overloads("any", logical("max"), "default dim dims"),
    **_dim_overloads("all", logical("min"), "default dim dims"),
    **_dim_overloads("count_nonzero", count_nonzero, "default dim_IntList"),
    **_spread_table(),
    **{"logsumexp": logsumexp, "special_logsumexp": logsumexp},
    "linalg_vector_norm": vector_norm,
    **_dim_overloads("norm", norm, "Scalar ScalarOpt_dim"),
    **_dim_overloads("norm", norm_with_dtype, "ScalarOpt_dtype ScalarOpt_dim_dtype"),
    **_dim_overloads("median", median(ignore_nan=False), "default dim"),
    **_dim_overloads("nanmedian", median(ignore_nan=True), "default dim"),
    **{"_cdist_forward": distances, "cdist": distances},
    "_pdist_forward": pair_distances,
    "trace": trace,
}
"""The converters of this family."""


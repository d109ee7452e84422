"""Sorting, selection by rank and distinct elements."""

from __future__ import annotations

from typing import Any

from pliant import tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _sorted(cx: FunctionImporter, x: Any, dim: int, descending: bool) -> Any:
    """Sorted values and indices. In torch, NaN is larger than all numbers; descending order begins with it."""
    if cx.rank(x) == 0:
        return x, cx.tensor(0, "int64")
    dtype, axis = cx.dtype(x), cx.axis(x, dim)
    x = cx.cast(x, "uint8") if dtype == "bool" else x
    if descending and is_float(dtype):
        size = cx.shape(x)[axis]
        return cx.fields(cx.ops.topk(x, size, axis=axis, largest=True, dtype="int64", nan_is_largest=True))
    indices = cx.ops.argsort(x, axis=axis, descending=descending, dtype="int64")
    return cx.ops.gather_elements(x, indices, axis=axis), indices


def sort(cx: FunctionImporter, x: Any, dim: int = -1, descending: bool = False) -> Any:
    """Converts ``sort``. The sort is stable, and NaN is larger than all numbers. Returns the values and their int64 indices."""
    return _sorted(cx, x, dim, descending)


def sort_stable(cx: FunctionImporter, x: Any, *, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    """Converts ``sort.stable``. ``stable`` is ignored: all sorts are stable."""
    return _sorted(cx, x, dim, descending)


def argsort(cx: FunctionImporter, x: Any, dim: int = -1, descending: bool = False) -> Any:
    """Converts ``argsort``. The sort is stable, and NaN is larger than all numbers."""
    return _sorted(cx, x, dim, descending)[1]


def argsort_stable(cx: FunctionImporter, x: Any, *, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    """Converts ``argsort.stable``. ``stable`` is ignored: all sorts are stable."""
    return _sorted(cx, x, dim, descending)[1]


def msort(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``msort``, which sorts along the first dim in ascending order."""
    return _sorted(cx, x, 0, False)[0]


def topk(cx: FunctionImporter, x: Any, k: Any, dim: int = -1, largest: bool = True, in_order: bool = True) -> Any:
    """Converts ``topk``. NaN is larger than all numbers. Results are sorted even without ``in_order``; indices are int64."""
    if cx.rank(x) == 0:
        return x, cx.tensor(0, "int64")
    return cx.fields(cx.ops.topk(x, k, axis=cx.axis(x, dim), largest=largest, dtype="int64", nan_is_largest=True))


def kthvalue(cx: FunctionImporter, x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Converts ``kthvalue``: the k-th smallest element, counted from 1, and its index. NaN is larger than all numbers."""
    if cx.rank(x) == 0:
        return x, cx.tensor(0, "int64")
    axis = cx.axis(x, dim)
    parts = [cx.ops.strided_slice(v, axes=[axis], begin=[k - 1], end=[k]) for v in _sorted(cx, x, dim, False)]
    return parts if keepdim else [cx.ops.squeeze(v, axis=[axis]) for v in parts]


def unique(
    cx: FunctionImporter, x: Any, in_order: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """``_unique2``: distinct elements of the flattened tensor, the inverse mapping and the counts."""
    result = cx.fields(cx.ops.unique(x, sorted=True, return_index=False, return_inverse=True, return_counts=True))
    inverse = cx.ops.reshape(result[1], cx.shape(x)) if return_inverse else cx.ops.zeros([0], "int64")
    return result[0], inverse, result[2] if return_counts else cx.ops.zeros([0], "int64")


def unique_along(
    cx: FunctionImporter, x: Any, dim: int, in_order: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """``unique_dim``: distinct slices, the inverse mapping and the counts."""
    result = cx.fields(
        cx.ops.unique(x, sorted=True, return_index=False, return_inverse=True, return_counts=True, axis=cx.axis(x, dim))
    )
    return result


def unique_consecutive(
    cx: FunctionImporter, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first element of each run of equal elements, the run of each element and the lengths of runs."""
    if dim is not None and cx.rank(x) > 1:
        raise UnsupportedError("unique_consecutive along a dim is not supported")
    from pliant.frontend.torch.ops.indexing import true_positions

    shape = cx.shape(x)
    flat = cx.ops.flatten(x)
    (size,) = cx.shape(flat)
    ones = cx.ops.ones([1], "bool")
    head, tail = (cx.ops.strided_slice(flat, axes=[0], begin=[b], end=[e]) for b, e in ((0, size - 1), (1, size)))
    starts = cx.ops.concat([ones, cx.ops.not_equal(head, tail)], axis=0)
    count = tir.Var(cx.builder.get_unique_name("count"), "int64")
    (positions,) = true_positions(cx, starts, count)
    empty = cx.ops.zeros([0], "int64")
    inverse, counts = empty, empty
    if return_inverse:
        runs = cx.ops.subtract(cx.ops.cumsum(cx.cast(starts, "int64"), axis=0), cx.tensor(1, "int64"))
        inverse = cx.ops.reshape(runs, shape)
    if return_counts:
        end = cx.ops.reshape(cx.tensor(size, "int64"), [1])
        following = cx.ops.concat([cx.ops.strided_slice(positions, axes=[0], begin=[1], end=[count]), end], axis=0)
        counts = cx.ops.subtract(following, positions)
    return cx.ops.take(flat, positions, axis=0), inverse, counts


TABLE: dict[str, Converter] = {
    "sort": sort,
    "sort.stable": sort_stable,
    "argsort": argsort,
    "argsort.stable": argsort_stable,
    "msort": msort,
    "topk": topk,
    "kthvalue": kthvalue,
    "_unique2": unique,
    "unique_dim": unique_along,
    "unique_consecutive": unique_consecutive,
}
"""The converters of this family."""

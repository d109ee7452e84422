"""Embeddings, one-hot encoding, searches in sorted boundaries, and histograms."""

from __future__ import annotations

import math
from typing import Any

from pliant import te, tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def embedding_bag(
    cx: FunctionImporter, weight: Any, positions: Any, offsets: Any, scale_by_frequency: bool = False, mode: int = 0,
    sparse: bool = False, sample_weights: Any = None, include_last: bool = False, padding: int = -1,
) -> list[Any]:  # fmt: skip
    """The sum, mean or maximum of the rows of each bag. Only the first result is supported."""
    assert cx.node is not None
    if any(user.args[1] != 0 for user in cx.node.users):
        raise UnsupportedError("only the first result of embedding_bag is supported")
    dtype, width = cx.dtype(weight), cx.shape(weight)[1]
    bags = [cx.sizes.convert(d) for d in cx.out[0].shape][0]
    starts = cx.ops.strided_slice(offsets, axes=[0], begin=[0], end=[bags]) if include_last else offsets
    (count,) = cx.shape(positions)
    order = cx.ops.arange(count, dtype=cx.dtype(starts))
    bag = cx.ops.subtract(cx.ops.bucketize(order, starts, right=True), cx.tensor(1, "int64"))
    rows = cx.ops.take(weight, positions, axis=0, wrap_negative=False)
    if sample_weights is not None:
        rows = cx.ops.multiply(rows, cx.ops.expand_dims(sample_weights, 1))
    target = cx.ops.broadcast_to(cx.ops.expand_dims(bag, 1), [count, width])
    kept = cx.ops.not_equal(positions, cx.tensor(padding, cx.dtype(positions)))
    column = cx.ops.expand_dims(kept, 1)
    empty = cx.tensor(-math.inf if mode == 2 else 0.0, dtype)
    rows = cx.ops.where(column, rows, empty)
    start = cx.ops.full([bags, width], empty, dtype)
    total = cx.ops.scatter_elements(start, target, rows, axis=0, reduction="max" if mode == 2 else "add")
    hits = cx.ops.scatter_elements(cx.ops.zeros([bags], "int64"), bag, cx.cast(kept, "int64"), axis=0, reduction="add")
    hits = cx.ops.expand_dims(hits, 1)
    if mode == 1:
        total = cx.ops.divide(total, cx.cast(cx.ops.maximum(hits, cx.tensor(1, "int64")), dtype))
    if mode == 2:
        total = cx.ops.where(cx.ops.greater(hits, cx.tensor(0, "int64")), total, cx.tensor(0.0, dtype))
    return [total, None, None, None]


def histogram_of_counts(cx: FunctionImporter, x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    """``histc``: equal bounds stand for the range of the elements."""
    dtype = cx.dtype(x)
    flat = cx.ops.flatten(x)
    first, last = cx.tensor(low, dtype), cx.tensor(high, dtype)
    if low == high:
        first, last = cx.ops.min(flat), cx.ops.max(flat)
    single = cx.ops.equal(first, last)
    one = cx.tensor(1, dtype)
    first, last = cx.ops.where(single, cx.ops.subtract(first, one), first), cx.ops.where(single, cx.ops.add(last, one), last)
    scaled = cx.ops.multiply(cx.ops.subtract(flat, first), cx.tensor(bins, dtype))
    position = cx.cast(cx.ops.floor(cx.ops.divide(scaled, cx.ops.subtract(last, first))), "int64")
    position = cx.ops.minimum(cx.ops.maximum(position, cx.tensor(0, "int64")), cx.tensor(bins - 1, "int64"))
    inside = cx.ops.logical_and(cx.ops.greater_equal(flat, first), cx.ops.less_equal(flat, last))
    return cx.ops.scatter_elements(cx.ops.zeros([bins], dtype), position, cx.cast(inside, dtype), axis=0, reduction="add")


def embedding(cx: FunctionImporter, weight: Any, positions: Any, *_: Any) -> Any:
    """Converts ``embedding``. Its other operands, such as ``padding_idx``, only affect gradients and are ignored. An index that is
    negative or too large is an error at run time."""
    return cx.ops.take(weight, positions, axis=0, wrap_negative=False)


def one_hot(cx: FunctionImporter, x: Any, classes: Any = -1) -> Any:
    """Converts ``one_hot``, which needs a number of classes. An index out of range is an error at run time, so ones are scattered:
    the operator ``one_hot`` of Relax has a row of zeros for such an index."""
    if isinstance(classes, int) and classes < 0:
        raise UnsupportedError("one_hot without num_classes is not supported: pass the number of classes")
    axis = cx.rank(x)
    zeros = cx.ops.zeros([*cx.shape(x), classes], "int64")
    positions = cx.ops.expand_dims(x, axis)
    ones = cx.ops.broadcast_to(cx.tensor(1, "int64"), cx.shape(positions))
    return cx.ops.scatter_elements(zeros, positions, ones, axis=axis, wrap_negative=False)


def bucketize(cx: FunctionImporter, x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Converts ``bucketize`` in the promoted type. With ``right``, boundaries equal to an element precede it. NaN is last."""
    dtype = cx.promoted_type(x, boundaries)
    x, boundaries = cx.tensor(x, dtype), cx.cast(boundaries, dtype)
    return cx.ops.bucketize(x, boundaries, out_int32=out_int32, right=right)


def searchsorted(
    cx: FunctionImporter, boundaries: Any, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    """Converts ``searchsorted``. Boundaries with rows of their own are searched linearly. NaN follows all numbers."""
    right = right or side == "right"
    dtype = cx.promoted_type(x, boundaries)
    boundaries, x = cx.cast(boundaries, dtype), cx.tensor(x, dtype)
    if sorter is not None:
        boundaries = cx.ops.gather_elements(boundaries, sorter, axis=cx.rank(boundaries) - 1, wrap_negative=False)
    if cx.rank(boundaries) == 1:
        return cx.ops.bucketize(x, boundaries, out_int32=out_int32, right=right)

    def compute(edges: Any, values: Any) -> Any:
        k = te.reduce_axis((0, edges.shape[-1]), "k")

        def element(*i: Any) -> Any:
            edge, value = edges(*i[:-1], k), values(*i)
            below = edge <= value if right else edge < value
            if is_float(dtype):
                below = tir.any(below, tir.all(te.isnan(value), tir.Not(te.isnan(edge))))
            return te.sum(tir.Select(below, tir.const(1, "int64"), tir.const(0, "int64")), axis=k)

        return te.compute(values.shape, element, name="searchsorted")

    return cx.te(compute, boundaries, x, primfunc_name_hint="searchsorted")


TABLE: dict[str, Converter] = {
    "embedding": embedding,
    **dict.fromkeys("_embedding_bag _embedding_bag_forward_only".split(), embedding_bag),
    "histc": histogram_of_counts,
    "one_hot": one_hot,
    **dict.fromkeys("bucketize.Tensor bucketize.Scalar".split(), bucketize),
    **dict.fromkeys("searchsorted.Tensor searchsorted.Scalar".split(), searchsorted),
}
"""The converters of this family."""

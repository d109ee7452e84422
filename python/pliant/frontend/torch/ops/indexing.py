"""Gathering and scattering by index tensors and masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pliant import relax, tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def true_positions(cx: FunctionImporter, mask: Any, count: Any) -> list[Any]:
    """The indices of the true elements of a mask along each of its dims, as vectors of ``count`` elements."""
    found = cx.ops.nonzero(mask)
    rank = cx.rank(mask)
    found = cx.builder.match_cast(found, relax.TensorStructInfo([rank, count], "int64"))
    return [cx.ops.reshape(cx.ops.strided_slice(found, axes=[0], begin=[k], end=[k + 1]), [count]) for k in range(rank)]


def selected_count(cx: FunctionImporter) -> Any:
    """The size of the result that only this operator defines, the number of elements that a mask selects, or a new symbol if no
    size of the program states it."""
    for dim in cx.out.shape:
        if cx.sizes.undefined(dim):
            cx.sizes.define(dim)
            return cx.sizes.convert(dim)
    return tir.Var(cx.builder.get_unique_name("count"), "int64")


def _is_mask(cx: FunctionImporter, index: Any) -> bool:
    return index is not None and cx.dtype(index) in ("bool", "uint8")


def _expanded(cx: FunctionImporter, indices: Sequence[Any], count: Any) -> list[Any]:
    """Replaces each mask by one index vector per dim of the mask."""
    expanded: list[Any] = []
    for index in indices:
        if _is_mask(cx, index):
            expanded += true_positions(cx, cx.cast(index, "bool"), count)
        else:
            expanded.append(index)
    return expanded


class IndexedDims:
    """The dims of a tensor that index tensors select, moved to the front."""

    def __init__(self, rank: int, indices: Sequence[Any]) -> None:
        self.axes = [i for i, index in enumerate(indices) if index is not None]
        self.others = [i for i in range(rank) if i not in self.axes]
        adjacent = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))
        self.position = self.axes[0] if adjacent else 0
        """The first dim of the result that the index tensors define."""

    def to_front(self) -> list[int]:
        """The permutation of the tensor that moves the indexed dims to the front."""
        return self.axes + self.others

    def from_front(self) -> list[int]:
        """The permutation that moves the indexed dims from the front back to their positions."""
        front = self.to_front()
        return [front.index(i) for i in range(len(front))]

    def result_order(self, index_rank: int) -> list[int]:
        """The permutation of a result, whose index dims are at the front, that moves these to their position."""
        order = list(range(index_rank, index_rank + len(self.others)))
        return order[: self.position] + list(range(index_rank)) + order[self.position :]


def _permuted(cx: FunctionImporter, x: Any, axes: list[int]) -> Any:
    return x if axes == list(range(len(axes))) else cx.ops.permute_dims(x, axes)


def index(cx: FunctionImporter, x: Any, indices: Sequence[Any]) -> Any:
    """Converts ``index.Tensor``. A mask stands for the index vectors of its true elements. Negative indices count from the end."""
    masks = any(_is_mask(cx, i) for i in indices)
    count = selected_count(cx) if masks else None
    indices = _expanded(cx, indices, count)
    dims = IndexedDims(cx.rank(x), indices)
    used = [i for i in indices if i is not None]
    if len(used) == 1 and cx.dtype(x) != "bool":
        return cx.ops.take(x, used[0], axis=dims.axes[0])
    index_rank = max(cx.rank(i) for i in used)
    result = cx.ops.index_tensor(_permuted(cx, x, dims.to_front()), used)
    return _permuted(cx, result, dims.result_order(index_rank))


def index_put(cx: FunctionImporter, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *_: Any) -> Any:
    """Converts ``index_put``. ``values`` is broadcast, and added with ``accumulate``. Filling by one mask is a ``where``."""
    dtype = cx.dtype(x)
    values = cx.cast(values, dtype)
    masks = [i for i in indices if _is_mask(cx, i)]
    if masks and len(indices) == 1 and math.prod(cx.shape(values), start=1) == 1 and not accumulate:
        mask = cx.cast(masks[0], "bool")
        mask = cx.ops.reshape(mask, cx.shape(mask) + [1] * (cx.rank(x) - cx.rank(mask)))
        return cx.ops.where(mask, cx.ops.reshape(values, []), x)
    count = selected_count(cx) if masks else None
    indices = _expanded(cx, indices, count)
    dims = IndexedDims(cx.rank(x), indices)
    used = [i for i in indices if i is not None]
    index_rank = max(cx.rank(i) for i in used)
    order = dims.result_order(index_rank)
    rank = len(order)
    missing = rank - cx.rank(values)
    if missing:
        values = cx.ops.reshape(values, [1] * missing + cx.shape(values))
    values = _permuted(cx, values, [order.index(i) for i in range(rank)])
    moved = _permuted(cx, x, dims.to_front())
    if dtype == "bool":
        moved, values = cx.cast(moved, "uint8"), cx.cast(values, "uint8")
    result = cx.ops.index_put(moved, used, values, accumulate=accumulate)
    return _permuted(cx, cx.cast(result, dtype), dims.from_front())


def gather(cx: FunctionImporter, x: Any, dim: int, positions: Any, **_: Any) -> Any:
    """Converts ``gather``. Scalar operands and empty index tensors of another rank are accepted, as in torch. A negative index is an
    error at run time."""
    if cx.rank(x) == 0:
        return cx.ops.broadcast_to(x, cx.shape(positions))
    if cx.rank(positions) == 0:
        positions = cx.ops.reshape(positions, [1])
        return cx.ops.reshape(cx.ops.gather_elements(x, positions, axis=0, wrap_negative=False), [])
    if cx.rank(positions) != cx.rank(x):  # torch accepts empty index tensors of any rank.
        return cx.ops.zeros(cx.shape(positions), cx.dtype(x))
    return cx.ops.gather_elements(x, positions, axis=cx.axis(x, dim), wrap_negative=False)


def _vector(cx: FunctionImporter, x: Any) -> Any:
    return cx.ops.reshape(x, [1]) if cx.rank(x) == 0 else x


def _scatter(cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any, reduction: str) -> Any:
    """Scatters with a reduction. ``source`` may be larger than the index tensor, as in torch. A negative index is an error at run
    time."""
    dtype, shape = cx.dtype(x), cx.shape(x)
    axis = cx.axis(x, dim)
    x, positions, source = (_vector(cx, v) for v in (x, positions, cx.cast(source, dtype)))
    sizes = cx.shape(positions)
    if not cx.same_shape(cx.shape(source), sizes):
        axes = list(range(len(sizes)))
        source = cx.ops.strided_slice(source, axes=axes, begin=[0] * len(sizes), end=sizes)
    if dtype == "bool":
        x, source = cx.cast(x, "uint8"), cx.cast(source, "uint8")
    result = cx.ops.scatter_elements(x, positions, source, axis=axis, reduction=reduction, wrap_negative=False)
    return cx.ops.reshape(cx.cast(result, dtype), shape) if not shape else cx.cast(result, dtype)


REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "mean", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def scatter(cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any, *, reduce: str = "update") -> Any:
    """Converts ``scatter``. ``source`` may be a number. Elements are replaced unless ``reduce`` is ``"add"`` or ``"multiply"``."""
    if not cx.is_tensor(source) or cx.rank(source) != cx.rank(positions):
        source = cx.ops.broadcast_to(cx.tensor(source, cx.dtype(x)), cx.shape(positions))
    return _scatter(cx, x, dim, positions, source, REDUCTIONS.get(reduce, reduce))


def scatter_add(cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any) -> Any:
    """Converts ``scatter_add``. Elements of ``source`` beyond the shape of the index tensor are not read."""
    return _scatter(cx, x, dim, positions, source, "add")


def _neutral(cx: FunctionImporter, reduction: str, dtype: str) -> Any:
    """The element that a reduction ignores."""
    import torch

    from pliant.frontend.torch.data_types import torch_dtype

    if reduction in ("max", "min"):
        kind = torch_dtype(dtype)
        limits: Any = torch.finfo(kind) if is_float(dtype) else torch.iinfo(kind)
        infinite = math.inf if is_float(dtype) else None
        low, high = (-math.inf, math.inf) if infinite else (limits.min, limits.max)
        return cx.tensor(low if reduction == "max" else high, dtype)
    return cx.tensor(1 if reduction == "mul" else 0, dtype)


def scatter_reduce(
    cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Converts ``scatter_reduce``. Without ``include_self``, elements that an index reaches do not count themselves."""
    dtype, reduction = cx.dtype(x), REDUCTIONS[reduce]
    positions = positions if cx.rank(positions) else _vector(cx, positions)
    integer_mean = reduction == "mean" and not is_float(dtype)
    if integer_mean:
        raise UnsupportedError("scatter_reduce of integers with the reduction mean is not supported")
    if include_self:
        return _scatter(cx, x, dim, positions, source, reduction)
    ones = cx.ops.broadcast_to(cx.tensor(1, "int64"), cx.shape(positions))
    hits = _scatter(cx, cx.ops.zeros_like(x, dtype="int64"), dim, positions, ones, "add")
    reached = cx.ops.greater(hits, cx.tensor(0, "int64"))
    kind = "add" if reduction == "mean" else reduction
    start = cx.ops.where(reached, _neutral(cx, kind, dtype), x)
    result = _scatter(cx, start, dim, positions, source, kind)
    if reduction == "mean":
        result = cx.ops.divide(result, cx.cast(cx.ops.maximum(hits, cx.tensor(1, "int64")), dtype))
    return result


def index_select(cx: FunctionImporter, x: Any, dim: int, positions: Any) -> Any:
    """Converts ``index_select``. A scalar ``positions`` is a vector of one element, so that the dim remains."""
    if cx.rank(x) == 0:
        return cx.ops.reshape(x, cx.out_shape)
    return cx.ops.take(x, _vector(cx, positions), axis=cx.axis(x, dim), wrap_negative=False)


def _index_write(reduction: str) -> Converter:
    """``index_add`` or ``index_copy``: writes slices at positions along one dim."""

    def convert(cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any, *, alpha: Any = 1) -> Any:
        dtype, shape, axis = cx.dtype(x), cx.shape(x), cx.axis(x, dim)
        source = cx.cast(source, dtype)
        if alpha != 1:
            source = cx.ops.multiply(source, cx.tensor(alpha, dtype))
        if not shape:
            x, source = _vector(cx, x), _vector(cx, source)
        if cx.rank(source) < cx.rank(x):
            source = cx.ops.expand_dims(source, axis)
        sizes = cx.shape(source)
        rank = len(sizes)
        column = cx.ops.reshape(positions, [1] * axis + [sizes[axis]] + [1] * (rank - axis - 1))
        result = _scatter(cx, x, axis, cx.ops.broadcast_to(column, sizes), source, reduction)
        return result if shape else cx.ops.reshape(result, [])

    return convert


def index_reduce(
    cx: FunctionImporter, x: Any, dim: int, positions: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Converts ``index_reduce`` to ``scatter_reduce``, with one index for each slice of ``source`` along the dim."""
    axis, sizes = cx.axis(x, dim), cx.shape(source)
    if not sizes:
        x, source, sizes = _vector(cx, x), _vector(cx, source), [1]
    column = cx.ops.reshape(positions, [1] * axis + [sizes[axis]] + [1] * (len(sizes) - axis - 1))
    column = cx.ops.broadcast_to(column, sizes)
    return cx.ops.reshape(scatter_reduce(cx, x, axis, column, source, reduce, include_self=include_self), cx.out_shape)


def index_fill(cx: FunctionImporter, x: Any, dim: int, positions: Any, value: Any) -> Any:
    """Fills slices at positions along one dim with a scalar."""
    dtype, axis = cx.dtype(x), cx.axis(x, dim)
    if cx.rank(x) == 0:
        return cx.tensor(value, dtype)
    size = cx.shape(x)[axis]
    zeros = cx.ops.zeros([size], "uint8")
    positions = _vector(cx, positions)
    ones = cx.ops.broadcast_to(cx.tensor(1, "uint8"), cx.shape(positions))
    marks = cx.cast(cx.ops.scatter_elements(zeros, positions, ones, axis=0), "bool")
    marks = cx.ops.reshape(marks, [1] * axis + [size] + [1] * (cx.rank(x) - axis - 1))
    return cx.ops.where(marks, cx.tensor(value, dtype), x)


def take(cx: FunctionImporter, x: Any, positions: Any) -> Any:
    """Converts ``take`` from the flattened tensor. Negative indices count from the end."""
    return cx.ops.take(cx.ops.flatten(x), positions, axis=0)


def take_along_dim(cx: FunctionImporter, x: Any, positions: Any, dim: int | None = None) -> Any:
    """Converts ``take_along_dim``. Dims other than ``dim`` are broadcast; without ``dim``, both operands are flattened. Unlike
    ``gather``, negative indices count from the end."""
    if dim is None:
        return cx.ops.take(cx.ops.flatten(x), cx.ops.flatten(positions), axis=0)
    axis = cx.axis(x, dim)
    left, right = cx.shape(x), cx.shape(positions)

    def joint(i: int) -> Any:
        return left[i] if right[i] == 1 else right[i]

    x = cx.ops.broadcast_to(x, [d if i == axis else joint(i) for i, d in enumerate(left)])
    positions = cx.ops.broadcast_to(positions, [d if i == axis else joint(i) for i, d in enumerate(right)])
    return cx.ops.gather_elements(x, positions, axis=axis)


def put(cx: FunctionImporter, x: Any, positions: Any, source: Any, accumulate: bool = False) -> Any:
    """Converts ``put`` to elements of the flattened tensor, which are replaced, or added to with ``accumulate``."""
    flat = cx.ops.index_put(
        cx.ops.flatten(x), [cx.ops.flatten(positions)], cx.ops.flatten(cx.cast(source, cx.dtype(x))), accumulate=accumulate
    )
    return cx.ops.reshape(flat, cx.shape(x))


def masked_select(cx: FunctionImporter, x: Any, mask: Any) -> Any:
    """Converts ``masked_select`` to a vector whose size is known only at run time. ``x`` and ``mask`` are broadcast."""
    shape = cx.shape(cx.ops.where(mask, x, x))
    x, mask = (cx.ops.flatten(cx.ops.broadcast_to(v, shape)) for v in (x, mask))
    (positions,) = true_positions(cx, mask, selected_count(cx))
    return cx.ops.take(x, positions, axis=0)


def masked_scatter(cx: FunctionImporter, x: Any, mask: Any, source: Any) -> Any:
    """Converts ``masked_scatter``. If ``source`` has too few elements, which is an error in torch, its last one is repeated."""
    shape = cx.shape(x)
    mask = cx.ops.broadcast_to(mask, shape)
    order = cx.ops.cumsum(cx.cast(cx.ops.flatten(mask), "int64"), axis=0)
    positions = cx.ops.subtract(order, cx.tensor(1, "int64"))
    values = cx.ops.take(cx.ops.flatten(cx.cast(source, cx.dtype(x))), positions, axis=0, mode="clip")
    return cx.ops.where(mask, cx.ops.reshape(values, shape), x)


def nonzero(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``nonzero`` and ``argwhere`` to one row of indices per nonzero element, whereas Relax has one row per dim."""
    return cx.ops.permute_dims(cx.ops.nonzero(x), [1, 0])


def nonzero_static(cx: FunctionImporter, x: Any, *, size: int, fill_value: int = -1) -> Any:
    """Converts ``nonzero_static`` to ``size`` rows: those of the first nonzero elements, then rows of ``fill_value``."""
    found = nonzero(cx, x)
    rank = cx.rank(x)
    count = tir.Var(cx.builder.get_unique_name("count"), "int64")
    found = cx.builder.match_cast(found, relax.TensorStructInfo([count, rank], "int64"))
    rest = cx.ops.full([size, rank], cx.tensor(fill_value, "int64"), "int64")
    return cx.ops.strided_slice(cx.ops.concat([found, rest], axis=0), axes=[0], begin=[0], end=[size])


TABLE: dict[str, Converter] = {
    **dict.fromkeys("index.Tensor _unsafe_index.Tensor".split(), index),
    **dict.fromkeys("index_put _unsafe_index_put _index_put_impl".split(), index_put),
    "gather": gather,
    **dict.fromkeys("scatter.src scatter.value scatter.reduce scatter.value_reduce".split(), scatter),
    "scatter_add": scatter_add,
    "scatter_reduce.two": scatter_reduce,
    "index_select": index_select,
    "index_add": _index_write("add"),
    "index_reduce": index_reduce,
    "index_copy": _index_write("update"),
    **dict.fromkeys("index_fill.int_Scalar index_fill.int_Tensor".split(), index_fill),
    "take": take,
    "take_along_dim": take_along_dim,
    "put": put,
    "masked_select": masked_select,
    "masked_scatter": masked_scatter,
    **dict.fromkeys("nonzero argwhere".split(), nonzero),
    "nonzero_static": nonzero_static,
}
"""The converters of this family."""

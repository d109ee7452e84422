"""Functions of TVM's ``topi`` that move elements and are not operators of ``relax.op``, as tensor
expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi._operator_wrapper import axis_of, find
from pliant.topi._size_checks import require_equal_sizes, require_condition
from pliant.topi.utils import get_const_int

__all__ = [
    "adv_index",
    "dynamic_strided_slice",
    "expand_like",
    "invert_permutation",
    "layout_transform",
    "matrix_set_diag",
    "reinterpret",
    "sequence_mask",
    "sliding_window",
    "sparse_to_dense",
    "strided_set",
    "unravel_index",
]


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """Interprets the bits of the elements as another data type of the same width."""
    return te.compute(x.shape, lambda *i: tir.reinterpret(dtype, x(*i)), name="T_reinterpret")


def expand_like(a: Tensor, shape_like: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Repeats ``a`` along new axes at ``axis``, so that its shape becomes that of ``shape_like``.

    Raises ``ValueError`` if the ranks do not match. The sizes of the other axes must be equal.
    """
    ndim = shape_like.ndim
    new = {axis_of(k, ndim) for k in ([axis] if isinstance(axis, int) else axis)}
    if a.ndim + len(new) != ndim:
        raise ValueError(
            f"expand_like: {a.name} with {len(new)} new dims has {a.ndim + len(new)} dims, but {shape_like.name} has {ndim}"
        )
    kept = [k for k in range(ndim) if k not in new]
    result = te.compute(shape_like.shape, lambda *i: a(*(i[k] for k in kept)), name="T_expand_like")
    pairs = ((f"dim {j} of {a.name}", a.shape[j], shape_like.shape[k]) for j, k in enumerate(kept))
    return require_equal_sizes(result, "expand_like", *pairs)


def unravel_index(indices: Tensor, shape: Sequence[Any] | Tensor) -> Tensor:
    """Converts flat indices into a tensor of the given shape to coordinates. The result has one row
    for each dim of the shape.

    The shape may be a vector with a constant number of sizes. Raises ``ValueError`` if that number
    is not constant.
    """
    dims = [shape(k).astype("int64") for k in range(get_const_int(shape.shape[0]))] if isinstance(shape, Tensor) else list(shape)

    def coordinate(k: Any, *i: Any) -> Any:
        rest: Any = indices(*i).astype("int64")
        value: Any = tir.const(0, "int64")
        for axis in range(len(dims) - 1, -1, -1):
            here = rest if axis == 0 else tir.floormod(rest, dims[axis])
            value = tir.Select(k == axis, here, value)
            rest = tir.floordiv(rest, dims[axis])
        return value.astype(indices.dtype)

    return te.compute([len(dims), *indices.shape], coordinate, name="T_unravel_index")


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """Gathers the elements at index tensors, which are broadcast with each other:
    ``relax.op.index_tensor``.
    """
    return find("index_tensor")(data, list(indices))


def invert_permutation(data: Tensor) -> Tensor:
    """Computes the inverse of a permutation: a vector with ``i`` at index ``data[i]``."""
    places = te.compute(data.shape, lambda i: i.astype(data.dtype), name="T_places")
    return find("scatter_elements")(find("zeros_like")(data), data, places, axis=0)


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """Replaces the elements after the valid steps of each sequence by ``mask_value``.
    ``valid_length`` is the vector of the numbers of valid steps.

    The steps are along ``axis``, which is 0 or 1. The sequences are along axis 1 or 0, respectively. Raises ``ValueError`` for
    another axis, if ``data`` has fewer than two dims, or if ``valid_length`` is not a vector.
    """
    if axis not in (0, 1) or data.ndim < 2 or valid_length.ndim != 1:
        raise ValueError(
            f"sequence_mask: expected axis 0 or 1, data with at least 2 dims, and valid_length with 1 dim; got axis {axis},"
            f" data with {data.ndim} dims, and valid_length with {valid_length.ndim} dims"
        )
    masked = tir.const(mask_value, data.dtype)

    def element(*i: Any) -> Any:
        inside = i[axis].astype("int64") < valid_length(i[1 - axis]).astype("int64")
        return tir.Select(inside, data(*i), masked)

    result = te.compute(data.shape, element, name="T_sequence_mask")
    return require_equal_sizes(result, "sequence_mask", (valid_length.name, valid_length.shape[0], data.shape[1 - axis]))


def strided_set(
    a: Tensor, v: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """Writes ``v`` to a slice along the first axes of ``a``, and returns the result:
    ``a[begin:end:strides] = v``. Negative positions count from the end.

    Raises ``ValueError`` if a stride is not positive, or for a wrong number of positions or dims.
    """
    steps = [1] * len(begin) if strides is None else list(strides)
    if not len(begin) == len(end) == len(steps) <= a.ndim or v.ndim != a.ndim or any(s < 1 for s in steps):
        raise ValueError(
            f"strided_set: expected begin, end and positive strides of the same length, at most {a.ndim}, and v with {a.ndim} dims;"
            f" got begin {list(begin)}, end {list(end)}, strides {steps}, and v with {v.ndim} dims"
        )

    def place(at: int, dim: Any) -> Any:
        at = dim + at if at < 0 else at
        return tir.max(tir.min(at, dim), 0)

    ends = [(place(begin[k], a.shape[k]), place(end[k], a.shape[k])) for k in range(len(steps))]

    def element(*i: Any) -> Any:
        inside, at = [], list(i)
        for k, ((first, last), step) in enumerate(zip(ends, steps, strict=True)):
            inside += [i[k] >= first, i[k] < last, tir.floormod(i[k] - first, step) == 0]
            at[k] = tir.floordiv(i[k] - first, step)
        return tir.if_then_else(tir.all(*inside), v(*at), a(*i)) if inside else v(*i)

    result = te.compute(a.shape, element, name="T_strided_set")
    counts = [tir.floordiv(tir.max(last - first, 0) + step - 1, step) for (first, last), step in zip(ends, steps, strict=True)]
    wanted = [*counts, *a.shape[len(steps) :]]
    return require_equal_sizes(result, "strided_set", *((f"dim {k} of {v.name}", v.shape[k], size) for k, size in enumerate(wanted)))


def dynamic_strided_slice(
    a: Tensor, begin: Tensor, end: Tensor, strides: Tensor, output_shape: Sequence[Any]
) -> Tensor:
    """Returns the slice of shape ``output_shape`` that starts at ``begin``, in steps of ``strides``.
    ``begin`` and ``strides`` are vectors with one element for each axis. ``end`` is ignored, because
    ``output_shape`` determines the end. ``relax.op.dynamic_strided_slice`` computes the shape itself.
    """
    starts = [tir.max(tir.min(begin(k).astype("int64"), a.shape[k]), 0) for k in range(a.ndim)]

    def element(*i: Any) -> Any:
        return a(*(starts[k] + i[k] * strides(k).astype("int64") for k in range(a.ndim)))

    return te.compute(output_shape, element, name="T_dynamic_strided_slice")


def sliding_window(data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Returns all windows over the axes from ``axis`` on. The result has the dims before ``axis``,
    then the positions of the windows, and then the elements in them. Raises ``ValueError``
    unless there is one positive window size and stride for each of these axes.
    """
    axis = axis_of(axis, data.ndim)
    n = data.ndim - axis
    if len(window_shape) != n or len(strides) != n:
        raise ValueError(
            f"sliding_window: data has {n} axes from axis {axis} on, but window_shape has {len(window_shape)} sizes"
            f" and strides has {len(strides)}"
        )
    if min(*window_shape, *strides) < 1:
        raise ValueError(f"sliding_window: window_shape {list(window_shape)} and strides {list(strides)} must be positive")
    places = [
        tir.floordiv(data.shape[axis + k] - window_shape[k], strides[k]) + 1 for k in range(n)
    ]

    def element(*i: Any) -> Any:
        inner = (i[axis + k] * strides[k] + i[axis + n + k] for k in range(n))
        return data(*i[:axis], *inner)

    return te.compute([*data.shape[:axis], *places, *window_shape], element, name="T_sliding_window")


def sparse_to_dense(
    sparse_indices: Tensor, output_shape: Sequence[Any], sparse_values: Tensor, default_value: float = 0
) -> Tensor:
    """Creates a tensor of ``default_value`` with ``sparse_values`` at ``sparse_indices``: one
    index, a vector of indices, or a matrix with one index tuple in each row."""
    shape = list(output_shape)
    count = 1 if sparse_indices.ndim == 0 else sparse_indices.shape[0]
    rows = find("reshape")(sparse_indices, [count, len(shape)])
    values = find("broadcast_to")(sparse_values, [count])
    background = find("full")(shape, default_value, dtype=sparse_values.dtype)
    return find("scatter_nd")(background, rows, values, reduction="update")


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Replaces diagonals of matrices: the diagonal ``k`` (0 is the main diagonal, positive ones are
    above it), or all diagonals of a range ``(low, high)``.

    Several diagonals are stored along the second to last dim of ``diagonal``, the highest one
    first. ``align`` states the alignment of shorter diagonals in their rows (left or right), first
    for the diagonals above the main one and then for those below. Raises ``ValueError`` for an
    invalid ``k``, ``align`` or rank of ``diagonal``.
    """
    low, high = (k, k) if isinstance(k, int) else k
    sides = align.split("_")
    if low > high:
        raise ValueError(f"matrix_set_diag: k must be a diagonal or a range (low, high) with low <= high, got {k}")
    if len(sides) != 2 or not {*sides} <= {"LEFT", "RIGHT"}:
        raise ValueError(
            "matrix_set_diag: align must be 'RIGHT_LEFT', 'LEFT_RIGHT', 'LEFT_LEFT' or 'RIGHT_RIGHT',"
            f" got '{align}'"
        )
    rows, columns = data.shape[-2], data.shape[-1]
    longest = tir.min(rows + min(high, 0), columns - max(low, 0))

    def element(*i: Any) -> Any:
        row, column = i[-2], i[-1]
        d = column - row
        at = tir.min(row, column)
        if low == high:
            value = diagonal(*i[:-2], at)
        else:
            length = tir.min(rows + tir.min(d, 0), columns - tir.max(d, 0))
            above, below = (longest - length if side == "RIGHT" else 0 for side in sides)
            value = diagonal(*i[:-2], high - d, at + tir.if_then_else(d >= 0, above, below))
        return tir.if_then_else(tir.all(d >= low, d <= high), value, data(*i))

    wanted = [*data.shape[:-2], *([] if low == high else [high - low + 1]), longest]
    if diagonal.ndim != len(wanted):
        raise ValueError(f"matrix_set_diag: diagonal has {diagonal.ndim} dims, expected {len(wanted)} for data of {data.ndim} dims")
    result = te.compute(data.shape, element, name="T_matrix_set_diag")
    pairs = ((f"dim {k} of {diagonal.name}", diagonal.shape[k], size) for k, size in enumerate(wanted))
    return require_equal_sizes(result, "matrix_set_diag", *pairs)


def layout_transform(array: Tensor, src_layout: Any, dst_layout: str | None = None, **options: Any) -> Tensor:
    """Moves the elements to another layout, such as from ``"NCHW"`` to ``"NCHW4c"``. A lower-case letter is a block of the axis
    with the same upper-case letter; the number before it is the block size. With one layout argument, this is
    ``relax.op.layout_transform`` with an index map.

    Raises ``ValueError`` for an invalid layout, and if the layouts have different axes. Sizes must
    be multiples of the blocks.
    """
    if dst_layout is None:
        return find("layout_transform")(array, src_layout, **options)
    source, target = _layout(src_layout), _layout(dst_layout)
    if {letter.upper() for letter, _ in source} != {letter.upper() for letter, _ in target} or len(source) != array.ndim:
        raise ValueError(
            f"layout_transform: cannot convert {array.name} with {array.ndim} dims from layout '{src_layout}' to"
            f" '{dst_layout}': the source layout needs a letter for each dim, and both layouts need the same axes"
        )
    whole: dict[str, Any] = {}
    for (letter, _), dim in zip(source, array.shape, strict=True):
        name = letter.upper()
        whole[name] = dim if name not in whole else whole[name] * dim
    shape = [
        part if part else tir.floordiv(whole[letter], _block_elements(target, letter)) for letter, part in target
    ]

    def element(*i: Any) -> Any:
        at: dict[str, Any] = {}
        for k, (letter, _) in enumerate(target):
            step = _step_size(target, k)
            at[letter.upper()] = at.get(letter.upper(), 0) + (i[k] * step if step != 1 else i[k])
        return array(*(_block_index(at[letter.upper()], source, k) for k, (letter, _) in enumerate(source)))

    result = te.compute(shape, element, name="T_layout_trans")
    for letter, size in whole.items():
        parts = _block_elements(target, letter)
        message = (
            f"topi.layout_transform: the size {{0}} of axis {letter} is not a multiple of its block size {parts} in '{dst_layout}'"
        )
        result = require_condition(result, tir.floormod(size, parts) == 0, message, size) if parts > 1 else result
    return result


Layout = list[tuple[str, int]]
"""The letters of a layout. A lower-case letter comes with the number of elements in its block, an
upper-case letter with 0."""


def _layout(text: str) -> Layout:
    found = re.findall(r"(\d*)([A-Za-z])", text)
    axes = [(letter, int(size) if size else 0) for size, letter in found]
    whole = "".join(f"{size}{letter}" for size, letter in found) == text
    if not whole or len({letter for letter, _ in axes}) != len(axes) or any(c.islower() != (n > 0) for c, n in axes):
        raise ValueError(
            f"layout_transform: '{text}' is not a layout: write an upper-case letter for each axis, and a size and a "
            "lower-case letter for each block"
        )
    return axes


def _block_elements(layout: Layout, letter: str) -> int:
    return math.prod(n for c, n in layout if n and c.upper() == letter)


def _step_size(layout: Layout, k: int) -> int:
    """Returns how far the index of an axis advances for one step along position ``k`` of a layout. For an upper-case letter, this
    is the number of elements in all blocks of the axis; for a block, it is 1.
    """
    letter, part = layout[k]
    return 1 if part else _block_elements(layout, letter)


def _block_index(index: Any, layout: Layout, k: int) -> Any:
    """Computes the index along position ``k`` of a blocked layout from ``index``, the index along the whole axis."""
    size, step = layout[k][1], _step_size(layout, k)
    index = tir.floordiv(index, step) if step != 1 else index
    return tir.floormod(index, size) if size else index


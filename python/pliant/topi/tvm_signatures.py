"""Operators for which TVM's ``topi`` uses another name or order of arguments than ``relax.op``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import _core, te, tir
from pliant._core import Tensor
from pliant.topi._size_checks import require_equal_sizes
from pliant.topi._operator_wrapper import axis_of, find

__all__ = [
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "cast",
    "ceil_log2",
    "collapse_sum",
    "concatenate",
    "einsum",
    "elemwise_sum",
    "expand_dims",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "full",
    "gather",
    "gather_nd",
    "identity",
    "log2",
    "log10",
    "matmul",
    "ndarray_size",
    "one_hot",
    "relu",
    "scatter_nd",
    "searchsorted",
    "shape",
    "sort",
    "squeeze",
    "strided_slice",
    "take",
    "tensordot",
    "tile",
    "topk",
    "transpose",
    "trilu",
]


def identity(x: Tensor) -> Tensor:
    """Copies ``x`` to a new tensor, as a separate stage."""
    return te.compute(x.shape, lambda *i: x(*i), name="identity")


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Removes dims of size 1: those at ``axis``, or by default all dims whose size is known to be
    1.

    Raises ``ValueError`` if a dim at ``axis`` is known to have another size. A symbolic size is checked at run time.
    """
    dims = list(a.shape)
    sizes = [d if isinstance(d, int) else getattr(d, "value", None) for d in dims]
    if axis is None:
        removed = {k for k, size in enumerate(sizes) if size == 1}
    else:
        removed = {axis_of(k, len(dims)) for k in ([axis] if isinstance(axis, int) else axis)}
    kept = [k for k in range(len(dims)) if k not in removed]

    def at(*i: Any) -> Any:
        index = dict(zip(kept, i, strict=True))
        return a(*(index.get(k, 0) for k in range(len(dims))))

    result = te.compute([dims[k] for k in kept], at, name="T_squeeze")
    return require_equal_sizes(result, "squeeze", *((f"dim {k}", dims[k], 1) for k in sorted(removed)))


def cast(x: Tensor, dtype: str) -> Tensor:
    """Converts the elements to another data type: ``relax.op.astype``."""
    return find("astype")(x, dtype=dtype)


def log2(x: Tensor) -> Tensor:
    """Computes the elementwise logarithm to base 2."""
    return te.compute(x.shape, lambda *i: tir.log2(x(*i)), name="T_log2")


def log10(x: Tensor) -> Tensor:
    """Computes the elementwise logarithm to base 10."""
    return te.compute(x.shape, lambda *i: tir.log10(x(*i)), name="T_log10")


def ceil_log2(x: Tensor) -> Tensor:
    """Computes the elementwise logarithm to base 2, rounded up. The result is exact for positive
    integers.
    """
    if not x.dtype.startswith(("int", "uint")):
        return te.compute(x.shape, lambda *i: tir.ceil(tir.log2(x(*i))), name="T_ceil_log2")
    return te.compute(
        x.shape, lambda *i: (64 - tir.clz(x(*i).astype("int64") - 1)).astype(x.dtype), name="T_ceil_log2"
    )


def fast_exp(x: Tensor) -> Tensor:
    """The same as ``exp``, which is vectorized already."""
    return find("exp")(x)


def fast_tanh(x: Tensor) -> Tensor:
    """The same as ``tanh``, which is vectorized already."""
    return find("tanh")(x)


def fast_erf(x: Tensor) -> Tensor:
    """The same as ``erf``, which is vectorized already."""
    return find("erf")(x)


def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``: ``relax.op.nn.relu``."""
    return find("nn.relu")(x)


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> Tensor:
    """Creates a tensor that is filled with one value."""
    return find("full")(shape, fill_value, dtype=dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """Creates a vector of the values from ``start`` (inclusive) to ``stop`` (exclusive) at a
    distance of ``step``. Without ``stop``, the values are from 0 to ``start``.
    """
    return find("arange")(*((0, start) if stop is None else (start, stop)), step, dtype=dtype)


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """Computes the elementwise sum of several tensors. Raises ``ValueError`` if there are none."""
    if not xs:
        raise ValueError("elemwise_sum: xs must not be empty")
    add = find("add")
    total = xs[0]
    for x in xs[1:]:
        total = add(total, x)
    return total


# ---- reductions ----


def all(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Computes whether all elements along the axes are non-zero. By default, reduces over all axes."""
    return cast(find("min")(cast(cast(data, "bool"), "uint8"), axis, keepdims), "bool")


def any(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Computes whether any element along the axes is non-zero. By default, reduces over all axes."""
    return cast(find("max")(cast(cast(data, "bool"), "uint8"), axis, keepdims), "bool")


def collapse_sum(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """Sums over the dims that broadcasting ``target_shape`` to the shape of ``data`` would add or
    stretch: ``relax.op.collapse_sum_to``."""
    return find("collapse_sum_to")(data, target_shape)


def argmax(data: Tensor, axis: int | None = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """Computes the index of the largest element along an axis, or of the flattened tensor by
    default, as int32. Among equal elements, the result is the first index, or the last if
    ``select_last_index`` is set.
    """
    return _arg_extremum("argmax", data, axis, keepdims, select_last_index)


def argmin(data: Tensor, axis: int | None = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """Computes the index of the smallest element along an axis, or of the flattened tensor by
    default, as int32. Among equal elements, the result is the first index, or the last if
    ``select_last_index`` is set.
    """
    return _arg_extremum("argmin", data, axis, keepdims, select_last_index)


def _arg_extremum(name: str, data: Tensor, axis: int | None, keepdims: bool, last: bool) -> Tensor:
    if not last:
        return cast(find(name)(data, axis, keepdims), "int32")
    along = list(range(data.ndim)) if axis is None else [axis_of(axis, data.ndim)]
    count = tir.const(1, "int64")
    for k in along:
        count = count * data.shape[k]
    place = find(name)(find("flip")(data, axis=along[0]) if len(along) == 1 else _reverse(data), axis, keepdims)
    return te.compute(place.shape, lambda *i: (count - 1 - place(*i)).astype("int32"), name=f"T_{name}")


def _reverse(data: Tensor) -> Tensor:
    """Reverses the order of the elements of the flattened tensor."""
    return te.compute(data.shape, lambda *i: data(*(d - 1 - k for d, k in zip(data.shape, i, strict=True))))


# ---- products ----


def matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str | None = None
) -> Tensor:
    """Computes the matrix product over the last two dims, with broadcast batch dims. ``transp_a``
    and ``transp_b`` transpose the operands. Sums are computed in ``out_dtype``. Raises
    ``ValueError`` for a transposed operand of rank 0 or 1.
    """
    return find("matmul")(_transpose_matrix(a) if transp_a else a, _transpose_matrix(b) if transp_b else b, out_dtype=out_dtype)


def _transpose_matrix(x: Tensor) -> Tensor:
    if x.ndim < 2:
        raise ValueError(f"matmul: the operand '{x.name}' has {x.ndim} dims, but a transposed operand needs at least 2")
    return find("permute_dims")(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def tensordot(a: Tensor, b: Tensor, axes: Any = 2) -> Tensor:
    """Computes the sum of products over axes of both tensors. ``axes`` is two lists of axes, or a number ``n``, which means the
    last ``n`` axes of ``a`` and the first ``n`` axes of ``b``.
    """
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    own, other = ([axes[0]], [axes[1]]) if isinstance(axes[0], int) else (list(axes[0]), list(axes[1]))
    letters = [chr(ord("a") + i) for i in range(a.ndim + b.ndim)]
    left, right = letters[: a.ndim], letters[a.ndim :]
    for i, j in zip(own, other, strict=True):
        right[axis_of(j, b.ndim)] = left[axis_of(i, a.ndim)]
    kept = [c for c in [*left, *right] if (c in left) != (c in right)]
    return einsum(f"{''.join(left)},{''.join(right)}->{''.join(kept)}", a, b)


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Sums of products over labelled dims: ``relax.op.einsum`` with TVM's order of arguments."""
    return find("einsum")(list(operand), subscripts)


# ---- shapes and indices ----


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """Returns the sizes of a tensor as a vector of type ``dtype``."""
    sizes = array.shape

    def size(i: Any) -> Any:
        value = tir.const(0, dtype)
        for k, dim in enumerate(sizes):
            value = tir.Select(i == k, dim.astype(dtype), value)
        return value

    return te.compute((len(sizes),), size, name="T_shape")


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """Returns the number of elements of a tensor, as a tensor of rank 0."""
    count = tir.const(1, "int64")
    for dim in array.shape:
        count = count * dim
    return te.compute((), lambda: count.astype(dtype), name="T_size")


def expand_dims(a: Tensor, axis: int | Sequence[int], num_newaxis: int = 1) -> Tensor:
    """Inserts dims of size 1: ``num_newaxis`` dims from ``axis`` on, or one dim at each axis of a
    list."""
    if not isinstance(axis, int):
        return find("expand_dims")(a, list(axis))
    first = axis_of(axis, a.ndim + 1)
    return find("expand_dims")(a, list(range(first, first + num_newaxis)))


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Transposes the dims: ``relax.op.permute_dims``. By default, the order is reversed."""
    return find("permute_dims")(a, axes)


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Concatenates tensors along an axis: ``relax.op.concat``."""
    return find("concat")(list(a_tuple), axis=axis)


def tile(a: Tensor, reps: Any) -> Tensor:
    """Repeats the whole tensor ``reps[k]`` times along each axis ``k``."""
    return find("tile")(a, reps)


def strided_slice(
    a: Tensor,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:
    """Returns a slice along ``axes``, by default the first ones. With ``slice_mode="size"``, ``end`` contains the sizes of the
    slice, and ``strides`` is ignored. A negative size means all elements up to the end of the axis. Raises ``ValueError`` for
    another ``slice_mode``.
    """
    axes = list(range(len(begin))) if axes is None else list(axes)
    if slice_mode == "size":
        begins = [_core.tir_const(b) for b in begin]
        end = [a.shape[x] if int(n) < 0 else b + n for x, b, n in zip(axes, begins, end, strict=True)]
        strides = None
    elif slice_mode != "end":
        raise ValueError(f"strided_slice: slice_mode must be 'end' or 'size', got '{slice_mode}'")
    extra = [] if strides is None else [[*strides, *[1] * (len(axes) - len(strides))]]
    return find("strided_slice")(a, axes, list(begin), list(end), *extra)


def trilu(data: Tensor, k: int, upper: bool) -> Tensor:
    """Keeps the upper or lower triangle of matrices, bounded by diagonal ``k``, and sets the other
    elements to 0.
    """
    return find("triu" if upper else "tril")(data, k)


def take(a: Tensor, indices: Any, axis: int | None = None, batch_dims: int = 0, mode: str = "fast") -> Tensor:
    """Gathers the elements at ``indices`` along an axis, or of the flattened tensor by default. An
    index out of range is a run-time error, unless ``mode`` is ``"clip"``, ``"wrap"`` or
    ``"nan"``. Raises ``NotImplementedError`` for ``batch_dims``.
    """
    if batch_dims != 0:
        raise NotImplementedError("topi.take does not support batch_dims; use gather_nd")
    if axis is None:
        a, axis = find("flatten")(a), 0
    return find("take")(a, indices, axis=axis, mode=mode)


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Gathers the elements at ``indices`` along an axis: ``relax.op.gather_elements``."""
    return find("gather_elements")(data, indices, axis=axis)


def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """Gathers the slices of ``a`` at index tuples. The tuples are stored along the first dim of
    ``indices``; in ``relax.op``, they are stored along the last dim.
    """
    return find("gather_nd")(a, _move_first_dim_last(indices))


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """Returns ``data`` with slices updated at index tuples. The tuples are stored along the first
    dim of ``indices``; in ``relax.op``, they are stored along the last dim. ``mode`` is the
    reduction.
    """
    return find("scatter_nd")(data, _move_first_dim_last(indices), updates, reduction=mode)


def _move_first_dim_last(indices: Tensor) -> Tensor:
    return find("permute_dims")(indices, [*range(1, indices.ndim), 0])


def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Tensor:
    """Expands each index to a new axis of size ``depth``, with ``on_value`` at the index and
    ``off_value`` elsewhere.
    """
    on, off = (tir.const(v, dtype) for v in (on_value, off_value))
    return find("one_hot")(indices, on, off, depth=depth, axis=axis)


# ---- order ----


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """Sorts the elements along an axis."""
    return find("sort")(data, axis=axis, descending=not is_ascend)


def argsort(
    data: Tensor, valid_count: None = None, axis: int = -1, is_ascend: bool = True, dtype: str = "float32"
) -> Tensor:
    """Computes the indices that sort the elements along an axis. Raises ``NotImplementedError`` for
    ``valid_count``.
    """
    if valid_count is not None:
        raise NotImplementedError("topi.argsort does not support valid_count")
    return cast(find("argsort")(data, axis=axis, descending=not is_ascend, dtype="int64"), dtype)


def topk(
    data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64"
) -> Any:
    """Returns the ``k`` largest elements along an axis, or the smallest ones if ``is_ascend`` is
    set, their indices, or both (``ret_type`` ``"values"``, ``"indices"`` or ``"both"``).
    """
    return find("topk")(data, k=k, axis=axis, ret_type=ret_type, largest=not is_ascend, dtype=dtype)


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, dtype: str = "int64") -> Tensor:
    """Computes the insertion index of each value in a sorted vector: ``relax.op.bucketize``. With
    ``right``, values are inserted after equal elements.
    """
    return cast(find("bucketize")(values, sorted_sequence, right=right), dtype)



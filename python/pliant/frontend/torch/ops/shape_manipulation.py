"""Operators that rearrange elements: reshaping, slicing, joining, padding and triangles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant.error import CompileError, UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter, identity

UNBOUNDED = 2**63 - 1
"""The end of a slice that reaches to the end of its dim."""


def reshape(cx: FunctionImporter, x: Any, *_: Any, **__: Any) -> Any:
    """Reshapes to the shape that torch inferred, so that a size of -1 needs no division."""
    return cx.ops.reshape(x, cx.out_shape)


def expand(cx: FunctionImporter, x: Any, *_: Any, **__: Any) -> Any:
    """Converts ``expand`` and ``broadcast_to``. The shape is that which torch inferred, so that sizes of -1 are resolved."""
    return cx.ops.broadcast_to(x, cx.out_shape)


def permute(cx: FunctionImporter, x: Any, dims: Sequence[int]) -> Any:
    """Converts ``permute``. ``dims`` may be negative; a scalar is returned unchanged."""
    return cx.ops.permute_dims(x, [cx.axis(x, d) for d in dims]) if dims else x


def transpose(cx: FunctionImporter, x: Any, a: int, b: int) -> Any:
    """Converts ``transpose`` and its aliases, which exchange two dims. A scalar is returned unchanged."""
    axes = list(range(cx.rank(x)))
    if axes:
        a, b = cx.axis(x, a), cx.axis(x, b)
        axes[a], axes[b] = axes[b], axes[a]
    return cx.ops.permute_dims(x, axes) if axes else x


def matrix_transpose(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``t`` and ``numpy_T``: exchanges the dims of a matrix. Tensors of other ranks are returned unchanged."""
    return transpose(cx, x, 0, 1) if cx.rank(x) == 2 else x


def slice_dim(cx: FunctionImporter, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    """Converts ``slice``. Bounds are resolved as in Python and may be symbolic. A slice of the whole dim is ``x`` itself."""
    axis = cx.axis(x, dim)
    size = cx.shape(x)[axis]
    start = 0 if start is None else start
    end = size if end is None or (isinstance(end, int) and end >= UNBOUNDED) else end
    if isinstance(start, int) and start == 0 and step == 1 and cx.same_size(end, size):
        return x
    return cx.ops.strided_slice(x, axes=[axis], begin=[_bound(start)], end=[_bound(end)], strides=[step])


def _bound(value: Any) -> Any:
    return max(value, -(2**62)) if isinstance(value, int) else value


def _position(cx: FunctionImporter, x: Any, axis: int, index: Any) -> Any:
    """A non-negative index: negative constants count from the end."""
    return cx.shape(x)[axis] + index if isinstance(index, int) and index < 0 else index


def select(cx: FunctionImporter, x: Any, dim: int, index: Any) -> Any:
    """Converts ``select``, which removes the dim. The index is a constant, which may be negative, a size or a scalar tensor."""
    axis = cx.axis(x, dim)
    if cx.is_tensor(index) or not isinstance(index, int):
        return cx.ops.take(x, cx.tensor(index, "int64"), axis=axis)
    position = _position(cx, x, axis, index)
    part = cx.ops.strided_slice(x, axes=[axis], begin=[position], end=[position + 1])
    return cx.ops.reshape(part, cx.out_shape)


def concatenate(cx: FunctionImporter, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Converts ``cat`` in the promoted type. Empty vectors are ignored beside tensors of any rank, as in torch."""
    dtype = cx.promoted_type(*tensors)
    # torch accepts and ignores empty vectors beside tensors of any rank.
    parts = [t for t in tensors if not (cx.rank(t) == 1 and cx.shape(t) == [0])] or tensors[:1]
    parts = [cx.cast(t, dtype) for t in parts]
    return parts[0] if len(parts) == 1 else cx.ops.concat(parts, axis=cx.axis(parts[0], dim))


def stack(cx: FunctionImporter, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Converts ``stack`` in the promoted type. A negative ``dim`` counts from the end of the dims of the result."""
    dtype = cx.promoted_type(*tensors)
    rank = cx.rank(tensors[0]) + 1
    return cx.ops.stack([cx.cast(t, dtype) for t in tensors], axis=dim + rank if dim < 0 else dim)


def split_sections(cx: FunctionImporter, x: Any, sizes: Sequence[Any], dim: int = 0) -> Any:
    """Converts ``split_with_sizes``. The sizes are those of the results, which torch inferred."""
    return _parts(cx, x, [m.shape[cx.axis(x, dim)] for m in cx.out], cx.axis(x, dim))


def split(cx: FunctionImporter, x: Any, size: Any, dim: int = 0) -> Any:
    """Splits into the number of parts that torch inferred. With fewer elements, torch returns fewer parts."""
    total, last = cx.shape(x)[cx.axis(x, dim)], cx.sizes.convert(cx.out[-1].shape[dim])
    if not isinstance(last, int):
        message = f"the model was traced for {len(cx.out)} parts of a tensor, of which the last is empty"
        cx.check(tir.any(last > 0, total.equal(0)), message)
    return split_sections(cx, x, [], dim)


def _parts(cx: FunctionImporter, x: Any, sizes: Sequence[Any], axis: int) -> list[Any]:
    sizes = [cx.sizes.convert(s) for s in sizes]
    if len(sizes) == 1:
        return [x]
    indices, position = [], sizes[0]
    for size in sizes[1:]:
        indices.append(position)
        position = position + size
    if all(isinstance(i, int) for i in indices):
        return cx.fields(cx.ops.split(x, indices, axis=axis))
    bounds = [0, *indices, position]
    return [cx.ops.strided_slice(x, axes=[axis], begin=[a], end=[b]) for a, b in zip(bounds, bounds[1:], strict=False)]


def unbind(cx: FunctionImporter, x: Any, dim: int = 0) -> Any:
    """Converts ``unbind`` to one result per index of the dim, which the results lack."""
    axis = cx.axis(x, dim)
    parts = _parts(cx, x, [1] * len(cx.out), axis)
    shape = [d for i, d in enumerate(cx.shape(x)) if i != axis]
    return [cx.ops.reshape(p, shape) for p in parts]


def flip(cx: FunctionImporter, x: Any, dims: Sequence[int]) -> Any:
    """Converts ``flip``. A scalar is returned unchanged."""
    return cx.ops.flip(x, [cx.axis(x, d) for d in dims]) if dims and cx.rank(x) else x


def roll(cx: FunctionImporter, x: Any, shifts: Any, dims: Any = ()) -> Any:
    """Converts ``roll``. Shifts are modulo the size, to higher indices. Without ``dims``, the flattened tensor is rolled."""
    shifts = shifts if isinstance(shifts, list) else [shifts]
    if not dims:
        flat = cx.ops.flatten(x)
        return cx.ops.reshape(_roll_dim(cx, flat, shifts[0], 0), cx.shape(x))
    for shift, dim in zip(shifts, dims if isinstance(dims, list) else [dims], strict=True):
        x = _roll_dim(cx, x, shift, cx.axis(x, dim)) if cx.rank(x) else x
    return x


def _roll_dim(cx: FunctionImporter, x: Any, shift: Any, axis: int) -> Any:
    size = cx.shape(x)[axis]
    if isinstance(size, int) and size == 0:
        return x

    def compute(a: Any) -> Any:
        size = a.shape[axis]
        return te.compute(a.shape, lambda *i: a(*i[:axis], te.floormod(i[axis] - shift, size), *i[axis + 1 :]), name="roll")

    return cx.te(compute, x, primfunc_name_hint="roll")


def repeat(cx: FunctionImporter, x: Any, repeats: Sequence[Any]) -> Any:
    """Converts ``repeat`` to Relax's ``tile``: repeats the whole tensor. Additional leading repeats add dims."""
    return cx.ops.tile(x, list(repeats)) if repeats else x


def tile(cx: FunctionImporter, x: Any, repeats: Sequence[Any]) -> Any:
    """Converts ``tile``. Fewer repeats than dims refer to the last dims."""
    return repeat(cx, x, [1] * (cx.rank(x) - len(repeats)) + list(repeats))


def repeat_interleave(cx: FunctionImporter, x: Any, repeats: Any, dim: int | None = None, **_: Any) -> Any:
    """Converts ``repeat_interleave`` by one number. Elements repeat one by one, in the flattened tensor without ``dim``."""
    axis = None if dim is None else cx.axis(x, dim)
    return cx.ops.repeat(x, repeats, axis=axis)


def squeeze(cx: FunctionImporter, x: Any, dims: Any = None) -> Any:
    """Removes dims of size 1. torch keeps symbolic dims, so they must not have size 1 at run time."""
    rank = cx.rank(x)
    dims = range(rank) if dims is None else dims if isinstance(dims, list) else [dims]
    sizes = cx.shape(x)
    for axis in {cx.axis(x, d) for d in dims} if rank else ():
        if not isinstance(sizes[axis], int):
            message = f"squeeze keeps dim {axis} for all sizes, but its size is 1, so torch removes it"
            cx.check(tir.Not(sizes[axis].equal(1)), message)
    return cx.ops.reshape(x, cx.out_shape)


def pad(cx: FunctionImporter, x: Any, widths: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    """Pads the last dims, which ``widths`` lists from the last one on."""
    rank = cx.rank(x)
    given = [(widths[2 * i], widths[2 * i + 1]) for i in range(len(widths) // 2)]
    pairs = [(0, 0)] * (rank - len(given)) + given[::-1]
    dtype = cx.dtype(x)
    fill = 0.0 if value is None or mode != "constant" else value
    if cx.is_tensor(fill) or not isinstance(fill, bool | int | float):
        raise UnsupportedError("padding with a value that is not a constant is not supported")
    source = cx.cast(x, "uint8") if dtype == "bool" else x
    result = cx.ops.nn.pad(source, [w for pair in pairs for w in pair], pad_mode=mode, pad_value=float(fill))
    return cx.cast(result, dtype)


def _pad_with(mode: str) -> Converter:
    return lambda cx, x, widths: pad(cx, x, widths, mode)


def constant_pad(cx: FunctionImporter, x: Any, widths: Sequence[Any], value: Any = 0) -> Any:
    """Converts ``constant_pad_nd``. ``widths`` begins with the last dim; ``value`` must be a constant."""
    return pad(cx, x, widths, "constant", value)


def unfold(cx: FunctionImporter, x: Any, dim: int, size: int, step: int) -> Any:
    """Converts ``Tensor.unfold``: windows of ``size`` elements every ``step`` elements, whose elements are the new last dim."""
    axis = cx.axis(x, dim)
    shape = cx.out_shape
    if cx.rank(x) == 0:
        return cx.ops.broadcast_to(cx.ops.reshape(x, [1]), shape)

    def compute(a: Any) -> Any:
        return te.compute(shape, lambda *i: a(*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1]), name="unfold")

    return cx.te(compute, x, primfunc_name_hint="unfold")


def diagonal(cx: FunctionImporter, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Converts ``diagonal``, which becomes the last dim. Positive offsets are above the main diagonal, negative ones below."""
    first, second = cx.axis(x, dim1), cx.axis(x, dim2)
    shape = cx.out_shape
    row, column = max(-offset, 0), max(offset, 0)

    def element(a: Any, *i: Any) -> Any:
        rest = iter(i[:-1])
        index = [i[-1] + row if axis == first else i[-1] + column if axis == second else next(rest) for axis in range(cx.rank(x))]
        return a(*index)

    return cx.te(lambda a: te.compute(shape, lambda *i: element(a, *i), name="diagonal"), x, primfunc_name_hint="diagonal")


def diag_embed(cx: FunctionImporter, x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Converts ``diag_embed``. The last dim becomes a diagonal of matrices of zeros, whose dims are ``dim1`` and ``dim2``."""
    rank = cx.rank(x) + 1
    first, second = dim1 % rank, dim2 % rank
    shape = cx.out_shape
    row, column = max(-offset, 0), max(offset, 0)

    def element(a: Any, *i: Any) -> Any:
        rest = [i[axis] for axis in range(rank) if axis not in (first, second)]
        position = i[first] - row
        inside = tir.all((i[second] - column).equal(position), position >= 0, position < a.shape[-1])
        return te.if_then_else(inside, a(*rest, position), tir.const(0, a.dtype))

    return cx.te(lambda a: te.compute(shape, lambda *i: element(a, *i), name="diag_embed"), x, primfunc_name_hint="diag_embed")


def diagonal_scatter(cx: FunctionImporter, x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Converts ``diagonal_scatter``: replaces a diagonal by ``source``, whose last dim is along the diagonal."""
    first, second = cx.axis(x, dim1), cx.axis(x, dim2)
    row, column = max(-offset, 0), max(offset, 0)

    def element(a: Any, s: Any, *i: Any) -> Any:
        rest = [i[axis] for axis in range(len(i)) if axis not in (first, second)]
        position = i[first] - row
        inside = tir.all((i[second] - column).equal(position), position >= 0, position < s.shape[-1])
        return te.if_then_else(inside, s(*rest, position), a(*i))

    def compute(a: Any, s: Any) -> Any:
        return te.compute(a.shape, lambda *i: element(a, s, *i), name="diagonal_scatter")

    return cx.te(compute, x, cx.cast(source, cx.dtype(x)))


def select_scatter(cx: FunctionImporter, x: Any, source: Any, dim: int, index: Any) -> Any:
    """Converts ``select_scatter``: replaces the slice at an index, which may be negative, by ``source``, which lacks the dim."""
    axis = cx.axis(x, dim)
    position = _position(cx, x, axis, index)
    source = cx.ops.expand_dims(cx.cast(source, cx.dtype(x)), axis)
    return cx.ops.slice_scatter(x, source, position, position + 1, 1, axis=axis)


def slice_scatter(
    cx: FunctionImporter, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """Converts ``slice_scatter``. A ``source`` of the shape of ``x`` replaces all of it."""
    axis = cx.axis(x, dim)
    size = cx.shape(x)[axis]
    end = size if end is None or (isinstance(end, int) and end >= UNBOUNDED) else end
    source = cx.cast(source, cx.dtype(x))
    if cx.same_shape(cx.shape(source), cx.shape(x)):
        return source
    return cx.ops.slice_scatter(x, source, 0 if start is None else start, end, step, axis=axis)


def _triangle(name: str) -> Converter:
    return lambda cx, x, diagonal=0: getattr(cx.ops, name)(x, k=diagonal)


def pixel_unshuffle(cx: FunctionImporter, x: Any, factor: int) -> Any:
    """Converts ``pixel_unshuffle``. Blocks of ``factor * factor`` pixels become channels; any number of leading dims."""
    *lead, c, h, w = cx.shape(x)
    x = cx.ops.reshape(x, [*lead, c, h // factor, factor, w // factor, factor])
    n = len(lead)
    x = cx.ops.permute_dims(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return cx.ops.reshape(x, cx.out_shape)


def channel_shuffle(cx: FunctionImporter, x: Any, groups: int) -> Any:
    """Converts ``channel_shuffle``: exchanges the groups of channels (axis 1) and the channels in a group."""
    n, c, *rest = cx.shape(x)
    x = cx.ops.reshape(x, [n, groups, c // groups, *rest])
    x = cx.ops.permute_dims(x, [0, 2, 1, *range(3, 3 + len(rest))])
    return cx.ops.reshape(x, cx.out_shape)


def as_strided(cx: FunctionImporter, x: Any, size: Sequence[Any], stride: Sequence[Any], offset: Any = None) -> Any:
    """Reads elements of a tensor by their offsets, which are those in torch only if the tensor is contiguous there."""
    assert cx.node is not None
    meta = cx.node.args[0].meta["val"]  # type: ignore[union-attr]
    if not meta.is_contiguous():
        raise CompileError("as_strided of a tensor that is not contiguous is not supported: use slices or transposes")
    flat = cx.ops.flatten(x)
    shape, start = cx.out_shape, 0 if offset is None else offset

    def compute(a: Any) -> Any:
        return te.compute(shape, lambda *i: a(sum((k * s for k, s in zip(i, stride, strict=True)), start)), name="as_strided")

    return cx.te(compute, flat, primfunc_name_hint="as_strided")


def meshgrid(cx: FunctionImporter, tensors: Sequence[Any], *, indexing: str = "ij") -> Any:
    """Converts ``meshgrid`` to one tensor per vector. ``indexing="xy"`` exchanges the first two dims."""
    return cx.fields(cx.ops.meshgrid(list(tensors), indexing=indexing))


def broadcast_tensors(cx: FunctionImporter, tensors: Sequence[Any]) -> Any:
    """Converts ``broadcast_tensors``. The common shape is that which torch inferred."""
    shapes = [[cx.sizes.convert(d) for d in m.shape] for m in cx.out]
    return [cx.ops.broadcast_to(t, s) for t, s in zip(tensors, shapes, strict=True)]


def numel(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``numel`` to an int or a symbolic size, not to a tensor."""
    return math.prod(cx.shape(x))


RESHAPES = """view reshape _unsafe_view _reshape_alias flatten.using_ints unflatten.int view_as reshape_as unsqueeze view_copy
unsqueeze_copy"""

TABLE: dict[str, Converter] = {
    **dict.fromkeys(RESHAPES.split(), reshape),
    **dict.fromkeys("squeeze squeeze.dim squeeze.dims squeeze_copy squeeze_copy.dim squeeze_copy.dims".split(), squeeze),
    **dict.fromkeys("expand expand_copy expand_as broadcast_to".split(), expand),
    **dict.fromkeys("permute permute_copy".split(), permute),
    **dict.fromkeys("transpose.int transpose_copy.int swapaxes swapdims".split(), transpose),
    **dict.fromkeys("t t_copy numpy_T".split(), matrix_transpose),
    **dict.fromkeys("slice.Tensor slice_copy.Tensor".split(), slice_dim),
    **dict.fromkeys("select.int select_copy.int".split(), select),
    **dict.fromkeys("cat concat concatenate".split(), concatenate),
    "stack": stack,
    **dict.fromkeys("split_with_sizes split_with_sizes_copy split.sizes".split(), split_sections),
    **dict.fromkeys("split.Tensor split_copy.Tensor chunk".split(), split),
    **dict.fromkeys("tensor_split.sections tensor_split.indices".split(), split),
    **dict.fromkeys("unbind.int unbind_copy.int".split(), unbind),
    "flip": flip,
    "roll": roll,
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave.self_int": repeat_interleave,
    "pad": pad,
    "constant_pad_nd": constant_pad,
    **{f"reflection_pad{n}d": _pad_with("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad_with("replicate") for n in (1, 2, 3)},
    "_pad_circular": _pad_with("circular"),
    "unfold": unfold,
    "unfold_copy": unfold,
    **dict.fromkeys("diagonal diagonal_copy linalg_diagonal".split(), diagonal),
    "diag_embed": diag_embed,
    "diagonal_scatter": diagonal_scatter,
    "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "pixel_shuffle": lambda cx, x, factor: cx.ops.nn.pixel_shuffle(x, factor),
    "pixel_unshuffle": pixel_unshuffle,
    **dict.fromkeys("channel_shuffle native_channel_shuffle".split(), channel_shuffle),
    "as_strided": as_strided,
    "as_strided_copy": as_strided,
    "meshgrid": meshgrid,
    "meshgrid.indexing": meshgrid,
    "broadcast_tensors": broadcast_tensors,
    "_conj": identity,
    "numel": numel,
}
"""The converters of this family."""

"""Functions that pad, dilate, resize or rearrange the pixels of images, under the names of TVM's
``topi``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi._operator_wrapper import find
from pliant.topi._size_checks import require_condition

__all__ = [
    "batch_to_space_nd",
    "depth_to_space",
    "dilate",
    "mirror_pad",
    "pad",
    "space_to_batch_nd",
    "space_to_depth",
    "upsampling",
    "upsampling3d",
]


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: float = 0.0, name: str = "PadInput"
) -> Tensor:
    """Adds ``pad_before[k]`` elements before axis ``k`` and ``pad_after[k]`` elements after it,
    with the value ``pad_value``. ``pad_after`` is equal to ``pad_before`` by default. ``name`` is
    ignored."""
    after = pad_before if pad_after is None else pad_after
    width = [w for pair in zip(pad_before, after, strict=True) for w in pair]
    return find("nn.pad")(data, pad_width=width, pad_value=pad_value)


def mirror_pad(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """Extends ``data`` by its mirror images along each axis, with the edge element
    (``"SYMMETRIC"``) or without it (``"REFLECT"``).

    Raises ``ValueError`` for another ``mode`` or a wrong number of paddings. The padding must not
    exceed the number of elements that can be mirrored.
    """
    after = pad_before if pad_after is None else pad_after
    if mode not in ("SYMMETRIC", "REFLECT") or not len(pad_before) == len(after) == data.ndim:
        raise ValueError(
            f"mirror_pad: expected mode 'SYMMETRIC' or 'REFLECT', and {data.ndim} paddings before and after data, one per dim;"
            f" got mode '{mode}', {len(pad_before)} paddings before and {len(after)} after"
        )
    edge = 1 if mode == "SYMMETRIC" else 0

    def element(*i: Any) -> Any:
        at = []
        for k, dim in enumerate(data.shape):
            place = i[k] - pad_before[k]
            inner = tir.Select(place < dim, place, 2 * dim - 2 + edge - place)
            at.append(tir.Select(place < 0, -place - edge, inner))
        return data(*at)

    shape = [before + dim + behind for before, dim, behind in zip(pad_before, data.shape, after, strict=True)]
    result = te.compute(shape, element, name=name)
    for k, dim in enumerate(data.shape):
        width = max(pad_before[k], after[k])
        message = f"topi.nn.mirror_pad: {width} elements cannot be mirrored along axis {k} of size {{0}} ({mode})"
        result = require_condition(result, dim >= width + 1 - edge, message, dim) if width > 0 else result
    return result


def dilate(data: Tensor, strides: Sequence[int], dilation_value: float = 0.0, name: str = "DilatedInput") -> Tensor:
    """Inserts elements with the value ``dilation_value`` between the elements of ``data``, which
    become ``strides`` apart along each axis. An empty axis stays empty.

    Raises ``ValueError`` unless there is one positive stride for each axis.
    """
    if len(strides) != data.ndim or any(s < 1 for s in strides):
        raise ValueError(f"dilate: strides must be {data.ndim} positive numbers, got {list(strides)}")
    between = tir.const(dilation_value, data.dtype)

    def element(*i: Any) -> Any:
        met = [tir.floormod(k, s) == 0 for k, s in zip(i, strides, strict=True) if s > 1]
        value = data(*(tir.floordiv(k, s) for k, s in zip(i, strides, strict=True)))
        return tir.if_then_else(tir.all(*met), value, between) if met else value

    # An empty axis stays empty.
    shape = [tir.max((dim - 1) * s + 1, 0) if s > 1 else dim for dim, s in zip(data.shape, strides, strict=True)]
    return te.compute(shape, element, name=name)


# ---- sizes and blocks ----


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Sequence[Any] | None = None,
) -> Tensor:
    """Scales images in height and width by ``relax.op.image.resize2d``. ``output_shape`` is the new
    height and width, by default the old ones times the scales."""
    mode = "align_corners" if align_corners else "asymmetric"
    return _resize("resize2d", data, [scale_h, scale_w], layout, method, mode, output_shape)


def upsampling3d(
    data: Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Sequence[Any] | None = None,
) -> Tensor:
    """Scales volumes in depth, height and width by ``relax.op.image.resize3d``. ``output_shape``
    contains the new sizes, by default the old ones times the scales."""
    scales = [scale_d, scale_h, scale_w]
    return _resize("resize3d", data, scales, layout, method, coordinate_transformation_mode, output_shape)


def _resize(
    name: str, data: Tensor, scales: Sequence[float], layout: str, method: str, mode: str, size: Sequence[Any] | None
) -> Tensor:
    method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(method, method)
    if size is None:
        axes = [layout.index(c) for c in "DHW"[-len(scales) :]]
        size = [_scaled_size(data.shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    return find(f"image.{name}")(
        data,
        list(size),
        layout=layout,
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method="floor" if mode == "asymmetric" else "",
        cubic_alpha=-0.5,
    )


def _scaled_size(dim: Any, scale: float) -> Any:
    """Multiplies a size by a scale and rounds the result to the nearest integer, halves upwards."""
    if float(scale).is_integer():
        return dim * int(scale)
    above, below = float(scale).as_integer_ratio()
    return tir.floordiv(dim * (2 * above) + below, 2 * below)


def _blocks(name: str, layout: str, block_size: int) -> tuple[int, int, int]:
    """Returns the axes of the channels, rows and columns in an image layout. Raises ``ValueError``
    for an invalid layout or block size."""
    if block_size < 1:
        raise ValueError(f"{name}: block_size must be positive, got {block_size}")
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"{name}: layout must be 'NCHW' or 'NHWC', got '{layout}'")
    return layout.index("C"), layout.index("H"), layout.index("W")


def _require_multiple(result: Tensor, name: str, axis: int, dim: Any, part: int) -> Tensor:
    """Returns ``result`` with a check that the size ``dim`` of an axis is a multiple of
    ``part``."""
    message = f"topi.nn.{name}: axis {axis} of size {{0}} is not a multiple of {part}"
    return require_condition(result, tir.floormod(dim, part) == 0, message, dim)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Moves channels to blocks of ``block_size`` x ``block_size`` pixels. The position in the block
    is the outer part of the channel index (``"DCR"``) or the inner part (``"CRD"``).

    Raises ``ValueError`` for another ``mode``, ``layout`` or ``block_size``. The number of channels must be a multiple of
    ``block_size ** 2``.
    """
    c, h, w = _blocks("depth_to_space", layout, block_size)
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"depth_to_space: mode must be 'DCR' or 'CRD', got '{mode}'")
    depth = tir.floordiv(data.shape[c], block_size * block_size)
    shape = list(data.shape)
    shape[c], shape[h], shape[w] = depth, shape[h] * block_size, shape[w] * block_size

    def element(*i: Any) -> Any:
        at = list(i)
        place = tir.floormod(i[h], block_size) * block_size + tir.floormod(i[w], block_size)
        at[c] = place * depth + i[c] if mode == "DCR" else i[c] * (block_size * block_size) + place
        at[h], at[w] = tir.floordiv(i[h], block_size), tir.floordiv(i[w], block_size)
        return data(*at)

    result = te.compute(shape, element, name="depth_to_space")
    return _require_multiple(result, "depth_to_space", c, data.shape[c], block_size * block_size)


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Moves blocks of ``block_size`` x ``block_size`` pixels to channels. The position in the block
    is the outer part of the channel index.

    Raises ``ValueError`` for an invalid ``layout`` or ``block_size``. Height and width must be
    multiples of the block size.
    """
    c, h, w = _blocks("space_to_depth", layout, block_size)
    depth = data.shape[c]
    shape = list(data.shape)
    shape[c] = depth * (block_size * block_size)
    shape[h], shape[w] = tir.floordiv(shape[h], block_size), tir.floordiv(shape[w], block_size)

    def element(*i: Any) -> Any:
        at = list(i)
        place = tir.floordiv(i[c], depth)
        at[c] = tir.floormod(i[c], depth)
        at[h] = i[h] * block_size + tir.floordiv(place, block_size)
        at[w] = i[w] * block_size + tir.floormod(place, block_size)
        return data(*at)

    result = te.compute(shape, element, name="space_to_depth")
    for k in (h, w):
        result = _require_multiple(result, "space_to_depth", k, data.shape[k], block_size)
    return result


def _check_block_shape(name: str, block_shape: Sequence[int]) -> None:
    if any(b < 1 for b in block_shape):
        raise ValueError(f"{name}: block_shape {list(block_shape)} must be positive")


def space_to_batch_nd(
    data: Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> Tensor:
    """Pads the dims after the batch dim, divides them into blocks, and moves the position in the
    block to the batch dim.

    Raises ``ValueError`` if a block size is not positive. The padded dims must be multiples of the
    block sizes.
    """
    _check_block_shape("space_to_batch_nd", block_shape)
    n = len(block_shape)
    rest = [0] * (data.ndim - 1 - n)
    wide = pad(data, [0, *pad_before, *rest], [0, *pad_after, *rest], pad_value)
    batch = data.shape[0]
    folded = [tir.floordiv(dim, b) for dim, b in zip(wide.shape[1 : n + 1], block_shape, strict=True)]
    count = 1
    for b in block_shape:
        count *= b

    def element(*i: Any) -> Any:
        place, at = tir.floordiv(i[0], batch), list(i)
        at[0] = tir.floormod(i[0], batch)
        for k in range(n - 1, -1, -1):
            at[1 + k] = i[1 + k] * block_shape[k] + tir.floormod(place, block_shape[k])
            place = tir.floordiv(place, block_shape[k])
        return wide(*at)

    result = te.compute([batch * count, *folded, *wide.shape[n + 1 :]], element, name="space_to_batch_nd")
    for k, b in enumerate(block_shape, 1):
        result = _require_multiple(result, "space_to_batch_nd", k, wide.shape[k], b)
    return result


def batch_to_space_nd(
    data: Tensor, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Tensor:
    """Moves positions in blocks from the batch dim to the dims after it, and crops these dims at
    both ends. This is the inverse of :func:`space_to_batch_nd`.

    Raises ``ValueError`` if a block size is not positive. The batch dim must be a multiple of the
    number of positions in a block.
    """
    _check_block_shape("batch_to_space_nd", block_shape)
    n, count = len(block_shape), 1
    for b in block_shape:
        count *= b
    batch = tir.floordiv(data.shape[0], count)
    cuts = zip(data.shape[1 : n + 1], block_shape, crop_begin_list, crop_end_list, strict=True)
    spread = [dim * b - first - last for dim, b, first, last in cuts]

    def element(*i: Any) -> Any:
        place: Any = 0
        at = list(i)
        for k in range(n):
            whole = i[1 + k] + crop_begin_list[k]
            place = place * block_shape[k] + tir.floormod(whole, block_shape[k])
            at[1 + k] = tir.floordiv(whole, block_shape[k])
        at[0] = place * batch + i[0]
        return data(*at)

    result = te.compute([batch, *spread, *data.shape[n + 1 :]], element, name="batch_to_space_nd")
    return _require_multiple(result, "batch_to_space_nd", 0, data.shape[0], count)

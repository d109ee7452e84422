"""Convolutions and transposed convolutions in one, two and three dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def per_dim(value: Any, dims: int) -> list[Any]:
    """A setting that is given once for all spatial dims, or once for each, as a list."""
    values = list(value) if isinstance(value, Sequence) else [value]
    return values * dims if len(values) == 1 else values


def _add_bias(cx: FunctionImporter, x: Any, bias: Any, dims: int) -> Any:
    return x if bias is None else cx.ops.add(x, cx.ops.reshape(bias, [1, -1] + [1] * dims))


def _batched(cx: FunctionImporter, x: Any, dims: int) -> tuple[Any, bool]:
    """A batch of images, and whether the operand was a single image."""
    single = cx.rank(x) == dims + 1
    return (cx.ops.expand_dims(x, 0), True) if single else (x, False)


def convolve(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, stride: Any, padding: Sequence[Any], dilation: Any, groups: int
) -> Any:
    """A convolution. ``padding`` has one number per dim, or all leading ones followed by all trailing ones."""
    dims = cx.rank(weight) - 2
    x, single = _batched(cx, x, dims)
    pads = list(padding) if len(padding) == 2 * dims else per_dim(padding, dims) * 2
    rule = getattr(cx.ops.nn, f"conv{dims}d", None) if dims <= 3 else None
    if rule is None:
        raise UnsupportedError(f"convolutions over {dims} dims are not supported")
    y = rule(x, weight, strides=per_dim(stride, dims), padding=pads, dilation=per_dim(dilation, dims), groups=groups)
    y = _add_bias(cx, y, bias, dims)
    return cx.ops.squeeze(y, axis=[0]) if single else y


def conv(cx: FunctionImporter, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Converts ``conv1d`` to ``conv3d`` with the same padding at both ends of a dim. The batch dim may be absent."""
    dims = cx.rank(weight) - 2
    return convolve(cx, x, weight, bias, stride, per_dim(padding, dims), dilation, groups)


def conv_named_padding(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    """The padding ``"same"`` keeps the size of the image, and puts the odd element at the end."""
    dims = cx.rank(weight) - 2
    totals = [0] * dims
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(per_dim(dilation, dims), cx.shape(weight)[2:], strict=True)]
    leading = [t // 2 for t in totals]
    trailing = [t - lead for t, lead in zip(totals, leading, strict=True)]
    return convolve(cx, x, weight, bias, stride, leading + trailing, dilation, groups)


def conv_transpose(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Any:
    """Converts transposed convolutions, whose filters have the layout IOHW. The batch dim may be absent."""
    dims = cx.rank(weight) - 2
    x, single = _batched(cx, x, dims)
    y = getattr(cx.ops.nn, f"conv{dims}d_transpose")(
        x,
        weight,
        strides=per_dim(stride, dims),
        padding=per_dim(padding, dims) * 2,
        output_padding=per_dim(output_padding, dims),
        dilation=per_dim(dilation, dims),
        groups=groups,
    )
    y = _add_bias(cx, y, bias, dims)
    return cx.ops.squeeze(y, axis=[0]) if single else y


def convolution(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Any:  # fmt: skip
    """Converts ``convolution`` and ``_convolution`` in either direction. Flags for cuDNN are ignored."""
    if transposed:
        return conv_transpose(cx, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(cx, x, weight, bias, stride, padding, dilation, groups)


TABLE: dict[str, Converter] = {
    **{f"conv{n}d": conv for n in (1, 2, 3)},
    **{f"conv{n}d.padding": conv_named_padding for n in (1, 2, 3)},
    **{name: conv_transpose for name in ("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")},
    **{"convolution": convolution, "_convolution": convolution, "_convolution.deprecated": convolution},
}
"""The converters of this family."""

"""Convolutions under TVM's names, which contain the layout of the data.

``padding`` is ``"SAME"``, ``"VALID"``, one number, one number for each spatial dim, or all leading
paddings followed by all trailing ones. Other strings raise ``ValueError``. The filter is not
flipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi._operator_wrapper import find
from pliant.topi.utils import get_const_int

__all__ = [
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "unpack_NCHWc_to_nchw",
]


def _list(value: Any, n: int) -> list[Any]:
    return list(value) if isinstance(value, Sequence) else [value] * n


def _padding(padding: Any, kernel: Sequence[Any], dilation: Any) -> Any:
    """Computes the padding before and after each spatial dim. ``"VALID"`` means no padding, and
    ``"SAME"`` the padding that preserves the size at stride 1. Numbers are returned unchanged.

    Raises ``ValueError`` for other strings.
    """
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return 0
    if padding != "SAME":
        raise ValueError(f"the padding of a topi convolution must be 'SAME', 'VALID' or numbers, got '{padding}'")
    lost = [(get_const_int(k) - 1) * d for k, d in zip(kernel, _list(dilation, len(kernel)), strict=True)]
    return [(n + 1) // 2 for n in lost] + [n // 2 for n in lost]


def _convolve(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None,
    layout: str,
    kernel_layout: str,
) -> Tensor:
    window = [dim for dim, c in zip(kernel.shape, kernel_layout, strict=True) if c not in "OI"]
    return find(f"nn.conv{len(window)}d")(
        data,
        kernel,
        strides=strides,
        padding=_padding(padding, window, dilation),
        dilation=dilation,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_dtype=out_dtype,
    )


def conv2d(data: Tensor, weight: Tensor, *positional: Any, **options: Any) -> Tensor:
    """Calls ``relax.op.nn.conv2d``. If the sixth argument is a layout instead of a number of
    groups, the arguments are those of TVM's ``topi``: strides, padding, dilation, ``data_layout``,
    ``kernel_layout`` (derived from ``data_layout`` by default), ``out_dtype``.

    Raises ``TypeError`` for other arguments after a layout.
    """
    if len(positional) < 4 or not isinstance(positional[3], str):
        return find("nn.conv2d")(data, weight, *positional, **options)
    strides, padding, dilation, layout, *rest = positional
    names = ("kernel_layout", "out_dtype")
    given = dict(zip(names, rest, strict=False)) | options
    unread = len(rest) > len(names) or sorted(set(given) - set(names))
    if unread:
        raise TypeError(f"conv2d: after a layout as sixth argument, only {', '.join(names)} are accepted (help: to pass groups, omit the layout)")
    kernel_layout = given.get("kernel_layout") or {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}.get(layout, "OIHW")
    out_dtype = given.get("out_dtype")
    return _convolve(data, weight, strides, padding, dilation, 1, out_dtype, layout, kernel_layout)


def unpack_NCHWc_to_nchw(packed_out: Tensor, out_dtype: str) -> Tensor:  # noqa: N802 (TVM's name)
    """Converts images with blocked channels (NCHWc) to the layout NCHW and to the data type
    ``out_dtype``."""
    n, chunks, height, width, block = packed_out.shape

    def element(i: Any, c: Any, h: Any, w: Any) -> Any:
        return packed_out(i, tir.floordiv(c, block), h, w, tir.floormod(c, block)).astype(out_dtype)

    return te.compute((n, chunks * block, height, width), element, name="output_unpack")


def conv2d_NCHWc(  # noqa: N802 (TVM's name)
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str = "float32",
) -> Tensor:
    """2-d convolution of images with blocked channels (NCHWc) and filters of layout OIHWio. The channel blocks of the result have
    the same size as the blocks ``o`` of the filters.

    Raises ``ValueError`` unless ``data`` has 5 dims and ``kernel`` 6, and for layouts that are not ``NCHW<block size>c``.
    """
    if data.ndim != 5 or kernel.ndim != 6:
        raise ValueError(f"conv2d_NCHWc: data and kernel must have 5 and 6 dims, got {data.ndim} and {kernel.ndim}")
    for name, given in (("layout", layout), ("out_layout", out_layout)):
        if re.fullmatch(r"NCHW\d+c", given) is None:
            raise ValueError(f"conv2d_NCHWc: {name} must be NCHW<block size>c, such as NCHW8c, got '{given}'")
    outputs, inputs, height, width, inner, block = kernel.shape

    def plain(o: Any, i: Any, h: Any, w: Any) -> Any:
        at = tir.floordiv(o, block), tir.floordiv(i, inner), h, w
        return kernel(*at, tir.floormod(i, inner), tir.floormod(o, block))

    whole = te.compute((outputs * block, inputs * inner, height, width), plain, name="kernel_unpack")
    images = unpack_NCHWc_to_nchw(data, data.dtype)
    result = conv2d_nchw(images, whole, stride, padding, dilation, out_dtype)
    n, _, rows, columns = result.shape
    return te.compute(
        (n, outputs, rows, columns, block), lambda i, c, h, w, b: result(i, c * block + b, h, w), name="conv2d_NCHWc"
    )


def conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """1-d convolution in layout NCW, with filters of layout OIW."""
    return _convolve(data, kernel, strides, padding, dilation, 1, out_dtype, "NCW", "OIW")


def conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """1-d convolution in layout NWC, with filters of layout WIO."""
    return _convolve(data, kernel, strides, padding, dilation, 1, out_dtype, "NWC", "WIO")


def conv2d_nchw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """2-d convolution in layout NCHW, with filters of layout OIHW."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "NCHW", "OIHW")


def conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """2-d convolution in layout NHWC, with filters of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "NHWC", "HWIO")


def conv2d_hwcn(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """2-d convolution in layout HWCN, with filters of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "HWCN", "HWIO")


def conv3d_ncdhw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """3-d convolution in layout NCDHW, with filters of layout OIDHW."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NCDHW", "OIDHW")


def conv3d_ndhwc(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """3-d convolution in layout NDHWC, with filters of layout DHWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NDHWC", "DHWIO")


def group_conv2d_nchw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Grouped 2-d convolution in layout NCHW, with filters of layout OIHW."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NCHW", "OIHW")


def group_conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Grouped 2-d convolution in layout NHWC, with filters of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NHWC", "HWIO")


def depthwise_conv2d_nchw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Depthwise 2-d convolution in layout NCHW. The filter has the shape (channels, multiplier,
    height, width).

    Raises ``ValueError`` if the number of channels is not constant.
    """
    channels, multiplier, *window = Filter.shape
    kernel = find("reshape")(Filter, [channels * multiplier, 1, *window])
    return group_conv2d_nchw(Input, kernel, stride, padding, dilation, get_const_int(channels), out_dtype)


def depthwise_conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Depthwise 2-d convolution in layout NHWC. The filter has the shape (height, width, channels,
    multiplier).

    Raises ``ValueError`` if the number of channels is not constant.
    """
    *window, channels, multiplier = Filter.shape
    kernel = find("reshape")(Filter, [*window, 1, channels * multiplier])
    return group_conv2d_nhwc(Input, kernel, stride, padding, dilation, get_const_int(channels), out_dtype)


def _convolve_transposed(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> Tensor:
    window = kernel.shape[2:]
    return find(f"nn.conv{len(window)}d_transpose")(
        data,
        kernel,
        strides=strides,
        padding=_padding(padding, window, 1),
        output_padding=output_padding,
        out_dtype=out_dtype,
    )


def conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """Transposed 1-d convolution in layout NCW, with filters of layout IOW."""
    return _convolve_transposed(data, kernel, stride, padding, out_dtype, output_padding)


def conv2d_transpose_nchw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """Transposed 2-d convolution in layout NCHW, with filters of layout IOHW."""
    return _convolve_transposed(Input, Filter, strides, padding, out_dtype, output_padding)


def conv3d_transpose_ncdhw(
    Input: Tensor,  # noqa: N803 (TVM's names)
    Filter: Tensor,  # noqa: N803
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """Transposed 3-d convolution in layout NCDHW, with filters of layout IODHW."""
    return _convolve_transposed(Input, Filter, strides, padding, out_dtype, output_padding)

"""Convolutions under the names that tell their layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant._core import Tensor
from pliant.topi._operator import find
from pliant.topi.utils import get_const_int

__all__ = [
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
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
]


def _list(value: Any, n: int) -> list[Any]:
    return list(value) if isinstance(value, Sequence) else [value] * n


def _padding(padding: Any, kernel: Sequence[Any], dilation: Any) -> Any:
    """How much before and after each dim: as given, or as ``"VALID"`` (nothing) and ``"SAME"`` (as many places as the
    input has at stride 1) say."""
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return 0
    if padding != "SAME":
        raise ValueError(f"padding is 'SAME', 'VALID' or numbers, not '{padding}'")
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


def conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv1d`` of channels before the dim."""
    return _convolve(data, kernel, strides, padding, dilation, 1, out_dtype, "NCW", "OIW")


def conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv1d`` of channels after the dim, with kernels of layout WIO."""
    return _convolve(data, kernel, strides, padding, dilation, 1, out_dtype, "NWC", "WIO")


def conv2d_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels before the dims."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "NCHW", "OIHW")


def conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels after the dims, with kernels of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "NHWC", "HWIO")


def conv2d_hwcn(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of images along the last dim, with kernels of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, 1, out_dtype, "HWCN", "HWIO")


def conv3d_ncdhw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv3d`` of channels before the dims."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NCDHW", "OIDHW")


def conv3d_ndhwc(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv3d`` of channels after the dims, with kernels of layout DHWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NDHWC", "DHWIO")


def group_conv2d_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels in groups."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NCHW", "OIHW")


def group_conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels in groups, which stand after the dims, with kernels of layout HWIO."""
    return _convolve(Input, Filter, stride, padding, dilation, groups, out_dtype, "NHWC", "HWIO")


def depthwise_conv2d_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of each channel on its own; the filter is of shape (channels, multiplier, height, width)."""
    channels, multiplier, *window = Filter.shape
    kernel = find("reshape")(Filter, [channels * multiplier, 1, *window])
    return group_conv2d_nchw(Input, kernel, stride, padding, dilation, get_const_int(channels), out_dtype)


def depthwise_conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of each channel on its own; the filter is of shape (height, width, channels, multiplier)."""
    *window, channels, multiplier = Filter.shape
    kernel = find("reshape")(Filter, [*window, 1, channels * multiplier])
    return group_conv2d_nhwc(Input, kernel, stride, padding, dilation, get_const_int(channels), out_dtype)


def _transposed(
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
    """``conv1d_transpose`` of channels before the dim."""
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding)


def conv2d_transpose_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """``conv2d_transpose`` of channels before the dims."""
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding)


def conv3d_transpose_ncdhw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """``conv3d_transpose`` of channels before the dims."""
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding)

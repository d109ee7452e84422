"""Operators of neural networks as tensor expressions: those of ``relax.op.nn``, and the field's other names for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant._core import Tensor
from pliant.topi import _operator, names
from pliant.topi._operator import find

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "bias_add",
    "conv1d_ncw",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv3d_ncdhw",
    "dense",
    "depthwise_conv2d_nchw",
    "flatten",
    "global_pool",
    "group_conv2d_nchw",
    "leaky_relu",
    "matmul",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "scale_shift_nchw",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return find(f"nn.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_operator.names("nn.")})


def _typed(x: Tensor, dtype: str | None) -> Tensor:
    return x if dtype in (None, x.dtype) else names.cast(x, dtype)


def leaky_relu(t: Tensor, alpha: float = 0.01) -> Tensor:
    """``t`` where it is positive, else ``t * alpha``: ``leakyrelu``."""
    return find("nn.leakyrelu")(t, alpha=alpha)


def flatten(data: Tensor) -> Tensor:
    """All dims after the first as one: ``batch_flatten``."""
    return find("nn.batch_flatten")(data)


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """The matrix product of the last two dims, batch dims broadcast, and a bias."""
    out = names.matmul(tensor_a, tensor_b, transpose_a, transpose_b)
    return _typed(out if bias is None else find("add")(out, bias), out_dtype)


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """The product of each matrix of ``tensor_a`` with one of ``tensor_b``, which is turned over unless said."""
    return matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """``data @ weight.T + bias``."""
    return matmul(data, weight, bias, out_dtype, transpose_b=True)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """The sum with a vector along an axis."""
    after = data.ndim - 1 - axis % data.ndim
    return find("add")(data, find("expand_dims")(bias, list(range(1, after + 1))) if after else bias)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 (the field's names)
    """``Input * Scale + Shift``, a number each for each channel."""
    wide = [find("expand_dims")(t, [1, 2]) for t in (Scale, Shift)]
    return find("add")(find("multiply")(Input, wide[0]), wide[1])


def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: float = 0.0, name: str = "PadInput"
) -> Tensor:
    """``data`` between so many values before and after along each axis."""
    after = pad_before if pad_after is None else pad_after
    width = [w for pair in zip(pad_before, after, strict=True) for w in pair]
    return find("nn.pad")(data, pad_width=width, pad_value=pad_value)


# ---- convolutions ----


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = 0, dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """``conv1d`` of channels before the dim."""
    return find("nn.conv1d")(data, kernel, strides=strides, padding=padding, dilation=dilation, out_dtype=out_dtype)


def conv2d_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels before the dims."""
    return find("nn.conv2d")(Input, Filter, strides=stride, padding=padding, dilation=dilation, out_dtype=out_dtype)


def conv2d_nhwc(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """``conv2d`` of channels after the dims, with kernels of layout HWIO."""
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return find("nn.conv2d")(
        Input, Filter, strides=stride, padding=padding, dilation=dilation, out_dtype=out_dtype, **layouts
    )


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
    return find("nn.conv3d")(
        Input, Filter, strides=stride, padding=padding, dilation=dilation, groups=groups, out_dtype=out_dtype
    )


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
    return find("nn.conv2d")(
        Input, Filter, strides=stride, padding=padding, dilation=dilation, groups=groups, out_dtype=out_dtype
    )


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
    return group_conv2d_nchw(Input, kernel, stride, padding, dilation, int(channels), out_dtype)


def conv2d_transpose_nchw(
    Input: Tensor,  # noqa: N803 (the field's names)
    Filter: Tensor,  # noqa: N803
    strides: Any = 1,
    padding: Any = 0,
    out_dtype: str | None = None,
    output_padding: Any = 0,
) -> Tensor:
    """``conv2d_transpose`` of channels before the dims."""
    return find("nn.conv2d_transpose")(
        Input, Filter, strides=strides, padding=padding, output_padding=output_padding, out_dtype=out_dtype
    )


# ---- pooling ----


def _pool(
    n: int, data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil: bool, layout: str, count: bool
) -> Tensor:
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type is 'max' or 'avg', not '{pool_type}'")
    return find(f"nn.{pool_type}_pool{n}d")(
        data,
        pool_size=kernel,
        strides=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil,
        count_include_pad=count,
        layout=layout,
    )


def pool1d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> Tensor:
    """``max_pool1d`` or ``avg_pool1d``."""
    return _pool(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """``max_pool2d`` or ``avg_pool2d``."""
    return _pool(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(
    data: Tensor,
    kernel: Any,
    stride: Any,
    dilation: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> Tensor:
    """``max_pool3d`` or ``avg_pool3d``."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean over height and width."""
    axes = [i for i, c in enumerate(layout) if c in "HW"]
    return find({"max": "max", "avg": "mean"}[pool_type])(data, axis=axes, keepdims=True)


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """``adaptive_avg_pool2d``."""
    if pool_type != "avg":
        raise NotImplementedError("adaptive_pool of the largest: only means are operators of the library")
    return find("nn.adaptive_avg_pool2d")(data, output_size=output_size, layout=layout)

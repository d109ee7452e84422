"""Pooling under the names of TVM's ``topi``. ``pool_type`` is ``"max"`` or ``"avg"``; other values
raise ``ValueError``."""

from __future__ import annotations

from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi._operator_wrapper import find

__all__ = ["adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "global_pool", "pool1d", "pool2d", "pool3d"]


def _pool(
    n: int, data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil: bool, layout: str, count: bool
) -> Tensor:
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool{n}d: pool_type must be 'max' or 'avg', got '{pool_type}'")
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
    """1-d pooling: ``relax.op.nn.max_pool1d`` or ``avg_pool1d``, depending on ``pool_type``.
    ``kernel`` is the size of the window."""
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
    """2-d pooling: ``relax.op.nn.max_pool2d`` or ``avg_pool2d``, depending on ``pool_type``.
    ``kernel`` is the size of the window."""
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
    """3-d pooling: ``relax.op.nn.max_pool3d`` or ``avg_pool3d``, depending on ``pool_type``.
    ``kernel`` is the size of the window."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Computes the maximum or the mean over height and width. These dims become 1."""
    axes = [i for i, c in enumerate(layout) if c in "HW"]
    if pool_type not in ("max", "avg"):
        raise ValueError(f"global_pool: pool_type must be 'max' or 'avg', got '{pool_type}'")
    return find({"max": "max", "avg": "mean"}[pool_type])(data, axis=axes, keepdims=True)


def _adaptive(data: Tensor, output_size: Any, pool_type: str, layout: str) -> Tensor:
    axes = [k for k, c in enumerate(layout) if c in "DHW"]
    if pool_type == "avg":
        return find(f"nn.adaptive_avg_pool{len(axes)}d")(data, output_size=output_size, layout=layout)
    if pool_type != "max":
        raise ValueError(f"adaptive_pool: pool_type must be 'max' or 'avg', got '{pool_type}'")
    sizes = list(output_size) if isinstance(output_size, list | tuple) else [output_size] * len(axes)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise ValueError(f"adaptive_pool: the sizes in output_size must be positive, got {sizes}")
    shape = list(data.shape)
    windows = []
    for axis, size in zip(axes, sizes, strict=True):
        # The extent of the widest window. Narrower windows skip their last positions.
        windows.append(te.reduce_axis((0, tir.floordiv(data.shape[axis] + size - 1, size) + 1), f"r{axis}"))
        shape[axis] = size

    def largest(*i: Any) -> Any:
        at, inside = list(i), []
        for axis, size, window in zip(axes, sizes, windows, strict=True):
            dim = data.shape[axis]
            at[axis] = tir.floordiv(i[axis] * dim, size) + window.var
            inside.append(at[axis] < tir.floordiv((i[axis] + 1) * dim + size - 1, size))
        least = -tir.infinity(data.dtype) if data.dtype.startswith(("float", "bfloat")) else tir.min_value(data.dtype)
        return te.max(tir.if_then_else(tir.all(*inside), data(*at), least), axis=windows)

    return te.compute(shape, largest, name="adaptive_pool_max")


def adaptive_pool1d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCW") -> Tensor:
    """Divides the width into ``output_size`` windows of nearly equal size, and returns the maximum
    or the mean of each."""
    return _adaptive(data, output_size, pool_type, layout)


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Divides height and width into ``output_size`` windows of nearly equal size, and returns the
    maximum or the mean of each."""
    return _adaptive(data, output_size, pool_type, layout)


def adaptive_pool3d(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCDHW") -> Tensor:
    """Divides depth, height and width into ``output_size`` windows of nearly equal size, and
    returns the maximum or the mean of each."""
    return _adaptive(data, output_size, pool_type, layout)

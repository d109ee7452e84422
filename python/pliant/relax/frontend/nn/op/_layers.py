"""The operators of layers: matrix products, convolutions, normalization, attention and resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant import _core
from pliant._core import PrimExpr
from pliant.error import UnsupportedError
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Tensor, wrap_nested
from pliant.relax.frontend.nn.op._shapes import reshaped

_relax = _core.relax


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """The matrix product over the last two dims. Leading dims are broadcast. The result has type ``out_dtype``, by default that of
    the operands."""
    return wrap_nested(_op.matmul(a._expr, b._expr, out_dtype=out_dtype), name)


def _with_bias(result: Any, bias: Tensor | None, layout: str, name: str) -> Tensor:
    """Adds a bias of one element per channel to the result of a convolution."""
    if bias is not None:
        if set(layout) - set("NCDHW"):
            raise UnsupportedError(f"{name}: a bias requires a layout of the letters N, C, D, H and W, got '{layout}'")
        shape = [-1 if letter == "C" else 1 for letter in layout]
        result = _op.add(result, reshaped(bias._expr, shape))
    return wrap_nested(result, name)


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    name: str = "conv1d",
) -> Tensor:
    """Convolves ``x`` of shape ``(n, c, w)`` with filters of shape ``(o, c / groups, kw)``."""
    result = _op.nn.conv1d(
        x._expr, weight._expr, strides=stride, padding=padding, dilation=dilation, groups=groups
    )
    return _with_bias(result, bias, "NCW", name)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    name: str = "conv2d",
) -> Tensor:
    """Convolves ``x`` of shape ``(n, c, h, w)`` with filters of shape ``(o, c / groups, kh, kw)``. ``data_layout`` is the layout of
    ``x`` and of the result."""
    result = _op.nn.conv2d(
        x._expr,
        weight._expr,
        strides=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
    )
    return _with_bias(result, bias, data_layout, name)


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    name: str = "conv3d",
) -> Tensor:
    """Convolves ``x`` of shape ``(n, c, d, h, w)`` with filters of shape ``(o, c / groups, kd, kh, kw)``. ``data_layout`` is the
    layout of ``x`` and of the result."""
    result = _op.nn.conv3d(
        x._expr,
        weight._expr,
        strides=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
    )
    return _with_bias(result, bias, data_layout, name)


def conv1d_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    name: str = "conv1d_transpose",
) -> Tensor:
    """The transposed convolution of ``x`` of shape ``(n, c, w)`` with filters of shape ``(c, o / groups, kw)``."""
    result = _op.nn.conv1d_transpose(
        x._expr,
        weight._expr,
        strides=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
    )
    return _with_bias(result, bias, "NCW", name)


def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    name: str = "layer_norm",
) -> Tensor:
    """Normalizes the last dims, whose sizes are ``normalized_shape``, to mean 0 and variance 1, then multiplies by ``weight``
    and adds ``bias``."""
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    gamma = weight._expr if weight is not None else _relax.relax_const(np.ones(sizes), x.dtype)
    beta = bias._expr if bias is not None else _relax.relax_const(np.zeros(sizes), x.dtype)
    axes = list(range(-len(sizes), 0))
    return wrap_nested(_op.nn.layer_norm(x._expr, gamma, beta, axes=axes, epsilon=eps), name)


def rms_norm(
    x: Tensor, weight: Tensor, axes: int | Sequence[int], epsilon: float = 1e-5, name: str = "rms_norm"
) -> Tensor:
    """Divides by the root of the mean of squares over the axes, and multiplies by ``weight``."""
    return wrap_nested(_op.nn.rms_norm(x._expr, weight._expr, axes, epsilon), name)


def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float = 1e-5,
    channel_axis: int = 1,
    axes: Sequence[int] | None = None,
    name: str = "group_norm",
) -> Tensor:
    """Normalizes groups of channels, together with the other ``axes`` (by default all after the first two), then multiplies by
    ``weight`` and adds ``bias``, which have one element per channel."""
    channels = x.shape[channel_axis]
    if (weight is None or bias is None) and not isinstance(channels, int):
        raise UnsupportedError("group_norm: a symbolic number of channels requires a weight and a bias")
    gamma = weight._expr if weight is not None else _relax.relax_const(np.ones(channels), x.dtype)
    beta = bias._expr if bias is not None else _relax.relax_const(np.zeros(channels), x.dtype)
    over = list(range(2, x.ndim)) if axes is None else list(axes)
    result = _op.nn.group_norm(
        x._expr, gamma, beta, num_groups=num_groups, channel_axis=channel_axis, axes=over, epsilon=eps
    )
    return wrap_nested(result, name)


def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0, name: str = "pad") -> Tensor:
    """Pads a tensor. ``pad`` is the list ``[before_0, after_0, before_1, after_1, ...]``, and ``mode`` is ``"constant"``,
    ``"reflect"``, ``"replicate"`` or ``"circular"``."""
    return wrap_nested(_op.nn.pad(x._expr, pad_width=list(pad), pad_mode=mode, pad_value=value), name)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool | None = False,
    scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Tensor:
    """Attention: ``softmax(query @ key * scale + mask) @ value``. ``scale`` is ``1 / sqrt(head_size)`` by default.

    ``query`` has the shape ``(batch, length, heads, head_size)``, and ``key`` and ``value`` have the shape ``(batch, length_kv,
    heads, head_size)``. ``attn_mask`` is broadcast to ``(batch, heads, length, length_kv)``: bools that are true where a query
    attends to a key, or numbers that are added to the scores. With ``is_causal``, query ``i`` attends to keys up to ``i``.
    """
    mask = attn_mask
    if mask is not None and mask.dtype == "bool":
        blocked = _relax.relax_const(-np.inf, query.dtype)
        mask = Tensor(_expr=wrap_nested(_op.where(mask._expr, _relax.relax_const(0.0, query.dtype), blocked), "mask")._expr)
    result = _op.nn.attention(
        query._expr,
        key._expr,
        value._expr,
        mask._expr if mask is not None else None,
        scale=scale,
        causal_mask="TopLeft" if is_causal else None,
    )
    return wrap_nested(result, name)


_RESIZE_METHODS = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}


def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool | None = None,
    data_layout: str = "NCHW",
    name: str = "interpolate",
) -> Tensor:
    """Resizes images to a size, or by factors. ``mode`` is ``"nearest"``, ``"bilinear"`` or ``"bicubic"``. With ``align_corners``,
    the centres of the corner pixels stay in place. As in TVM, ``"nearest"`` rounds positions between two pixels to the even one.

    Raises ``UnsupportedError`` for ``recompute_scale_factor`` and ``antialias``, and for a factor of a symbolic size that is not an
    integer, and ``ValueError`` if neither or both of ``size`` and ``scale_factor`` are given.
    """
    for setting, chosen in (("recompute_scale_factor", recompute_scale_factor), ("antialias", antialias)):
        if chosen:
            raise UnsupportedError(f"interpolate: {setting} is not supported")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: pass either size or scale_factor")
    spatial = [i for i, letter in enumerate(data_layout) if letter not in "NC"]
    if scale_factor is not None:
        factors = [scale_factor] * len(spatial) if isinstance(scale_factor, int | float) else list(scale_factor)
        size = [_scaled(x.shape[i], factor) for i, factor in zip(spatial, factors, strict=True)]
    elif isinstance(size, int):
        size = [size] * len(spatial)
    method = _RESIZE_METHODS.get(mode, mode)
    transformation = "asymmetric" if method == "nearest_neighbor" else "align_corners" if align_corners else "half_pixel"
    result = _op.image.resize2d(
        x._expr, size, layout=data_layout, method=method, coordinate_transformation_mode=transformation
    )
    return wrap_nested(result, name)


def _scaled(dim: Any, factor: float) -> Any:
    if not isinstance(dim, PrimExpr):
        return int(dim * factor)
    if float(factor).is_integer():
        return dim * int(factor)
    raise UnsupportedError(f"interpolate: the symbolic size {dim} cannot be scaled by {factor}: pass size, or an integer factor")


__all__ = [
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv3d",
    "group_norm",
    "interpolate",
    "layer_norm",
    "matmul",
    "pad",
    "rms_norm",
    "scaled_dot_product_attention",
]

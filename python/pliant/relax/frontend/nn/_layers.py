"""Layers: linear maps, convolutions, normalizations, embeddings and activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant.relax.frontend.nn import op
from pliant.relax.frontend.nn.core import Module, Parameter, Tensor


class ReLU(Module):
    """The activation :func:`op.relu`."""

    def forward(self, x: Tensor) -> Tensor:
        """Applies the activation."""
        return op.relu(x)


class SiLU(Module):
    """The activation :func:`op.silu`."""

    def forward(self, x: Tensor) -> Tensor:
        """Applies the activation."""
        return op.silu(x)


class GELU(Module):
    """The activation :func:`op.gelu`."""

    def __init__(self, approximate: str | None = None) -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Applies the activation."""
        return op.gelu(x, self.approximate)


class Identity(Module):
    """Returns its input."""

    def forward(self, x: Tensor) -> Tensor:
        """Returns ``x``."""
        return x


class Dropout(Module):
    """Returns its input, because exported modules do inference. ``p`` is the rate at which training drops elements."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Returns ``x``."""
        return x


class _LinearMap(Module):
    """A linear map with a weight of shape ``(features, in_features)`` and a bias, which has the type of the result."""

    def _create(self, in_features: int, features: int, bias: bool, dtype: str | None, out_dtype: str | None) -> None:
        self.in_features = in_features
        self.out_dtype = out_dtype
        self.weight = Parameter((features, in_features), dtype)
        self.bias = Parameter((features,), dtype if out_dtype is None else out_dtype) if bias else None

    def _apply(self, x: Tensor) -> Tensor:
        product = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return product if self.bias is None else product + self.bias

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type of the weight, and of the bias unless ``out_dtype`` is set."""
        self.weight.to(dtype=dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype


class Linear(_LinearMap):
    """``x @ weight.T + bias``. ``weight`` has the shape ``(out_features, in_features)``. Either size may be the name of a symbolic
    size. ``out_dtype`` is the type of the result."""

    def __init__(
        self,
        in_features: Any,
        out_features: Any,
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        self.out_features = out_features
        self._create(in_features, out_features, bias, dtype, out_dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Maps ``x`` of shape ``(..., in_features)`` to ``(..., out_features)``."""
        return self._apply(x)


class MultiLinear(_LinearMap):
    """Several linear maps of one input, computed as one matrix product. ``out_features`` are their sizes."""

    def __init__(
        self,
        in_features: int,
        out_features: Sequence[int],
        bias: bool = True,
        dtype: str | None = None,
        out_dtype: str | None = None,
    ) -> None:
        if not out_features:
            raise ValueError("MultiLinear requires at least one size in out_features")
        self.out_features = list(out_features)
        self._create(in_features, sum(out_features), bias, dtype, out_dtype)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Maps ``x`` of shape ``(..., in_features)`` to one tensor per map."""
        ends = [sum(self.out_features[: i + 1]) for i in range(len(self.out_features) - 1)]
        return op.split(self._apply(x), ends, axis=-1)


def _sizes(value: int | Sequence[int], dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value)


class _Convolution(Module):
    """The parameters of a convolution. ``kernel_size`` is one size for all dims, or a size for each."""

    def _create(
        self,
        dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        groups: int,
        bias: bool,
        dtype: str | None,
        transposed: bool = False,
    ) -> None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} input and {out_channels} output channels cannot be divided into {groups} groups")
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.groups = groups
        self.weight = Parameter((first, second // groups, *_sizes(kernel_size, dims)), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None


class Conv1D(_Convolution):
    """A convolution with a weight of shape ``(out_channels, in_channels / groups, kernel_size)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self._create(1, in_channels, out_channels, kernel_size, groups, bias, dtype)
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def forward(self, x: Tensor) -> Tensor:
        """Convolves ``x`` of shape ``(n, in_channels, w)``."""
        return op.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2D(_Convolution):
    """A convolution with a weight of shape ``(out_channels, in_channels / groups, kh, kw)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
        data_layout: str = "NCHW",
    ) -> None:
        self._create(2, in_channels, out_channels, kernel_size, groups, bias, dtype)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        """Convolves ``x`` of shape ``(n, in_channels, h, w)``, or of the shape that ``data_layout`` describes."""
        return op.conv2d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.data_layout
        )


class Conv3D(_Convolution):
    """A convolution with a weight of shape ``(out_channels, in_channels / groups, kd, kh, kw)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
        data_layout: str = "NCDHW",
    ) -> None:
        self._create(3, in_channels, out_channels, kernel_size, groups, bias, dtype)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.data_layout = data_layout

    def forward(self, x: Tensor) -> Tensor:
        """Convolves ``x`` of shape ``(n, in_channels, d, h, w)``, or of the shape that ``data_layout`` describes."""
        return op.conv3d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.data_layout
        )


class ConvTranspose1D(_Convolution):
    """A transposed convolution with a weight of shape ``(in_channels, out_channels / groups, kernel_size)``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        output_padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self._create(1, in_channels, out_channels, kernel_size, groups, bias, dtype, transposed=True)
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation

    def forward(self, x: Tensor) -> Tensor:
        """Applies the layer to ``x`` of shape ``(n, in_channels, w)``."""
        return op.conv1d_transpose(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.dilation,
            self.groups,
        )


class LayerNorm(Module):
    """Normalizes the last dim of size ``normalized_shape`` to mean 0 and variance 1. With ``elementwise_affine``, then
    multiplies by a weight and adds a bias."""

    def __init__(
        self, normalized_shape: int, eps: float = 1e-5, elementwise_affine: bool = True, dtype: str | None = None
    ) -> None:
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter((normalized_shape,), dtype) if elementwise_affine else None
        self.bias = Parameter((normalized_shape,), dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes ``x`` of shape ``(..., normalized_shape)``."""
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divides by the root of the mean of squares over ``axes``, multiplies by a weight of size ``hidden_size`` and adds a bias."""

    def __init__(
        self,
        hidden_size: int,
        axes: int | Sequence[int],
        epsilon: float = 1e-5,
        bias: bool = True,
        dtype: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.axes = axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes ``x``."""
        result = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return result if self.bias is None else op.add(result, self.bias)


class GroupNorm(Module):
    """Normalizes groups of channels. With ``affine``, then multiplies by a weight and adds a bias, one element per channel each."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: str | None = None
    ) -> None:
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor, channel_axis: int = 1, axes: Sequence[int] | None = None) -> Tensor:
        """Normalizes ``x`` over the groups of channels and the other ``axes``, by default all after the first two."""
        return op.group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes)


class Embedding(Module):
    """A table of ``num`` rows of size ``dim``, selected by indices."""

    def __init__(self, num: Any, dim: Any, dtype: str | None = None) -> None:
        self.num = num
        self.dim = dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Maps integers of any shape to rows: the result has the dim of the rows at the end."""
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        rows = op.take(self.weight, op.reshape(x, shape=[-1]), axis=0)
        return op.reshape(rows, shape=[*x.shape, self.weight.shape[1]])


__all__ = [
    "GELU",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "MultiLinear",
    "RMSNorm",
    "ReLU",
    "SiLU",
]

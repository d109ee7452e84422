"""Normalization layers and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from pliant.frontend.torch.data_types import dtype_name, torch_dtype
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _parameter(cx: FunctionImporter, given: Any, value: float, shape: Sequence[Any], dtype: str) -> Any:
    """A scale or shift, or a constant if the layer has none."""
    if given is None:
        return cx.ops.full(list(shape), cx.tensor(value, dtype), dtype)
    return cx.cast(given, dtype)


def _reshaped(cx: FunctionImporter, x: Any, rank: int) -> Any:
    """A vector with one element per channel, for broadcasting along axis 1."""
    return cx.ops.reshape(x, [1, -1] + [1] * (rank - 2))


def layer_norm(
    cx: FunctionImporter, x: Any, shape: Sequence[Any], weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Any:
    """Converts ``layer_norm`` over the last ``len(shape)`` dims. Absent parameters are constants of 1 and 0."""
    axes = list(range(cx.rank(x) - len(shape), cx.rank(x)))
    sizes = [cx.shape(x)[a] for a in axes]
    dtype = cx.dtype(x)
    gamma, beta = _parameter(cx, weight, 1.0, sizes, dtype), _parameter(cx, bias, 0.0, sizes, dtype)
    if eps < 0:  # torch does not check epsilon. The result is NaN where the variance is smaller.
        mean, deviation = _statistics(cx, x, axes, eps)
        centred = cx.ops.subtract(cx.cast(x, cx.dtype(mean)), mean)
        return cx.ops.add(cx.ops.multiply(cx.cast(cx.ops.multiply(centred, deviation), dtype), gamma), beta)
    return cx.ops.nn.layer_norm(x, gamma, beta, axes=axes, epsilon=eps)


def native_layer_norm(cx: FunctionImporter, x: Any, shape: Sequence[Any], weight: Any, bias: Any, eps: float) -> Any:
    """Converts ``native_layer_norm``. Also returns the mean and the reciprocal deviation, with normalized dims of size 1."""
    axes = list(range(cx.rank(x) - len(shape), cx.rank(x)))
    mean, deviation = _statistics(cx, x, axes, eps)
    return layer_norm(cx, x, shape, weight, bias, eps), mean, deviation


def _statistics(cx: FunctionImporter, x: Any, axes: list[int], eps: float) -> tuple[Any, Any]:
    """The mean and the reciprocal of the standard deviation over some axes, whose sizes become 1."""
    if cx.dtype(x) in ("float16", "bfloat16"):
        x = cx.cast(x, "float32")
    variance = cx.ops.variance(x, axis=axes, keepdims=True)
    return cx.ops.mean(x, axis=axes, keepdims=True), cx.ops.rsqrt(cx.ops.add(variance, cx.tensor(eps, cx.dtype(x))))


def rms_norm(cx: FunctionImporter, x: Any, shape: Sequence[Any], weight: Any = None, eps: float | None = None) -> Any:
    """Converts ``rms_norm`` over the last ``len(shape)`` dims. By default, ``eps`` is the machine epsilon of the type of ``x``."""
    axes = list(range(cx.rank(x) - len(shape), cx.rank(x)))
    dtype = cx.dtype(x)
    eps = torch.finfo(torch_dtype(dtype)).eps if eps is None else eps
    gamma = _parameter(cx, weight, 1.0, [cx.shape(x)[a] for a in axes], dtype)
    return cx.ops.nn.rms_norm(x, gamma, axes=axes, epsilon=eps)


def fused_rms_norm(cx: FunctionImporter, x: Any, shape: Sequence[Any], weight: Any = None, eps: float | None = None) -> Any:
    """Converts ``_fused_rms_norm``. Also returns the reciprocal root mean square, with normalized dims of size 1."""
    axes = list(range(cx.rank(x) - len(shape), cx.rank(x)))
    small = torch.finfo(torch_dtype(cx.dtype(x))).eps if eps is None else eps
    wide = cx.cast(x, "float32") if cx.dtype(x) in ("float16", "bfloat16") else x
    mean = cx.ops.mean(cx.ops.multiply(wide, wide), axis=axes, keepdims=True)
    return rms_norm(cx, x, shape, weight, eps), cx.ops.rsqrt(cx.ops.add(mean, cx.tensor(small, cx.dtype(wide))))


def group_norm(cx: FunctionImporter, x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    """Converts ``group_norm`` with channels at axis 1. ``x`` may lack spatial dims."""
    channels, dtype = cx.shape(x)[1], cx.dtype(x)
    gamma, beta = _parameter(cx, weight, 1.0, [channels], dtype), _parameter(cx, bias, 0.0, [channels], dtype)
    rank = cx.rank(x)
    if rank == 2:
        y = cx.ops.nn.group_norm(cx.ops.expand_dims(x, 2), gamma, beta, num_groups=groups, channel_axis=1, axes=[2], epsilon=eps)
        return cx.ops.squeeze(y, axis=[2])
    return cx.ops.nn.group_norm(x, gamma, beta, num_groups=groups, channel_axis=1, axes=list(range(2, rank)), epsilon=eps)


def native_group_norm(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, n: Any, c: Any, spatial: Any, groups: int, eps: float
) -> Any:
    """Converts ``native_group_norm``. Also returns the mean and the reciprocal deviation, of shape (batch, groups)."""
    grouped = cx.ops.reshape(x, [n, groups, math.prod(cx.shape(x)[1:]) // groups])
    mean, deviation = _statistics(cx, grouped, [2], eps)
    return group_norm(cx, x, groups, weight, bias, eps), cx.ops.squeeze(mean, axis=[2]), cx.ops.squeeze(deviation, axis=[2])


def _normalize(cx: FunctionImporter, x: Any, mean: Any, deviation: Any, weight: Any, bias: Any) -> Any:
    rank, dtype = cx.rank(x), cx.dtype(x)
    y = cx.ops.multiply(cx.ops.subtract(cx.cast(x, cx.dtype(mean)), mean), deviation)
    if weight is not None:
        y = cx.ops.multiply(y, _reshaped(cx, cx.cast(weight, cx.dtype(y)), rank))
    if bias is not None:
        y = cx.ops.add(y, _reshaped(cx, cx.cast(bias, cx.dtype(y)), rank))
    return cx.cast(y, dtype)


def batch_norm_inference(cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Any:
    """Batch normalization with given statistics."""
    channels, dtype = cx.shape(x)[1], cx.dtype(x)
    gamma, beta = _parameter(cx, weight, 1.0, [channels], dtype), _parameter(cx, bias, 0.0, [channels], dtype)
    result = cx.ops.nn.batch_norm(
        x, gamma, beta, cx.cast(mean, dtype), cx.cast(variance, dtype), axis=1, epsilon=eps, momentum=0.1, training=False
    )
    return cx.fields(result)[0]


def batch_norm_training(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    """Batch normalization with the statistics of the batch. Returns the result, the mean and the reciprocal deviation of the batch,
    and the new moving mean and variance, which are ``None`` if there are no moving ones."""
    rank = cx.rank(x)
    axes = [0, *range(2, rank)]
    average, deviation = _statistics(cx, x, axes, eps)
    result = _normalize(cx, x, average, deviation, weight, bias)
    vectors = [cx.ops.reshape(v, [cx.shape(x)[1]]) for v in (average, deviation)]
    if mean is None:
        return result, *vectors, None, None
    dtype = cx.dtype(mean)
    wide = cx.cast(x, cx.dtype(average))
    count = cx.tensor(math.prod((cx.shape(x)[a] for a in axes), start=1), cx.dtype(average))
    unbiased = cx.ops.multiply(
        cx.ops.variance(wide, axis=axes), cx.ops.divide(count, cx.ops.subtract(count, cx.tensor(1.0, cx.dtype(average))))
    )
    moved = [_blend(cx, old, cx.cast(new, dtype), momentum) for old, new in ((mean, vectors[0]), (variance, unbiased))]
    return result, *vectors, *moved


def _blend(cx: FunctionImporter, old: Any, new: Any, momentum: float) -> Any:
    dtype = cx.dtype(old)
    kept = cx.ops.multiply(old, cx.tensor(1.0 - momentum, dtype))
    return cx.ops.add(kept, cx.ops.multiply(new, cx.tensor(momentum, dtype)))


def batch_norm(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float,
    *_: Any,
) -> Any:
    """Converts ``batch_norm``. Training uses the statistics of the batch, and does not update the moving ones."""
    if training:
        return batch_norm_training(cx, x, weight, bias, None, None, momentum, eps)[0]
    return batch_norm_inference(cx, x, weight, bias, mean, variance, eps)


def native_batch_norm_no_training(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    """Converts ``_native_batch_norm_legit_no_training``. The statistics for gradients are empty."""
    empty = cx.ops.zeros([0], cx.dtype(x))
    return batch_norm_inference(cx, x, weight, bias, mean, variance, eps), empty, empty


def native_batch_norm(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    """The functional overloads, which also return the new moving statistics."""
    if training:
        return batch_norm_training(cx, x, weight, bias, mean, variance, momentum, eps)[: len(cx.out)]
    empty = cx.ops.zeros([0], cx.dtype(x))
    result = batch_norm_inference(cx, x, weight, bias, mean, variance, eps)
    return (result, empty, empty, mean, variance)[: len(cx.out)]


def native_batch_norm_no_stats(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    """Converts ``_native_batch_norm_legit.no_stats``. Even in inference, the statistics are those of the batch."""
    return batch_norm_training(cx, x, weight, bias, None, None, momentum, eps)[:3]


def instance_norm(
    cx: FunctionImporter, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, use_input_stats: bool, momentum: float,
    eps: float,
    *_: Any,
) -> Any:  # fmt: skip
    """Converts ``instance_norm``. Moving statistics are used without ``use_input_stats``, and are never updated."""
    if not use_input_stats:
        return batch_norm_inference(cx, x, weight, bias, mean, variance, eps)
    channels, dtype = cx.shape(x)[1], cx.dtype(x)
    gamma, beta = _parameter(cx, weight, 1.0, [channels], dtype), _parameter(cx, bias, 0.0, [channels], dtype)
    return cx.ops.nn.instance_norm(x, gamma, beta, channel_axis=1, axes=list(range(2, cx.rank(x))), epsilon=eps)


def _softmax(name: str) -> Converter:
    """The converter of ``softmax`` or ``log_softmax``. The operand is converted to ``dtype`` first, and integers to floats."""

    def convert(cx: FunctionImporter, x: Any, dim: int, dtype: Any = None, **keywords: Any) -> Any:
        dtype = keywords.get("dtype", dtype)
        if isinstance(dtype, torch.dtype):
            x = cx.cast(x, dtype_name(dtype))
        x = cx.as_float(x)
        if cx.rank(x) == 0:
            return cx.ops.reshape(getattr(cx.ops.nn, name)(cx.ops.reshape(x, [1]), axis=0), [])
        return getattr(cx.ops.nn, name)(x, axis=cx.axis(x, dim))

    return convert


TABLE: dict[str, Converter] = {
    "layer_norm": layer_norm,
    "native_layer_norm": native_layer_norm,
    "rms_norm": rms_norm,
    "_fused_rms_norm": fused_rms_norm,
    "group_norm": group_norm,
    "native_group_norm": native_group_norm,
    "batch_norm": batch_norm,
    "_native_batch_norm_legit_no_training": native_batch_norm_no_training,
    "_native_batch_norm_legit_functional": native_batch_norm,
    "native_batch_norm": native_batch_norm,
    "_native_batch_norm_legit.no_stats": native_batch_norm_no_stats,
    "instance_norm": instance_norm,
    **dict.fromkeys("softmax.int _softmax special_softmax".split(), _softmax("softmax")),
    **dict.fromkeys("log_softmax.int _log_softmax special_log_softmax".split(), _softmax("log_softmax")),
}
"""The converters of this family."""

"""Gradients that torch does not decompose: those of convolutions, pooling and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.attention import scores
from pliant.frontend.torch.ops.convolution import conv, per_dim
from pliant.frontend.torch.ops.unary import Converter


def _input_gradient(cx: FunctionImporter, grad: Any, x: Any, weight: Any, setting: dict[str, Any]) -> Any:
    """The gradient of a convolution's input: a transposed convolution. The largest possible output padding, cut to the size of the
    input, covers all remainders of a stride."""
    dims = cx.rank(weight) - 2
    stride = setting["stride"]
    y = getattr(cx.ops.nn, f"conv{dims}d_transpose")(
        grad,
        weight,
        strides=stride,
        padding=setting["padding"] * 2,
        output_padding=[s - 1 for s in stride],
        dilation=setting["dilation"],
        groups=setting["groups"],
    )
    axes = list(range(2, 2 + dims))
    sizes = cx.shape(x)[2:]
    return y if all(s == 1 for s in stride) else cx.ops.strided_slice(y, axes=axes, begin=[0] * dims, end=sizes)


def _weight_gradient(cx: FunctionImporter, grad: Any, x: Any, weight: Any, setting: dict[str, Any]) -> Any:
    """The gradient of a convolution's filters: a convolution of the input by the gradient, with batch and channels exchanged."""
    dims = cx.rank(weight) - 2
    groups = setting["groups"]
    spatial = list(range(3, 3 + dims))
    batch, channels, *image = cx.shape(x)
    _, filters, *out = cx.shape(grad)
    moved = cx.ops.permute_dims(cx.ops.reshape(x, [batch, groups, channels // groups, *image]), [2, 1, 0, *spatial])
    moved = cx.ops.reshape(moved, [channels // groups, groups * batch, *image])
    kernel = cx.ops.permute_dims(grad, [1, 0, *range(2, 2 + dims)])
    y = getattr(cx.ops.nn, f"conv{dims}d")(
        moved, kernel, strides=setting["dilation"], padding=setting["padding"] * 2, dilation=setting["stride"], groups=groups
    )
    y = cx.ops.permute_dims(y, [1, 0, *range(2, 2 + dims)])
    sizes = cx.shape(weight)[2:]
    return cx.ops.strided_slice(y, axes=list(range(2, 2 + dims)), begin=[0] * dims, end=sizes)


def convolution_backward(
    cx: FunctionImporter, grad: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    """Converts ``convolution_backward`` to three gradients, which are ``None`` if ``output_mask`` excludes them."""
    dims = cx.rank(weight) - 2
    setting = {
        "stride": per_dim(stride, dims),
        "padding": per_dim(padding, dims),
        "dilation": per_dim(dilation, dims),
        "groups": groups,
    }
    of_input, of_weight, of_bias = output_mask
    if transposed:
        grad_input = conv(cx, grad, weight, None, stride, padding, dilation, groups) if of_input else None
        grad_weight = _weight_gradient(cx, x, grad, weight, setting) if of_weight else None
    else:
        grad_input = _input_gradient(cx, grad, x, weight, setting) if of_input else None
        grad_weight = _weight_gradient(cx, grad, x, weight, setting) if of_weight else None
    grad_bias = cx.ops.sum(grad, axis=[0, *range(2, 2 + dims)]) if of_bias else None
    return grad_input, grad_weight, grad_bias


def max_pool_backward(
    cx: FunctionImporter, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    """Converts ``max_pool2d_with_indices_backward``: adds gradients at ``indices``. The settings of windows are ignored."""
    return _unpooled(cx, grad, cx.shape(x), indices, dims=2)


def _unpooled(cx: FunctionImporter, grad: Any, shape: list[Any], indices: Any, dims: int) -> Any:
    """Adds gradients at the positions of maxima."""
    lead = shape[:-dims]
    flat = [*lead, math.prod(shape[-dims:])]
    outputs = [*lead, math.prod(cx.shape(grad)[-dims:])]
    zeros = cx.ops.zeros(flat, cx.dtype(grad))
    result = cx.ops.scatter_elements(
        zeros, cx.ops.reshape(indices, outputs), cx.ops.reshape(grad, outputs), axis=len(lead), reduction="add"
    )
    return cx.ops.reshape(result, shape)


def adaptive_max_pool_backward(cx: FunctionImporter, grad: Any, x: Any, indices: Any) -> Any:
    """Converts ``adaptive_max_pool2d_backward``: adds gradients at ``indices`` in the flattened image."""
    return _unpooled(cx, grad, cx.shape(x), indices, dims=2)


def avg_pool_backward(
    cx: FunctionImporter, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include_pad: bool,
    divisor: Any,
) -> Any:
    """Each element sums the gradients of the windows that contain it, divided by the number of elements of the window."""
    kernel, padding = per_dim(kernel, 2), per_dim(padding, 2)
    stride = per_dim(stride or kernel, 2)
    sizes = cx.shape(x)[-2:]

    def count(out: Any, k: int) -> Any:
        start = out * stride[k] - padding[k]
        end = te.min(start + kernel[k], sizes[k] + padding[k])
        return end - start if include_pad else te.min(end, sizes[k]) - te.max(start, 0)

    def compute(g: Any) -> Any:
        offsets = [te.reduce_axis((0, k), f"r{i}") for i, k in enumerate(kernel)]

        def element(*i: Any) -> Any:
            outs, inside = [], []
            for k in range(2):
                position = i[-2 + k] + padding[k] - offsets[k]
                out = te.floordiv(position, stride[k])
                outs.append(out)
                inside += [te.floormod(position, stride[k]).equal(0), out >= 0, out < g.shape[-2 + k]]
            size = divisor if divisor is not None else count(outs[0], 0) * count(outs[1], 1)
            share = tir.const(size, g.dtype) if isinstance(size, int) else size.astype(g.dtype)
            value = te.if_then_else(tir.all(*inside), g(*i[:-2], *outs) / share, tir.const(0.0, g.dtype))
            return te.sum(value, axis=offsets)

        return te.compute([*g.shape[:-2], *sizes], element, name="avg_pool_backward")

    return cx.te(compute, grad, primfunc_name_hint="avg_pool_backward")


def adaptive_avg_pool_backward(cx: FunctionImporter, grad: Any, x: Any) -> Any:
    """As for average pooling, with windows that depend on the ratio of sizes."""
    sizes = cx.shape(x)[-2:]

    def compute(g: Any) -> Any:
        outs = [te.reduce_axis((0, g.shape[-2 + k]), f"r{k}") for k in range(2)]

        def element(*i: Any) -> Any:
            inside, share = [], tir.const(1.0, g.dtype)
            for k in range(2):
                start = te.floordiv(outs[k] * sizes[k], g.shape[-2 + k])
                end = te.floordiv((outs[k] + 1) * sizes[k] + g.shape[-2 + k] - 1, g.shape[-2 + k])
                inside += [i[-2 + k] >= start, i[-2 + k] < end]
                share = share * (end - start).astype(g.dtype)
            value = te.if_then_else(tir.all(*inside), g(*i[:-2], *outs) / share, tir.const(0.0, g.dtype))
            return te.sum(value, axis=outs)

        return te.compute([*g.shape[:-2], *sizes], element, name="adaptive_avg_pool_backward")

    if cx.shape(grad)[-2:] == [1, 1]:
        area = cx.tensor(math.prod(sizes), cx.dtype(grad))
        return cx.ops.broadcast_to(cx.ops.divide(grad, area), cx.shape(x))
    return cx.te(compute, grad, primfunc_name_hint="adaptive_avg_pool_backward")


def _swapped(cx: FunctionImporter, x: Any) -> Any:
    rank = cx.rank(x)
    return cx.ops.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


def attention_backward(
    cx: FunctionImporter, grad: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout: float, causal: bool, *,
    attn_mask: Any = None, scale: Any = None,
) -> Any:  # fmt: skip
    """The gradients of query, key and value. Attention weights are recomputed from ``logsumexp``; dropout is ignored."""
    factor = 1 / math.sqrt(cx.shape(query)[-1]) if scale is None else scale
    axis = cx.rank(query) - 1
    logits = scores(cx, query, key, attn_mask, causal, scale)
    weights = cx.ops.exp(cx.ops.subtract(logits, cx.ops.expand_dims(cx.cast(logsumexp, cx.dtype(query)), axis)))
    grad_value = cx.ops.matmul(_swapped(cx, weights), grad)
    grad_weights = cx.ops.matmul(grad, _swapped(cx, value))
    delta = cx.ops.sum(cx.ops.multiply(grad, out), axis=[axis], keepdims=True)
    grad_logits = cx.ops.multiply(weights, cx.ops.subtract(grad_weights, delta))
    grad_logits = cx.ops.multiply(grad_logits, cx.tensor(factor, cx.dtype(query)))
    return cx.ops.matmul(grad_logits, key), cx.ops.matmul(_swapped(cx, grad_logits), query), grad_value


TABLE: dict[str, Converter] = {
    "convolution_backward": convolution_backward,
    "max_pool2d_with_indices_backward": max_pool_backward,
    "adaptive_max_pool2d_backward": adaptive_max_pool_backward,
    "avg_pool2d_backward": avg_pool_backward,
    "_adaptive_avg_pool2d_backward": adaptive_avg_pool_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
}
"""The converters of this family."""

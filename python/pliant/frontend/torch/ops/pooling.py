"""Pooling over windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pliant import te, tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.convolution import per_dim
from pliant.frontend.torch.ops.unary import Converter


def _batched(cx: FunctionImporter, x: Any, dims: int, pool: Callable[[Any], Any]) -> Any:
    """Pools images with or without a batch dim."""
    if cx.rank(x) != dims + 1:
        return pool(x)
    results = pool(cx.ops.expand_dims(x, 0))
    if isinstance(results, tuple | list):
        return tuple(cx.ops.squeeze(r, axis=[0]) for r in results)
    return cx.ops.squeeze(results, axis=[0])


def _max_pool(dims: int) -> Converter:
    """The converter of max pooling without indices. An empty ``stride`` is the size of the window. The batch dim may be absent."""

    def convert(cx: FunctionImporter, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        kernel = per_dim(kernel, dims)
        settings = {
            "pool_size": kernel,
            "strides": per_dim(stride or kernel, dims),
            "padding": per_dim(padding, dims) * 2,
            "dilation": per_dim(dilation, dims),
            "ceil_mode": ceil_mode,
        }
        return _batched(cx, x, dims, lambda t: getattr(cx.ops.nn, f"max_pool{dims}d")(t, **settings))

    return convert


def _avg_pool(dims: int) -> Converter:
    """The converter of average pooling. ``divisor`` replaces the number of elements of a window; it is rejected with ``ceil_mode``."""

    def convert(
        cx: FunctionImporter, x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include_pad: bool,
        divisor: Any = None,
    ) -> Any:
        kernel = per_dim(kernel, dims)
        settings = {
            "pool_size": kernel,
            "strides": per_dim(stride or kernel, dims),
            "padding": per_dim(padding, dims) * 2,
            "ceil_mode": ceil_mode,
            "count_include_pad": include_pad if divisor is None else True,
        }
        if divisor is not None and ceil_mode:
            raise UnsupportedError("avg_pool with divisor_override and ceil_mode is not supported")
        y = _batched(cx, x, dims, lambda t: getattr(cx.ops.nn, f"avg_pool{dims}d")(t, **settings))
        return y if divisor is None else cx.ops.multiply(y, cx.tensor(math.prod(kernel) / divisor, cx.dtype(y)))

    return convert


def _adaptive_avg_pool(dims: int) -> Converter:
    """The converter of adaptive average pooling. The size is that of the result, which torch inferred."""

    def convert(cx: FunctionImporter, x: Any, size: Any) -> Any:
        target = [cx.sizes.convert(d) for d in cx.out.shape[-dims:]]
        return _batched(cx, x, dims, lambda t: getattr(cx.ops.nn, f"adaptive_avg_pool{dims}d")(t, output_size=target))

    return convert


Window = Callable[..., tuple[list[Any], Any]]
"""The first and last element of a window, and whether an element lies in it, as a function of the indices of a result."""


def _argmax_windows(cx: FunctionImporter, x: Any, dims: int, extents: list[Any], element: Callable[..., Any]) -> Any:
    """The maximum of each window and its index in the flattened image. ``element(out, offset)`` returns the position of an element
    of a window, and whether it exists."""
    shape = [cx.sizes.convert(d) for d in cx.out[0].shape]
    if len(shape) == dims + 1:
        shape = [1, *shape]

    def compute(a: Any) -> Any:
        lowest = te.min_value(a.dtype) if not is_float(str(a.dtype)) else -te.infinity(a.dtype)
        first = te.comm_reducer(_first_maximum, lambda value, index: (lowest, tir.const(-1, index)), name="first_maximum")
        offsets = [te.reduce_axis((0, e), f"r{k}") for k, e in enumerate(extents)]

        def value(*i: Any) -> Any:
            position, inside = element(list(i[2:]), list(offsets))
            flat: Any = 0
            for p, n in zip(position, a.shape[2:], strict=True):
                flat = flat * n + p
            read = te.if_then_else(inside, a(*i[:2], *position), lowest)
            return first((read, te.if_then_else(inside, flat, tir.const(-1, "int64"))), axis=offsets)

        return te.compute(shape, value, name="max_pool_with_index")

    return _batched(cx, x, dims, lambda t: tuple(cx.te(compute, t, primfunc_name_hint="max_pool_with_index")))


def _first_maximum(old: Any, new: Any) -> Any:
    """Keeps the first maximum; NaN is larger than all numbers."""
    is_nan = te.isnan(new[0]) if is_float(str(new[0].dtype)) else tir.const(False, "bool")
    replaces = tir.all(new[1] >= 0, tir.any(new[0] > old[0], old[1] < 0, is_nan))
    return tir.Select(replaces, new[0], old[0]), tir.Select(replaces, new[1], old[1])


def _max_pool_with_indices(dims: int) -> Converter:
    """The converter of max pooling with indices of the first maxima, in the flattened image without padding."""

    def convert(cx: FunctionImporter, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        kernel = per_dim(kernel, dims)
        strides, pads, steps = per_dim(stride or kernel, dims), per_dim(padding, dims), per_dim(dilation, dims)
        sizes = cx.shape(x)[-dims:]

        def element(out: list[Any], offset: list[Any]) -> Any:
            position = [o * s - p + k * d for o, s, p, k, d in zip(out, strides, pads, offset, steps, strict=True)]
            inside = tir.all(*(tir.all(p >= 0, p < n) for p, n in zip(position, sizes, strict=True)))
            return position, inside

        return _argmax_windows(cx, x, dims, kernel, element)

    return convert


def _adaptive_max_pool(dims: int, with_indices: bool = True) -> Converter:
    """The converter of adaptive max pooling with indices in the flattened image. Windows may differ in size and overlap."""

    def convert(cx: FunctionImporter, x: Any, size: Any) -> Any:
        sizes = cx.shape(x)[-dims:]
        target = [cx.sizes.convert(d) for d in cx.out[0].shape[-dims:]]
        extents = [(n + m - 1) // m + 1 for n, m in zip(sizes, target, strict=True)]

        def element(out: list[Any], offset: list[Any]) -> Any:
            starts = [te.floordiv(o * n, m) for o, n, m in zip(out, sizes, target, strict=True)]
            ends = [te.floordiv((o + 1) * n + m - 1, m) for o, n, m in zip(out, sizes, target, strict=True)]
            position = [s + k for s, k in zip(starts, offset, strict=True)]
            return position, tir.all(*(p < e for p, e in zip(position, ends, strict=True)))

        return _argmax_windows(cx, x, dims, extents, element)

    return convert


def _table() -> dict[str, Converter]:
    table: dict[str, Converter] = {}
    for n in (1, 2, 3):
        table[f"max_pool{n}d"] = _max_pool(n)
        table[f"max_pool{n}d_with_indices"] = _max_pool_with_indices(n)
        table[f"avg_pool{n}d"] = _avg_pool(n)
        table[f"adaptive_avg_pool{n}d"] = _adaptive_avg_pool(n)
        table[f"adaptive_max_pool{n}d"] = _adaptive_max_pool(n)
    for n in (2, 3):
        table[f"_adaptive_avg_pool{n}d"] = _adaptive_avg_pool(n)
    return table


TABLE: dict[str, Converter] = _table()
"""The converters of this family."""

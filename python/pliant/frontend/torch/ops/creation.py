"""Operators that create tensors, and conversions of data types."""

from __future__ import annotations

from typing import Any

from pliant import te, tir
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter, identity


def _filled(cx: FunctionImporter, value: Any) -> Any:
    dtype = cx.out_dtype
    return cx.ops.full(cx.out_shape, cx.tensor(value, dtype), dtype)


def _constant_filled(value: float) -> Converter:
    """The converter of operators that create tensors of one number. ``empty`` tensors are filled with 0."""
    return lambda cx, *_, **__: _filled(cx, value)


def full(cx: FunctionImporter, _: Any, value: Any, **__: Any) -> Any:
    """Converts ``full`` and ``full_like``. The value, a number or size, is converted to the type of the result."""
    return _filled(cx, value)


def new_full(cx: FunctionImporter, _: Any, __: Any, value: Any, **___: Any) -> Any:
    """Converts ``new_full``, whose value is the third operand."""
    return _filled(cx, value)


def fill(cx: FunctionImporter, _: Any, value: Any) -> Any:
    """Converts ``fill`` to a new tensor. The value is a number or a tensor of one element."""
    return _filled(cx, cx.ops.reshape(value, []) if cx.is_tensor(value) else value)


def scalar_tensor(cx: FunctionImporter, value: Any, **_: Any) -> Any:
    """Converts ``scalar_tensor`` of a number or size."""
    return cx.tensor(value, cx.out_dtype)


def arange(cx: FunctionImporter, *bounds: Any, **_: Any) -> Any:
    """Converts ``arange`` to ``start + i * step`` in the type of the result. The size is that which torch inferred."""
    start, end, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    dtype = cx.out_dtype
    del end  # The number of elements is that of the result.
    return _sequence(cx, lambda i: i.astype(dtype) * _scalar(step, dtype) + _scalar(start, dtype), "arange")


def _scalar(value: Any, dtype: str) -> Any:
    return tir.const(value, dtype) if isinstance(value, bool | int | float) else value.astype(dtype)


def _sequence(cx: FunctionImporter, element: Any, name: str) -> Any:
    """A vector as a function of the int64 index of an element."""
    shape = cx.out_shape
    return cx.te(lambda: te.compute(shape, element, name=name), primfunc_name_hint=name)


def linspace(cx: FunctionImporter, start: Any, end: Any, steps: Any, **_: Any) -> Any:
    """Converts ``linspace``. The second half counts back from ``end``, which is exact; tensor bounds count from ``start`` only."""
    dtype = cx.out_dtype
    kind = dtype if is_float(dtype) and dtype in ("float32", "float64") else "float64"
    (size,) = cx.out_shape
    if cx.is_tensor(start) or cx.is_tensor(end):
        positions = _sequence(cx, lambda i: i.astype(kind), "positions")
        first, last = cx.tensor(start, kind), cx.tensor(end, kind)
        step = cx.ops.divide(cx.ops.subtract(last, first), cx.tensor(max(size - 1, 1) if isinstance(size, int) else size - 1, kind))
        return cx.ops.add(first, cx.ops.multiply(positions, step))

    def element(i: Any) -> Any:
        last = tir.max(_scalar(size, "int64") - 1, 1)
        first, final = _scalar(start, kind), _scalar(end, kind)
        step = (final - first) / last.astype(kind)
        forward = first + i.astype(kind) * step
        backward = final - (last - i).astype(kind) * step
        return tir.Select(i * 2 < _scalar(size, "int64"), forward, backward)

    return _sequence(cx, element, "linspace")


def logspace(cx: FunctionImporter, start: Any, end: Any, steps: Any, base: float = 10.0, **_: Any) -> Any:
    """Converts ``logspace`` to powers of ``base``, which are computed in float64."""
    kind = "float64"
    exponents = cx.cast(linspace(cx, start, end, steps), kind)
    return cx.ops.power(cx.tensor(base, kind), exponents)


def eye(cx: FunctionImporter, *_: Any, **__: Any) -> Any:
    """Converts ``eye``. The numbers of rows and columns are those that torch inferred, and may be symbolic."""
    n, m = cx.out_shape
    dtype = cx.out_dtype
    return cx.cast(cx.ops.eye(n, m, 0, "uint8" if dtype == "bool" else dtype), dtype)


def triangle_indices(upper: bool) -> Converter:
    """``tril_indices`` or ``triu_indices`` of constant sizes, as a constant."""

    def convert(cx: FunctionImporter, rows: int, columns: int, offset: int = 0, **_: Any) -> Any:
        import torch

        rule = torch.triu_indices if upper else torch.tril_indices
        return cx.cast(cx.constant(rule(rows, columns, offset)), cx.out_dtype)

    return convert


def complex_part_is_zero(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``imag`` of a real tensor to zeros."""
    return cx.ops.zeros_like(x)


def copy(cx: FunctionImporter, x: Any, source: Any, *_: Any) -> Any:
    """Converts ``copy``: broadcasts ``source`` to the shape of ``x`` and converts it to the type of ``x``."""
    return cx.ops.broadcast_to(cx.cast(source, cx.dtype(x)), cx.out_shape)


TABLE: dict[str, Converter] = {
    **dict.fromkeys(
        """zeros zeros_like new_zeros empty.memory_format empty_like new_empty empty_strided new_empty_strided empty_permuted
        zero""".split(),
        _constant_filled(0),
    ),
    **dict.fromkeys("ones ones_like new_ones".split(), _constant_filled(1)),
    **dict.fromkeys("full full_like".split(), full),
    "new_full": new_full,
    **dict.fromkeys("fill.Scalar fill.Tensor".split(), fill),
    "scalar_tensor": scalar_tensor,
    **dict.fromkeys("arange arange.start arange.start_step".split(), arange),
    **dict.fromkeys("linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor".split(), linspace),
    **dict.fromkeys("logspace logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor".split(), logspace),
    **dict.fromkeys("eye eye.m".split(), eye),
    "tril_indices": triangle_indices(upper=False),
    "triu_indices": triangle_indices(upper=True),
    "imag": complex_part_is_zero,
    **dict.fromkeys(
        """_to_copy to.dtype to.dtype_layout to.device to.other type_as _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half
        _cast_Int _cast_Long _cast_Short _to_cpu prims.convert_element_type.default
        prims.device_put.default""".split(),
        identity,
    ),
    "copy": copy,
}
"""The converters of this family."""

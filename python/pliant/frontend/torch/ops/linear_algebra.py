"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import te
from pliant.frontend.torch.data_types import dtype_name
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def matmul(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts products of matrices and vectors, such as ``mm``, ``mv`` and ``dot``, in the promoted type."""
    dtype = cx.promoted_type(a, b)
    return cx.ops.matmul(cx.cast(a, dtype), cx.cast(b, dtype))


def matmul_with_type(cx: FunctionImporter, a: Any, b: Any, dtype: Any) -> Any:
    """Converts the overloads of ``mm`` and ``bmm`` with ``dtype``, which is the type of the result."""
    return cx.ops.matmul(a, b, out_dtype=dtype_name(dtype))


def linear(cx: FunctionImporter, x: Any, weight: Any, bias: Any = None) -> Any:
    """Converts ``linear``. Weights have shape (out, in), or (in), in which case the result lacks the last dim."""
    if cx.rank(weight) == 2:
        return cx.ops.linear(x, weight, bias) if bias is not None else cx.ops.linear(x, weight)
    product = cx.ops.matmul(x, cx.ops.permute_dims(weight))
    return product if bias is None else cx.ops.add(product, bias)


def _scale(cx: FunctionImporter, x: Any, factor: Any) -> Any:
    if isinstance(factor, int | float) and factor == 1:
        return x
    return cx.ops.multiply(x, cx.tensor(factor, cx.dtype(x)))


def add_product(cx: FunctionImporter, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """``addmm``, ``addmv`` and ``baddbmm``. With ``beta`` 0, NaN in ``x`` does not matter."""
    product = _scale(cx, cx.ops.matmul(a, b), alpha)
    return product if beta == 0 else cx.ops.add(_scale(cx, x, beta), product)


def add_sum_of_products(cx: FunctionImporter, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Converts ``addbmm``, which sums the products of a batch. With ``beta`` 0, NaN in ``x`` does not matter."""
    product = _scale(cx, cx.ops.sum(cx.ops.matmul(a, b), axis=[0]), alpha)
    return product if beta == 0 else cx.ops.add(_scale(cx, x, beta), product)


def add_outer(cx: FunctionImporter, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Converts ``addr``, which adds an outer product, in the type of the result. With ``beta`` 0, NaN in ``x`` does not matter."""
    dtype = cx.out_dtype
    product = _scale(cx, cx.ops.outer(cx.cast(a, dtype), cx.cast(b, dtype)), alpha)
    return product if beta == 0 else cx.ops.add(_scale(cx, cx.cast(x, dtype), beta), product)


def outer(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``outer`` in the promoted type. The product of bools is their logical and."""
    dtype = cx.promoted_type(a, b)
    a, b = cx.cast(a, dtype), cx.cast(b, dtype)
    if dtype == "bool":
        return cx.ops.logical_and(cx.ops.expand_dims(a, 1), b)
    return cx.ops.outer(a, b)


def einsum(cx: FunctionImporter, equation: str, operands: Sequence[Any], path: Any = None, **_: Any) -> Any:
    """Converts ``einsum`` in the promoted type. ``path`` is ignored."""
    dtype = cx.promoted_type(*operands)
    return cx.ops.einsum([cx.cast(x, dtype) for x in operands], subscripts=equation.replace(" ", ""))


def cross(cx: FunctionImporter, a: Any, b: Any, dim: Any = -1, **keywords: Any) -> Any:
    """Converts ``linalg_cross``. The size of the dim is 3; operands are broadcast and promoted."""
    dim = keywords.get("dim", dim)
    axis = cx.axis(a, -1 if dim is None else dim)
    shape, dtype = cx.out_shape, cx.promoted_type(a, b)
    a, b = (cx.ops.broadcast_to(cx.cast(x, dtype), shape) for x in (a, b))

    def compute(x: Any, y: Any) -> Any:
        def element(*i: Any) -> Any:
            def at(t: Any, step: int) -> Any:
                return t(*i[:axis], te.floormod(i[axis] + step, 3), *i[axis + 1 :])

            return at(x, 1) * at(y, 2) - at(x, 2) * at(y, 1)

        return te.compute(shape, element, name="cross")

    return cx.te(compute, a, b, primfunc_name_hint="cross")


def trilinear(
    cx: FunctionImporter, a: Any, b: Any, c: Any, expand_a: Sequence[int], expand_b: Sequence[int], expand_c: Sequence[int],
    summed: Sequence[int], *_: Any,
) -> Any:  # fmt: skip
    """The sum over some dims of the product of three tensors, after the insertion of dims of size 1."""
    expanded = [cx.ops.expand_dims(x, list(axes)) if axes else x for x, axes in ((a, expand_a), (b, expand_b), (c, expand_c))]
    product = cx.ops.multiply(cx.ops.multiply(expanded[0], expanded[1]), expanded[2])
    return cx.ops.sum(product, axis=list(summed)) if summed else product


SQUARINGS, TERMS = 12, 12
"""The exponential of a matrix divides it by ``2 ** SQUARINGS`` and sums ``TERMS`` terms of the series."""


def matrix_exponential(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``matrix_exp`` by scaling and squaring in float64. The numbers of squarings and terms are constant."""
    dtype, n = cx.dtype(x), cx.shape(x)[-1]
    small = cx.ops.multiply(cx.cast(x, "float64"), cx.tensor(2.0**-SQUARINGS, "float64"))
    identity = cx.ops.broadcast_to(cx.ops.eye(n, n, 0, "float64"), cx.shape(x))
    result = identity
    for k in range(TERMS, 0, -1):
        result = cx.ops.add(identity, cx.ops.multiply(cx.ops.matmul(small, result), cx.tensor(1.0 / k, "float64")))
    for _ in range(SQUARINGS):
        result = cx.ops.matmul(result, result)
    return cx.cast(result, dtype)


TABLE: dict[str, Converter] = {
    **dict.fromkeys("mm bmm mv dot vdot matmul linalg_matmul".split(), matmul),
    **dict.fromkeys("mm.dtype bmm.dtype".split(), matmul_with_type),
    "linear": linear,
    **dict.fromkeys("addmm addmv baddbmm".split(), add_product),
    "addbmm": add_sum_of_products,
    "addr": add_outer,
    **dict.fromkeys("outer ger".split(), outer),
    "einsum": einsum,
    "linalg_cross": cross,
    "_trilinear": trilinear,
    **dict.fromkeys("linalg_matrix_exp matrix_exp".split(), matrix_exponential),
}
"""The converters of this family."""

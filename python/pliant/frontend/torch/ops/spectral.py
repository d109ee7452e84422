"""Singular values, and eigenvalues of symmetric matrices, by Jacobi's method."""

from __future__ import annotations

from typing import Any

from pliant import te, tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.factorizations import _batched, _copy, _matrix, _transposed
from pliant.frontend.torch.ops.unary import Converter

SWEEPS = 14
"""Sweeps over all pairs of columns. The method converges quadratically after the first few."""


def _rotation(builder: Any, numbers: Any, off: Any, difference: Any, dtype: str) -> None:
    """Stores the cosine and the sine of the rotation that makes a 2 x 2 matrix diagonal: ``off`` beside the diagonal, whose
    elements differ by ``difference``."""
    zero, one = tir.const(0.0, dtype), tir.const(1.0, dtype)
    numbers[0], numbers[1] = one, zero
    with builder.if_scope(tir.Not(off.equal(zero))):
        numbers[2] = difference / (off * tir.const(2.0, dtype))
        sign = tir.Select(numbers[2] < zero, -one, one)
        numbers[3] = sign / (tir.abs(numbers[2]) + te.sqrt(one + numbers[2] * numbers[2]))
        numbers[0] = one / te.sqrt(one + numbers[3] * numbers[3])
        numbers[1] = numbers[3] * numbers[0]


def _rotate_columns(builder: Any, b: Any, a: Any, rows: Any, p: Any, q: Any, numbers: Any) -> None:
    with builder.for_range(0, rows, name="r") as r:
        numbers[4] = a[b, r, p]
        numbers[5] = a[b, r, q]
        a[b, r, p] = numbers[0] * numbers[4] - numbers[1] * numbers[5]
        a[b, r, q] = numbers[1] * numbers[4] + numbers[0] * numbers[5]


def _identity(builder: Any, b: Any, v: Any, n: Any, dtype: str) -> None:
    with builder.for_range(0, n, name="i") as i, builder.for_range(0, n, name="j") as j:
        v[b, i, j] = tir.Select(i.equal(j), tir.const(1.0, dtype), tir.const(0.0, dtype))


def _orthogonal_columns(cx: FunctionImporter, x: Any) -> tuple[Any, Any]:
    """Rotates columns until they are orthogonal (Hestenes). Returns ``x @ v`` and ``v``."""
    rows, columns = _matrix(cx, x)
    dtype = cx.dtype(x)
    zero = tir.const(0.0, dtype)

    def body(builder: Any, b: Any, a: Any, u: Any, v: Any) -> None:
        _copy(builder, b, a, u, rows, columns)
        _identity(builder, b, v, columns, dtype)
        numbers = builder.allocate(dtype, (6,), name="numbers", scope="local")
        sums = builder.allocate(dtype, (3,), name="sums", scope="local")
        with builder.for_range(0, SWEEPS, name="sweep"), builder.for_range(0, columns, name="p") as p:
            with builder.for_range(0, columns - p - 1, name="s") as s:
                q = p + 1 + s
                sums[0], sums[1], sums[2] = zero, zero, zero
                with builder.for_range(0, rows, name="r") as r:
                    sums[0] = sums[0] + u[b, r, p] * u[b, r, p]
                    sums[1] = sums[1] + u[b, r, q] * u[b, r, q]
                    sums[2] = sums[2] + u[b, r, p] * u[b, r, q]
                _rotation(builder, numbers, sums[2], sums[1] - sums[0], dtype)
                _rotate_columns(builder, b, u, rows, p, q, numbers)
                _rotate_columns(builder, b, v, columns, p, q, numbers)

    u, v = _batched(cx, [x], [2], [(rows, columns), (columns, columns)], [dtype, dtype], body, "jacobi_svd")
    return u, v


def _sorted_columns(cx: FunctionImporter, values: Any, matrices: list[Any], descending: bool) -> list[Any]:
    """Sorts values, and the columns of matrices with them."""
    axis = cx.rank(values) - 1
    order = cx.ops.argsort(values, axis=axis, descending=descending, dtype="int64")
    columns = cx.ops.expand_dims(order, axis)
    moved = [cx.ops.gather_elements(m, cx.ops.broadcast_to(columns, cx.shape(m)), axis=axis + 1) for m in matrices]
    return [cx.ops.gather_elements(values, order, axis=axis), *moved]


def svd(cx: FunctionImporter, x: Any, full_matrices: bool = False, compute_uv: bool = True, **_: Any) -> Any:
    """The reduced decomposition. Columns of ``u`` that belong to a singular value of 0 are 0."""
    rows, columns = _matrix(cx, x)
    square = cx.same_size(rows, columns)
    if full_matrices and compute_uv and not square:
        raise UnsupportedError("the full singular value decomposition is supported for square matrices only")
    dtype = cx.dtype(x)
    wide = isinstance(rows, int) and isinstance(columns, int) and columns > rows
    tall = _transposed(cx, x) if wide else x
    scaled, v = _orthogonal_columns(cx, cx.cast(tall, "float64"))
    values = cx.ops.sqrt(cx.ops.sum(cx.ops.multiply(scaled, scaled), axis=[-2]))
    values, scaled, v = _sorted_columns(cx, values, [scaled, v], descending=True)
    zero, one = cx.tensor(0.0, "float64"), cx.tensor(1.0, "float64")
    divisor = cx.ops.where(cx.ops.greater(values, zero), values, one)
    u = cx.ops.divide(scaled, cx.ops.expand_dims(divisor, cx.rank(divisor) - 1))
    if wide:
        u, v = v, u
    results = [u, values, _transposed(cx, v)]
    if not compute_uv:
        empty = cx.ops.zeros([0], dtype)
        return empty, cx.cast(values, dtype), empty
    return [cx.cast(r, dtype) for r in results]


def eigh(cx: FunctionImporter, x: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    """Eigenvalues in ascending order, and eigenvectors, of the symmetric matrix in one triangle."""
    dtype = cx.dtype(x)
    n = cx.shape(x)[-1]
    kept = cx.ops.tril(x) if uplo.upper() == "L" else cx.ops.triu(x)
    strict = cx.ops.tril(x, k=-1) if uplo.upper() == "L" else cx.ops.triu(x, k=1)
    symmetric = cx.cast(cx.ops.add(kept, _transposed(cx, strict)), "float64")
    kind = "float64"

    def body(builder: Any, b: Any, a: Any, d: Any, v: Any, values: Any) -> None:
        _copy(builder, b, a, d, n, n)
        _identity(builder, b, v, n, kind)
        numbers = builder.allocate(kind, (6,), name="numbers", scope="local")
        with builder.for_range(0, SWEEPS, name="sweep"), builder.for_range(0, n, name="p") as p:
            with builder.for_range(0, n - p - 1, name="s") as s:
                q = p + 1 + s
                _rotation(builder, numbers, d[b, p, q], d[b, q, q] - d[b, p, p], kind)
                _rotate_columns(builder, b, d, n, p, q, numbers)
                with builder.for_range(0, n, name="r") as r:
                    numbers[4] = d[b, p, r]
                    numbers[5] = d[b, q, r]
                    d[b, p, r] = numbers[0] * numbers[4] - numbers[1] * numbers[5]
                    d[b, q, r] = numbers[1] * numbers[4] + numbers[0] * numbers[5]
                _rotate_columns(builder, b, v, n, p, q, numbers)
        with builder.for_range(0, n, name="i") as i:
            values[b, i] = d[b, i, i]

    _, v, values = _batched(cx, [symmetric], [2], [(n, n), (n, n), (n,)], [kind] * 3, body, "jacobi_eigh")
    values, v = _sorted_columns(cx, values, [v], descending=False)
    return cx.cast(values, dtype), cx.cast(v, dtype) if compute_v else cx.ops.zeros([0], dtype)


def pseudo_inverse(
    cx: FunctionImporter, x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False
) -> Any:
    """The pseudo-inverse: singular values up to the larger tolerance count as 0."""
    import torch

    from pliant.frontend.torch.data_types import torch_dtype

    dtype = cx.dtype(x)
    if hermitian:
        x = cx.ops.add(cx.ops.tril(x), _transposed(cx, cx.ops.tril(x, k=-1)))
    u, values, vh = svd(cx, x)
    rows, columns = _matrix(cx, x)
    default = 0.0 if atol is not None else max(rows, columns) * torch.finfo(torch_dtype(dtype)).eps
    relative, absolute = cx.tensor(default if rtol is None else rtol, dtype), cx.tensor(0.0 if atol is None else atol, dtype)
    largest = cx.ops.max(values, axis=[-1], keepdims=True)
    limits = [t if cx.rank(t) == 0 else cx.ops.expand_dims(t, cx.rank(t)) for t in (relative, absolute)]
    cutoff = cx.ops.maximum(limits[1], cx.ops.multiply(limits[0], largest))
    zero, one = cx.tensor(0.0, dtype), cx.tensor(1.0, dtype)
    kept = cx.ops.greater(values, cutoff)
    inverse = cx.ops.where(kept, cx.ops.divide(one, cx.ops.where(kept, values, one)), zero)
    scaled = cx.ops.multiply(_transposed(cx, vh), cx.ops.expand_dims(inverse, cx.rank(inverse) - 1))
    return cx.ops.matmul(scaled, _transposed(cx, u))


TABLE: dict[str, Converter] = {
    "_linalg_svd": svd,
    "_linalg_eigh": eigh,
    "linalg_pinv.atol_rtol_tensor": pseudo_inverse,
    "linalg_pinv.atol_rtol_float": pseudo_inverse,
}
"""The converters of this family."""

"""Factorizations of matrices, and the operators that use them: LU, Cholesky, QR, triangular systems, inverses and determinants.

Each is a loop function over a batch of matrices, with the conventions of LAPACK: row pivots are counted from 1, ``info`` is the
first column without a pivot or 0, and the diagonal of a triangular factor from Householder reflections may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pliant import te, tir
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter

Body = Callable[..., None]
"""Emits the statements for one matrix: a builder, the index of the matrix, and the buffers of operands and results."""


def _batched(cx: FunctionImporter, operands: Sequence[Any], ranks: Sequence[int], shapes: Sequence[Any], types: Sequence[str],
             body: Body, name: str) -> list[Any]:  # fmt: skip
    """Emits a loop function over the leading dims. ``ranks`` are the ranks of the operands without them, and ``shapes`` the shapes
    of the results without them."""
    lead = cx.shape(operands[0])[: cx.rank(operands[0]) - ranks[0]]
    batch = math.prod(lead, start=1)
    flat = [cx.ops.reshape(x, [batch, *cx.shape(x)[cx.rank(x) - r :]]) for x, r in zip(operands, ranks, strict=True)]

    def compute(*tensors: Any) -> Any:
        def statements(inputs: Any, outputs: Any) -> Any:
            builder = tir.ir_builder.create()
            buffers = [builder.buffer_ptr(b) for b in (*inputs, *outputs)]
            with builder.for_range(0, batch, name="b") as b:
                body(builder, b, *buffers)
            return builder.get()

        return te.extern([(batch, *s) for s in shapes], list(tensors), statements, name=name, dtype=list(types))

    result = cx.te(compute, *flat, primfunc_name_hint=name)
    results = result if isinstance(result, list) else [result]
    return [cx.ops.reshape(r, [*lead, *s]) for r, s in zip(results, shapes, strict=True)]


def _copy(builder: Any, b: Any, source: Any, target: Any, rows: Any, columns: Any) -> None:
    with builder.for_range(0, rows, name="i") as i, builder.for_range(0, columns, name="j") as j:
        target[b, i, j] = source[b, i, j]


def _matrix(cx: FunctionImporter, x: Any) -> tuple[Any, Any]:
    rows, columns = cx.shape(x)[-2:]
    return rows, columns


def _smaller(rows: Any, columns: Any) -> Any:
    return min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else tir.min(rows, columns)


def lu(cx: FunctionImporter, x: Any) -> list[Any]:
    """The LU factorization with row pivoting: the factors in one matrix, the pivots and ``info``."""
    rows, columns = _matrix(cx, x)
    count, dtype = _smaller(rows, columns), cx.dtype(x)
    zero = tir.const(0.0, dtype)

    def body(builder: Any, b: Any, a: Any, f: Any, pivots: Any, info: Any) -> None:
        _copy(builder, b, a, f, rows, columns)
        info[b] = tir.const(0, "int32")
        pivot = builder.allocate("int64", (1,), name="pivot", scope="local")
        held = builder.allocate(dtype, (1,), name="held", scope="local")
        with builder.for_range(0, count, name="k") as k:
            pivot[0] = k
            with builder.for_range(0, rows - k - 1, name="i") as i:
                better = tir.abs(f[b, k + 1 + i, k]) > tir.abs(f[b, pivot[0], k])
                pivot[0] = tir.Select(better, k + 1 + i, pivot[0])
            pivots[b, k] = (pivot[0] + 1).astype("int32")
            with builder.for_range(0, columns, name="j") as j:
                held[0] = f[b, k, j]
                f[b, k, j] = f[b, pivot[0], j]
                f[b, pivot[0], j] = held[0]
            with builder.if_scope(f[b, k, k].equal(zero)):
                info[b] = tir.Select(info[b].equal(tir.const(0, "int32")), (k + 1).astype("int32"), info[b])
            with builder.else_scope(), builder.for_range(0, rows - k - 1, name="i") as i:
                f[b, k + 1 + i, k] = f[b, k + 1 + i, k] / f[b, k, k]
                with builder.for_range(0, columns - k - 1, name="j") as j:
                    f[b, k + 1 + i, k + 1 + j] = f[b, k + 1 + i, k + 1 + j] - f[b, k + 1 + i, k] * f[b, k, k + 1 + j]

    return _batched(cx, [x], [2], [(rows, columns), (count,), ()], [dtype, "int32", "int32"], body, "lu")


def _substitute(builder: Any, b: Any, a: Any, x: Any, sizes: tuple[Any, Any], upper: bool, unit: bool) -> None:
    """Solves a triangular system in place."""
    n, columns = sizes
    with builder.for_range(0, n, name="i") as step:
        i = n - 1 - step if upper else step
        with builder.for_range(0, columns, name="j") as j:
            with builder.for_range(0, step, name="k") as k:
                other = n - 1 - k if upper else k
                x[b, i, j] = x[b, i, j] - a[b, i, other] * x[b, other, j]
            if not unit:
                x[b, i, j] = x[b, i, j] / a[b, i, i]


def solve_triangular(cx: FunctionImporter, a: Any, y: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Converts ``linalg_solve_triangular``: ``a x = y``, or ``x a = y`` without ``left``. Batch dims are broadcast."""
    if not left:
        moved = solve_triangular(cx, _transposed(cx, a), _transposed(cx, y), upper=not upper, unitriangular=unitriangular)
        return _transposed(cx, moved)
    a, y = _same_batch(cx, a, y)
    sizes = _matrix(cx, y)

    def body(builder: Any, b: Any, matrix: Any, right: Any, x: Any) -> None:
        _copy(builder, b, right, x, *sizes)
        _substitute(builder, b, matrix, x, sizes, upper, unitriangular)

    return _batched(cx, [a, y], [2, 2], [sizes], [cx.dtype(y)], body, "solve_triangular")[0]


def _same_batch(cx: FunctionImporter, a: Any, y: Any) -> list[Any]:
    """Broadcasts the leading dims of two matrices."""
    leads = [cx.shape(x)[:-2] for x in (a, y)]
    rank = max(map(len, leads))
    padded = [[1] * (rank - len(lead)) + lead for lead in leads]
    joint = [q if p == 1 else p for p, q in zip(*padded, strict=True)]
    return [cx.ops.broadcast_to(x, [*joint, *cx.shape(x)[-2:]]) for x in (a, y)]


def _transposed(cx: FunctionImporter, x: Any) -> Any:
    rank = cx.rank(x)
    return cx.ops.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


def _solve_with_factors(cx: FunctionImporter, factors: Any, pivots: Any, y: Any) -> Any:
    """Solves a system with an LU factorization."""
    sizes = _matrix(cx, y)
    dtype = cx.dtype(y)

    def body(builder: Any, b: Any, f: Any, p: Any, right: Any, x: Any) -> None:
        _copy(builder, b, right, x, *sizes)
        held = builder.allocate(dtype, (1,), name="held", scope="local")
        with builder.for_range(0, sizes[0], name="k") as k, builder.for_range(0, sizes[1], name="j") as j:
            other = p[b, k].astype("int64") - 1
            held[0] = x[b, k, j]
            x[b, k, j] = x[b, other, j]
            x[b, other, j] = held[0]
        _substitute(builder, b, f, x, sizes, upper=False, unit=True)
        _substitute(builder, b, f, x, sizes, upper=True, unit=False)

    return _batched(cx, [factors, pivots, y], [2, 1, 2], [sizes], [dtype], body, "lu_solve")[0]


def lu_solve(cx: FunctionImporter, factors: Any, pivots: Any, y: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """Converts ``linalg_lu_solve``. Without ``left`` or with ``adjoint``, the factors are multiplied and factorized again."""
    factors, y = _same_batch(cx, factors, y)
    pivots = cx.ops.broadcast_to(pivots, [*cx.shape(factors)[:-2], cx.shape(pivots)[-1]])
    if left and not adjoint:
        return _solve_with_factors(cx, factors, pivots, y)
    permutation, lower, upper = unpack(cx, factors, pivots)
    matrix = cx.ops.matmul(permutation, cx.ops.matmul(lower, upper))
    matrix = _transposed(cx, matrix) if adjoint else matrix
    return solve(cx, matrix, y, left)[0]


def solve(cx: FunctionImporter, a: Any, y: Any, left: bool = True) -> list[Any]:
    """The solution, the factors, the pivots and ``info``."""
    if not left:
        solution, *rest = solve(cx, _transposed(cx, a), _transposed(cx, y))
        return [_transposed(cx, solution), *rest]
    factors, pivots, info = lu(cx, a)
    lead = cx.shape(y)[:-2]
    wide, moved = (cx.ops.broadcast_to(x, [*lead, *cx.shape(x)[-r:]]) for x, r in ((factors, 2), (pivots, 1)))
    return [_solve_with_factors(cx, wide, moved, y), factors, pivots, info]


def solve_ex(cx: FunctionImporter, a: Any, y: Any, *, left: bool = True, check_errors: bool = False) -> list[Any]:
    """Converts ``_linalg_solve_ex``. ``y`` may be a batch of vectors. Returns the solution, LU factors, pivots and ``info``."""
    vector = cx.rank(y) == 1 or (cx.rank(y) == cx.rank(a) - 1 and len(cx.out[0].shape) == cx.rank(y))
    right = cx.ops.expand_dims(y, cx.rank(y)) if vector else y
    a, right = _same_batch(cx, a, right)
    solution, *rest = solve(cx, a, right, left or vector)
    return [cx.ops.squeeze(solution, axis=[cx.rank(solution) - 1]) if vector else solution, *rest]


def inverse(cx: FunctionImporter, x: Any, **_: Any) -> list[Any]:
    """Converts ``linalg_inv_ex``. Returns the inverse and ``info``, which reports singular matrices."""
    n = cx.shape(x)[-1]
    identity = cx.ops.broadcast_to(cx.ops.eye(n, n, 0, cx.dtype(x)), cx.shape(x))
    solution, _factors, _pivots, info = solve(cx, x, identity)
    return [solution, info]


def _sign_and_diagonal(cx: FunctionImporter, factors: Any, pivots: Any) -> tuple[Any, Any]:
    """The sign of the permutation, and the diagonal of the upper factor."""
    n, dtype = cx.shape(factors)[-1], cx.dtype(factors)
    order = cx.te(lambda: te.compute((n,), lambda i: (i + 1).astype("int32"), name="order"), primfunc_name_hint="order")
    moved = cx.cast(cx.ops.not_equal(pivots, order), dtype)
    sign = cx.ops.prod(cx.ops.subtract(cx.tensor(1.0, dtype), cx.ops.multiply(moved, cx.tensor(2.0, dtype))), axis=[-1])
    rank = cx.rank(factors)
    diagonal = cx.te(lambda a: te.compute([*a.shape[:-1]], lambda *i: a(*i, i[-1]), name="diagonal"), factors) if rank else factors
    return sign, diagonal


def determinant(cx: FunctionImporter, x: Any) -> list[Any]:
    """Converts ``_linalg_det``. Returns the determinant, LU factors and pivots. A singular matrix has a determinant of 0."""
    factors, pivots, _ = lu(cx, x)
    sign, diagonal = _sign_and_diagonal(cx, factors, pivots)
    return [cx.ops.multiply(sign, cx.ops.prod(diagonal, axis=[-1])), factors, pivots]


def sign_and_log_determinant(cx: FunctionImporter, x: Any) -> list[Any]:
    """Converts ``_linalg_slogdet``. Also returns LU factors and pivots. A singular matrix has sign 0 and logarithm -inf."""
    factors, pivots, _ = lu(cx, x)
    sign, diagonal = _sign_and_diagonal(cx, factors, pivots)
    signs = cx.ops.multiply(sign, cx.ops.prod(cx.ops.sign(diagonal), axis=[-1]))
    return [signs, cx.ops.sum(cx.ops.log(cx.ops.abs(diagonal)), axis=[-1]), factors, pivots]


def unpack(cx: FunctionImporter, factors: Any, pivots: Any, data: bool = True, permutation: bool = True) -> list[Any]:
    """The permutation matrix and the two triangular factors."""
    rows, columns = _matrix(cx, factors)
    count, dtype = _smaller(rows, columns), cx.dtype(factors)
    one, zero = tir.const(1.0, dtype), tir.const(0.0, dtype)

    def body(builder: Any, b: Any, f: Any, p: Any, order: Any, matrix: Any, lower: Any, upper: Any) -> None:
        with builder.for_range(0, rows, name="i") as i:
            order[b, i] = i
        held = builder.allocate("int64", (1,), name="held", scope="local")
        with builder.for_range(0, count, name="k") as k:
            other = p[b, k].astype("int64") - 1
            held[0] = order[b, k]
            order[b, k] = order[b, other]
            order[b, other] = held[0]
        with builder.for_range(0, rows, name="i") as i, builder.for_range(0, rows, name="j") as j:
            matrix[b, i, j] = tir.Select(order[b, j].equal(i), one, zero)
        with builder.for_range(0, rows, name="i") as i, builder.for_range(0, count, name="j") as j:
            lower[b, i, j] = tir.Select(i > j, f[b, i, j], tir.Select(i.equal(j), one, zero))
        with builder.for_range(0, count, name="i") as i, builder.for_range(0, columns, name="j") as j:
            upper[b, i, j] = tir.Select(i <= j, f[b, i, j], zero)

    shapes = [(rows,), (rows, rows), (rows, count), (count, columns)]
    results = _batched(cx, [factors, pivots], [2, 1], shapes, ["int64", dtype, dtype, dtype], body, "lu_unpack")
    empty = cx.ops.zeros([0], dtype)
    return [results[1] if permutation else empty, *(results[2:] if data else (empty, empty))]


def cholesky(cx: FunctionImporter, x: Any, *, upper: bool = False, check_errors: bool = False) -> list[Any]:
    """Converts ``linalg_cholesky_ex``. Only the triangle that ``upper`` selects is read. Returns the factor and ``info``."""
    x = _transposed(cx, x) if upper else x
    n, dtype = cx.shape(x)[-1], cx.dtype(x)
    zero = tir.const(0.0, dtype)

    def body(builder: Any, b: Any, a: Any, f: Any, info: Any) -> None:
        info[b] = tir.const(0, "int32")
        with builder.for_range(0, n, name="i") as i, builder.for_range(0, n, name="j") as j:
            f[b, i, j] = tir.Select(j <= i, a[b, i, j], zero)
        with builder.for_range(0, n, name="j") as j:
            with builder.for_range(0, j, name="k") as k:
                f[b, j, j] = f[b, j, j] - f[b, j, k] * f[b, j, k]
            bad = tir.all(f[b, j, j] <= zero, info[b].equal(tir.const(0, "int32")))
            info[b] = tir.Select(bad, (j + 1).astype("int32"), info[b])
            f[b, j, j] = te.sqrt(f[b, j, j])
            with builder.for_range(0, n - j - 1, name="i") as i:
                with builder.for_range(0, j, name="k") as k:
                    f[b, j + 1 + i, j] = f[b, j + 1 + i, j] - f[b, j + 1 + i, k] * f[b, j, k]
                f[b, j + 1 + i, j] = f[b, j + 1 + i, j] / f[b, j, j]

    factor, info = _batched(cx, [x], [2], [(n, n), ()], [dtype, "int32"], body, "cholesky")
    return [_transposed(cx, factor) if upper else factor, info]


def cholesky_solve(cx: FunctionImporter, y: Any, factor: Any, upper: bool = False) -> Any:
    """Converts ``cholesky_solve``. ``y`` is the right-hand side, and ``factor`` the Cholesky factor of the matrix."""
    lower = _transposed(cx, factor) if upper else factor
    half = solve_triangular(cx, lower, y, upper=False)
    return solve_triangular(cx, _transposed(cx, lower), half, upper=True)


def cholesky_inverse(cx: FunctionImporter, factor: Any, upper: bool = False) -> Any:
    """Converts ``cholesky_inverse``: the inverse of the matrix whose Cholesky factor is ``factor``."""
    n = cx.shape(factor)[-1]
    return cholesky_solve(cx, cx.ops.broadcast_to(cx.ops.eye(n, n, 0, cx.dtype(factor)), cx.shape(factor)), factor, upper)


def triangular_solve(
    cx: FunctionImporter, y: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Converts ``triangular_solve``, whose right-hand side comes first. Returns the solution and the broadcast matrix."""
    a, y = _same_batch(cx, a, y)
    matrix = _transposed(cx, a) if transpose else a
    return solve_triangular(cx, matrix, y, upper=upper != transpose, unitriangular=unitriangular), a


def reflections(cx: FunctionImporter, x: Any) -> list[Any]:
    """Householder's QR factorization in the form of LAPACK: the upper factor above the reflections, and their factors."""
    rows, columns = _matrix(cx, x)
    count, dtype = _smaller(rows, columns), cx.dtype(x)
    zero, one = tir.const(0.0, dtype), tir.const(1.0, dtype)

    def body(builder: Any, b: Any, a: Any, f: Any, tau: Any) -> None:
        _copy(builder, b, a, f, rows, columns)
        sums = builder.allocate(dtype, (2,), name="sums", scope="local")
        with builder.for_range(0, count, name="k") as k:
            sums[0] = zero
            with builder.for_range(0, rows - k - 1, name="i") as i:
                sums[0] = sums[0] + f[b, k + 1 + i, k] * f[b, k + 1 + i, k]
            with builder.if_scope(sums[0].equal(zero)):
                tau[b, k] = zero
            with builder.else_scope():
                sums[0] = te.sqrt(sums[0] + f[b, k, k] * f[b, k, k])
                sums[0] = tir.Select(f[b, k, k] > zero, -sums[0], sums[0])
                tau[b, k] = (sums[0] - f[b, k, k]) / sums[0]
                sums[1] = one / (f[b, k, k] - sums[0])
                with builder.for_range(0, rows - k - 1, name="i") as i:
                    f[b, k + 1 + i, k] = f[b, k + 1 + i, k] * sums[1]
                f[b, k, k] = sums[0]
                with builder.for_range(0, columns - k - 1, name="j") as j:
                    _reflect(builder, b, f, f, tau[b, k], k, k + 1 + j, rows, sums)

    return _batched(cx, [x], [2], [(rows, columns), (count,)], [dtype, dtype], body, "geqrf")


def _reflect(builder: Any, b: Any, f: Any, target: Any, tau: Any, k: Any, column: Any, rows: Any, sums: Any) -> None:
    """Applies reflection ``k`` to a column."""
    sums[1] = target[b, k, column]
    with builder.for_range(0, rows - k - 1, name="i") as i:
        sums[1] = sums[1] + f[b, k + 1 + i, k] * target[b, k + 1 + i, column]
    sums[1] = sums[1] * tau
    target[b, k, column] = target[b, k, column] - sums[1]
    with builder.for_range(0, rows - k - 1, name="i") as i:
        target[b, k + 1 + i, column] = target[b, k + 1 + i, column] - sums[1] * f[b, k + 1 + i, k]


def apply_reflections(cx: FunctionImporter, f: Any, tau: Any, y: Any, transpose: bool) -> Any:
    """The product of the orthogonal matrix of reflections, or of its transpose, with a matrix."""
    sizes = _matrix(cx, y)
    count, dtype = cx.shape(tau)[-1], cx.dtype(y)

    def body(builder: Any, b: Any, factors: Any, t: Any, right: Any, out: Any) -> None:
        _copy(builder, b, right, out, *sizes)
        sums = builder.allocate(dtype, (2,), name="sums", scope="local")
        with builder.for_range(0, count, name="s") as step:
            k = step if transpose else count - 1 - step
            with builder.for_range(0, sizes[1], name="j") as j:
                _reflect(builder, b, factors, out, t[b, k], k, j, sizes[0], sums)

    return _batched(cx, [f, tau, y], [2, 1, 2], [sizes], [dtype], body, "apply_reflections")[0]


def householder_product(cx: FunctionImporter, f: Any, tau: Any) -> Any:
    """Converts ``linalg_householder_product``: the first columns of a product of Householder reflections.

    The columns of ``f`` are the vectors of the reflections, and the result has the shape of ``f``.
    """
    return _orthogonal(cx, f, tau, cx.shape(f)[-1])


def _orthogonal(cx: FunctionImporter, f: Any, tau: Any, columns: Any) -> Any:
    rows = cx.shape(f)[-2]
    identity = cx.ops.eye(rows, columns, 0, cx.dtype(f))
    return apply_reflections(cx, f, tau, cx.ops.broadcast_to(identity, [*cx.shape(f)[:-1], columns]), transpose=False)


def ormqr(cx: FunctionImporter, f: Any, tau: Any, y: Any, left: bool = True, transpose: bool = False) -> Any:
    """Converts ``ormqr``: the product of the orthogonal matrix or its transpose with ``y``, from the right without ``left``."""
    if left:
        return apply_reflections(cx, f, tau, y, transpose)
    return _transposed(cx, apply_reflections(cx, f, tau, _transposed(cx, y), not transpose))


def qr(cx: FunctionImporter, x: Any, mode: str = "reduced") -> Any:
    """Converts ``linalg_qr``. The mode is ``"reduced"``, ``"complete"`` or ``"r"``, whose first result is empty."""
    rows, columns = _matrix(cx, x)
    factors, tau = reflections(cx, x)
    kept = rows if mode == "complete" else _smaller(rows, columns)
    axis = cx.rank(x) - 2
    upper = cx.ops.triu(cx.ops.strided_slice(factors, axes=[axis], begin=[0], end=[kept]))
    if mode == "r":
        return cx.ops.zeros([0], cx.dtype(x)), upper
    return _orthogonal(cx, factors, tau, kept), upper


TABLE: dict[str, Converter] = {
    **dict.fromkeys("linalg_lu_factor_ex _lu_with_info".split(), lambda cx, x, *_, **__: lu(cx, x)),
    "linalg_lu": lambda cx, x, **_: unpack(cx, *lu(cx, x)[:2]),
    "lu_unpack": unpack,
    "linalg_lu_solve": lu_solve,
    "lu_solve": lambda cx, y, factors, pivots: lu_solve(cx, factors, pivots, y),
    "_linalg_solve_ex": solve_ex,
    "linalg_inv_ex": inverse,
    "_linalg_det": determinant,
    "_linalg_slogdet": sign_and_log_determinant,
    "linalg_cholesky_ex": cholesky,
    "cholesky_solve": cholesky_solve,
    "cholesky_inverse": cholesky_inverse,
    "linalg_solve_triangular": solve_triangular,
    "triangular_solve": triangular_solve,
    "geqrf": reflections,
    "linalg_householder_product": householder_product,
    "ormqr": ormqr,
    "linalg_qr": qr,
}
"""The converters of this family."""

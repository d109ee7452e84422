"""Cases of scans and sorting, with ties, NaN and infinities."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases

few = between(-2, 3)


def order(a: Array, axis: int, descending: bool) -> Array:
    """Returns the indices that sort stably, with NaN last in both directions."""
    nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    key = -a.astype("float64") if descending else a.astype("float64")
    return np.argsort(np.where(nan, np.inf, key) + 0.0, axis=axis, kind="stable") if not nan.any() else np.stack(
        np.apply_along_axis(_order_row, axis, np.where(nan, np.nan, key))
    )


def _order_row(row: Array) -> Array:
    return np.array(sorted(range(len(row)), key=lambda i: (np.isnan(row[i]), row[i] if row[i] == row[i] else 0.0)))


def argsorted(axis: int, descending: bool, dtype: str) -> Callable[..., Any]:
    def reference(a: Array) -> Array:
        if a.size == 0:
            return np.zeros(a.shape, dtype)
        return order(a, axis, descending).astype(dtype)

    return reference


def topk(k: int, axis: int, largest: bool) -> Callable[..., Any]:
    def reference(a: Array) -> Any:
        if a.shape[axis] < k:
            return Refusal(f"relax.topk: k is {k}, but must be at most the size of axis")
        at = np.take(argsorted(axis, largest, "int32")(a), np.arange(k), axis)
        return [np.take_along_axis(a, at.astype("int64"), axis), at]

    return reference


def scanned(ufunc: Any, axis: int | None, exclusive: bool, dtype: str) -> Callable[..., Any]:
    def reference(a: Array) -> Array:
        wide = a.astype("float64" if a.dtype.kind == "f" else a.dtype)
        if axis is None:
            wide = wide.ravel()
        out = ufunc.accumulate(wide, axis=axis or 0, dtype=wide.dtype if dtype.startswith("float") else dtype)
        if exclusive:
            out = np.roll(out, 1, axis or 0)
            if out.size:
                np.moveaxis(out, axis or 0, 0)[0] = ufunc.identity
        return out.astype(dtype)

    return reference


def median(axis: int | None, keep: bool) -> Callable[..., Any]:
    def reference(a: Array) -> Any:
        if axis is None:
            if a.size == 0:
                return Refusal("relax.median: the reduced axis is empty")
            flat = np.sort(a.ravel())
            return np.asarray(flat[(a.size - 1) // 2], a.dtype).reshape([1] * a.ndim if keep else [])
        if a.shape[axis] == 0:
            empty = np.delete(np.array(a.shape), axis) if not keep else np.where(np.arange(a.ndim) == axis, 1, a.shape)
            return Refusal("relax.median: the reduced axis is empty") if empty.prod() else [
                np.zeros(empty, a.dtype),
                np.zeros(empty, "int64"),
            ]
        at = np.take(argsorted(axis, False, "int64")(a), [(a.shape[axis] - 1) // 2], axis)
        values = np.take_along_axis(a, at, axis)
        return [values, at] if keep else [values.squeeze(axis), at.squeeze(axis)]

    return reference


CASES: list[Case] = [
    *(
        Case(
            f"{op}_{axis}_{exclusive}",
            (x("n", "m", 3),),
            f"R.{op}(x, axis={axis}, exclusive={exclusive})",
            scanned(ufunc, axis, exclusive, "float32"),
            sizes=(0, 1, 2, 3, 7),
            runs=6,
            cancels=True,
        )
        for op, ufunc in (("cumsum", np.add), ("cumprod", np.multiply))
        for axis in (0, 2, None)
        for exclusive in (False, True)
    ),
    Case("cumsum_int32", (Param("x", "int32", ("n", "m")),), 'R.cumsum(x, axis=-1, dtype="int64")',
         scanned(np.add, 1, False, "int64")),
    Case("sort", (x("n", "m"),), "R.sort(x)", lambda a: np.sort(a)),
    Case("sort_special", (x("n", 2, draw=special),), "R.sort(x, axis=0)", lambda a: np.sort(a, 0)),
    Case("sort_descending", (i64("x", "n", "m"),), "R.sort(x, axis=0, descending=True)", lambda a: np.sort(a, 0)[::-1]),
    Case("argsort", (x("n", "m", draw=few),), "R.argsort(x)", argsorted(1, False, "int32")),
    Case("argsort_first", (i64("x", "n", "m", draw=few),), 'R.argsort(x, axis=0, dtype="int64")',
         argsorted(0, False, "int64")),
    Case("argsort_descending", (i64("x", "n", draw=few),), "R.argsort(x, descending=True)", argsorted(0, True, "int32")),
    Case("argsort_nan", (x("n", draw=special),), "R.argsort(x, descending=True)", argsorted(0, True, "int32")),
    Case("topk", (x("n", "m", draw=few),), "R.topk(x, k=3)", topk(3, 1, True), runs=20),
    Case("topk_smallest", (x("n", "m"),), "R.topk(x, k=2, axis=0, largest=False)", topk(2, 0, False), runs=20),
    Case("topk_values", (x(7, "m"),), 'R.topk(x, k=7, axis=0, ret_type="values")', lambda a: np.sort(a, 0)[::-1]),
    Case("topk_indices", (i64("x", "n", 5, draw=few),), 'R.topk(x, k=5, ret_type="indices", dtype="int64")',
         argsorted(1, True, "int64")),
    Case("median", (x("n", "m"),), "R.median(x)", median(None, False)),
    Case("median_keep", (i64("x", "n", "m"),), "R.median(x, keepdims=True)", median(None, True)),
    Case("median_axis", (x("n", "m"),), "R.median(x, axis=[1])", median(1, False), runs=16),
    Case("median_axis_keep", (x("n", "m", draw=few),), "R.median(x, axis=0, keepdims=True)", median(0, True), runs=16),
]

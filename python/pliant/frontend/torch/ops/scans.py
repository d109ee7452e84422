"""Cumulative operators along one dim."""

from __future__ import annotations

import math
from typing import Any

from pliant import te, tir
from pliant.frontend.torch.data_types import dtype_name, is_float
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _cumulative(name: str) -> Converter:
    def convert(cx: FunctionImporter, x: Any, dim: int, *, dtype: Any = None) -> Any:
        kind = dtype_name(dtype) if dtype is not None else cx.dtype(x) if is_float(cx.dtype(x)) else "int64"
        x = cx.cast(x, kind)
        return x if cx.rank(x) == 0 else getattr(cx.ops, name)(x, axis=cx.axis(x, dim))

    return convert


def _extremum(largest: bool) -> Converter:
    """``cummax`` or ``cummin``: values and the indices of their last occurrence so far. NaN wins over all numbers."""

    def convert(cx: FunctionImporter, x: Any, dim: int) -> Any:
        if cx.rank(x) == 0:
            return x, cx.tensor(0, "int64")
        axis, rank = cx.axis(x, dim), cx.rank(x)
        dtype = cx.dtype(x)
        x = cx.cast(x, "uint8") if dtype == "bool" else x
        moved = [axis, *(i for i in range(rank) if i != axis)]
        slices = cx.ops.permute_dims(x, moved)
        values, indices = cx.te(lambda a: _scan_extremum(a, largest), slices, primfunc_name_hint="cumulative_extremum")
        back = [moved.index(i) for i in range(rank)]
        return cx.cast(cx.ops.permute_dims(values, back), dtype), cx.ops.permute_dims(indices, back)

    return convert


def _scan_extremum(a: Any, largest: bool) -> Any:
    """Scans the first dim."""
    values, indices = te.placeholder(a.shape, a.dtype, "values"), te.placeholder(a.shape, "int64", "indices")

    def wins(new: Any, old: Any) -> Any:
        better = new >= old if largest else new <= old
        return tir.any(better, te.isnan(new)) if is_float(str(a.dtype)) else better

    def keep_nan(new: Any, old: Any) -> Any:
        chosen = wins(new, old)
        return tir.all(chosen, tir.any(te.isnan(new), tir.Not(te.isnan(old)))) if is_float(str(a.dtype)) else chosen

    first = (1, *a.shape[1:])
    initial = te.compute(first, lambda t, *i: a(t, *i)), te.compute(first, lambda *i: tir.const(0, "int64"))
    steps = (
        te.compute(a.shape, lambda t, *i: tir.Select(keep_nan(a(t, *i), values(t - 1, *i)), a(t, *i), values(t - 1, *i))),
        te.compute(a.shape, lambda t, *i: tir.Select(keep_nan(a(t, *i), values(t - 1, *i)), t, indices(t - 1, *i))),
    )
    return te.scan(list(initial), list(steps), [values, indices])


def logcumsumexp(cx: FunctionImporter, x: Any, dim: int) -> Any:
    """Converts ``logcumsumexp`` to a scan of ``logaddexp``, which does not overflow. Sums of equal infinities are infinite."""
    if cx.rank(x) == 0:
        return x
    axis, rank = cx.axis(x, dim), cx.rank(x)
    moved = [axis, *(i for i in range(rank) if i != axis)]
    result = cx.te(_scan_logaddexp, cx.ops.permute_dims(x, moved), primfunc_name_hint="logcumsumexp")
    return cx.ops.permute_dims(result, [moved.index(i) for i in range(rank)])


def _scan_logaddexp(a: Any) -> Any:
    state = te.placeholder(a.shape, a.dtype, "state")

    def add(x: Any, y: Any) -> Any:
        high, low = te.max(x, y), te.min(x, y)
        sum_of_exponentials = high + te.log1p(te.exp(low - high))
        infinite = tir.abs(high).equal(tir.const(math.inf, a.dtype))
        return tir.Select(tir.all(infinite, high.equal(low)), high, sum_of_exponentials)

    first = te.compute((1, *a.shape[1:]), lambda t, *i: a(t, *i))
    step = te.compute(a.shape, lambda t, *i: add(state(t - 1, *i), a(t, *i)))
    return te.scan(first, step, state)


TABLE: dict[str, Converter] = {
    "cumsum": _cumulative("cumsum"),
    "cumprod": _cumulative("cumprod"),
    "cummax": _extremum(largest=True),
    "cummin": _extremum(largest=False),
    "logcumsumexp": logcumsumexp,
}
"""The converters of this family."""

"""Cases of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases


def over(axis: Any) -> Any:
    """Converts the axis attribute of an operator to the form that NumPy accepts."""
    return tuple(axis) if isinstance(axis, list) else axis


def reductions() -> list[Case]:
    cases = []
    three = (x("n", "m", 3),)

    def add(name: str, expr: str, reference: Callable[..., Any], sizes: tuple[int, ...] = SMALL) -> None:
        cases.append(Case(name, three, expr, reference, sizes, runs=6))

    sums = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "variance": np.var, "std": np.std}
    for op, ref in sums.items():
        for axis in (0, 1, [0, 1], [-1], None, [0, 2]):
            for keep in (False, True):
                add(
                    f"{op}_{axis}_{keep}",
                    f"R.{op}(x, axis={axis}, keepdims={keep})",
                    rounded(lambda a, r=ref, v=over(axis), k=keep: r(a, axis=v, keepdims=k)),
                )
    extremes = {"max": (np.max, -math.inf), "min": (np.min, math.inf)}
    for op, (ref, start) in extremes.items():
        for axis in (0, 1, [0, 1], [-1], None):
            add(
                f"{op}_{axis}",
                f"R.{op}(x, axis={axis})",
                lambda a, r=ref, v=over(axis), s=start: np.asarray(r(a, axis=v, initial=s)).astype(a.dtype),
            )
    for op, ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
        for axis in (0, 1, -1, None):
            add(
                f"{op}_{axis}",
                f"R.{op}(x, axis={axis})",
                lambda a, r=ref, v=axis: np.asarray(r(a, axis=v)).astype("int64"),
                sizes=(1, 2, 3, 7, 31),
            )
    lowest = np.iinfo("int64").min
    cases += [
        Case("sum_int64", (i64("x", "n", "m"),), "R.sum(x, axis=1)", lambda a: a.sum(1)),
        Case("max_int64", (i64("x", "n", "m"),), "R.max(x, axis=1)", lambda a: a.max(1, initial=lowest)),
    ]
    return cases


CASES = reductions()

"""Cases of operators that create tensors from sizes and scalars."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


CREATE: list[Case] = [
    Case("zeros", (x("n", "m"),), 'R.zeros((m, n), dtype="float32")', lambda a: np.zeros(a.shape[::-1], "float32")),
    Case("ones", (x("n"),), 'R.ones((n, 2), dtype="int64")', lambda a: np.ones((len(a), 2), "int64")),
    Case("full", (x("n"), f32("v")), "R.full((n, 3), v)", lambda a, v: np.full((len(a), 3), v)),
    Case("full_like", (x("n"),), 'R.full_like(x, R.const(7.0, "float32"))', lambda a: np.full_like(a, 7)),
    Case("zeros_like", (x("n", "m"),), "R.zeros_like(x)", np.zeros_like),
    Case("ones_like", (x("n", "m"),), "R.ones_like(x)", np.ones_like),
    Case(
        "arange",
        (x("n"),),
        'R.arange(R.prim_value(0), R.prim_value(n), R.prim_value(1), dtype="int64")',
        lambda a: np.arange(len(a)),
    ),
    Case(
        "arange_downwards",
        (x("n"),),
        'R.arange(R.prim_value(n), R.prim_value(-5), R.prim_value(-3), dtype="int64")',
        lambda a: np.arange(len(a), -5, -3),
    ),
    Case("size", (x("n", "m"),), "R.size(x)", lambda a: np.asarray(a.size, "int64")),
    Case(
        "shape_to_tensor",
        (x("n", "m"),),
        "R.shape_to_tensor(R.shape([n, m, 3]))",
        lambda a: np.asarray([*a.shape, 3], "int64"),
    ),
]

CASES = CREATE

"""Cases of operators whose result shape depends on the values of operands."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def unique_with_places(a: Array) -> list[Array]:
    values, first, inverse, counts = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    return [values, first, inverse.ravel(), counts]


def unique_columns(a: Array) -> Array:
    return np.unique(a, axis=1)


few = between(-2, 3)
PLACES = "R.unique(x, return_index=True, return_inverse=True, return_counts=True)"
DATA_DEPENDENT: list[Case] = [
    Case("unique", (x("n", "m", draw=few),), PLACES, unique_with_places),
    Case("unique_special", (x("n", draw=special),), "R.unique(x)", np.unique),
    Case("unique_int64", (i64("x", "n", draw=few),), "R.unique(x)", np.unique),
    Case("unique_rows", (i64("x", "n", 2, draw=few),), "R.unique(x, axis=0)", lambda a: np.unique(a, axis=0)),
    Case("unique_columns", (x(2, "m", draw=few),), "R.unique(x, axis=-1)", unique_columns),
    Case("nonzero", (x("n", "m", draw=few),), "R.nonzero(x)", lambda a: np.stack(np.nonzero(a))),
    Case("nonzero_bool", (boolean("x", "n"),), "R.nonzero(x)", lambda a: np.stack(np.nonzero(a))),
]

CASES = DATA_DEPENDENT

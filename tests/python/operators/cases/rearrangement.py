"""Cases of operators that rearrange, repeat and collapse elements, and of matrices made from sizes."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def one_hot(depth: int, axis: int) -> Callable[..., Any]:
    def reference(i: Array) -> Array:
        hits = np.expand_dims(i, axis) == np.arange(depth).reshape([-1] + [1] * (i.ndim if axis == 0 else 0))
        return np.where(hits, np.float32(2), np.float32(-1))

    return reference


def fours(a: Array) -> Array:
    """Splits rows into groups of four, the last group padded with 7. With fewer than four rows,
    there is one group of that size.
    """
    rows = np.pad(a, ((0, -len(a) % 4), (0, 0)), constant_values=7).reshape(-1, 4, 3).transpose(0, 2, 1)
    return rows[..., : len(a)]


def window(n: int, periodic: bool) -> Array:
    steps = n if periodic else n - 1
    at = 2 * np.pi * np.arange(n) / max(steps, 1)
    return (0.54 - 0.46 * np.cos(at) if steps else np.ones(n)).astype("float32")


def grid(a: Array, b: Array, indexing: str) -> list[Array]:
    return [np.ascontiguousarray(g) for g in np.meshgrid(a, b, indexing=indexing)]


CASES: list[Case] = [
    Case("flip", (x("n", "m", 2),), "R.flip(x, axis=1)", lambda a: a[:, ::-1]),
    Case("flip_two", (x("n", "m"),), "R.flip(x, axis=[0, -1])", lambda a: a[::-1, ::-1]),
    Case("stack", (x("n", "m"), y("n", "m")), "R.stack((x, y, x), axis=1)", lambda a, b: np.stack([a, b, a], 1)),
    Case("stack_last", (x("n"), y("n")), "R.stack((x, y), axis=-1)", lambda a, b: np.stack([a, b], -1)),
    Case(
        "stack_of_unequal",
        (x("n"), y("m")),
        "R.stack((x, y))",
        lambda a, b: np.stack([a, b]) if a.shape == b.shape else Refusal("n"),
        sizes=(0, 1, 2),
        runs=9,
    ),
    Case("meshgrid", (x("n"), y("m")), "R.meshgrid((x, y))", lambda a, b: grid(a, b, "ij")),
    Case("meshgrid_xy", (x("n"), y("m")), 'R.meshgrid((x, y), indexing="xy")', lambda a, b: grid(a, b, "xy")),
    Case(
        "one_hot",
        (index("i", "n", "m", low=-1, high=5),),
        "R.one_hot(i, R.const(2.0, 'float32'), R.const(-1.0, 'float32'), depth=4, axis=-1)",
        one_hot(4, -1),
    ),
    Case(
        "one_hot_first",
        (index("i", "n", "m", low=-1, high=5),),
        "R.one_hot(i, R.const(2.0, 'float32'), R.const(-1.0, 'float32'), depth=3, axis=0)",
        one_hot(3, 0),
    ),
    Case(
        "collapse_sum_to",
        (x("n", "m", "k"),),
        "R.collapse_sum_to(x, R.shape([m, 1]))",
        rounded(lambda a: a.sum((0, 2))[:, None]),
        SMALL,
        cancels=True,
    ),
    Case(
        "collapse_sum_like",
        (x("n", "m", 3), y("m", 1)),
        "R.collapse_sum_like(x, y)",
        rounded(lambda a, b: a.sum((0, 2))[:, None]),
        SMALL,
        cancels=True,
    ),
    Case("eye", (x("n", "m"),), "R.eye(R.prim_value(n), R.prim_value(m))", lambda a: np.eye(*a.shape, dtype="float32")),
    Case(
        "eye_diagonal",
        (x("n"),),
        'R.eye(R.prim_value(n), R.prim_value(n), R.prim_value(-1), dtype="int64")',
        lambda a: np.eye(len(a), k=-1, dtype="int64"),
    ),
    Case("eye_like", (x("n", "m"),), "R.eye_like(x, R.prim_value(1))", lambda a: np.eye(*a.shape, k=1, dtype="float32")),
    Case("hamming_window", (x("n"),), "R.hamming_window(R.prim_value(n))", lambda a: window(len(a), True)),
    Case(
        "hamming_window_symmetric",
        (x("n"),),
        "R.hamming_window(R.prim_value(n), periodic=False)",
        lambda a: window(len(a), False),
    ),
]

CASES += [
    Case(
        "layout_transform",
        (x("n", 8),),
        "R.layout_transform(x, index_map=lambda i, j: (j // 4, i, j % 4))",
        lambda a: a.reshape(len(a), 2, 4).transpose(1, 0, 2),
    ),
    Case(
        "layout_transform_padded",
        (x("n", 3),),
        'R.layout_transform(x, index_map="lambda i, j: (i // 4, j, i % 4)", pad_value=7.0)',
        fours,
    ),
]

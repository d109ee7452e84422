"""Cases of operators that move and select elements."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def taken(a: Array, i: Array) -> Array | Refusal:
    inside = i.size == 0 or (i.max() < len(a) and i.min() >= -len(a))
    return np.take(a, i, 0) if inside else Refusal("out of range")


def halves(a: Array) -> list[Array]:
    return np.split(a, [(len(a) + 1) // 2], 0)


END = -(2**63) + 1
MANIPULATE: list[Case] = [
    Case(
        "reshape",
        (x("n", "m", 4),),
        "R.reshape(x, (n, -1))",
        lambda a: a.reshape(len(a), a.shape[1] * 4),
        constant=False,
    ),
    Case("reshape_of_symbols", (x("n", "m"),), "R.reshape(x, R.shape([m, n]))", lambda a: a.reshape(a.shape[::-1])),
    Case("reshape_heads", (x("b", "s", 24),), "R.reshape(x, (b, s, 4, 6))", lambda a: a.reshape(*a.shape[:2], 4, 6)),
    Case("flatten", (x("n", "m"),), "R.flatten(x)", np.ravel),
    Case("expand_dims", (x("n", "m"),), "R.expand_dims(x, axis=[0, 2])", lambda a: np.expand_dims(a, (0, 2))),
    Case("squeeze", (x(1, "n", 1),), "R.squeeze(x, axis=[0])", lambda a: a[0]),
    Case(
        "squeeze_of_symbol",
        (x("n", "m"),),
        "R.squeeze(x, axis=[0])",
        lambda a: a[0] if len(a) == 1 else Refusal("relax.squeeze: axis 0 has size"),
        sizes=(0, 1, 2, 3),
        runs=12,
    ),
    Case("permute_dims", (x("n", "m", 3),), "R.permute_dims(x, axes=[2, 0, 1])", lambda a: a.transpose(2, 0, 1)),
    Case(
        "permute_dims_heads",
        (x("b", "s", 4, 6),),
        "R.permute_dims(x, axes=[0, 2, 1, 3])",
        lambda a: a.transpose(0, 2, 1, 3),
    ),
    Case("permute_dims_reversed", (x("n", "m"),), "R.permute_dims(x)", np.transpose),
    Case("broadcast_to", (x("n", 1),), "R.broadcast_to(x, (2, n, 5))", lambda a: np.broadcast_to(a, (2, len(a), 5))),
    Case("concat", (x("n", 4), y("m", 4)), "R.concat((x, y), axis=0)", lambda a, b: np.concatenate([a, b])),
    Case("concat_last", (x("k", "n"), y("k", "m")), "R.concat((x, y, x), axis=-1)", lambda a, b: np.hstack([a, b, a])),
    Case("split", (x("n", 6),), "R.split(x, indices_or_sections=2, axis=1)", lambda a: np.split(a, 2, 1)),
    Case("split_symbolic", (x("n"),), "R.split(x, indices_or_sections=2, axis=0)", halves),
    Case(
        "split_at_falling", (x("n", "m"),), "R.split(x, indices_or_sections=[3, 1, 2], axis=0)",
        lambda a: np.split(a, [3, 1, 2], 0),
    ),
    Case(
        "split_by_symbols", (x("n"), y("m"), f32("z", "k")), "R.split(x, indices_or_sections=[m, k], axis=0)",
        lambda a, b, c: np.split(a, [len(b), len(c)], 0), sizes=(0, 1, 2, 5), runs=16,
    ),
    Case(
        "split_at", (x("n", "m"),), "R.split(x, indices_or_sections=[1, 3], axis=0)", lambda a: np.split(a, [1, 3], 0)
    ),
    Case(
        "strided_slice",
        (x("n", "m"),),
        "R.strided_slice(x, axes=[0, 1], begin=[1, 0], end=[-1, 3], strides=[1, 2])",
        lambda a: a[1:-1, 0:3:2],
    ),
    Case(
        "strided_slice_reversed",
        (x("n"),),
        f"R.strided_slice(x, axes=[0], begin=[-1], end=[{END}], strides=[-1])",
        lambda a: a[::-1],
    ),
    Case("repeat", (x("n", "m"),), "R.repeat(x, repeats=3, axis=1)", lambda a: np.repeat(a, 3, 1)),
    Case("repeat_flat", (x("n", "m"),), "R.repeat(x, repeats=2)", lambda a: np.repeat(a, 2)),
    Case("tile", (x("n", "m"),), "R.tile(x, (2, 1, 3))", lambda a: np.tile(a, (2, 1, 3))),
    Case(
        "take",
        (x(9, "m"), index("i", "b", "s", low=-9, high=9)),
        "R.take(x, i, axis=0)",
        lambda a, i: np.take(a, i, 0),
    ),
    Case("take_last", (x("n", 5), index("i", "s", low=0, high=5)), "R.take(x, i, axis=1)", lambda a, i: a[:, i]),
    Case("take_symbolic", (x("n", 4), index("i", "s", low=-3, high=3)), "R.take(x, i, axis=0)", taken, runs=30),
    Case("take_scalar", (x("n", 5), index("i", low=0, high=5)), "R.take(x, i, axis=1)", lambda a, i: a[:, i]),
    *(
        Case(
            f"take_{mode}",
            (x(5), index("i", "s", low=-9, high=9)),
            f'R.take(x, i, axis=0, mode="{mode}")',
            lambda a, i, mode=mode: np.take(a, i, 0, mode=mode),
        )
        for mode in ("clip", "wrap")
    ),
    Case("where", (boolean("c", "n", 1), x("m"), y("n", "m")), "R.where(c, x, y)", np.where),
    Case(
        "where_constant",
        (boolean("c", "n"), x("n")),
        'R.where(c, x, R.const(-1.0, "float32"))',
        lambda c, a: np.where(c, a, np.float32(-1)),
    ),
    Case("tril", (x("n", "m"),), "R.tril(x, k=1)", lambda a: np.tril(a, 1)),
    Case("triu", (x("b", "n", "m"),), "R.triu(x)", np.triu),
]

CASES = MANIPULATE

"""Tests cumulative sums and products along every axis, for many and for few independent scans, and for empty tensors."""

from __future__ import annotations

import numpy as np
import pliant
import pytest
from pliant import relax, tir


def scan(op, rank: int, axis: int | None, exclusive: bool, dtype: str = "float32") -> pliant.Model:
    """Returns a compiled program for the cumulative sum or product of a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(op(x, axis=axis, exclusive=exclusive))
        bb.emit_func_output(y)
    return pliant.compile(bb.get(), threads=2)


def expected(x: np.ndarray, op: str, axis: int | None, exclusive: bool) -> np.ndarray:
    if axis is None:
        x, axis = x.reshape(-1), 0
    total = getattr(np, op)(x, axis=axis, dtype=x.dtype)
    if not exclusive:
        return total
    first = np.full_like(np.take(x, [], axis=axis), 0) if x.shape[axis] == 0 else None
    if first is not None:
        return first
    start = np.full_like(np.take(x, [0], axis=axis), 1 if op == "cumprod" else 0)
    rest = np.take(total, range(x.shape[axis] - 1), axis=axis)
    return np.concatenate([start, rest], axis=axis)


SHAPES = {
    1: [(0,), (1,), (5000,)],
    2: [(0, 3), (3, 0), (1, 1), (7, 3000), (3000, 7), (40, 1024), (2, 1025)],
    3: [(2, 3, 5), (0, 4, 4), (4, 0, 4), (4, 4, 0), (30, 5, 2100), (1, 700, 33)],
}


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("rank", "axis"), [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (1, None), (2, None), (3, None)]
)
def test_cumulative_sums(rank, axis, exclusive):
    model = scan(relax.op.cumsum, rank, axis, exclusive, "int64")
    for shape in SHAPES[rank]:
        x = np.random.default_rng(0).integers(-100, 100, shape)
        np.testing.assert_array_equal(model(x).numpy(), expected(x, "cumsum", axis, exclusive))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cumulative_float_products(axis):
    model = scan(relax.op.cumprod, 3, axis, False)
    for shape in SHAPES[3]:
        x = np.random.default_rng(1).uniform(0.99, 1.01, shape).astype("float32")
        np.testing.assert_allclose(model(x).numpy(), expected(x, "cumprod", axis, False), rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_float16_is_summed_in_float32(axis):
    x = np.full((2048, 2048), 1, "float16")
    got = scan(relax.op.cumsum, 2, axis, False, "float16")(x).numpy()
    np.testing.assert_array_equal(got, expected(x.astype("float32"), "cumsum", axis, False).astype("float16"))

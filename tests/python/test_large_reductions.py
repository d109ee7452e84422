"""Tests reductions of many elements to few results, which run in parallel: sizes around the limit for this, all operations
and element types."""

from __future__ import annotations

import numpy as np
import pliant
import pytest
from pliant import relax, tir

OPERATIONS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "mean": np.mean}


def reduction(op: str, rank: int, axes: list[int] | None, dtype: str) -> pliant.Model:
    """Returns a compiled reduction of a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(getattr(relax.op, op)(x, axis=axes))
        bb.emit_func_output(y)
    return pliant.compile(bb.get(), threads=2)


def values(shape: tuple[int, ...], op: str, dtype: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if dtype == "int64":
        return rng.integers(-3, 4, shape)
    if op == "prod":
        return rng.choice(np.array([1, -1], dtype), shape)
    return rng.integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        (None, [(3, 5, 7), (2, 3, 200_001), (700_000, 1, 2), (90, 100, 101), (1, 1, 900_000)]),
        ([0], [(10, 4, 3), (200_000, 1, 5), (50_000, 16, 1), (3000, 1, 513), (2000, 40, 30)]),
        ([0, 1], [(10, 4, 3), (3, 100_000, 7), (100_000, 3, 17), (700, 1000, 1)]),
    ],
)
def test_equal_to_numpy(op, dtype, axes, shapes):
    model = reduction(op, 3, axes, dtype)
    for shape in shapes:
        x = values(shape, op, dtype)
        expected = OPERATIONS[op](x, axis=None if axes is None else tuple(axes))
        np.testing.assert_array_equal(model(x).numpy(), expected)


def test_results_do_not_depend_on_the_number_of_threads():
    x = np.random.default_rng(0).normal(size=(1500, 700)).astype("float32")
    bb = relax.BlockBuilder()
    v = relax.Var("x", relax.TensorStructInfo([tir.Var("n", "int64"), tir.Var("m", "int64")], "float32"))
    with bb.function("main", [v]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.sum(v))
        bb.emit_func_output(y)
    results = {pliant.compile(bb.get(), threads=threads)(x).numpy().item() for threads in (1, 2, 3)}
    assert len(results) == 1
    np.testing.assert_allclose(results.pop(), x.astype("float64").sum(), rtol=1e-4)


def test_nan_and_infinity_propagate():
    x = np.zeros((300_000, 4), "float32")
    x[123_456, 1] = np.nan
    x[1, 2] = -np.inf
    for op in ("max", "min"):
        got = reduction(op, 2, [0], "float32")(x).numpy()
        np.testing.assert_array_equal(got, OPERATIONS[op](x, axis=0))


def test_16_bit_sums_are_accumulated_in_float32():
    x = np.ones((1000, 1000), "float16")
    assert reduction("mean", 2, None, "float16")(x).numpy() == 1

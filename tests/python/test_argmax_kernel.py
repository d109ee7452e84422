"""Tests argmax and argmin by the library kernel and the interpreter, with all lengths, types and axes, and with NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.testing import interpret

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def module(op, rank: int, axis: int | None, dtype: str = "float32", keepdims: bool = False) -> pliant.IRModule:
    """Returns a module that calls an operator on a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(op(x, axis=axis, keepdims=keepdims))
        bb.emit_func_output(y)
    return bb.get()


def elements(shape, dtype: str, seed: int) -> np.ndarray:
    """Draws elements many of which are equal. Some floats are NaN."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.integers(-50, 50, shape)
    if not dtype.startswith(("float", "bfloat")):
        return x.astype(dtype)
    x = np.where(rng.random(shape) < 0.003, np.nan, x * 0.5)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def expected(op, x: np.ndarray, axis: int | None) -> np.ndarray:
    x = x.astype("float64") if x.dtype.kind in "fV" else x
    return np.argmax(x, axis) if op is relax.op.argmax else np.argmin(x, axis)


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
@pytest.mark.parametrize("op", [relax.op.argmax, relax.op.argmin])
def test_all_lengths_and_types(op, dtype):
    for axis in [0, 1]:
        model = pliant.compile(module(op, 2, axis, dtype))
        for columns in [1, 2, 3, 15, 16, 17, 63, 64, 95, 96, 100, 513, 1025]:
            for rows in [1, 16, 70]:
                x = elements((rows, columns), dtype, columns)
                np.testing.assert_array_equal(model(x).numpy(), expected(op, x, axis))


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(axis, keepdims):
    x = elements((5, 37, 6), "float32", 0)
    want = np.argmax(x, axis, keepdims=keepdims)
    one = module(relax.op.argmax, 3, axis, keepdims=keepdims)
    for result in [pliant.compile(one)(x), interpret(one, x)]:
        np.testing.assert_array_equal(result.numpy(), want)


@pytest.mark.parametrize("special", [None, np.nan, np.inf])
def test_long_rows_are_split(special):
    x = np.random.default_rng(0).normal(size=(2, 1_000_003)).astype("float32")
    if special is not None:
        x[:, [700_001, 900_000]] = special
    for threads in [1, 2]:
        for axis, shape in [(1, x.shape), (None, x.shape), (0, x.shape[::-1])]:
            data = np.ascontiguousarray(x if shape == x.shape else x.T)
            model = pliant.compile(module(relax.op.argmax, 2, axis), threads=threads)
            np.testing.assert_array_equal(model(data).numpy(), np.argmax(data, axis))


def test_large_tensors_use_all_threads():
    for shape, axis in [((100_000, 4), 1), ((300, 500), 1), ((300, 4, 500), 1)]:
        x = np.random.default_rng(1).normal(size=shape).astype("float32")
        model = pliant.compile(module(relax.op.argmin, len(shape), axis), threads=2)
        np.testing.assert_array_equal(model(x).numpy(), np.argmin(x, axis))


def test_empty_axis():
    model = pliant.compile(module(relax.op.argmax, 2, 1))
    assert model(np.zeros((0, 3), "float32")).shape == (0,)
    with pytest.raises(pliant.PliantError, match="the reduced axis of x has size 0"):
        model(np.zeros((3, 0), "float32"))

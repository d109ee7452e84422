"""Tests sorting by the library kernel and the interpreter, with all lengths, types and axes, equal elements and NaN."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.testing import interpret

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def module(op, rank: int, x_dtype: str, **attrs) -> pliant.IRModule:
    """Returns a module that calls an operator on a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], x_dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(op(x, **attrs))
        bb.emit_func_output(y)
    return bb.get()


def elements(shape, dtype: str, seed: int = 0) -> np.ndarray:
    """Draws elements many of which are equal. A few floats are NaN."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.integers(-9, 10, shape)
    if not dtype.startswith(("float", "bfloat")):
        return x.astype(dtype)
    x = np.where(rng.random(shape) < 0.05, np.nan, x * 0.5)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def positions(x: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
    """Returns the indices that sort stably along an axis, with NaN last."""
    if x.dtype.kind in "fV":
        x = x.astype("float64")
    keys = np.unique(x, return_inverse=True, equal_nan=True)[1].reshape(x.shape)
    if descending:
        keys = -keys
        if x.dtype.kind == "f":
            keys[np.isnan(x)] = x.size
    return np.argsort(keys, axis=axis, kind="stable")


def check(model, x: np.ndarray, axis: int, count: int, descending: bool) -> None:
    want = np.take(positions(x, axis, descending), range(count), axis)
    values, found = (field.numpy() for field in model(x))
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(values.astype("float64"), np.take_along_axis(x, want, axis).astype("float64"))


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_all_lengths_and_types(dtype, axis):
    for descending in [False, True]:
        for count in [1, 3, 30]:
            model = pliant.compile(module(relax.op.topk, 2, dtype, k=count, axis=axis, largest=descending, dtype="int64"))
            for columns in [3, 4, 8, 15, 31, 32, 33, 40, 250, 1000]:
                for rows in [1, 15, 17] if columns < 300 else [2]:
                    if columns >= count:
                        x = elements((rows, columns), dtype, columns)
                        check(model, np.ascontiguousarray(x if axis else x.T), axis, count, descending)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sort_and_argsort(axis):
    x = elements((5, 37, 6), "float32")
    for descending in [False, True]:
        want = positions(x, axis, descending)
        ordered = module(relax.op.sort, 3, "float32", axis=axis, descending=descending)
        np.testing.assert_array_equal(pliant.compile(ordered)(x).numpy(), np.take_along_axis(x, want, axis))
        np.testing.assert_array_equal(interpret(ordered, x).numpy(), np.take_along_axis(x, want, axis))
        for dtype in ["int8", "int32", "int64", "float32"]:
            order = module(relax.op.argsort, 3, "float32", axis=axis, descending=descending, dtype=dtype)
            result = pliant.compile(order)(x).numpy()
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, want)


def test_median():
    x = elements((4, 33, 5), "float32")
    for axis in [0, 1, 2]:
        middle = np.take(positions(x, axis), [(x.shape[axis] - 1) // 2], axis)
        values, found = pliant.compile(module(relax.op.median, 3, "float32", axis=axis, keepdims=True))(x)
        np.testing.assert_array_equal(found.numpy(), middle)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, middle, axis))
    x = elements((4, 33, 5), "int32")
    assert pliant.compile(module(relax.op.median, 3, "int32"))(x).numpy() == np.sort(x.ravel())[x.size // 2 - 1]


def test_large_tensors_use_all_threads():
    for shape, axis in [((20000, 4), 1), ((300, 500), 1), ((300, 4, 50), 1)]:
        x = np.random.default_rng(0).normal(size=shape).astype("float32")
        want = np.sort(x, axis=axis)
        model = pliant.compile(module(relax.op.sort, len(shape), "float32", axis=axis), threads=2)
        np.testing.assert_array_equal(model(x).numpy(), want)


def test_more_dims_than_kernels_have():
    x = elements((2, 1, 3, 1, 2, 5, 1, 2, 1, 3), "float32")
    for axis in [0, 5, 9]:
        result = pliant.compile(module(relax.op.sort, 10, "float32", axis=axis))(x).numpy()
        np.testing.assert_array_equal(result, np.sort(x, axis=axis))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_no_elements(shape):
    assert pliant.compile(module(relax.op.sort, 2, "float32", axis=1))(np.zeros(shape, "float32")).shape == shape

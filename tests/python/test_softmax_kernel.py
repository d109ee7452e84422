"""Tests softmax by the library kernel: short, long and empty rows, extreme values, and where the kernel is not used."""

from __future__ import annotations

import numpy as np
import pliant
import pytest
from pliant import relax, tir


def softmax(rank: int, axis: int, dtype: str = "float32", log: bool = False) -> pliant.IRModule:
    """Returns a module with the softmax, or its logarithm, of a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], dtype))
    op = relax.op.nn.log_softmax if log else relax.op.nn.softmax
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(op(x, axis=axis))
        bb.emit_func_output(y)
    return bb.get()


def expected(x: np.ndarray, log: bool) -> np.ndarray:
    x = x.astype("float64")
    with np.errstate(invalid="ignore"):
        shifted = x - x.max(axis=-1, keepdims=True)
        total = np.exp(shifted).sum(axis=-1, keepdims=True)
        return shifted - np.log(total) if log else np.exp(shifted) / total


@pytest.mark.parametrize("log", [False, True])
def test_all_lengths(log):
    model = pliant.compile(softmax(2, -1, log=log))
    rng = np.random.default_rng(0)
    for columns in [*range(1, 70), 127, 1000, 5001]:
        for rows in [1, 2, 15, 16, 17, 50]:
            x = (rng.normal(size=(rows, columns)) * 10).astype("float32")
            np.testing.assert_allclose(model(x).numpy(), expected(x, log), rtol=4e-6, atol=1e-6 if log else 1e-30)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_no_elements(shape):
    assert pliant.compile(softmax(2, -1))(np.zeros(shape, "float32")).shape == shape


@pytest.mark.parametrize("columns", [3, 16, 40])
@pytest.mark.parametrize("log", [False, True])
def test_extreme_values(columns, log):
    x = np.zeros((6, columns), "float32")
    x[1] = 3e38
    x[2, :] = -3e38
    x[3, 1] = np.inf
    x[4, 2] = np.nan
    x[5] = -np.inf
    result = pliant.compile(softmax(2, -1, log=log))(x).numpy()
    np.testing.assert_allclose(result[:3], expected(x[:3], log), rtol=1e-6)
    assert np.isnan(result[4]).all() and np.isnan(result[5]).all()
    assert np.isnan(result[3, 1])


def test_large_tensors_use_all_threads():
    model = pliant.compile(softmax(3, 2), threads=2)
    x = np.random.default_rng(1).normal(size=(300, 70, 13)).astype("float32")
    np.testing.assert_allclose(model(x).numpy(), expected(x, False), rtol=4e-6)


def test_only_float32_along_the_last_axis_calls_the_kernel():
    def calls(module: pliant.IRModule) -> bool:
        return 'call_kernel("softmax"' in relax.transform.OffloadKernels()(module).script()

    assert calls(softmax(3, -1)) and calls(softmax(3, 2, log=True)) and calls(softmax(1, 0))
    assert not calls(softmax(3, 1)) and not calls(softmax(2, -1, dtype="float64"))

"""Tests that the rounding errors of sums of many elements do not grow with the number of elements."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import relax as R

N = 1_000_000


@R.function
def reductions(x: R.Tensor(("n", "m"), "float32")):
    every, rows = R.sum(x), R.mean(x, axis=1)
    return (every, rows, R.variance(x, axis=1))


@R.function
def halves(x: R.Tensor(("n",), "float16")):
    return R.mean(x)


@R.function
def known(x: R.Tensor((1, 1_000_000), "float32")):
    return R.sum(x, axis=[1])


@R.function
def normalized(x: R.Tensor((1, "m"), "float32"), g: R.Tensor(("m",), "float32"), b: R.Tensor(("m",), "float32")):
    return R.nn.layer_norm(x, g, b, axes=[1])


def compiled(func: relax.Function) -> pliant.Model:
    return pliant.compile(pliant.IRModule({"main": func}))


@pytest.mark.parametrize("shape", [(1, N), (1000, 1000), (N // 17, 17), (N // 3, 3)])
def test_long_sums_are_accurate(shape: tuple[int, int]) -> None:
    x = np.full(shape, 0.1, "float32")
    every, rows, variance = (t.numpy() for t in compiled(reductions)(x))
    np.testing.assert_allclose(every, x.sum(dtype="float64"), rtol=1e-6)
    np.testing.assert_allclose(rows, x.mean(axis=1, dtype="float64"), rtol=1e-6)
    np.testing.assert_allclose(variance, np.zeros(len(x)), atol=1e-12)


def test_sums_of_constant_length_and_of_float16() -> None:
    x = np.full((1, N), 0.1, "float32")
    np.testing.assert_allclose(compiled(known)(x).numpy(), x.sum(axis=1, dtype="float64"), rtol=1e-6)
    assert compiled(halves)(np.full(N, 60000, "float16")).numpy() == 60000


def test_norms_of_long_rows_equal_float64() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(100, 1, (1, N)).astype("float32")
    wide = x.astype("float64")
    want = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5)
    got = compiled(normalized)(x, np.ones(N, "float32"), np.zeros(N, "float32")).numpy()
    np.testing.assert_allclose(got, want, atol=2e-5)

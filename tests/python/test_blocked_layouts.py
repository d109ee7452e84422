"""Tests blocked layouts, such as ``NCHW16c``, of operators on images."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import relax as R


def blocked(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Splits an axis of ``x`` into blocks of ``size`` elements, whose elements become the last axis."""
    shape = [*x.shape[:axis], x.shape[axis] // size, size, *x.shape[axis + 1 :]]
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape), axis + 1, -1))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


@R.function
def plain_conv(
    x: R.Tensor(("n", 8, "h", "w"), "float32"), weight: R.Tensor((4, 8, 3, 3), "float32")
) -> R.Tensor(("n", 4, "h", "w"), "float32"):
    return R.nn.conv2d(x, weight, padding=(1, 1))


@R.function
def blocked_conv(
    x: R.Tensor(("n", 2, "h", "w", 4), "float32"), weight: R.Tensor((4, 4, 3, 3, 2), "float32")
) -> R.Tensor(("n", 2, "h", "w", 2), "float32"):
    return R.nn.conv2d(
        x, weight, padding=(1, 1), data_layout="NCHW4c", kernel_layout="OIHW2i", out_layout="NCHW2c"
    )


@pytest.mark.parametrize(("batch", "height"), [(1, 5), (2, 1), (0, 3)])
def test_convolution(batch: int, height: int) -> None:
    x, w = random(batch, 8, height, 4), random(4, 8, 3, 3)
    expected = pliant.compile(plain_conv)(x, w).numpy()
    found = pliant.compile(blocked_conv)(blocked(x, 1, 4), blocked(w, 1, 2)).numpy()
    np.testing.assert_allclose(found, blocked(expected, 1, 2), rtol=1e-4, atol=1e-5)


@R.function
def blocked_pools(x: R.Tensor(("n", 2, "h", "w", 4), "float32")):
    a = R.nn.max_pool2d(x, pool_size=(2, 2), padding=(1, 1), layout="NCHW4c", out_layout="NHWC")
    b = R.nn.adaptive_avg_pool2d(x, output_size=(1, 1), layout="NCHW4c")
    c = R.image.resize2d(x, (3, 3), layout="NCHW4c", method="nearest_neighbor")
    return (a, b, c)


@R.function
def plain_pools(x: R.Tensor(("n", 8, "h", "w"), "float32")):
    a = R.nn.max_pool2d(x, pool_size=(2, 2), padding=(1, 1), out_layout="NHWC")
    b = R.nn.adaptive_avg_pool2d(x, output_size=(1, 1))
    c = R.image.resize2d(x, (3, 3), method="nearest_neighbor")
    return (a, b, c)


def test_pooling_and_resizing() -> None:
    x = random(2, 8, 5, 4)
    a, b, c = pliant.compile(plain_pools)(x)
    found = pliant.compile(blocked_pools)(blocked(x, 1, 4))
    expected = (a.numpy(), blocked(b.numpy(), 1, 4), blocked(c.numpy(), 1, 4))
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layout", ["NCHW4h", "NCHWc", "NCHW0c", "NCHW4c4c", "NCHW99999c", "4cNHW"])
def test_invalid_layouts(layout: str) -> None:
    x = relax.Var("x", R.Tensor((1, 2, 3, 3, 4), "float32"))
    with pytest.raises(pliant.error.CompileError, match="layout"):
        relax.op.nn.max_pool2d(x, layout=layout)


def test_the_inner_dim_must_have_the_size_of_the_layout() -> None:
    x = relax.Var("x", R.Tensor((1, 2, 3, 3, 5), "float32"))
    with pytest.raises(pliant.error.CompileError, match="must have size 4"):
        relax.op.nn.max_pool2d(x, layout="NCHW4c")

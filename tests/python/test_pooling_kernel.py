"""Compares pooling by the library kernel, with channels first and last, with generated loops and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax as rx
from pliant.relax import op


def pooling(kind: str, rank: int, channels: int, **attrs: object) -> pliant.IRModule:
    """Returns a module that pools images of unknown spatial sizes."""
    builder = rx.BlockBuilder()
    dims = [pliant.tir.Var(name, "int64") for name in ("n", "d", "h", "w")[: rank + 1]]
    x = rx.Var("x", rx.TensorStructInfo([*dims, channels], "float32"))
    layout = "N" + "DHW"[3 - rank :] + "C"
    with builder.function("main", [x]):
        with builder.dataflow():
            pool = getattr(op.nn, f"{kind}_pool{rank}d")
            y = builder.emit_output(pool(x, layout=layout, out_layout=layout, **attrs))
        builder.emit_func_output(y)
    return builder.get()


def images(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, "float32")


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("channels", [1, 3, 16, 70])
@pytest.mark.parametrize(
    "attrs",
    [
        {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1)},
        {"pool_size": (2, 2), "strides": (2, 2), "ceil_mode": True},
        {"pool_size": (3, 2), "strides": (1, 3), "padding": (2, 0, 0, 1), "ceil_mode": True},
        {"pool_size": (2, 3), "dilation": (3, 2), "padding": (1, 2, 1, 2)},
        {"pool_size": (1, 1), "strides": (2, 3)},
        {"pool_size": (5, 5), "strides": (2, 1), "padding": (2, 2, 2, 2)},
        {"pool_size": (5, 7), "dilation": (1, 3), "padding": (2, 9, 2, 9)},
    ],
    ids=lambda attrs: "-".join(str(v) for v in attrs.values()).replace(" ", ""),
)
def test_the_kernel_agrees_with_loops(kind: str, channels: int, attrs: dict[str, object]) -> None:
    if kind == "avg":
        attrs = {**attrs, "count_include_pad": False}
    module = pooling(kind, 2, channels, **attrs)
    kernel, loops = pliant.compile(module), pliant.compile(module, kernels="off")
    assert "pool " in kernel.explain()
    for shape in [(1, 5, 6), (2, 9, 4), (3, 16, 17), (0, 8, 8), (1, 40, 33)]:
        x = images((*shape, channels))
        got, want = kernel(x).numpy(), loops(x).numpy()
        if kind == "max":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("channels", [1, 5, 40])
def test_large_windows_with_channels_last(kind: str, channels: int) -> None:
    attrs = {"count_include_pad": False} if kind == "avg" else {}
    module = pooling(kind, 2, channels, pool_size=(13, 13), padding=(6, 6, 6, 6), **attrs)
    kernel, loops = pliant.compile(module, threads=2), pliant.compile(module, kernels="off")
    assert "pool " in kernel.explain()
    for shape in [(1, 3, 2), (2, 20, 33), (1, 40, 400)]:
        x = images((*shape, channels))
        np.testing.assert_allclose(kernel(x).numpy(), loops(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rank", [1, 3])
def test_lines_and_volumes(rank: int) -> None:
    module = pooling("max", rank, 20, pool_size=(2,) * rank, strides=(2,) * rank, padding=(1, 0) * rank)
    kernel, loops = pliant.compile(module), pliant.compile(module, kernels="off")
    assert "pool " in kernel.explain()
    for size in (2, 3, 8):
        x = images((2, *[size] * rank, 20), size)
        np.testing.assert_array_equal(kernel(x).numpy(), loops(x).numpy())


def test_nan_and_infinity() -> None:
    model = pliant.compile(pooling("max", 2, 17, pool_size=(2, 2), strides=(2, 2)))
    x = images((1, 4, 6, 17))
    x[0, 1, 1, 16], x[0, 0, 2, 0], x[0, 3, 5, 3] = np.nan, np.nan, np.inf
    x[0, 2:4, 2:4, 5] = -np.inf
    want = x.reshape(1, 2, 2, 3, 2, 17).max(axis=(2, 4))
    np.testing.assert_array_equal(model(x).numpy(), want)


def test_windows_that_count_padding_and_large_windows_stay_in_loops() -> None:
    module = pooling("avg", 2, 4, pool_size=(3, 3), padding=(1, 1, 1, 1), count_include_pad=True)
    assert "include padding" in pliant.compile(module).explain()
    module = pooling("max", 2, 4, pool_size=(13, 13), strides=(2, 2), padding=(6, 6, 6, 6))
    assert "windows are large" in pliant.compile(module).explain()
    module = pooling("avg", 2, 4, pool_size=(3, 3), count_include_pad=True)
    assert "pool " in pliant.compile(module).explain()


def test_pooling_after_a_convolution_stays_channels_last() -> None:
    builder = rx.BlockBuilder()
    n, h = pliant.tir.Var("n", "int64"), pliant.tir.Var("h", "int64")
    x = rx.Var("x", rx.TensorStructInfo([n, 3, h, 20], "float32"))
    weight = images((8, 3, 3, 3), 1)
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.conv2d(x, rx.const(weight)))
            y = builder.emit(op.nn.max_pool2d(y, pool_size=(3, 3), strides=(2, 2), ceil_mode=True))
            y = builder.emit_output(op.nn.relu(y))
        builder.emit_func_output(y)
    module = builder.get()
    model, loops = pliant.compile(module), pliant.compile(module, kernels="off")
    assert "pool " in model.explain()
    for height in (5, 6, 20):
        x = images((2, 3, height, 20))
        np.testing.assert_allclose(model(x).numpy(), loops(x).numpy(), rtol=1e-4, atol=1e-5)


def channels_first(kind: str, rank: int, dtype: str = "float32", **attrs: object) -> pliant.IRModule:
    """Returns a module that pools images of unknown sizes with channels first."""
    builder = rx.BlockBuilder()
    dims = [pliant.tir.Var(name, "int64") for name in ("n", "c", "d", "h", "w")[: rank + 2]]
    x = rx.Var("x", rx.TensorStructInfo(dims, dtype))
    if kind == "avg":
        attrs = {**attrs, "count_include_pad": False}
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(getattr(op.nn, f"{kind}_pool{rank}d")(x, **attrs))
        builder.emit_func_output(y)
    return builder.get()


ATTRS = {
    1: [
        {"pool_size": (3,), "strides": (2,), "padding": (1, 1)},
        {"pool_size": (5,), "strides": (7,), "ceil_mode": True},
        {"pool_size": (40,), "dilation": (10,), "padding": (39, 0)},
    ],
    2: [
        {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1)},
        {"pool_size": (2, 2), "strides": (2, 2), "ceil_mode": True},
        {"pool_size": (13, 13), "padding": (6, 6, 6, 6)},
        {"pool_size": (3, 2), "strides": (1, 3), "padding": (2, 0, 0, 1), "ceil_mode": True},
        {"pool_size": (2, 3), "strides": (3, 4), "dilation": (3, 2), "padding": (1, 2, 1, 2)},
        {"pool_size": (1, 1), "strides": (2, 5)},
    ],
    3: [{"pool_size": (2, 3, 2), "strides": (2, 1, 2), "padding": (1, 1, 0, 0, 1, 1), "dilation": (1, 2, 1)}],
}


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_channels_first_agrees_with_loops(kind: str, rank: int) -> None:
    for attrs in ATTRS[rank]:
        module = channels_first(kind, rank, **attrs)
        kernel, loops = pliant.compile(module, threads=2), pliant.compile(module, kernels="off")
        assert "pool " in kernel.explain()
        smallest = 400 if attrs.get("dilation") == (10,) else 7
        for batch, channels, more in [(1, 1, 0), (2, 3, 1), (0, 2, 2), (1, 33, 30), (1, 2, 1500 if rank == 1 else 60)]:
            shape = (batch, channels, *[smallest + more - k % 2 for k in range(rank)])
            x = images(shape, more)
            got, want = kernel(x).numpy(), loops(x).numpy()
            if kind == "max":
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_nan_and_infinity_with_channels_first() -> None:
    model = pliant.compile(channels_first("max", 2, pool_size=(2, 2), strides=(2, 2)))
    x = images((1, 3, 4, 70))
    x[0, 1, 1, 16], x[0, 0, 2, 0], x[0, 2, 3, 69] = np.nan, np.nan, np.inf
    x[0, 0, 2:4, 2:4] = -np.inf
    want = x.reshape(1, 3, 2, 2, 35, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(model(x).numpy(), want)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_float16_is_pooled_in_float32(kind: str) -> None:
    attrs = {"pool_size": (3, 3), "padding": (1, 1, 1, 1)}
    model = pliant.compile(channels_first(kind, 2, "float16", **attrs))
    wide = pliant.compile(channels_first(kind, 2, **attrs))
    assert "pool " in model.explain()
    x = images((2, 3, 20, 37)).astype("float16")
    np.testing.assert_array_equal(model(x).numpy(), wide(x.astype("float32")).numpy().astype("float16"))


def test_wide_windows_stay_in_loops() -> None:
    module = channels_first("max", 1, pool_size=(3,), dilation=(1100,))
    model = pliant.compile(module)
    assert "the pooling's windows have 3 columns with dilation 1100" in model.explain()
    x = images((1, 2, 2400))
    want = np.maximum(np.maximum(x[..., :200], x[..., 1100:1300]), x[..., 2200:])
    np.testing.assert_array_equal(model(x).numpy(), want)

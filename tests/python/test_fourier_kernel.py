"""Tests Fourier transforms by the library kernel and the interpreter: types, axes, lengths and windows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.testing import interpret

TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}


def module(rank: int, parts: int, dtype: str, length: int | None = None, **attrs) -> pliant.IRModule:
    """Returns a module with a Fourier transform of a tensor. The size of the last dim is constant, and all other sizes are
    symbols.
    """
    bb = relax.BlockBuilder()
    dims = [tir.Var(f"d{i}", "int64") for i in range(rank - 1)]
    x = relax.Var("x", relax.TensorStructInfo([*dims, parts], dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            size = None if length is None else relax.PrimValue(length)
            y = bb.emit_output(relax.op.signal.dft(x, size, **attrs))
        bb.emit_func_output(y)
    return bb.get()


def signal(shape, dtype: str) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=shape)
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def expected(x: np.ndarray, axis: int, length: int | None, inverse: bool, onesided: bool) -> np.ndarray:
    x = x.astype("float64")
    numbers = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    result = (np.fft.ifft if inverse else np.fft.fft)(numbers, length, axis)
    if onesided:
        result = np.take(result, range(result.shape[axis] // 2 + 1), axis)
    return np.stack([result.real, result.imag], -1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1])
def test_types_axes_and_lengths(dtype, parts, axis):
    x = signal((12, 7, parts), dtype)
    for length in [None, 1, 5, 16]:
        for inverse, onesided in [(False, False), (True, False), (False, True)]:
            one = module(3, parts, dtype, length, axis=axis, inverse=inverse, onesided=onesided)
            want = expected(x, axis, length, inverse, onesided)
            for result in [pliant.compile(one)(x), interpret(one, x)]:
                assert result.shape == want.shape
                np.testing.assert_allclose(result.numpy().astype("float64"), want, atol=20 * TOLERANCE[dtype])


def test_large_tensors_use_all_threads():
    for shape in [(3000, 8, 2), (70, 1000, 1)]:
        x = signal(shape, "float32")
        model = pliant.compile(module(3, shape[-1], "float32", axis=1), threads=2)
        np.testing.assert_allclose(model(x).numpy(), expected(x, 1, None, False, False), atol=1e-4)


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("length", [0, 8, 9, 30])
def test_frames(windowed, length):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([2, tir.Var("n", "int64"), 1], "float32"))
    w = relax.Var("w", relax.TensorStructInfo([8], "float32"))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            step, size = relax.PrimValue(3), None if windowed else relax.PrimValue(8)
            y = bb.emit_output(relax.op.signal.stft(x, step, w if windowed else None, size))
        bb.emit_func_output(y)
    data, window = signal((2, length, 1), "float32"), np.hanning(8).astype("float32")
    count = max((length - 8) // 3 + 1, 0)
    want = np.zeros((2, count, 5, 2))
    for i in range(count):
        frame = data[:, 3 * i : 3 * i + 8] * (window[:, None] if windowed else 1)
        want[:, i] = expected(frame, 1, None, False, True)
    for result in [pliant.compile(bb.get())(data, window), interpret(bb.get(), data, window)]:
        np.testing.assert_allclose(result.numpy(), want, atol=1e-5)

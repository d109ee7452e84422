"""Tests vectorized loops at every length: bools, extremes with NaN, selections that change along an axis, strides.

The lengths cover all vector widths of a loop, and their remainders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pliant
import pytest
from pliant.script import from_source

LENGTHS = [*range(0, 70), 128, 131, 200]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]


def program(call: str, *params: str) -> Any:
    """Compiles a program of one operator over vectors of symbolic length."""
    return pliant.compile(
        from_source(
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({', '.join(params)}):\n        with R.dataflow():\n            gv = {call}\n"
            "            R.output(gv)\n        return gv\n"
        )
    )


def vector(name: str, dtype: str) -> str:
    return f'{name}: R.Tensor(("n",), "{dtype}")'


def values(n: int, dtype: str, seed: int = 0) -> Any:
    numbers = np.random.default_rng(seed + n).integers(0, 3, n)
    return numbers.astype(dtype) if dtype != "bool" else numbers > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_give_bools(dtype: str) -> None:
    ops = {"equal": np.equal, "not_equal": np.not_equal}
    if dtype != "bool":
        ops |= {"less": np.less, "greater_equal": np.greater_equal}
    for name, numpy in ops.items():
        model = program(f"R.{name}(x, y)", vector("x", dtype), vector("y", dtype))
        for n in LENGTHS:
            x, y = values(n, dtype), values(n, dtype, 1)
            np.testing.assert_array_equal(model(x, y).numpy(), numpy(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_selects_by_bools(dtype: str) -> None:
    model = program("R.where(c, x, y)", vector("c", "bool"), vector("x", dtype), vector("y", dtype))
    for n in LENGTHS:
        c, x, y = values(n, "bool", 2), values(n, dtype), values(n, dtype, 1)
        np.testing.assert_array_equal(model(c, x, y).numpy(), np.where(c, x, y))


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_bools_are_converted(dtype: str) -> None:
    to_bool, to_number = (program(f'R.astype(x, "{to}")', vector("x", of)) for to, of in [("bool", dtype), (dtype, "bool")])
    for n in LENGTHS:
        x, c = values(n, dtype), values(n, "bool")
        np.testing.assert_array_equal(to_bool(x).numpy(), x.astype(bool))
        np.testing.assert_array_equal(to_number(c).numpy(), c.astype(dtype))


def test_logic_of_bools_and_comparisons() -> None:
    one = program("R.logical_not(x)", vector("x", "bool"))
    two = {op: program(f"R.{op}(x, y)", vector("x", "bool"), vector("y", "bool")) for op in ("logical_and", "logical_xor")}
    mixed = program("R.logical_or(x, R.less(y, z))", vector("x", "bool"), vector("y", "float64"), vector("z", "float64"))
    for n in LENGTHS:
        x, y = values(n, "bool"), values(n, "bool", 1)
        np.testing.assert_array_equal(one(x).numpy(), ~x)
        for op, model in two.items():
            np.testing.assert_array_equal(model(x, y).numpy(), getattr(np, op)(x, y))
        a, b = values(n, "float64"), values(n, "float64", 1)
        np.testing.assert_array_equal(mixed(x, a, b).numpy(), x | (a < b))


def test_bytes_other_than_one_are_true() -> None:
    x = np.arange(70, dtype="uint8").view(bool)
    model = program("R.where(c, x, y)", vector("c", "bool"), vector("x", "int32"), vector("y", "int32"))
    ones, zeros = np.ones(70, "int32"), np.zeros(70, "int32")
    np.testing.assert_array_equal(model(x, ones, zeros).numpy(), np.arange(70) != 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_classes_of_floats(dtype: str) -> None:
    specials = np.array([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, 1e-40], dtype)
    for name in ("isnan", "isinf", "isfinite"):
        model = program(f"R.{name}(x)", vector("x", dtype))
        for n in LENGTHS:
            x = np.resize(specials, n)
            np.testing.assert_array_equal(model(x).numpy(), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_keep_nan_at_every_position(dtype: str) -> None:
    for name in ("max", "min"):
        model = program(f"R.{name}(x)", vector("x", dtype))
        for n in range(1, 70):
            x = np.random.default_rng(n).standard_normal(n).astype(dtype)
            assert model(x).numpy() == getattr(x, name)()
            for place in (0, n // 2, n - 1):
                marked = x.copy()
                marked[place] = np.nan
                assert np.isnan(model(marked).numpy()), (n, place)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maximum_and_minimum(dtype: str) -> None:
    specials = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf], dtype)
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(specials, specials))
    for name, sign in (("maximum", False), ("minimum", True)):
        found = program(f"R.{name}(x, y)", vector("x", dtype), vector("y", dtype))(x, y).numpy()
        np.testing.assert_array_equal(found, getattr(np, name)(x, y))
        zeros = (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        assert zeros.any() and (np.signbit(found[zeros]) == sign).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint64", "bool", "float16"])
def test_positions_of_extremes(dtype: str) -> None:
    for name in ("argmax", "argmin"):
        rows = program(f"R.{name}(x, axis=-1)", f'x: R.Tensor((3, "n"), "{dtype}")')
        columns = program(f"R.{name}(x, axis=0)", f'x: R.Tensor(("n", 5), "{dtype}")')
        every = program(f"R.{name}(x, keepdims=True)", f'x: R.Tensor((3, "n"), "{dtype}")')
        for n in [*range(1, 70), 511, 512, 513, 1100]:
            x = values(3 * n, dtype).reshape(3, n)
            np.testing.assert_array_equal(rows(x).numpy(), getattr(np, name)(x, -1))
            np.testing.assert_array_equal(every(x).numpy(), getattr(np, name)(x, keepdims=True))
            y = values(5 * n, dtype).reshape(n, 5)
            np.testing.assert_array_equal(columns(y).numpy(), getattr(np, name)(y, 0))


def test_position_of_computed_elements() -> None:
    model = program('R.astype(R.argmax(R.nn.relu(x), axis=1), "int32")', 'x: R.Tensor((4, "n"), "float32")')
    for n in (1, 5, 70):
        x = np.random.default_rng(n).standard_normal((4, n)).astype("float32")
        np.testing.assert_array_equal(model(x).numpy(), np.argmax(np.maximum(x, 0), 1))


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool", "float16"])
def test_elements_at_a_stride(dtype: str) -> None:
    flip = program("R.flip(x, axis=0)", vector("x", dtype))
    steps = {k: program(f"R.strided_slice(x, [0], [1], [190], [{k}])", vector("x", dtype)) for k in (2, 3, 7)}
    back = program("R.strided_slice(x, [0], [180], [2], [-2])", vector("x", dtype))
    for n in LENGTHS:
        x = values(n, dtype)
        np.testing.assert_array_equal(flip(x).numpy(), x[::-1])
        np.testing.assert_array_equal(back(x).numpy(), x[180:2:-2])
        for k, model in steps.items():
            np.testing.assert_array_equal(model(x).numpy(), x[1:190:k])


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_concat_stack_tile_and_triangles(dtype: str) -> None:
    pair = (f'x: R.Tensor((3, "n"), "{dtype}")', f'y: R.Tensor((3, "m"), "{dtype}")')
    concat = program("R.concat((x, y, x), axis=1)", *pair)
    stack = program("R.stack((x, x, x), axis=-1)", pair[0])
    tile, repeat = (program(f"R.{op}", pair[0]) for op in ("tile(x, (2, 3))", "repeat(x, 3, axis=1)"))
    flat = program("R.repeat(x, 2)", pair[0])
    lower = program("R.tril(x, 2)", pair[0])
    pads = {m: program(f'R.nn.pad(x, [1, 2, 3, 4], "{m}")', pair[0]) for m in ("constant", "reflect", "edge", "circular")}
    numpy = {"constant": "constant", "reflect": "reflect", "edge": "edge", "circular": "wrap"}
    for n in LENGTHS:
        x, y = values(3 * n, dtype).reshape(3, n), values(3 * (n // 2), dtype).reshape(3, n // 2)
        np.testing.assert_array_equal(concat(x, y).numpy(), np.concatenate([x, y, x], 1))
        np.testing.assert_array_equal(stack(x).numpy(), np.stack([x, x, x], -1))
        np.testing.assert_array_equal(tile(x).numpy(), np.tile(x, (2, 3)))
        np.testing.assert_array_equal(repeat(x).numpy(), np.repeat(x, 3, 1))
        np.testing.assert_array_equal(flat(x).numpy(), np.repeat(x, 2))
        np.testing.assert_array_equal(lower(x).numpy(), np.tril(x, 2))
        for mode, model in pads.items():
            if n >= 5 or mode == "constant":
                np.testing.assert_array_equal(model(x).numpy(), np.pad(x, [(1, 2), (3, 4)], numpy[mode]), mode)


def test_checks_of_no_elements_pass() -> None:
    # The check that there is an element to select is hoisted out of a loop that may have no
    # iterations.
    model = program("R.take(x, i, axis=1)", 'x: R.Tensor((2, "n"), "float32")', 'i: R.Tensor(("k",), "int64")')
    for n, k in ((0, 0), (3, 0), (3, 5)):
        x, i = np.arange(2.0 * n, dtype="float32").reshape(2, n), np.arange(k, dtype="int64") % 3
        np.testing.assert_array_equal(model(x, i).numpy(), np.take(x, i, 1))
    with pytest.raises(IndexError, match="index 0 is out of range for axis 1 of size 0"):
        model(np.zeros((2, 0), "float32"), np.zeros(1, "int64"))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_gathers_in_vectors(dtype: str) -> None:
    take = program("R.take(x, i, axis=1)", 'x: R.Tensor((3, "n"), "float32")', f'i: R.Tensor(("k",), "{dtype}")')
    turn = program("R.permute_dims(x)", 'x: R.Tensor((5, "n"), "int8")')
    for k in LENGTHS:
        x = np.random.default_rng(k).standard_normal((3, 9)).astype("float32")
        i = np.random.default_rng(k).integers(0 if dtype[0] == "u" else -9, 9, k).astype(dtype)
        np.testing.assert_array_equal(take(x, i).numpy(), np.take(x, i.astype("int64"), 1))
        y = values(5 * k, "int8").reshape(5, k)
        np.testing.assert_array_equal(turn(y).numpy(), y.T)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fourier_transforms_of_every_length(dtype: str) -> None:
    forward, back = (
        program(f"R.signal.dft(x{more})", f'x: R.Tensor((2, "n", 2), "{dtype}")') for more in ("", ", inverse=True")
    )
    real = program("R.signal.dft(x, onesided=True)", f'x: R.Tensor((2, "n", 1), "{dtype}")')
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for n in [*range(1, 40), 97, 128, 210]:
        x = np.random.default_rng(n).standard_normal((2, n, 2)).astype(dtype)
        numbers = x[..., 0] + 1j * x[..., 1]

        def close(found: Any, want: Any, n: int = n) -> None:
            parts = np.stack([want.real, want.imag], -1)
            np.testing.assert_allclose(found.numpy(), parts, rtol=0, atol=tolerance * n)

        close(forward(x), np.fft.fft(numbers, axis=1))
        close(back(x), np.fft.ifft(numbers, axis=1))
        close(real(np.ascontiguousarray(x[..., :1])), np.fft.rfft(x[..., 0], axis=1))

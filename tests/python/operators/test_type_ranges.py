"""Tests the ranges of types: conversions to narrow floats round once, and values that do not fit are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.relax import op
from pliant.script import relax as R

MODES = ["bytecode", "compiled", "interpreter"]


def built(make: Any, *args: tuple[tuple[Any, ...], str]) -> pliant.IRModule:
    builder = relax.BlockBuilder()
    dims = {name: tir.SizeVar(name, "int64") for shape, _ in args for name in shape if isinstance(name, str)}
    infos = [relax.TensorStructInfo([dims.get(d, d) for d in shape], dtype) for shape, dtype in args]
    params = [relax.Var(f"x{k}", info) for k, info in enumerate(infos)]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(make(*params)))
    return builder.get()


def runs(module: pliant.IRModule, mode: str, *args: Any) -> Any:
    if mode == "interpreter":
        return pliant.testing.interpret(module, *args)
    return pliant.compile(module, exec_mode=mode)(*args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vectors", [1, 33])
def test_conversions_to_narrow_floats_round_once(mode: str, vectors: int) -> None:
    near = [1 + 2**-11, 1 + 3 * 2**-11, 2**-25, 65519.0, 3 + 2**-9]
    x = np.array([s * v for v in near for s in (1, -1)] * vectors)
    # Values at and around ties between float16 numbers.
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf), x * (1 + 2.0**-40)])
    module = built(lambda a: op.astype(a, "float16"), (("n",), "float64"))
    np.testing.assert_array_equal(runs(module, mode, x).numpy(), x.astype("float16"))

    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, 2.0**100 * (1 + 2**-8), -(1 + 2**-8), 2.0**-130] * vectors)
    x = np.concatenate([ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf), ties * (1 + 2.0**-40)])
    module = built(lambda a: op.astype(op.astype(a, "bfloat16"), "float64"), (("n",), "float64"))
    # The significand is scaled to an integer of 8 bits, and NumPy rounds it to even.
    m, e = np.frexp(x)
    want = np.ldexp(np.round(m * 256) / 256, e)
    np.testing.assert_array_equal(runs(module, mode, x).numpy(), want)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_conversions_of_integers_round_once(mode: str, dtype: str) -> None:
    shifts = range(8, 23 if dtype.endswith("32") else 54)
    values = [sign * ((1 << (s + 8)) + (1 << s) + d) for s in shifts for d in (-1, 0, 1) for sign in (1, -1)]
    if dtype.startswith("u"):
        values = [v for v in values if v > 0]
    x = np.array(values, dtype)
    want = [(1 if v > 0 else -1) * even(abs(v)) for v in values]
    module = built(lambda a: op.astype(op.astype(a, "bfloat16"), "float64"), (("n",), dtype))
    np.testing.assert_array_equal(runs(module, mode, x).numpy(), np.array(want, "float64"))


def even(value: int) -> int:
    """Rounds to the nearest integer that has eight significant bits; ties round to even."""
    unit = 1 << max(value.bit_length() - 8, 0)
    low, rest = divmod(value, unit)
    return (low + (2 * rest > unit or (2 * rest == unit and low % 2 == 1))) * unit


def test_literals_of_narrow_floats_round_once() -> None:
    value = 1 + 2**-11 + 2**-40
    assert relax.const(value, "float16").data.numpy() == np.float16(value)
    full = built(lambda _: op.full((2,), relax.const(value, "float64"), "float16"), ((2,), "float32"))
    np.testing.assert_array_equal(runs(full, "bytecode", np.zeros(2, "float32")).numpy(), np.full(2, value, "float16"))
    assert relax.const(1 + 2**-8 + 2**-40, "bfloat16").data.numpy().astype("float64") == 1 + 2**-7


@pytest.mark.parametrize("mode", MODES)
def test_positions_and_ranges_beyond_their_type_are_reported(mode: str) -> None:
    for make in (
        lambda x: op.topk(x, 3, dtype="int8", ret_type="indices"),
        lambda x: op.argsort(x, dtype="int8"),
    ):
        with pytest.raises((ValueError, pliant.PliantError), match="int8 cannot represent the indices of 300 elements"):
            built(make, ((300,), "float32"))
        module = built(make, (("n",), "float32"))
        assert runs(module, mode, np.arange(128, dtype="float32")).dtype == "int8"
        with pytest.raises(pliant.PliantError, match="int8 cannot represent the indices of 129 elements"):
            runs(module, mode, np.arange(129, dtype="float32"))
    for ends, text in (((0, 300), "int8 cannot represent the values from 0 to 299"), ((-129, 3), "from -129 to 2")):
        with pytest.raises((ValueError, pliant.PliantError), match=text):
            built(lambda _, e=ends: op.arange(*e, dtype="int8"), ((3,), "float32"))
    with pytest.raises((ValueError, pliant.PliantError), match="uint8 cannot represent the values from -3 to 2"):
        built(lambda _: op.arange(-3, 3, dtype="uint8"), ((3,), "float32"))
    module = built(lambda x: op.arange(x.struct_info.shape.values[0], dtype="int8"), (("n",), "float32"))
    assert runs(module, mode, np.zeros(128, "float32")).numpy()[-1] == 127
    assert len(runs(module, mode, np.zeros(0, "float32")).numpy()) == 0
    with pytest.raises(pliant.PliantError, match="int8 cannot represent the values from 0 to 128"):
        runs(module, mode, np.zeros(129, "float32"))


def test_strings_are_not_sizes() -> None:
    for make in (
        lambda _: op.eye(3, 4, "x"),
        lambda x: op.broadcast_to(x, "x"),
        lambda _: op.zeros("x", "float32"),
        lambda _: op.full("x", relax.const(1.0)),
    ):
        with pytest.raises((ValueError, TypeError, pliant.PliantError), match="string|shape"):
            built(make, ((3, 4), "float32"))
    with pytest.raises((ValueError, pliant.PliantError), match="dtype is required"):
        built(lambda _: op.zeros((2, 3), None), ((3, 4), "float32"))


def test_biases_must_have_the_type_of_the_product() -> None:
    args = ((("n", 4), "float32"), ((3, 4), "float32"))
    assert built(op.linear, *args, ((3,), "float32"))
    for dtype in ("float64", "float16", "int32", "bool"):
        with pytest.raises((ValueError, pliant.PliantError), match=f"bias is {dtype}, but the product of data and weight is float32"):
            built(op.linear, *args, ((3,), dtype))


@pytest.mark.parametrize("mode", MODES)
def test_sizes_of_unused_results_are_checked(mode: str) -> None:
    def size(shape: Any) -> Any:
        return lambda x: op.size(op.zeros(shape(x.struct_info.shape.values[0]), "float32"))

    module = built(size(lambda n: (n - 5, 3)), (("n",), "float32"))
    assert runs(module, mode, np.zeros(7, "float32")).numpy() == 6
    with pytest.raises(pliant.PliantError, match="negative"):
        runs(module, mode, np.zeros(2, "float32"))
    if mode != "interpreter":
        large = built(size(lambda n: (n * 2**40, 2**40)), (("n",), "float32"))
        with pytest.raises(pliant.PliantError, match="exceeds 64 bits"):
            runs(large, mode, np.zeros(2, "float32"))
        assert runs(large, mode, np.zeros(0, "float32")).numpy() == 0
    shape = built(
        lambda x: op.shape_of(op.zeros((x.struct_info.shape.values[0] - 5, 3), "float32")), (("n",), "float32")
    )
    assert tuple(runs(shape, mode, np.zeros(7, "float32"))) == (2, 3)
    with pytest.raises(pliant.PliantError, match="negative"):
        runs(shape, mode, np.zeros(2, "float32"))


def test_python_bit_operators() -> None:
    x = te.placeholder((8,), "int32", "x")
    out = te.compute((8,), lambda i: ((x[i] >> 4) & 15) | ((x[i] << 1) ^ ~x[i]))
    func = te.create_prim_func([x, out])
    values = np.array([0, 1, -1, 255, 4096, -70000, 2**31 - 1, -(2**31)], "int32")
    got = pliant.nd.array(np.zeros(8, "int32"))
    pliant.build(func)(pliant.nd.array(values), got)
    np.testing.assert_array_equal(got.numpy(), ((values >> 4) & 15) | ((values << 1) ^ ~values))
    i = tir.Var("i", "int64")
    assert str(1 << i) == "T.shift_left(1, i)" and str(6 & i) == "T.bitwise_and(6, i)"
    with pytest.raises(TypeError, match="the operands of bitwise_and must be integers, but have types float32"):
        tir.Var("f", "float32") & 1
    with pytest.raises(TypeError, match="the operand of '~' must be an integer"):
        ~tir.Var("f", "float32")


def test_numbers_beyond_signed_integers() -> None:
    most = 2**64 - 1
    x = np.array([0, 1, most], "uint64")

    @R.function
    def main(x: R.Tensor(("n",), "uint64")):
        return R.minimum(R.add(x, 18446744073709551615), R.full(R.shape([1]), 9223372036854775808, dtype="uint64"))

    want = np.minimum(x + np.uint64(most), np.uint64(2**63))
    np.testing.assert_array_equal(pliant.compile(main)(x).numpy(), want)
    var = relax.Var("x", relax.TensorStructInfo((3,), "uint64"))
    bb = relax.BlockBuilder()
    with bb.function("main", [var]):
        bb.emit_func_output(bb.emit(relax.op.add(var, most)))
    np.testing.assert_array_equal(pliant.compile(bb.get())(x).numpy(), x + np.uint64(most))
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        relax.op.add(var, 2**64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", ["quantize", "dequantize"])
def test_single_scales_are_per_tensor(mode: str, make: str) -> None:
    dtype = "float32" if make == "quantize" else "int8"
    module = built(
        lambda x, scale, zero: getattr(op, make)(x, scale, zero, axis=1),
        (("n", "m"), dtype), (("s",), "float32"), (("z",), "int8"),
    )  # fmt: skip
    x = np.arange(-6, 6).reshape(3, 4).astype(dtype)
    scales, zeros = np.array([0.5, 1, 2, 4], "float32"), np.array([0, 1, 2, 3], "int8")
    for scale in (scales, scales[:1]):
        for zero in (zeros, zeros[:1]):
            got = runs(module, mode, x, scale, zero).numpy()
            want = np.round(x / scale) + zero if make == "quantize" else (x.astype("int64") - zero) * scale
            np.testing.assert_array_equal(got, want)
    for wrong in (scales[:2], scales[:0]):
        with pytest.raises(pliant.PliantError, match="must have 1 element or"):
            runs(module, mode, x, wrong, zeros)

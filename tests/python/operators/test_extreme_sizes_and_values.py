"""Tests sizes that are negative at run time, results without elements, and extreme values of types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.script import from_source
from pliant.testing import interpret

V = 'x: R.Tensor(("n",), "float32")'


def module_of(types: str, call: str) -> Any:
    sizes = "        n = T.int64()\n" if '"n"' in types else ""
    return from_source(
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({types}):\n{sizes}        a = {call}\n        return a\n"
    )


def runners(module: Any, **options: Any) -> list[Any]:
    modes = [pliant.compile(module, exec_mode=mode, **options) for mode in ("bytecode", "compiled")]
    return [*modes, lambda *args: interpret(module, *args)]


NEGATIVE = [
    "R.zeros((n - 5,))",
    "R.sum(R.zeros((n - 5,)))",
    "R.sum(R.ones((n - 5,)))",
    "R.sum(R.exp(R.ones((n - 5,))))",
    "R.sum(R.eye(n - 5))",
    "R.sum(R.hamming_window(n - 5))",
    'R.max(R.broadcast_to(R.const([1.0], "float32"), (n - 5,)))',
    "R.concat((R.ones((n - 5,)), R.ones((7,))), 0)",
    "R.strided_slice(R.ones((n - 5,)), [0], [0], [3])",
]


@pytest.mark.parametrize("call", NEGATIVE)
def test_negative_run_time_sizes_are_errors(call: str) -> None:
    for run in runners(module_of(V, call)):
        with pytest.raises(pliant.PliantError, match="negative"):
            run(np.ones(2, "float32"))
        run(np.ones(6, "float32"))


def test_element_count_overflow_is_an_error() -> None:
    for run in runners(module_of(V, f"R.size(R.tile(x, ({2**62},)))")):
        with pytest.raises(pliant.PliantError, match="64 bits"):
            run(np.ones(4, "float32"))


def test_reductions_over_negative_sizes_are_errors() -> None:
    n = te.var("n", "int64")
    x = te.placeholder((n,), "float32", "X")
    k = te.reduce_axis((0, n - 5), "k")
    total = te.compute((1,), lambda i: te.sum(x[0] * 0 + 1, axis=k), "total")
    assert "is negative" in te.create_prim_func([x, total]).script()


@pytest.mark.parametrize("level", [0, 2])
def test_empty_slices(level: int) -> None:
    module = module_of('x: R.Tensor(("n", "m"), "float32")', "R.strided_slice(x, [0], [2], [3], [-1])")
    for run in runners(module, opt_level=level):
        assert run(np.ones((3, 7), "float32")).numpy().shape == (0, 7)


POWERS = [
    ("int64", [3, 7, 2**53 + 1, -3], [39, 22, 1, 3]),
    ("uint64", [3, 2, 0, 5], [40, 63, 0, 0]),
    ("uint8", [16, 2, 255, 3], [2, 7, 2, 5]),
    ("int8", [5, -2, 2, -1], [4, 7, 7, 5]),
    ("int32", [2, 10, -2, 1], [31, 10, 31, 0]),
]


@pytest.mark.parametrize(("dtype", "base", "exponent"), POWERS, ids=[p[0] for p in POWERS])
def test_powers_of_integers_wrap_around(dtype: str, base: list[int], exponent: list[int]) -> None:
    a, b = np.array(base, dtype), np.array(exponent, dtype)
    module = module_of(f'x: R.Tensor(("n",), "{dtype}"), y: R.Tensor(("n",), "{dtype}")', "R.power(x, y)")
    for run in runners(module):
        np.testing.assert_array_equal(run(a, b).numpy(), a**b)


def test_integers_to_negative_powers() -> None:
    module = module_of('x: R.Tensor(("n",), "int32"), y: R.Tensor(("n",), "int32")', "R.power(x, y)")
    for run in runners(module):
        found = run(np.array([2, 1, -1, -1], "int32"), np.array([-1, -9, -3, -2], "int32")).numpy()
        np.testing.assert_array_equal(found, [0, 1, -1, 1])
        with pytest.raises(pliant.PliantError, match="0 to a negative power"):
            run(np.array([0], "int32"), np.array([-1], "int32"))


@pytest.mark.parametrize(
    ("call", "types"),
    [
        ('R.scatter_elements(x, i, u, reduction="add")', 'i: R.Tensor((9,), "int64"), u: R.Tensor((9,), "float16")'),
        ("R.index_put(x, (i,), u, accumulate=True)", 'i: R.Tensor((9,), "int64"), u: R.Tensor((9,), "float16")'),
    ],
)
def test_16_bit_float_sums_are_accumulated_in_float32(call: str, types: str) -> None:
    module = module_of('x: R.Tensor((1,), "float16"), ' + types, call)
    for run in runners(module):
        found = run(np.array([2048], "float16"), np.zeros(9, "int64"), np.ones(9, "float16"))
        np.testing.assert_array_equal(found.numpy(), np.array([2056], "float16"))


def test_concat_of_many_parts() -> None:
    parts = [relax.Var(f"x{k}", relax.TensorStructInfo([tir.Var(f"n{k}", "int64"), 2], "float32")) for k in range(120)]
    builder = relax.BlockBuilder()
    with builder.function("main", parts):
        builder.emit_func_output(builder.emit(relax.op.concat(parts, axis=0)))
    data = [np.full((k % 3, 2), k, "float32") for k in range(120)]
    for run in runners(builder.get()):
        np.testing.assert_array_equal(run(*data).numpy(), np.concatenate(data))


@pytest.mark.parametrize("call", ["gelu", "gelu_tanh", "silu", "selu", "softplus"])
def test_fused_16_bit_operators_round_once(call: str) -> None:
    data = np.linspace(-6, 6, 500).astype("float16")
    half = module_of('x: R.Tensor(("n",), "float16")', f"R.nn.{call}(x)")
    wide = module_of(V, f"R.nn.{call}(x)")
    want = pliant.compile(wide)(data.astype("float32")).numpy().astype("float16")
    for run in runners(half):
        np.testing.assert_array_equal(run(data).numpy(), want)


# ---- results of the user's expressions ----


def emitted(make: Any) -> Any:
    x = relax.Var("x", relax.TensorStructInfo([3], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit_te(make, x))
    return builder.get()


def test_results_without_computation_are_rejected() -> None:
    with pytest.raises(pliant.PliantError, match="placeholder that is not an operand"):
        emitted(lambda x: te.placeholder(x.shape, "float32", "z"))


@pytest.mark.parametrize("ahead", [0, 1])
def test_self_reading_scan_steps_are_rejected(ahead: int) -> None:
    n = te.var("n", "int64")
    state = te.placeholder((n, 2), "float32", "s")
    first = te.compute((1, 2), lambda t, i: tir.FloatImm("float32", 1.0), "first")
    update = te.compute((n, 2), lambda t, i: state[t + ahead, i] + 1.0, "update")
    with pytest.raises(pliant.PliantError, match="its own step"):
        te.scan(first, update, state)


def test_operands_may_be_results() -> None:
    data = np.arange(3, dtype="float32")
    for run in runners(emitted(lambda x: x)):
        np.testing.assert_array_equal(run(data).numpy(), data)


def test_conversions_by_class() -> None:
    data = np.arange(3, dtype="float32")
    for run in runners(emitted(lambda x: te.compute(x.shape, lambda i: tir.Cast("float32", tir.Cast("int64", x[i] * 1.5))))):
        np.testing.assert_array_equal(run(data).numpy(), np.trunc(data * 1.5))


# ---- invalid attributes ----


@pytest.mark.parametrize(
    ("types", "call", "message"),
    [
        (
            'x: R.Tensor((2, 3), "float32"), g: R.Tensor((3,), "float32")',
            "R.nn.layer_norm(x, g, g, axes=-1, epsilon=-1.0)",
            "epsilon must be",
        ),
        ('x: R.Tensor((2,), "float32")', 'R.nn.leakyrelu(x, alpha=float("nan"))', "alpha must be"),
        ('x: R.Tensor((2, 3), "float32")', "R.layout_transform(x, lambda i, j: (0,))", "not injective"),
        (
            'x: R.Tensor((2,), "float32"), z: R.Tensor((), "uint8")',
            'R.quantize(x, R.const(1.0, "float32"), z, out_dtype="int8")',
            "zero_point is uint8",
        ),
        (
            'x: R.Tensor((4,), "float32")',
            "R.strided_slice(x, [0], [1], [9], assume_inbound=True)",
            "9 is out of range for axis 0 of size 4",
        ),
    ],
)
def test_meaningless_attributes_are_rejected(types: str, call: str, message: str) -> None:
    with pytest.raises(pliant.ScriptError, match=message):
        module_of(types, call)


def test_non_injective_layout_maps_are_rejected_at_run_time() -> None:
    module = module_of('x: R.Tensor(("n", 3), "float32")', "R.layout_transform(x, lambda i, j: (i,))")
    for run in runners(module):
        with pytest.raises(pliant.PliantError):
            run(np.ones((2, 3), "float32"))


@pytest.mark.parametrize("shape", [(0, 1, 2), (2, 0, 5), (3, 1, 2)])
def test_reshape_with_copied_and_inferred_dims(shape: tuple[int, ...]) -> None:
    module = module_of('x: R.Tensor(("n", "m", "k"), "float32")', "R.reshape(x, (0, -1))")
    for run in runners(module):
        assert run(np.ones(shape, "float32")).numpy().shape == (shape[0], shape[1] * shape[2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('y = R.zeros((n - 5,), "float32")', r"the size n - 5 = -3 is negative, for the result of 'zeros'; n = 2 \("),
        ('y = R.zeros((n - m * 2, 3), "float32")', r"the size n - m \* 2 = -4 is negative, .* 'zeros'; n = 2, m = 3 \("),
        ('y = R.zeros((m // (n - 2), 3), "float32")', r"m // \(n - 2\) divides by zero; m = 3, n = 2 \("),
        ("y = R.nn.pad(x, [-3, 0, 0, 0])", r"the size n - 3 = -1 is negative"),
        ("y = R.nn.max_pool2d(R.reshape(x, (1, 1, n, m)), pool_size=[5, 5])", r"the size n - 4 = -2 is negative"),
        ("y = R.reshape(x, (n + 2, 1))", r"reshape: 6 elements do not fit shape \(n \+ 2, 1\) = \(4, 1\)"),
        ("y = R.nn.pixel_shuffle(R.reshape(x, (1, m, n, 1)), 2)", r", m = 3, must be a multiple of"),
    ],
)
def test_size_errors_name_symbols_and_lines(line: str, message: str) -> None:
    source = f"""@R.function
def main(x: R.Tensor(("n", "m"), "float32")):
    n = T.int64()
    m = T.int64()
    {line}
    return y
"""
    for mode in ("bytecode", "compiled"):
        model = pliant.compile(from_source(source), exec_mode=mode)
        with pytest.raises((pliant.ShapeError, ZeroDivisionError), match=message) as failed:
            model(np.ones((2, 3), "float32"))
        assert "<str>:5, in main" in str(failed.value), failed.value


def test_gelu_is_accurate_in_its_tail() -> None:
    x = -np.geomspace(1e-3, 13.0, 400).astype("float32")
    tail = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.astype("float64")])
    module = from_source('@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    return R.nn.gelu(x)\n')
    for got in (pliant.compile(module)(x), interpret(pliant.IRModule({"main": module}), x)):
        ulp = np.spacing(np.abs(tail).astype("float32"))
        assert np.all(np.abs(got.numpy() - tail) <= 2 * ulp)


def test_split_into_many_parts_is_fast() -> None:
    source = '@R.function\ndef main(x: R.Tensor(("n", 300), "float32")):\n    return R.split(x, 300, 1)\n'
    x = np.arange(600, dtype="float32").reshape(2, 300)
    parts = pliant.compile(from_source(source))(x)
    assert len(parts) == 300 and all((p.numpy() == x[:, k : k + 1]).all() for k, p in enumerate(parts))


def test_concat_of_many_tensors_is_fast() -> None:
    params = ", ".join(f'x{k}: R.Tensor(("a{k}", "m"), "float32")' for k in range(600))
    names = ", ".join(f"x{k}" for k in range(600))
    source = f"@R.function\ndef main({params}):\n    return R.concat(({names}), axis=0)\n"
    model = pliant.compile(from_source(source))
    for width in (2, 0):
        parts = [np.full((k % 4, width), k, "float32") for k in range(600)]
        assert np.array_equal(model(*parts).numpy(), np.concatenate(parts))
    assert model(*(np.zeros((0, 3), "float32") for _ in range(600))).numpy().shape == (0, 3)


def test_concat_of_several_tensors_along_the_last_axis() -> None:
    params = ", ".join(f'x{k}: R.Tensor(("m", "a{k}"), "float32")' for k in range(12))
    names = ", ".join(f"x{k}" for k in range(12))
    module = pliant.IRModule({"main": from_source(f"@R.function\ndef main({params}):\n    return R.concat(({names}), axis=-1)\n")})
    for rows, most in ((3, 5), (1, 1), (0, 4)):
        parts = [np.full((rows, k % most), k, "float32") for k in range(12)]
        for run in (pliant.compile(module), pliant.compile(module, exec_mode="compiled"), lambda *a: interpret(module, *a)):
            assert np.array_equal(run(*parts).numpy(), np.concatenate(parts, 1))


@pytest.mark.parametrize("line", [
    "R.size(R.broadcast_to(x, (n * 2**21, 2**21)))",
    "R.shape_to_tensor(R.shape_of(R.broadcast_to(x, (n * 2**21, 2**21))))",
])
def test_operands_used_only_for_their_type_are_not_computed(line: str) -> None:
    source = f'@R.function\ndef main(x: R.Tensor(("n", 1), "float32")):\n    n = T.int64()\n    return {line}\n'
    sizes = np.array([3 * 2**21, 2**21])
    want = sizes.prod() if "size" in line else sizes
    for mode in ("bytecode", "compiled"):
        assert np.array_equal(pliant.compile(from_source(source), exec_mode=mode)(np.ones((3, 1), "float32")).numpy(), want)


@pytest.mark.parametrize("call", [
    "broadcast_to(x, (n, -1))", "collapse_sum_to(x, (n, -2))", 'zeros((n, -1), "float32")', "reshape(x, (n, -2))", "tile(x, (1, -1))",
])
def test_negative_constant_sizes_are_rejected_at_their_line(call: str) -> None:
    source = f'@R.function\ndef main(x: R.Tensor(("n", "m"), "float32")):\n    n = T.int64()\n    return R.{call}\n'
    with pytest.raises(pliant.PliantError, match="negative") as failed:
        from_source(source)
    assert failed.value.lineno == 4


FAR = 2**63 - 1
GRID = 'x: R.Tensor(("n", "m"), "float32")'
GRIDS = [
    (f"R.tril(x, k={FAR})", lambda x: x),
    (f"R.triu(x, k={FAR})", lambda x: 0 * x),
    (f"R.tril(x, k={-FAR})", lambda x: 0 * x),
    (f"R.triu(x, k={-FAR})", lambda x: x),
    (f"R.strided_slice(x, [0], [0], [{FAR}], [{FAR}])", lambda x: x[:1]),
    (f"R.strided_slice(x, [1], [-1], [{-FAR}], [{-FAR}])", lambda x: x[:, -1:]),
    ("R.ewise_fma(R.prim_value(2), R.prim_value(3), x)", lambda x: 6 + x),
    ("R.ewise_fma(R.prim_value(2), x, R.prim_value(3))", lambda x: 2 * x + 3),
    ("R.stack([" + ", ".join(["x", "R.negative(x)"] * 50) + "], axis=1)", lambda x: np.stack([x, -x] * 50, 1)),
]


@pytest.mark.parametrize(("call", "wanted"), GRIDS, ids=[call[:24] for call, _ in GRIDS])
def test_extreme_numbers_and_many_parts(call: str, wanted: Callable[[Any], Any]) -> None:
    for run in runners(module_of(GRID, call)):
        for n, m in [(3, 3), (0, 2), (1, 0), (2, 5)]:
            x = np.arange(n * m, dtype="float32").reshape(n, m) + 1
            np.testing.assert_array_equal(run(x).numpy(), wanted(x))


def test_16_bit_float_cubes_round_once() -> None:
    x = np.linspace(-30, 30, 2001).astype("float16")
    for run in runners(module_of('x: R.Tensor(("n",), "float16")', 'R.power(x, R.const(3, "float16"))')):
        np.testing.assert_array_equal(run(x).numpy(), (x.astype("float64") ** 3).astype("float16"))


def test_positions_before_the_first_sequence_belong_to_none() -> None:
    params = ", ".join(f'{v}: R.Tensor((1, "n", 1, 4), "float32")' for v in "qkv") + ', s: R.Tensor((3,), "int32")'
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 6, 1, 4)).astype("float32") for _ in "qkv")
    whole = np.zeros_like(v)
    for a, b in [(2, 4), (4, 5)]:
        scores = np.exp(q[0, a:b, 0] @ k[0, a:b, 0].T / 2)
        whole[0, a:b, 0] = scores / scores.sum(1, keepdims=True) @ v[0, a:b, 0]
    for run in runners(module_of(params, 'R.nn.attention_var_len(q, k, v, s, R.const(2, "int32"))')):
        np.testing.assert_allclose(run(q, k, v, np.array([2, 4, 5], "int32")).numpy(), whole, rtol=1e-5, atol=1e-6)

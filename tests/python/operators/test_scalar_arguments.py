"""Tests numbers, symbols and omitted arguments of operators: script and Python interpret them by the same declaration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.script import from_source
from pliant.testing import interpret

op = relax.op
C = np.array([True, False, True])
X = np.array([1.5, -2.0, 3.0], "float32")


def scripted(types: str, call: str) -> Any:
    """Returns a module with a call that is written in script."""
    return from_source(
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({types}):\n        a = {call}\n        return a\n"
    )


def built(params: list[relax.Var], call: relax.Expr) -> Any:
    """Returns a module with a call that is built in Python."""
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def var(name: str, shape: Any, dtype: str | None = "float32") -> relax.Var:
    return relax.Var(name, relax.TensorStructInfo(shape, dtype))


def runs(module: Any, *args: Any) -> list[Any]:
    """Returns the results of the program in both execution modes, and the result of the interpreter."""
    modes = ("bytecode", "compiled")
    results = [pliant.compile(module, exec_mode=mode)(*args) for mode in modes]
    return [*results, interpret(module, *args)]


def arrays(value: Any) -> list[np.ndarray]:
    return [value.numpy()] if hasattr(value, "numpy") else [v.numpy() for v in value]


SQUARE = np.arange(9, dtype="float32").reshape(3, 3)

# The operands' types in script, the call, the same call in Python, the arguments, and the
# expected result.
FACES: list[tuple[str, str, Any, tuple[Any, ...], Any]] = [
    ('c: R.Tensor(("n",), "bool")', "R.where(c, 5, 7)", lambda c: op.where(c, 5, 7), (C,), np.where(C, 5, 7)),
    (
        'c: R.Tensor(("n",), "bool")',
        "R.where(c, 1, 0.5)",
        lambda c: op.where(c, 1, 0.5),
        (C,),
        np.where(C, np.float32(1), np.float32(0.5)),
    ),
    (
        'c: R.Tensor(("n",), "bool"), x: R.Tensor(("n",), "float32")',
        "R.where(c, x, 0)",
        lambda c, x: op.where(c, x, 0),
        (C, X),
        np.where(C, X, np.float32(0)),
    ),
    ('x: R.Tensor((3, 3), "float32")', "R.eye_like(x, k=1)", lambda x: op.eye_like(x, 1), (SQUARE,), np.eye(3, k=1, dtype="float32")),
    ("", "R.eye(3, k=1)", lambda: op.eye(3, k=1), (), np.eye(3, k=1, dtype="float32")),
    (
        'x: R.Tensor(("n",), "float32"), s: R.Tensor((1,), "float32")',
        "R.slice_scatter(x, s, 0, 1, 1)",
        lambda x, s: op.slice_scatter(x, s, 0, 1, 1),
        (X, X[2:]),
        np.array([3.0, -2.0, 3.0], "float32"),
    ),
    ("", "R.arange(0, 1, 0.25)", lambda: op.arange(0, 1, 0.25), (), np.arange(0, 1, 0.25, dtype="float32")),
    ('x: R.Tensor(("n",), "float32")', "R.reshape(x, -1)", lambda x: op.reshape(x, -1), (X,), X),
    ('x: R.Tensor(("n",), "float32")', "R.take(x, 2, axis=0)", lambda x: op.take(x, 2, axis=0), (X,), X[2]),
    (
        'x: R.Tensor((1, 4, 1), "float32")',
        "R.signal.dft(x, 2, axis=1)",
        lambda x: op.signal.dft(x, 2, axis=1),
        (np.ones((1, 4, 1), "float32"),),
        np.array([[[2, 0], [0, 0]]], "float32"),
    ),
    ("", "R.full((2,), 3)", lambda: op.full((2,), 3), (), np.full((2,), 3)),
    ("", "R.full((2,), 2.0, dtype=\"int8\")", lambda: op.full((2,), 2.0, "int8"), (), np.full((2,), 2, "int8")),
]


@pytest.mark.parametrize(("types", "call", "make", "args", "wanted"), FACES, ids=[f[1] for f in FACES])
def test_numbers_mean_the_same_in_script_and_python(types: str, call: str, make: Any, args: Any, wanted: Any) -> None:
    script = scripted(types, call)
    sizes: dict[str, tir.Var] = {}
    params = [
        var(
            p.name_hint,
            [d if isinstance(d, tir.IntImm) else sizes.setdefault(str(d), tir.Var(str(d), "int64")) for d in p.struct_info.shape],
            p.struct_info.dtype,
        )
        for p in script["main"].params
    ]
    for module in (script, built(params, make(*params))):
        for result in runs(module, *args):
            assert result.numpy().dtype == wanted.dtype
            np.testing.assert_allclose(result.numpy(), wanted, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("call", ["R.add(x, 1.5)", "R.clip(x, 0.0, 1.0)", "R.where(c, x, 0.0)", "R.power(x, 2.0)"])
def test_numbers_get_the_run_time_type_of_their_tensor(call: str, dtype: str) -> None:
    module = scripted('x: R.Tensor(("n",)), c: R.Tensor(("n",), "bool")', call)
    for result in runs(module, X.astype(dtype), C):
        assert result.numpy().dtype == dtype


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (300, "int8", "relax.full: the integer 300 does not fit the data type int8"),
        (1.5, "int8", "relax.full: the number 1.5 does not fit the data type int8"),
    ],
)
def test_fill_values_must_fit_the_dtype(value: Any, dtype: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        built([], op.full((2, 3), value, dtype))


def test_out_of_range_numbers_are_rejected_by_name() -> None:
    x = var("x", [3], "float32")
    with pytest.raises(ValueError, match="strides.*does not fit 64 bits"):
        op.nn.conv2d(x, x, strides=[2**63, 1])
    with pytest.raises(TypeError, match="attribute 'axis'.*symbolic"):
        op.sum(x, axis=tir.Var("n", "int64"))
    with pytest.raises(ValueError, match="relax.add: the integer -1 does not fit the data type uint8"):
        built([y := var("y", [3], "uint8")], op.add(y, -1))


def test_empty_lists_are_tuples_of_tensors() -> None:
    with pytest.raises(pliant.CompileError, match="tensors must contain at least one tensor"):
        built([], op.concat([]))


def test_tensors_have_no_fields() -> None:
    with pytest.raises(TypeError, match="no fields"):
        var("x", [3])[0]


@pytest.mark.parametrize("call", ["R.nn.softmax(x, axis=True)", "R.sort(x, axis=True)", "R.take(x, i, axis=True)"])
def test_bools_are_not_axes(call: str) -> None:
    with pytest.raises(pliant.ScriptError, match="axis must be an integer"):
        scripted('x: R.Tensor((3, 3), "float32"), i: R.Tensor((3,), "int64")', call)


# ---- attributes that may contain symbols ----

M = np.array([[3.0, 1.0, 2.0, 0.0], [0.5, 4.0, -1.0, 7.0], [9.0, 8.0, 6.0, 5.0]], "float32")
T = 'x: R.Tensor(("n", "m"), "float32")'
n, m = M.shape

# The call over the sizes n and m, and the expected results.
SYMBOLS: list[tuple[str, list[np.ndarray]]] = [
    ("R.split(x, [n // 2], 0)", [M[: n // 2], M[n // 2 :]]),
    ("R.split(x, indices_or_sections=[n // 3, n + 2], axis=1)", [M[:, :1], M[:, 1:], M[:, :0]]),
    ("R.concat(R.split(x, [m - 1], axis=1), axis=1)", [M]),
    ("R.nn.pad(x, [n, 0, 1, m - 3])", [np.pad(M, [(n, 0), (1, m - 3)])]),
    ('R.nn.pad(x, [0, n - 1, 0, 0], pad_mode="reflect")', [np.pad(M, [(0, n - 1), (0, 0)], mode="reflect")]),
    ('R.topk(x, n - 1, axis=1, ret_type="values")', [-np.sort(-M, axis=1)[:, : n - 1]]),
    ("R.tile(x, (n, 1))", [np.tile(M, (n, 1))]),
    ("R.repeat(x, n, 0)", [np.repeat(M, n, 0)]),
    ("R.tril(x, m - n)", [np.tril(M, m - n)]),
    ("R.triu(x, k=n - m)", [np.triu(M, n - m)]),
    ('R.one_hot(R.astype(x, "int64"), 1.0, 0.0, depth=m)', [np.eye(10, m, dtype="float32")[M.astype("int64")]]),
]


@pytest.mark.parametrize(("call", "wanted"), SYMBOLS, ids=[s[0] for s in SYMBOLS])
def test_symbols_as_attributes_in_scripts(call: str, wanted: list[np.ndarray]) -> None:
    module = from_source(
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f'    def main({T}):\n        n = T.int64()\n        m = T.int64()\n        a = {call}\n        return a\n'
    )
    again = from_source(module.script())
    assert again.script() == module.script()
    for result in runs(module, M):
        found = arrays(result)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_symbols_as_attributes_in_python() -> None:
    rows, columns = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = var("x", [rows, columns])
    module = built([x], op.split(x, [rows - 1], axis=0))
    for result in runs(module, M):
        np.testing.assert_array_equal(arrays(result)[1], M[2:])
    for k in (rows - 2, relax.PrimValue(rows - 2)):
        module = built([x], op.topk(x, k=k, axis=1, ret_type="values"))
        for result in runs(module, M):
            np.testing.assert_array_equal(result.numpy(), -np.sort(-M, axis=1)[:, :1])


def test_negative_run_time_split_positions_are_rejected() -> None:
    module = from_source(
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({T}):\n        n = T.int64()\n        m = T.int64()\n        a = R.split(x, [n - 5], 0)\n        return a\n"
    )
    for mode in ("bytecode", "compiled"):
        with pytest.raises(pliant.PliantError, match="negative"):
            pliant.compile(module, exec_mode=mode)(M)


def test_number_of_parts_must_be_constant() -> None:
    with pytest.raises(pliant.ScriptError, match="number of parts must be constant"):
        from_source(
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({T}):\n        n = T.int64()\n        m = T.int64()\n        a = R.split(x, n, 0)\n        return a\n"
        )


def test_numpy_scalars_as_attributes() -> None:
    x = var("x", (3,))
    for call, want in (
        (op.sum(x, axis=np.int64(0), keepdims=np.bool_(True)), X.sum(keepdims=True)),
        (op.sum(x, axis=np.array(0)), X.sum()),
        (op.nn.leakyrelu(x, alpha=np.float32(0.5)), np.where(X > 0, X, X * 0.5)),
        (op.astype(x, np.dtype("float64")), X.astype("float64")),
    ):
        for made in runs(built([x], call), X):
            np.testing.assert_allclose(made.numpy(), want)
    with pytest.raises(pliant.PliantError, match="axis must be an integer"):
        built([x], op.sum(x, axis=np.bool_(True)))

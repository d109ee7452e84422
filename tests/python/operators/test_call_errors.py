"""Tests that invalid arguments of an operator raise an exception when the call is built, not when it is emitted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import pliant
from pliant import relax, tir
from pliant.script import relax as R

N = tir.Var("n", "int64")
X = relax.Var("x", R.Tensor((2, 3, 4, 5), "float32"))
W = relax.Var("w", R.Tensor((6, 3, 2, 2), "float32"))
M = relax.Var("m", R.Tensor((N, 4), "float32"))
I = relax.Var("i", R.Tensor((3,), "int64"))  # noqa: E741
U = relax.Var("u", R.Tensor(dtype="float32"))
S = relax.Var("s", R.Shape(ndim=2))
T = relax.Var("t", R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")))
O = relax.Var("o", R.Object())  # noqa: E741
FREE = [X, W, M, I, U, S, T, O]

OPERANDS: list[Any] = [X, M, I, U, S, T, O, (X, X), (M, (X, I)), [], 3, -1, 2.5, True, "text", (2, -3), relax.PrimValue(N)]
ATTRS: list[Any] = [
    *(None, True, 0, 1, -1, 7, 2**31, -(2**63), 2**63 - 1, 10**30, 0.5, float("nan"), float("inf"), "", "NCHW", "float32"),
    *("\0", [], [0], [-1, -1], [1, 1, 1], [2**62, 2**62], [[1], [2]], ["a"], [None], {}, {"a": 1}, object(), lambda i: i),
    *(X, N, relax.PrimValue(3), relax.ShapeExpr([2, N]), b"bytes", 1 + 2j),
]
SKIPPED = {
    # Calls with special syntax, or that are valid only inside a function.
    *("invoke_closure", "invoke_pure_closure", "make_closure", "while_loop", "print", "assert_op", "null_value"),
}


def names() -> list[str]:
    all_names = (name.removeprefix("relax.") for name in pliant._core.relax.OpFunction.list_op_names())
    return [name for name in all_names if name not in SKIPPED and not name.startswith(("call_", "vm.", "memory.", "builtin."))]


def emitted(call: relax.Expr) -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", FREE):
        builder.emit_func_output(builder.emit(call))


def attempts(op: Any) -> Any:
    """Yields arguments of all kinds, as operands and as each attribute in turn."""
    operands = [name for name, kind, _ in op.parameters if kind in ("operand", "optional")]
    attrs = [(name, kind) for name, kind, _ in op.parameters if kind in ("attr", "required")]
    rest = {name: 1 for name, kind in attrs if kind == "required"}
    count = len(operands) or 1
    for value in OPERANDS:
        yield [value] * count, rest
        yield [X, *[value] * (count - 1)], rest
    for (name, _), value in itertools.product(attrs, ATTRS):
        for first in (X, M, (X, X), U):
            yield [first, *[W, I, U, X][: count - 1]][:count], {**rest, name: value}
    yield [], {}
    yield [X] * 9, {}
    yield [X], {"no_such_parameter": 1}


@pytest.mark.parametrize("name", names())
def test_errors_are_raised_when_a_call_is_built(name: str) -> None:
    op = pliant._core.relax.get_op(name)
    for args, attrs in attempts(op):
        try:
            call = op(*args, **attrs)
        except pliant.InternalError as error:
            raise AssertionError(f"{name}(*{args}, **{attrs})") from error
        except (pliant.PliantError, TypeError, ValueError, NotImplementedError, OverflowError):
            continue
        try:
            emitted(call)
        except Exception as error:
            raise AssertionError(f"{name}(*{args}, **{attrs}) is refused only when it is emitted") from error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: relax.op.nn.conv2d(X, W, groups=-1), "groups"),
        (lambda: relax.op.sum(X, axis=[7]), "axis 7 is out of range for a tensor of rank 4"),
        (lambda: relax.op.concat((X, X), axis=9), "axis 9 is out of range"),
        (lambda: relax.op.full("text", 0.0), "shape is the string"),
        (lambda: relax.op.full((2, -3), 0.0, "float32"), "the size -3 in shape is negative"),
        (lambda: relax.op.matmul(X, I), "matmul"),
        (lambda: relax.op.reshape(X, (7, 7)), "reshape"),
        (lambda: relax.op.permute_dims(X, [0, 0, 1, 2]), "axis 0 appears twice"),
        (lambda: relax.op.nn.softmax(relax.op.exp(relax.op.exp(U)), axis="last"), "axis must be an integer"),
        (lambda: X + I, "add"),
        (lambda: M @ X[0], "no fields"),
    ],
)
def test_errors_of_common_mistakes(make: Any, message: str) -> None:
    with pytest.raises((pliant.PliantError, TypeError, ValueError), match=message):
        make()


def test_operands_of_unknown_type_are_accepted() -> None:
    untyped = relax.Var("v")
    nested = relax.op.exp(untyped)
    assert isinstance(relax.op.add(nested, X), relax.Call)
    assert isinstance(relax.op.concat(untyped, axis=1), relax.Call)
    shaped = relax.Var("y", relax.TensorStructInfo(relax.Var("s", R.Shape(ndim=2)), "float32"))
    assert isinstance(relax.op.sum(shaped, axis=[1]), relax.Call)
    with pytest.raises(pliant.PliantError, match="axis 2 is out of range for a tensor of rank 2"):
        relax.op.sum(shaped, axis=[2])

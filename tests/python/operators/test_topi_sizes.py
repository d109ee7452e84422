"""Tests that all functions of topi refuse sizes that do not match: immediately if they are known, otherwise at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, topi

Shapes = list[tuple[int, ...]]
LSTM = topi.nn.lstm

CASES: list[tuple[str, Callable[..., Any], Shapes, str]] = [
    ("squeeze", lambda x: topi.squeeze(x, axis=0), [(3, 2)], "squeeze: dim 0 has the size 3, not 1"),
    ("expand_like", lambda a, b: topi.expand_like(a, b, 0), [(5,), (3, 4)], "expand_like: dim 0 of"),
    ("strided_set", lambda a, v: topi.strided_set(a, v, [0], [2]), [(5,), (3,)], "strided_set: dim 0 of .* 3, not 2"),
    ("sequence_mask", topi.sequence_mask, [(4, 3), (5,)], "sequence_mask: .* has the size 5, not 3"),
    ("matrix_set_diag", topi.matrix_set_diag, [(3, 4), (4,)], "matrix_set_diag: dim 0 of .* 4, not 3"),
    ("lstm inputs", LSTM, [(2, 3, 7), (12, 5), (12, 3)], "lstm: dim 1 of Wi has the size 5, not 7"),
    ("lstm gates", LSTM, [(2, 3, 5), (13, 5), (12, 3)], "lstm: dim 0 of Wi has the size 13, not 12"),
    ("lstm state rows", LSTM, [(2, 3, 5), (12, 5), (16, 3)], "lstm: dim 0 of Wh has the size 16, not 12"),
    ("lstm state columns", LSTM, [(2, 3, 5), (12, 5), (12, 2)], "lstm: dim 1 of Wh has the size 2, not 3"),
    (
        "lstm batch",
        lambda x, wi, wh, h: LSTM(x, wi, wh, h_init=h),
        [(2, 3, 5), (12, 5), (12, 3), (4, 3)],
        "lstm: dim 0 of h_init has the size 4, not 3",
    ),
]


def built(function: Callable[..., Any], shapes: Shapes, known: bool) -> pliant.IRModule:
    builder = relax.BlockBuilder()
    names = iter("abcdefghijkl")
    dims = [s if known else tuple(pliant.tir.SizeVar(next(names), "int64") for _ in s) for s in shapes]
    args = [relax.Var(f"x{k}", relax.TensorStructInfo(d, "float32")) for k, d in enumerate(dims)]
    with builder.function("main", args):
        out = builder.emit_te(function, *args)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(("function", "shapes", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_mismatches_are_reported(function: Callable[..., Any], shapes: Shapes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(*(te.placeholder(s, "float32", f"X{k}") for k, s in enumerate(shapes)))
    model = pliant.compile(built(function, shapes, known=False))
    with pytest.raises(pliant.error.ShapeError, match=message):
        model(*(np.ones(s, "float32") for s in shapes))


def test_any_and_all_of_empty_tensors() -> None:
    for function, want in ((topi.any, False), (topi.all, True)):
        model = pliant.compile(built(lambda x, f=function: f(x, axis=1), [(2, 3)], known=False))
        assert model(np.zeros((2, 0), "float32")).numpy().tolist() == [want] * 2
        np.testing.assert_array_equal(model(np.eye(2, 3, dtype="float32")).numpy(), [not want] * 2)


def test_layout_parts_in_any_order() -> None:
    x = np.arange(16, dtype="float32").reshape(8, 2)
    model = pliant.compile(built(lambda a: topi.layout_transform(a, "NC", "4nNC"), [(8, 2)], known=False))
    np.testing.assert_array_equal(model(x).numpy(), x.reshape(2, 4, 2).transpose(1, 0, 2))
    back = pliant.compile(built(lambda a: topi.layout_transform(a, "4nNC", "NC"), [(4, 2, 2)], known=True))
    np.testing.assert_array_equal(back(model(x)).numpy(), x)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: topi.nn.bias_add(x, x, axis=5), "axis 5 is out of range"),
        (lambda x: topi.tensordot(x, x, axes=[[5], [5]]), "axis 5 is out of range"),
        (lambda x: topi.sliding_window(x, 0, [1, 1], [0, 1]), "strides .* must be positive"),
        (lambda x: topi.nn.space_to_batch_nd(x, [0], [0], [0]), "block_shape .* must be positive"),
        (lambda x: topi.nn.batch_to_space_nd(x, [0], [0], [0]), "block_shape .* must be positive"),
        (lambda _: topi.elemwise_sum([]), "xs must not be empty"),
        (lambda x: topi.nn.global_pool(x, "min"), "pool_type must be 'max' or 'avg'"),
    ],
)
def test_invalid_arguments_are_reported(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(te.placeholder((4, 4), "float32", "x"))


def test_float16_is_summed_in_float32() -> None:
    size = 4096
    x, wi = np.ones((1, 1, size), "float16"), np.full((4, size), 2.0**-13, "float16")
    wh = np.zeros((4, 1), "float16")
    a, b, c = (te.placeholder(t.shape, "float16", n) for t, n in ((x, "x"), (wi, "wi"), (wh, "wh")))
    hidden, cells = topi.nn.lstm(a, b, c)
    func = te.create_prim_func([a, b, c, hidden, cells])
    h, state = (pliant.nd.array(np.zeros((1, 1, 1), "float16")) for _ in range(2))
    pliant.build(func)(*(pliant.nd.array(t) for t in (x, wi, wh)), h, state)
    gate = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(state.numpy().item(), gate * np.tanh(0.5), rtol=2e-3)

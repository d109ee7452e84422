"""Tests activations that the kernel `conv` applies to its results, and filters that extend far beyond the image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pliant
from pliant import relax

op = relax.op
Value = relax.Expr


def number(value: float) -> Value:
    return relax.const(np.float32(value))


def emitted(bb: relax.BlockBuilder, form: Callable[[Callable[..., Value], Value], Value], y: Value) -> Value:
    """Emits an activation with a binding for each of its operators, and returns its value."""
    return form(lambda function, *args, **attrs: bb.emit(function(*args, **attrs)), y)


def clipped(e: Callable[..., Value], x: Value, low: float, high: float) -> Value:
    return e(op.minimum, e(op.maximum, x, number(low)), number(high))


def gate(e: Callable[..., Value], y: Value) -> Value:
    return clipped(e, e(op.add, e(op.multiply, y, number(1 / 6)), number(0.5)), 0, 1)


FORMS: dict[str, tuple[str, Callable[[Callable[..., Value], Value], Value]]] = {
    "sigmoid": ("sigmoid", lambda e, y: e(op.sigmoid, y)),
    "tanh": ("tanh", lambda e, y: e(op.tanh, y)),
    "gelu": ("gelu", lambda e, y: e(op.nn.gelu, y)),
    "gelu by tanh": ("gelu_tanh", lambda e, y: e(op.nn.gelu_tanh, y)),
    "silu": ("silu", lambda e, y: e(op.nn.silu, y)),
    "product with the sigmoid": ("silu", lambda e, y: e(op.multiply, y, e(op.sigmoid, y))),
    "sigmoid first": ("silu", lambda e, y: e(op.multiply, e(op.sigmoid, y), y)),
    "hard swish": ("hard_swish", lambda e, y: e(op.multiply, y, gate(e, y))),
    "hard swish of PyTorch": (
        "hard_swish",
        lambda e, y: e(op.divide, e(op.multiply, y, clipped(e, e(op.add, y, number(3)), 0, 6)), number(6)),
    ),
    # FoldScaleAxis folds the slope and the offset into the convolution.
    "hard sigmoid": ("clip", gate),
    "leaky relu": (
        "leaky_relu",
        lambda e, y: e(op.where, e(op.less, y, number(0)), e(op.multiply, y, number(0.1)), y),
    ),
}


def convolution(
    form: Callable[[Callable[..., Value], Value], Value], last: bool, more: bool = False, bias: bool = True
) -> pliant.IRModule:
    rng = np.random.default_rng(3)
    bb = relax.BlockBuilder()
    n, h = pliant.tir.Var("n", "int64"), pliant.tir.Var("h", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, h, 7, 5] if last else [n, 5, h, 7], "float32"))
    weight = relax.const(rng.standard_normal((20, 5, 3, 3)).astype("float32") / 4)
    with bb.function("main", [x]), bb.dataflow():
        y = bb.emit(op.nn.conv2d(x, weight, padding=1, data_layout="NHWC" if last else "NCHW"))
        if bias:
            shape = (20,) if last else (1, 20, 1, 1)
            y = bb.emit(op.add(y, relax.const(rng.standard_normal(shape).astype("float32"))))
        z = emitted(bb, form, y)
        gv = bb.emit_output(op.add(z, y) if more else op.negative(z))
        bb.emit_func_output(gv)
    return bb.get()


def agree(module: pliant.IRModule, feeds: list[tuple[np.ndarray, ...]]) -> None:
    loops, kernels = pliant.compile(module, kernels="off"), pliant.compile(module)
    for feed in feeds:
        want, got = np.asarray(loops(*feed)), np.asarray(kernels(*feed))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("last", [False, True])
def test_activations_are_fused_into_the_kernel_call(name: str, last: bool) -> None:
    activation, form = FORMS[name]
    module = convolution(form, last)
    script = relax.get_pipeline("zero")(module).script()
    assert f'activation="{activation}"' in script
    # The kernel and the negation; with channels first, also transposes before and after them.
    assert script.count("@T.prim_func") == (2 if last else 4)
    rng = np.random.default_rng(1)
    feeds = []
    for n, h in ((0, 4), (1, 1), (2, 5)):
        x = rng.standard_normal((n, h, 7, 5) if last else (n, 5, h, 7)) * 3
        feeds.append((x.astype("float32"),))
    agree(module, feeds)
    odd = feeds[1][0].copy()
    odd.flat[:3] = np.nan, np.inf, -np.inf
    agree(module, [(odd,)])


REFUSED: dict[str, Callable[[Callable[..., Value], Value], Value]] = {
    "a negative factor": lambda e, y: e(
        op.multiply, y, clipped(e, e(op.multiply, y, number(-1 / 6)), 0, 1)
    ),
    "another number for each channel": lambda e, y: e(
        op.multiply, y, clipped(e, e(op.add, y, relax.const(np.arange(7, dtype="float32"))), 0, 1)
    ),
    "a gate without limits": lambda e, y: e(op.multiply, y, e(op.add, y, number(1))),
    "the square": lambda e, y: e(op.multiply, y, y),
    "a slope that is infinite": lambda e, y: e(
        op.where, e(op.less, y, number(0)), e(op.multiply, y, number(np.inf)), y
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_activations_stay_loops(name: str) -> None:
    module = convolution(REFUSED[name], last=False)
    assert "activation=" not in relax.get_pipeline("zero")(module).script()
    x = np.random.default_rng(1).standard_normal((2, 5, 4, 7)).astype("float32")
    agree(module, [(x,)])


@pytest.mark.parametrize("name", FORMS)
def test_shared_convolution_results_keep_their_activation_outside(name: str) -> None:
    module = convolution(FORMS[name][1], last=False, more=True)
    assert "activation=" not in relax.get_pipeline("zero")(module).script()
    x = np.random.default_rng(1).standard_normal((2, 5, 4, 7)).astype("float32")
    agree(module, [(x,)])


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("dilation", "padding"), [(6, 6), (36, 36), ([12, 3], [12, 3]), (4, 1), (9, 40), (2, 0)])
def test_filter_taps_outside_the_image(
    last: bool, stride: int, dilation: int | list[int], padding: int | list[int]
) -> None:
    rng = np.random.default_rng(5)
    bb = relax.BlockBuilder()
    n, h, w = (pliant.tir.Var(name, "int64") for name in "nhw")
    x = relax.Var("x", relax.TensorStructInfo([n, h, w, 6] if last else [n, 6, h, w], "float32"))
    weight = relax.const(rng.standard_normal((20, 6, 3, 3)).astype("float32"))
    layout = "NHWC" if last else "NCHW"
    with bb.function("main", [x]), bb.dataflow():
        y = op.nn.conv2d(x, weight, strides=stride, dilation=dilation, padding=padding, data_layout=layout)
        gv = bb.emit_output(op.nn.relu(bb.emit(y)))
        bb.emit_func_output(gv)
    sizes = [(1, 7, 9), (2, 1, 1), (1, 13, 6), (2, 30, 31), (0, 7, 9)]
    reach = [2 * d + 1 - 2 * p for d, p in zip(*(v if isinstance(v, list) else [v] * 2 for v in (dilation, padding)), strict=True)]
    feeds = []
    for n_, h_, w_ in sizes:
        if h_ >= reach[0] and w_ >= reach[1]:
            shape = (n_, h_, w_, 6) if last else (n_, 6, h_, w_)
            feeds.append((rng.standard_normal(shape).astype("float32"),))
    agree(bb.get(), feeds)

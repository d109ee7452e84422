"""Compares matrix products, with the operations fused into them, between library kernels and generated loops."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.testing import interpret

SIZES = (0, 1, 7, 33)


def close(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Compares numbers; NaN and infinity must be at the same positions."""
    np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=tolerance, atol=tolerance)


def everywhere(module: pliant.IRModule, feeds: list[tuple[np.ndarray, ...]], tolerance: float = 2e-5) -> None:
    """Compares the results with library kernels, in both execution modes, with those of generated loops. For small operands, also
    compares with the interpreter.
    """
    loops = pliant.compile(module, kernels="off")
    models = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
    for feed in feeds:
        want = np.asarray(loops(*feed))
        for model in models:
            close(np.asarray(model(*feed)), want, tolerance)
        if sum(a.size for a in feed) < 400:
            close(interpret(module, *feed).numpy(), want, tolerance)


Finish = Callable[[relax.BlockBuilder, relax.Expr, relax.Expr], relax.Expr]

FINISHES: dict[str, Finish] = {
    "relu": lambda bb, y, r: relax.op.nn.relu(y),
    "gelu": lambda bb, y, r: relax.op.add(relax.op.nn.gelu(y), r),
    "tanh": lambda bb, y, r: relax.op.tanh(relax.op.add(y, r)),
    "sigmoid": lambda bb, y, r: relax.op.multiply(relax.op.sigmoid(y), y),
    "scale": lambda bb, y, r: relax.op.multiply(y, relax.const(0.125, "float32")),
    "half": lambda bb, y, r: relax.op.astype(relax.op.add(y, r), "float16"),
    "chain": lambda bb, y, r: relax.op.divide(relax.op.exp(relax.op.negative(relax.op.abs(y))), relax.op.add(r, relax.const(9.0, "float32"))),
}


def dense(finish: Finish, inner: int, columns: int, packed: bool) -> pliant.IRModule:
    """Returns a program for `finish(x @ w + bias, residual)` with an unknown number of rows."""
    rng = np.random.default_rng(inner * 100 + columns)
    bb = relax.BlockBuilder()
    n = pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, inner], "float32"))
    r = relax.Var("r", relax.TensorStructInfo([n, columns], "float32"))
    w = relax.Var("w", relax.TensorStructInfo([inner, columns], "float32"))
    weight = relax.const(rng.standard_normal((inner, columns), "float32")) if packed else w
    bias = relax.const(rng.standard_normal(columns, "float32"))
    with bb.function("main", [x, r] if packed else [x, r, w]):
        with bb.dataflow():
            y = bb.emit(relax.op.add(bb.emit(relax.op.matmul(x, weight)), bias))
            z = bb.emit_output(finish(bb, y, r))
        bb.emit_func_output(z)
    return bb.get()


def rows(count: int, inner: int, columns: int, packed: bool) -> tuple[np.ndarray, ...]:
    """Draws random operands for a dense layer whose input has `count` rows."""
    rng = np.random.default_rng(count + 7)
    shapes = [(count, inner), (count, columns), (inner, columns)][: 2 if packed else 3]
    return tuple(rng.standard_normal(s).astype("float32") for s in shapes)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", FINISHES)
def test_epilogues_are_fused_into_matmuls(name: str, packed: bool) -> None:
    inner, columns = 5, 19
    module = dense(FINISHES[name], inner, columns, packed)
    tolerance = 2e-3 if name == "half" else 2e-5
    everywhere(module, [rows(n, inner, columns, packed) for n in SIZES], tolerance)


@pytest.mark.parametrize(("inner", "columns"), [(0, 9), (64, 300), (300, 64), (1, 1), (17, 8)])
def test_blocks_cover_results_of_all_sizes(inner: int, columns: int) -> None:
    for packed in (True, False):
        module = dense(FINISHES["gelu"], inner, columns, packed)
        everywhere(module, [rows(n, inner, columns, packed) for n in (0, 1, 7, 100, 385)], 2e-4)


def test_nan_and_infinity_stay_in_their_rows() -> None:
    module = dense(FINISHES["relu"], 4, 20, True)
    x, r = rows(9, 4, 20, True)
    x[2, 1], x[5, 3], x[7, 0] = np.nan, np.inf, -np.inf
    everywhere(module, [(x, r)])


def test_strided_operands_are_read_in_place() -> None:
    module = dense(FINISHES["gelu"], 4, 20, False)
    x, r, w = rows(18, 8, 40, False)
    everywhere(module, [(x[::2, ::2], r[::2, ::2], w[::2, ::2]), (x[::-2, :4], r[::-2, :20], w[:4, ::-2])])


def batched(transposed: bool) -> pliant.IRModule:
    """Returns a program for scaled and masked scores of batches of heads, whose sizes may each be
    1.
    """
    bb = relax.BlockBuilder()
    b, h, m, n = (pliant.tir.Var(name, "int64") for name in "bhmn")
    a = relax.Var("a", relax.TensorStructInfo([b, h, m, 6], "float32"))
    c = relax.Var("c", relax.TensorStructInfo([b, h, n, 6] if transposed else [b, h, 6, n], "float32"))
    one = pliant.tir.Var("one", "int64")
    mask = relax.Var("mask", relax.TensorStructInfo([b, 1, one, n], "float32"))
    with bb.function("main", [a, c, mask]):
        with bb.dataflow():
            right = bb.emit(relax.op.permute_dims(c, [0, 1, 3, 2])) if transposed else c
            y = bb.emit(relax.op.matmul(a, right))
            z = bb.emit_output(relax.op.add(relax.op.multiply(y, relax.const(0.5, "float32")), mask))
        bb.emit_func_output(z)
    return bb.get()


@pytest.mark.parametrize("transposed", [True, False])
def test_epilogues_of_batched_matmuls(transposed: bool) -> None:
    rng = np.random.default_rng(3)
    feeds = []
    for b, h, m, n in itertools.chain(itertools.product((0, 1, 2), (1, 3), (1, 7), (1, 5)), [(2, 12, 64, 64)]):
        for one in {1, m}:
            shapes = [(b, h, m, 6), (b, h, n, 6) if transposed else (b, h, 6, n), (b, 1, one, n)]
            feeds.append(tuple(rng.standard_normal(s).astype("float32") for s in shapes))
    everywhere(batched(transposed), feeds)


def test_kernels_option() -> None:
    module = dense(FINISHES["relu"], 4, 20, True)
    with pytest.raises(ValueError, match='"on" or "off", not "of"'):
        pliant.compile(module, kernels="of")
    off = pliant.compile(module, kernels="off")
    assert "T.call_kernel" not in str(off)


def heads_of(bb: relax.BlockBuilder, x: relax.Expr, axes: list[int]) -> relax.Expr:
    """Splits `(b, n, 12)` into heads: `(b, n, 3, 4)` with its dims permuted."""
    b, n = x.struct_info.shape[0], x.struct_info.shape[1]
    return bb.emit(relax.op.permute_dims(bb.emit(relax.op.reshape(x, (b, n, 3, 4))), axes))


def exported(form: str) -> pliant.IRModule:
    """Returns a program with attention as exporters write it."""
    bb = relax.BlockBuilder()
    b, n = pliant.tir.Var("b", "int64"), pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([b, n, 36], "float32"))
    mask = relax.Var("mask", relax.TensorStructInfo([b, 1, 1, n], "float32"))
    op, emit = relax.op, bb.emit
    with bb.function("main", [x, mask]):
        with bb.dataflow():
            parts = emit(op.split(x, 3, axis=-1))
            q, k, v = (emit(relax.TupleGetItem(parts, i)) for i in range(3))
            if form == "one":
                kt = emit(op.permute_dims(k, [0, 2, 1]))
                scores = emit(op.matmul(q, kt))
            else:
                q, v = heads_of(bb, q, [0, 2, 1, 3]), heads_of(bb, v, [0, 2, 1, 3])
                if form == "both":
                    root = relax.const(0.25**0.5, "float32")
                    k = emit(op.multiply(heads_of(bb, k, [0, 2, 1, 3]), root))
                    q, kt = emit(op.multiply(q, root)), emit(op.permute_dims(k, [0, 1, 3, 2]))
                elif form == "turned as one":
                    one = emit(op.reshape(heads_of(bb, k, [0, 2, 1, 3]), (b * 3, n, 4)))
                    kt = emit(op.reshape(emit(op.permute_dims(one, [0, 2, 1])), (b, 3, 4, n)))
                    kt = emit(op.multiply(kt, relax.const(0.5, "float32")))
                else:
                    kt = heads_of(bb, k, [0, 2, 3, 1])
                scores = emit(op.matmul(q, kt))
                if form == "divided":
                    scores = emit(op.divide(scores, relax.const(2.0, "float32")))
                scores = emit(op.add(mask, scores) if form == "first" else op.add(scores, mask))
            y = emit(op.matmul(emit(op.nn.softmax(scores, axis=-1)), v))
            if form != "one":
                y = emit(op.reshape(emit(op.permute_dims(y, [0, 2, 1, 3])), (b, n, 12)))
            z = bb.emit_output(y)
        bb.emit_func_output(z)
    return bb.get()


def kernels_in(module: pliant.IRModule) -> str:
    """Returns the script of the module after the passes that call kernels."""
    return relax.get_pipeline("zero")(module).script()


@pytest.mark.parametrize("form", ["plain", "divided", "both", "turned as one", "first", "one"])
def test_exported_attention_is_one_kernel_call(form: str) -> None:
    module = exported(form)
    script = kernels_in(module)
    assert 'call_kernel("attention"' in script and "softmax" not in script
    # The parts are read and the results written in place.
    assert form == "one" or "split" not in script and "permute" not in script
    rng = np.random.default_rng(5)
    feeds = []
    for b, n in [(0, 3), (1, 0), (1, 1), (2, 7), (1, 33), (2, 65)]:
        x = rng.standard_normal((b, n, 36)).astype("float32")
        mask = np.where(rng.random((b, 1, 1, n)) < 0.3, np.float32(-1e9), np.float32(0))
        feeds.append((x, mask))
    x, mask = (a.copy() for a in feeds[3])
    x[0, 2, 3], mask[1] = np.inf, -np.inf
    feeds.append((x, mask))
    everywhere(module, feeds, 1e-4)


def attention(
    heads: int, shared: int, bias: list[int | str] | None, **attrs: object
) -> tuple[pliant.IRModule, Callable[[int, int, int], tuple[np.ndarray, ...]]]:
    """Returns a program with `R.nn.attention`, and operands for given numbers of batches, queries
    and keys.
    """
    bb = relax.BlockBuilder()
    sizes = {name: pliant.tir.Var(name, "int64") for name in "bnm"}
    shapes = [["b", "n", heads, 5], ["b", "m", shared, 5], ["b", "m", shared, 3]] + ([bias] if bias else [])
    params = [
        relax.Var(name, relax.TensorStructInfo([sizes.get(d, d) for d in shape], "float32"))
        for name, shape in zip("qkva", shapes, strict=False)
    ]
    with bb.function("main", params):
        with bb.dataflow():
            z = bb.emit_output(relax.op.nn.attention(*params, **attrs))
        bb.emit_func_output(z)
    rng = np.random.default_rng(9)

    def operands(b: int, n: int, m: int) -> tuple[np.ndarray, ...]:
        of = {"b": b, "n": n, "m": m}
        return tuple(rng.standard_normal([of.get(d, d) for d in s]).astype("float32") for s in shapes)

    return bb.get(), operands


@pytest.mark.parametrize(
    ("heads", "shared", "bias", "attrs"),
    [
        (2, 2, None, {}),
        (6, 2, ["b", 6, "n", "m"], {"scale": 0.3}),
        (4, 1, ["n", "m"], {"causal_mask": "TopLeft"}),
        (2, 2, ["b", 1, 1, "m"], {"causal_mask": "BottomRight"}),
        (3, 3, [1, 3, 1, 1], {"causal_mask": "BottomRight", "window_size": 3}),
    ],
)
def test_attention_is_one_kernel_call(heads: int, shared: int, bias: list[int | str] | None, attrs: dict[str, object]) -> None:
    module, operands = attention(heads, shared, bias, **attrs)
    assert 'call_kernel("attention"' in kernels_in(module)
    feeds = [operands(b, n, m) for b, n, m in [(0, 2, 3), (1, 0, 4), (2, 3, 0), (1, 1, 1), (2, 7, 5), (1, 5, 7), (1, 33, 40)]]
    everywhere(module, feeds, 1e-4)


def test_attention_with_unproved_sizes_stays_loops() -> None:
    bb = relax.BlockBuilder()
    q = relax.Var("q", relax.TensorStructInfo([pliant.tir.Var("a", "int64"), 4, 2, 5], "float32"))
    k = relax.Var("k", relax.TensorStructInfo([pliant.tir.Var("b", "int64"), 4, 2, 5], "float32"))
    with bb.function("main", [q, k]):
        with bb.dataflow():
            z = bb.emit_output(relax.op.nn.attention(q, k, k))
        bb.emit_func_output(z)
    module = bb.get()
    assert 'call_kernel("attention"' not in kernels_in(module)
    x = np.random.default_rng(1).standard_normal((3, 4, 2, 5)).astype("float32")
    everywhere(module, [(x, x)])
    with pytest.raises(pliant.error.PliantError):
        pliant.compile(module)(x, x[:2])


def convolved(
    x_shape: list[int | str], w_shape: list[int], tail: str = "", **attrs: object
) -> tuple[pliant.IRModule, Callable[..., tuple[np.ndarray, ...]]]:
    """Returns a program with a convolution with constant weights and its epilogue, and operands for
    sizes of the symbols.
    """
    rng = np.random.default_rng(len(w_shape) * 10 + len(tail))
    dims = len(w_shape) - 2
    last = str(attrs.get("data_layout", "NC")).endswith("C") and dims > 0 and "data_layout" in attrs
    bb = relax.BlockBuilder()
    sizes = {name: pliant.tir.Var(name, "int64") for name in "nhw"}
    x = relax.Var("x", relax.TensorStructInfo([sizes.get(d, d) for d in x_shape], "float32"))
    w = relax.const(rng.standard_normal(w_shape).astype("float32"))
    layout = str(attrs.get("kernel_layout", "OI"))
    filters = w_shape[layout.index("O")]
    bias = relax.const(rng.standard_normal([filters] if last else [1, filters] + [1] * dims).astype("float32"))
    op = relax.op
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(getattr(op.nn, f"conv{dims}d")(x, w, **attrs))
            if "b" in tail:
                y = bb.emit(op.add(y, bias))
            if "r" in tail:
                y = bb.emit(op.add(y, x))
            if "a" in tail:
                y = bb.emit(op.nn.relu(y))
            if "c" in tail:
                y = bb.emit(op.maximum(y, relax.const(-0.5, "float32")))
                y = bb.emit(op.minimum(y, relax.const(6.0, "float32")))
            z = bb.emit_output(y)
        bb.emit_func_output(z)

    def operands(**of: int) -> tuple[np.ndarray, ...]:
        return (rng.standard_normal([of.get(str(d), d) for d in x_shape]).astype("float32"),)

    return bb.get(), operands


CONVOLUTIONS = {
    "square": (["n", 3, "h", "w"], [20, 3, 3, 3], "ba", {"padding": 1}),
    "asymmetric": (["n", 5, "h", "w"], [7, 5, 2, 3], "b", {"padding": [1, 0, 2, 3], "strides": [2, 1]}),
    "dilated": (["n", 4, "h", "w"], [70, 4, 3, 3], "c", {"dilation": [2, 3], "padding": [3, 4]}),
    "groups": (["n", 8, "h", "w"], [10, 4, 3, 1], "", {"groups": 2, "padding": [1, 0]}),
    "point": (["n", 6, "h", "w"], [33, 6, 1, 1], "ba", {}),
    "last": (["n", "h", "w", 6], [6, 6, 3, 3], "bra", {"data_layout": "NHWC", "padding": 1}),
    "last stride": (["n", "h", "w", 5], [3, 3, 5, 9], "a", {"data_layout": "NHWC", "kernel_layout": "HWIO", "strides": 2}),
    "channel": (["n", "h", "w", 12], [12, 1, 3, 3], "bc", {"data_layout": "NHWC", "groups": 12, "padding": 1}),
    "groups of four": (["n", "h", "w", 12], [12, 4, 3, 3], "bra", {"data_layout": "NHWC", "groups": 3, "padding": 1}),
    "groups of two": (["n", "h", "w", 10], [10, 2, 3, 3], "bc", {"data_layout": "NHWC", "groups": 5, "strides": 2, "padding": [0, 1]}),
    "groups of eight": (["n", 40, "h", "w"], [40, 8, 3, 3], "ba", {"groups": 5, "dilation": [2, 1], "padding": [1, 2]}),
    "filters of one channel": (["n", "h", "w", 5], [20, 1, 3, 2], "ba", {"data_layout": "NHWC", "groups": 5, "padding": 1}),
    "groups of three": (["n", "h", "w", 6], [9, 2, 3, 3], "c", {"data_layout": "NHWC", "groups": 3}),
    "wide groups": (["n", "h", "w", 32], [48, 16, 3, 3], "b", {"data_layout": "NHWC", "groups": 2, "padding": 1}),
    "line of groups": (["n", "w", 8], [16, 2, 5], "a", {"data_layout": "NWC", "groups": 4, "padding": [4, 0]}),
    "volume of groups": (["n", 2, "h", "w", 8], [8, 4, 2, 3, 3], "ba", {"data_layout": "NDHWC", "groups": 2, "padding": 1}),
    "line": (["n", 4, "w"], [9, 4, 3], "ba", {"padding": [2, 0]}),
    "line last": (["n", "w", 4], [9, 4, 5], "b", {"data_layout": "NWC", "strides": 3, "padding": 2}),
    "volume": (["n", 2, 4, "h", "w"], [5, 2, 2, 3, 3], "ba", {"padding": [1, 1, 1], "strides": [1, 2, 1]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_are_one_kernel_call(name: str) -> None:
    x_shape, w_shape, tail, attrs = CONVOLUTIONS[name]
    module, operands = convolved(x_shape, w_shape, tail, **attrs)
    script = kernels_in(module)
    assert 'call_kernel("conv"' in script
    assert "cls.add" not in script and "cls.relu" not in script
    sizes = [(0, 9, 8), (1, 9, 7), (2, 10, 33), (3, 16, 9)]
    if name in ("point", "square", "last", "channel", "groups of four", "filters of one channel", "wide groups"):
        sizes += [(1, 1, 1), (1, 1, 7), (2, 0, 3) if name == "point" else (2, 2, 3)]
    feeds = [operands(n=n, h=h, w=w) for n, h, w in sizes]
    odd = operands(n=2, h=9, w=9)[0]
    odd.flat[7], odd.flat[40] = np.nan, np.inf
    everywhere(module, [*feeds, (odd,), (np.concatenate([odd, odd])[::2],)], 1e-4)


@pytest.mark.parametrize("tail", ["", "bra"])
def test_winograd_convolutions(tail: str) -> None:
    attrs = {"data_layout": "NHWC", "padding": 1}
    module, operands = convolved(["n", "h", "w", 64], [64, 64, 3, 3], tail, **attrs)
    # A constant of 16 numbers for each filter.
    assert "(1, 1024, 64)" in kernels_in(module)
    sizes = [(0, 9, 8), (1, 1, 1), (1, 1, 7), (2, 2, 3), (1, 9, 7), (3, 10, 33), (2, 0, 3)]
    feeds = [operands(n=n, h=h, w=w) for n, h, w in sizes]
    everywhere(module, feeds, 1e-4)


@pytest.mark.parametrize(("tiles", "constant"), [("4x4", "(1, 2304, 64)"), ("off", "(1, 576, 64)"), ("2x2", "(1, 1024, 64)")])
def test_tile_selection(tiles: str, constant: str) -> None:
    module, operands = convolved(["n", "h", "w", 64], [64, 64, 3, 3], "ba", data_layout="NHWC", padding=1)
    with pliant.transform.PassContext(config={"winograd": tiles}):
        packed = relax.transform.OffloadKernels()(module)
        assert constant in kernels_in(module)
    model = pliant.compile(module, config={"winograd": tiles})
    loops = pliant.compile(module, kernels="off")
    for n, h, w in [(0, 9, 8), (1, 1, 1), (2, 4, 5), (1, 9, 7), (3, 10, 33)]:
        (x,) = operands(n=n, h=h, w=w)
        close(np.asarray(model(x)), np.asarray(loops(x)), 1e-3)
    (x,) = operands(n=1, h=3, w=2)
    close(interpret(packed, x).numpy(), np.asarray(loops(x)), 1e-4)
    with pytest.raises(Exception, match="must be one of 2x2, 4x4, off"):
        pliant.compile(module, config={"winograd": "6x6"})


def test_one_weight_with_strides_one_and_two() -> None:
    rng = np.random.default_rng(2)
    bb = relax.BlockBuilder()
    n = pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, 9, 8, 64], "float32"))
    w = relax.const((rng.standard_normal((64, 64, 3, 3)) / 24).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, w, data_layout="NHWC", padding=1))
            z = bb.emit_output(relax.op.nn.conv2d(y, w, data_layout="NHWC", padding=1, strides=2))
        bb.emit_func_output(z)
    everywhere(bb.get(), [(rng.standard_normal((2, 9, 8, 64)).astype("float32"),)], 1e-4)


def test_results_with_other_readers_are_kept() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), 3, 8, 8], "float32"))
    w = relax.const(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, w))
            z = bb.emit_output(relax.op.add(bb.emit(relax.op.nn.relu(y)), bb.emit(relax.op.exp(y))))
        bb.emit_func_output(z)
    module = bb.get()
    assert 'call_kernel("conv"' in kernels_in(module)
    everywhere(module, [(np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype("float32"),)], 1e-4)


def residual_net(dims: int) -> pliant.IRModule:
    """Returns a network as exporters write it: convolutions with bias, activation, residual,
    pooling and a mean, with channels first.
    """
    rng = np.random.default_rng(dims)
    bb, op = relax.BlockBuilder(), relax.op
    n, h = pliant.tir.Var("n", "int64"), pliant.tir.Var("h", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, 3, h, *[8] * (dims - 1)], "float32"))
    conv, pool = getattr(op.nn, f"conv{dims}d"), getattr(op.nn, f"max_pool{dims}d")
    spatial = [1] * dims

    def convolution(x: relax.Expr, filters: int, channels: int, size: int, **attrs: object) -> relax.Expr:
        w = relax.const(rng.standard_normal([filters, channels] + [size] * dims).astype("float32") * np.float32(0.2))
        b = relax.const(rng.standard_normal([1, filters, *spatial]).astype("float32"))
        return bb.emit(op.add(bb.emit(conv(x, w, padding=size // 2, **attrs)), b))

    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.relu(convolution(x, 20, 3, 3, strides=2)))
            y = bb.emit(pool(y, [2] * dims, [1] * dims, [1] * (2 * dims)))
            z = bb.emit(op.nn.relu(convolution(y, 20, 20, 3)))
            z = bb.emit(op.nn.relu(bb.emit(op.add(convolution(z, 20, 20, 3), y))))
            z = bb.emit(op.nn.relu(bb.emit(op.add(convolution(z, 20, 20, 3), convolution(z, 20, 20, 1)))))
            z = convolution(z, 20, 1, 3, groups=20)
            z = bb.emit(op.minimum(bb.emit(op.maximum(z, relax.const(0.0, "float32"))), relax.const(6.0, "float32")))
            s = bb.emit(op.multiply(z, relax.const(rng.standard_normal((20, *spatial)).astype("float32"))))
            out = bb.emit_output(op.mean(s, axis=list(range(2, dims + 2))))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_layout_stays_channels_last_between_convolutions(dims: int) -> None:
    module = residual_net(dims)
    script = kernels_in(module)
    # Only the input is transposed; the six convolutions apply bias, residual and activations.
    assert script.count("R.permute_dims") + script.count("cls.permute_dims") + script.count("cls.transpose") == 1, script
    assert script.count("R.call_tir(cls.conv") == 6 and "cls.relu" not in script
    rng = np.random.default_rng(2)
    sizes = [(0, 8), (1, 1), (1, 7), (3, 12)]
    everywhere(module, [(rng.standard_normal((n, 3, h, *[8] * (dims - 1))).astype("float32"),) for n, h in sizes], 2e-4)


def test_results_of_convolutions_are_read_in_both_layouts() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), 3, 5, 4], "float32"))
    w = relax.const(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.relu(bb.emit(relax.op.nn.conv2d(x, w, padding=1))))
            z = bb.emit_output(relax.op.concat([y, bb.emit(relax.op.tanh(y))], axis=1))
        bb.emit_func_output(z)
    everywhere(bb.get(), [(np.random.default_rng(1).standard_normal((n, 3, 5, 4)).astype("float32"),) for n in (0, 1, 3)], 1e-4)


def test_attention_of_large_scores() -> None:
    query, key = relax.Var("q", relax.TensorStructInfo((1, 1, 1, 1), "float32")), relax.Var("k", relax.TensorStructInfo((1, 2, 1, 1), "float32"))
    value = relax.Var("v", relax.TensorStructInfo((1, 2, 1, 1), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [query, key, value]):
        bb.emit_func_output(bb.emit(relax.op.nn.attention(query, key, value, scale=0.1)))
    values = np.array([1, 2], "float32").reshape(1, 2, 1, 1)
    for q, k, want in ((1e18, (1, 1e-18), 1), (1e19, (3e18, 1), 1), (1e10, (1, 1), 1.5), (3e19, (1e19, 1e19), 1.5)):
        for kernels in ("on", "off"):
            run = pliant.compile(bb.get(), kernels=kernels)
            got = run(np.full((1, 1, 1, 1), q, "float32"), np.array(k, "float32").reshape(1, 2, 1, 1), values)
            assert got.numpy().item() == want, (q, k, kernels)

"""Tests that matmuls, convolutions and attention of 16-bit floats are computed in float32 by the kernels, and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx_models import model_of, node

import pliant
from pliant import relax

N = pliant.tir.Var("n", "int64")


def program(dtype: str, shapes: list[list[object]], build: Callable[..., relax.Expr]) -> pliant.IRModule:
    """Returns a function of tensors of this type, whose first sizes are unknown."""
    bb = relax.BlockBuilder()
    xs = [relax.Var(f"x{i}", relax.TensorStructInfo(list(shape), dtype)) for i, shape in enumerate(shapes)]
    with bb.function("main", xs), bb.dataflow():
        gv = bb.emit_output(bb.emit(build(*xs)))
        bb.emit_func_output(gv)
    return bb.get()


def close(module: pliant.IRModule, inputs: Callable[[int], list[np.ndarray]], widened: bool = True) -> None:
    """Checks that kernels and loops agree up to the rounding of a result."""
    seen = relax.transform.OffloadDequantized()(module).script()
    assert ('dtype="float32"' in seen) == widened
    on, off = pliant.compile(module), pliant.compile(module, kernels="off")
    for n in (0, 1, 2, 9):
        given = inputs(n)
        got, want = (np.asarray(model(*given)) for model in (on, off))
        assert got.dtype == want.dtype == given[0].dtype
        got, want = got.astype("float32"), want.astype("float32")
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * max(1.0, float(np.abs(want).max(initial=0))))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float16")


def test_matmul_with_constants() -> None:
    w, b = numbers(33, 20), numbers(20)
    close(program("float16", [[N, 33]], lambda x: relax.op.matmul(x, relax.const(w))), lambda n: [numbers(n, 33)])
    turned = np.ascontiguousarray(w.T)
    linear = program("float16", [[N, 33]], lambda x: relax.op.linear(x, relax.const(turned), relax.const(b)))
    close(linear, lambda n: [numbers(n, 33)])
    plain = program("float16", [[N, 33]], lambda x: relax.op.linear(x, relax.const(turned)))
    close(plain, lambda n: [numbers(n, 33)])


def test_matmul_of_inputs() -> None:
    module = program("float16", [[3, N, 7], [7, 5]], relax.op.matmul)
    close(module, lambda n: [numbers(3, n, 7), numbers(7, 5)])


def test_convolutions() -> None:
    w = numbers(8, 4, 3, 3)
    module = program(
        "float16", [[N, 4, 10, 9]], lambda x: relax.op.nn.conv2d(x, relax.const(w), padding=[1, 1], strides=[2, 1])
    )
    close(module, lambda n: [numbers(n, 4, 10, 9)])


def test_attention() -> None:
    module = program("float16", [[2, N, 3, 8]] * 3, relax.op.nn.attention)
    close(module, lambda n: [numbers(2, n, 3, 8) for _ in range(3)])


def test_bfloat16() -> None:
    w = relax.const(numbers(16, 16).astype("float32"), "float32")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([N, 16], "float32"))
    with bb.function("main", [x]), bb.dataflow():
        narrow = [bb.emit(relax.op.astype(e, "bfloat16")) for e in (x, w)]
        product = bb.emit(relax.op.matmul(*narrow))
        gv = bb.emit_output(relax.op.astype(product, "float32"))
        bb.emit_func_output(gv)
    module = bb.get()
    models = [pliant.compile(module), pliant.compile(module, kernels="off")]
    for n in (0, 1, 6):
        given = numbers(n, 16).astype("float32")
        got, want = (np.asarray(model(given)) for model in models)
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_other_types_are_not_offloaded(dtype: str) -> None:
    module = program(dtype, [[N, 4], [4, 3]], relax.op.matmul)
    assert relax.transform.OffloadDequantized()(module).script() == module.script()


def test_float32_bias() -> None:
    w, b = relax.const(numbers(20, 33)), relax.const(numbers(20).astype("float32"))
    module = program("float16", [[N, 33]], lambda x: relax.op.linear(x, w, b, out_dtype="float32"))
    assert "R.linear(lv" in relax.transform.OffloadDequantized()(module).script()
    for n in (0, 1, 9):
        got, want = (np.asarray(pliant.compile(module, kernels=kernels)(numbers(n, 33))) for kernels in ("on", "off"))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hides", [False, True])
def test_attention_from_onnx(hides: bool) -> None:
    """Tests attention imported from ONNX. It becomes one kernel call, which keeps the scores and weights in float32 and reads and
    writes the heads without a transpose.
    """
    heads = {"q": "qt", "k": "kt", "v": "vt"}
    nodes = [node("Transpose", x, t, perm=[0, 2, 3, 1] if x == "k" else [0, 2, 1, 3]) for x, t in heads.items()]
    nodes += [node("MatMul", "qt kt", "p"), node("Mul", "p scale", "s")]
    nodes.append(node("Where", "seen s low", "m") if hides else node("Add", "s mask", "m"))
    nodes += [node("Softmax", "m", "w", axis=-1), node("MatMul", "w vt", "c"), node("Transpose", "c", "y", perm=[0, 2, 1, 3])]
    half = onnx.TensorProto.FLOAT16
    inputs: dict[str, object] = {name: (half, ["b", "n", 3, 8]) for name in heads}
    inputs |= {"seen": (onnx.TensorProto.BOOL, ["n", "n"])} if hides else {"mask": (half, ["b", 1, 1, "n"])}
    constants = {"scale": np.float16(0.35), "low": np.float16(-65504.0)}
    module = relax.frontend.onnx.from_onnx(model_of(nodes, inputs, ["y"], constants))
    text = relax.get_pipeline("zero")(module).script()
    assert text.count('T.call_kernel("attention"') == 1 and "softmax" not in text and "transpose" not in text
    on, off = pliant.compile(module), pliant.compile(module, kernels="off")
    for n in (1, 2, 9):
        beside = np.tri(n, dtype=bool) if hides else numbers(2, 1, 1, n)
        feed = [*(numbers(2, n, 3, 8) for _ in heads), beside]
        got, want = (np.asarray(model(*feed)).astype("float32") for model in (on, off))
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3)
        q, k, v = (x.astype("float64").transpose(0, 2, 1, 3) for x in feed[:3])
        scores = q @ k.transpose(0, 1, 3, 2) * float(np.float16(0.35))
        scores = np.where(beside, scores, -65504.0) if hides else scores + beside
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)
        assert np.abs(got - exact).max() <= np.abs(want - exact).max()


def test_scores_that_overflow_float16() -> None:
    """Tests scores that overflow float16: the kernel computes 300 * 300 * 8 in float32."""

    def attention(q: relax.Expr, k: relax.Expr, v: relax.Expr) -> relax.Expr:
        scores = relax.op.matmul(q, relax.op.permute_dims(k, [0, 2, 1]))
        return relax.op.matmul(relax.op.nn.softmax(scores), v)

    module = program("float16", [[2, N, 8]] * 3, attention)
    many, v = np.full((2, 5, 8), 300, "float16"), numbers(2, 5, 8)
    got = np.asarray(pliant.compile(module)(many, many, v))
    np.testing.assert_allclose(got, np.broadcast_to(v.astype("float32").mean(1, keepdims=True), v.shape), rtol=2e-3, atol=2e-3)

"""Products, convolutions and attention of 16-bit floats: computed in float32 by the kernels, and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pliant
from pliant import relax

N = pliant.tir.Var("n", "int64")


def program(dtype: str, shapes: list[list[object]], build: Callable[..., relax.Expr]) -> pliant.IRModule:
    """A function of tensors of that type, whose first sizes are unknown."""
    bb = relax.BlockBuilder()
    xs = [relax.Var(f"x{i}", relax.TensorStructInfo(list(shape), dtype)) for i, shape in enumerate(shapes)]
    with bb.function("main", xs), bb.dataflow():
        gv = bb.emit_output(bb.emit(build(*xs)))
        bb.emit_func_output(gv)
    return bb.get()


def close(module: pliant.IRModule, inputs: Callable[[int], list[np.ndarray]], widened: bool = True) -> None:
    """Kernels give what loops give, but for the rounding of a result."""
    seen = relax.transform.WidenProducts()(module).script()
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


def test_products_by_constants() -> None:
    w, b = numbers(33, 20), numbers(20)
    close(program("float16", [[N, 33]], lambda x: relax.op.matmul(x, relax.const(w))), lambda n: [numbers(n, 33)])
    turned = np.ascontiguousarray(w.T)
    linear = program("float16", [[N, 33]], lambda x: relax.op.linear(x, relax.const(turned), relax.const(b)))
    close(linear, lambda n: [numbers(n, 33)])
    plain = program("float16", [[N, 33]], lambda x: relax.op.linear(x, relax.const(turned)))
    close(plain, lambda n: [numbers(n, 33)])


def test_products_of_inputs() -> None:
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
def test_other_types_stay(dtype: str) -> None:
    module = program(dtype, [[N, 4], [4, 3]], relax.op.matmul)
    assert relax.transform.WidenProducts()(module).script() == module.script()

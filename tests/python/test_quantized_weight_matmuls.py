"""Tests that library kernels, generated loops and the interpreter agree on matmuls with dequantized constant weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import pliant
from pliant import relax
from pliant.testing import interpret

KERNELS = ("matmul_int8_weight", "matmul_int4_weight")


def agree(module: pliant.IRModule, kernel: str | None, want: np.ndarray, x: np.ndarray) -> None:
    """Checks that kernels, loops and the interpreter are close to the expected result, and that the
    pass selects the given kernel, or none.
    """
    tolerance = 1e-5 * max(1.0, float(np.abs(want).max(initial=0)))
    packed = relax.transform.OffloadDequantized()(module)
    assert [name for name in KERNELS if name in packed.script()] == ([kernel] if kernel else [])
    models = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
    for model in [*models, pliant.compile(module, kernels="off")]:
        np.testing.assert_allclose(np.asarray(model(x)), want, rtol=1e-5, atol=tolerance)
    if want.size < 300:
        np.testing.assert_allclose(interpret(packed, x).numpy(), want, rtol=1e-5, atol=tolerance)


def program(k: int, weights: Callable[[relax.BlockBuilder], relax.Expr]) -> pliant.IRModule:
    """Returns a program for `x @ weights` with an unknown number of rows."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "float32"))
    with bb.function("main", [x]), bb.dataflow():
        gv = bb.emit_output(relax.op.matmul(x, weights(bb)))
        bb.emit_func_output(gv)
    return bb.get()


def rows(rng: np.random.Generator, m: int, k: int) -> np.ndarray:
    return rng.standard_normal((m, k)).astype("float32")


@pytest.mark.parametrize(("low", "high", "kernel"), [(-127, 127, 0), (0, 255, 0), (-8, 7, 1), (100, 115, 1)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(("k", "n", "group"), [(64, 40, 16), (96, 130, 96), (40, 7, 32), (1, 1, 1), (33, 17, 33)])
def test_cast_and_scaled_weights(low: int, high: int, kernel: int, dtype: str, k: int, n: int, group: int) -> None:
    rng = np.random.default_rng(k + n)
    info = np.iinfo(dtype)
    q = rng.integers(max(low, info.min), min(high, info.max), (k, n), dtype=dtype, endpoint=True)
    groups = -(-k // group)
    scales = rng.random((groups, n)).astype("float32") + np.float32(0.1)
    zeros = rng.integers(0, 9, (groups, n)).astype("float32")

    def weights(bb: relax.BlockBuilder) -> relax.Expr:
        def spread(part: np.ndarray) -> relax.Expr:
            wide = relax.const(part)
            if groups > 1 and k % group == 0:
                return bb.emit(relax.op.repeat(wide, group, axis=0))
            return relax.const(np.repeat(part, group, axis=0)[:k]) if groups > 1 else wide

        wide = bb.emit(relax.op.astype(relax.const(q), "float32"))
        centred = bb.emit(relax.op.subtract(wide, spread(zeros)))
        return bb.emit(relax.op.multiply(spread(scales), centred))

    full = (q.astype("float32") - np.repeat(zeros, group, axis=0)[:k]) * np.repeat(scales, group, axis=0)[:k]
    span = int(q.max()) - int(q.min())
    module = program(k, weights)
    for m in (0, 1, 2, 3, 4, 7, 20):
        x = rows(rng, m, k)
        agree(module, KERNELS[1 if span <= 15 else 0], x @ full, x)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_dequantize_and_transposed(axis: int | None) -> None:
    rng = np.random.default_rng(3)
    k, n = 50, 30
    for turned in (False, True):
        shape = (n, k) if turned else (k, n)
        q = rng.integers(-127, 128, shape).astype("int8")
        size = () if axis is None else (shape[axis],)
        scale, zero = rng.random(size).astype("float32") + np.float32(0.1), rng.integers(-5, 5, size).astype("int8")
        place = {0: (-1, 1), 1: (1, -1), None: ()}[axis]
        full = (q.astype("float32") - zero.astype("float32").reshape(place)) * scale.reshape(place)

        def weights(bb: relax.BlockBuilder) -> relax.Expr:
            parts = [relax.const(v) for v in (q, scale, zero)]
            whole = bb.emit(relax.op.dequantize(*parts, axis=-1 if axis is None else axis))
            return bb.emit(relax.op.permute_dims(whole)) if turned else whole

        full = full.T if turned else full
        changes = axis is not None and (axis == 1) == turned
        x = rows(rng, 5, k)
        # A scale for each row of k saves nothing.
        agree(program(k, weights), None if changes else KERNELS[0], x @ full, x)


@pytest.mark.parametrize("axis", [0, None])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_linear(axis: int | None, turned: bool, bias: bool) -> None:
    rng = np.random.default_rng(4)
    k, n = 34, 19
    q = rng.integers(-127, 128, (n, k)).astype("int8")
    size = () if axis is None else (n,)
    scale, zero = rng.random(size).astype("float32") + np.float32(0.1), rng.integers(-5, 5, size).astype("int8")
    place = () if axis is None else (n, 1)
    full = (q.astype("float32") - zero.astype("float32").reshape(place)) * scale.reshape(place)
    b = rng.standard_normal(n).astype("float32")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "float32"))
    with bb.function("main", [x]), bb.dataflow():
        along = -1 if axis is None else 1 if turned else 0
        parts = [relax.const(v) for v in (q.T.copy() if turned else q, scale, zero)]
        whole = bb.emit(relax.op.dequantize(*parts, axis=along))
        whole = bb.emit(relax.op.permute_dims(whole)) if turned else whole
        gv = bb.emit_output(relax.op.linear(x, whole, *([relax.const(b)] if bias else [])))
        bb.emit_func_output(gv)
    module = bb.get()
    for m in (0, 1, 6):
        feed = rows(rng, m, k)
        agree(module, KERNELS[0], feed @ full.T + (b if bias else 0), feed)


def test_trailing_bias_is_fused() -> None:
    rng = np.random.default_rng(9)
    k, n = 32, 24
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "float32"))
    weights, bias = rng.standard_normal((n, k)).astype("float32"), rng.standard_normal(n).astype("float32")
    with bb.function("main", [x]), bb.dataflow():
        gv = bb.emit_output(relax.op.linear(x, relax.const(weights), relax.const(bias)))
        bb.emit_func_output(gv)
    module = bb.get()
    assert relax.get_pipeline("zero")(module).script().count("@T.prim_func") == 1
    for m in (0, 1, 5):
        feed = rows(rng, m, k)
        np.testing.assert_allclose(np.asarray(pliant.compile(module)(feed)), feed @ weights.T + bias, rtol=1e-4, atol=1e-5)


def nodes(made: list[onnx.NodeProto], k: int, constants: dict[str, np.ndarray]) -> pliant.IRModule:
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", k])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(made, "g", [x], [y], [numpy_helper.from_array(v, name) for name, v in constants.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return relax.frontend.onnx.from_onnx(helper.make_model(graph, opset_imports=opsets))


def unpack(packed: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 8, bits, dtype="uint8")
    return (packed[..., None] >> shifts & ((1 << bits) - 1)).reshape(*packed.shape[:-1], -1)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("depth", [64, 48, 20])
def test_matmul_nbits(bits: int, zeros: str, depth: int) -> None:
    rng = np.random.default_rng(bits)
    n, block = 24, 32
    blocks = -(-depth // block)
    b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype("uint8")
    scales = rng.random(n * blocks).astype("float32")
    constants = {"b": b, "s": scales}
    zero = np.full((n, blocks), 2 ** (bits - 1), "float32")
    if zeros == "packed":
        raw = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype("uint8")
        constants["z"], zero = raw.reshape(-1), unpack(raw, bits)[:, :blocks].astype("float32")
    elif zeros == "float":
        zero = rng.random((n, blocks)).astype("float32") * 3 + 1
        constants["z"] = zero.reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=depth, N=n, bits=bits, block_size=block
    )
    module = nodes([node], depth, constants)
    q = unpack(b, bits).astype("float32")
    full = ((q - zero[..., None]) * scales.reshape(n, blocks, 1)).reshape(n, -1)[:, :depth].T
    for m in (0, 1, 3, 9):
        x = rows(rng, m, depth)
        agree(module, KERNELS[0 if bits == 8 else 1], x @ full, x)


@pytest.mark.parametrize(("k", "block"), [(48, 0), (48, 16), (40, 16), (10, 16)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_dequantize_linear(k: int, block: int, dtype: str) -> None:
    rng = np.random.default_rng(5)
    n = 20
    q = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (k, n)).astype(dtype)
    size = (-(-k // block), n) if block else (n,)
    scale, zero = rng.random(size).astype("float32"), rng.integers(0, 9, size).astype(dtype)
    attrs = {"axis": 0, "block_size": block} if block else {"axis": 1}
    made = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], **attrs),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    module = nodes(made, k, {"q": q, "s": scale, "z": zero})
    wide = [np.repeat(v, block, axis=0)[:k] if block else v for v in (scale, zero)]
    full = (q.astype("float32") - wide[1].astype("float32")) * wide[0]
    for m in (1, 6):
        x = rows(rng, m, k)
        agree(module, KERNELS[0], x @ full, x)


def test_unsupported_forms_stay_loops() -> None:
    rng = np.random.default_rng(6)
    k, n = 16, 8
    wide = rng.integers(-1000, 1000, (k, n)).astype("int32")
    small = rng.integers(-100, 100, (k, n)).astype("int8")
    for q, scale in [(wide, np.float32(0.5)), (small, np.float32(np.inf)), (small, np.float32(np.nan))]:
        def weights(bb: relax.BlockBuilder) -> relax.Expr:
            cast = bb.emit(relax.op.astype(relax.const(q), "float32"))
            return bb.emit(relax.op.multiply(cast, relax.const(scale)))

        module = program(k, weights)
        x = rows(rng, 3, k)
        want = np.asarray(pliant.compile(module, kernels="off")(x))
        np.testing.assert_allclose(np.asarray(pliant.compile(module)(x)), want, rtol=1e-5)
        assert not any(name in relax.transform.OffloadDequantized()(module).script() for name in KERNELS)


def test_casts_and_broadcasts_are_not_misinterpreted() -> None:
    """Tests casts that change signs, broadcast integers, and per-group zero points, which the pass
    must not misinterpret.
    """
    op, const = relax.op, relax.const
    q = np.arange(-32, 32, dtype="int8").reshape(4, 16)

    def negative(bb: relax.BlockBuilder) -> relax.Expr:
        zero = bb.emit(op.astype(bb.emit(op.astype(const(np.array(-1, "int8")), "uint8")), "int32"))
        centred = bb.emit(op.subtract(bb.emit(op.astype(const(q), "int32")), zero))
        return bb.emit(op.multiply(bb.emit(op.astype(centred, "float32")), const(np.float32(1))))

    def spread(size: int) -> Callable[[relax.BlockBuilder], relax.Expr]:
        def weights(bb: relax.BlockBuilder) -> relax.Expr:
            scale = bb.emit(op.repeat(const(np.full((1, size), 2, "float32")), 4, axis=0))
            return bb.emit(op.multiply(bb.emit(op.astype(const(q[:1]), "float32")), scale))

        return weights

    def parts(bb: relax.BlockBuilder) -> relax.Expr:
        column = np.tile(np.array([0, -8, 5, 5], "int8").reshape(4, 1), (1, 16))
        centred = bb.emit(op.subtract(bb.emit(op.astype(const(column), "float32")), const(np.float32(1e-8))))
        return bb.emit(op.multiply(centred, const(np.float32(1e8))))

    first = np.array([[1, 0, 0, 0]], "float32")
    for weights, x in ((negative, np.ones((1, 4), "float32")), (spread(1), first), (spread(16), first), (parts, first)):
        module = program(4, weights)
        want = np.asarray(pliant.compile(module, kernels="off")(x))
        np.testing.assert_allclose(np.asarray(pliant.compile(module)(x)), want, rtol=1e-5)


def test_products_of_many_dims_stay_loops() -> None:
    """Tests matmuls of many dims: the kernels support at most 8 dims."""
    rng = np.random.default_rng(9)
    q = rng.integers(-100, 100, (16, 8)).astype("int8")
    for rank, packed in ((8, True), (9, False)):
        bb = relax.BlockBuilder()
        dims = [pliant.tir.Var("n", "int64"), *[1] * (rank - 2), 16]
        x = relax.Var("x", relax.TensorStructInfo(dims, "float32"))
        with bb.function("main", [x]), bb.dataflow():
            weights = bb.emit(relax.op.multiply(bb.emit(relax.op.astype(relax.const(q), "float32")), relax.const(np.float32(0.5))))
            bb.emit_func_output(bb.emit_output(relax.op.matmul(x, weights)))
        module = bb.get()
        assert (KERNELS[0] in relax.transform.OffloadDequantized()(module).script()) == packed
        feed = rng.normal(size=(3, *[1] * (rank - 2), 16)).astype("float32")
        np.testing.assert_allclose(np.asarray(pliant.compile(module)(feed)), feed @ (q * 0.5), rtol=1e-4, atol=1e-3)

"""Tests that matmuls of two dequantized operands become one integer kernel call, with results close to those of the float
loops."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

ROWS = (0, 1, 2, 7, 33)
LEFT = ["int8", "uint8"]
KERNEL = 'T.call_kernel("matmul_int8"'


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def script(module: pliant.IRModule) -> str:
    return relax.get_pipeline("zero")(module).script()


def agree(module: pliant.IRModule, *feed: np.ndarray) -> np.ndarray:
    """Checks that kernels and the interpreter, after the passes, are close to the float loops."""
    want = np.asarray(pliant.compile(module, kernels="off")(*feed))
    near = {"rtol": 1e-5, "atol": 2e-6 * max(1.0, float(np.abs(want).max(initial=0)))}
    for mode in ("bytecode", "compiled"):
        np.testing.assert_allclose(np.asarray(pliant.compile(module, exec_mode=mode)(*feed)), want, **near)
    if want.size < 300:
        lowered = relax.get_pipeline("zero")(module)
        np.testing.assert_allclose(interpret(lowered, *feed).numpy(), want, **near)
    return want


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[str, list]], constants: dict[str, np.ndarray], out: str = "float32"
) -> pliant.IRModule:
    def kind(dtype: str) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    infos = [helper.make_tensor_value_info(name, kind(dtype), dims) for name, (dtype, dims) in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", kind(out), None)]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return relax.frontend.onnx.from_onnx(helper.make_model(graph, opset_imports=opsets))


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("right", LEFT)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("end", ["plain", "bias", "relu"])
def test_qdq(left: str, right: str, columns: bool, end: str) -> None:
    """Tests QuantizeLinear, DequantizeLinear and MatMul with a constant that is dequantized as
    well.
    """
    rng = np.random.default_rng(1)
    k, n = 70, 37
    size = (n,) if columns else ()
    constants = {
        "xs": np.float32(0.03),
        "xz": np.array(5, left),
        "w": integers(rng, (k, n), right),
        "ws": (rng.random(size).astype("float32") + np.float32(0.1)) / 50,
        "wz": integers(rng, size, right) // 16,
        "b": rng.standard_normal(n).astype("float32"),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["m"]),
    ]
    if end != "plain":
        nodes.append(helper.make_node("Add", ["m", "b"], ["s"]))
    if end == "relu":
        nodes.append(helper.make_node("Relu", ["s"], ["r"]))
    nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["y"]))
    module = model(nodes, {"x": ("float32", ["n", k])}, constants)
    text = script(module)
    assert KERNEL in text
    # The sums are finished in place: one loop quantizes, and nothing else is left.
    assert text.count("@T.prim_func") == 2
    for m in ROWS:
        want = agree(module, rng.standard_normal((m, k)).astype("float32"))
        assert want.shape == (m, n)


@pytest.mark.parametrize("turned", [False, True])
def test_gemm_with_int32_bias(turned: bool) -> None:
    rng = np.random.default_rng(2)
    k, n = 48, 20
    scale, scales = np.float32(0.05), rng.random(n).astype("float32") / 9
    constants = {
        "xs": scale,
        "xz": np.uint8(128),
        "w": integers(rng, (n, k) if turned else (k, n), "int8"),
        "ws": scales,
        "wz": np.zeros(n, "int8"),
        "b": rng.integers(-1000, 1000, n).astype("int32"),
        "bs": scale * scales,
        "bz": np.zeros(n, "int32"),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=0 if turned else 1),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["c"], axis=0),
        helper.make_node("Gemm", ["d", "v", "c"], ["y"], transB=int(turned)),
    ]
    module = model(nodes, {"x": ("float32", ["n", k])}, constants)
    text = script(module)
    assert KERNEL in text
    assert text.count("@T.prim_func") == 2
    for m in ROWS:
        agree(module, 3 * rng.standard_normal((m, k)).astype("float32"))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantization(columns: bool, bias: bool) -> None:
    """Tests a layer as quantize_dynamic of ONNX Runtime writes it: the cast and the scale do not
    become loops.
    """
    rng = np.random.default_rng(3)
    k, n = 64, 48
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["both"]),
        helper.make_node("Mul", ["f", "both"], ["p" if bias else "y"]),
    ]
    if bias:
        nodes.append(helper.make_node("Add", ["b", "p"], ["y"]))
    size = (n,) if columns else ()
    constants = {
        "w": integers(rng, (k, n), "int8"),
        "wz": np.zeros(size, "int8"),
        "ws": rng.random(size).astype("float32") / 9,
        "b": rng.standard_normal(n).astype("float32"),
    }
    module = model(nodes, {"x": ("float32", ["n", k])}, constants)
    assert KERNEL in script(module)
    loops, kernels = pliant.compile(module, kernels="off"), pliant.compile(module)
    for m in ROWS:
        x = rng.standard_normal((m, k)).astype("float32")
        # The sums and everything that follows are bit-identical.
        np.testing.assert_array_equal(np.asarray(kernels(x)), np.asarray(loops(x)))


def test_matmul_integer_to_float() -> None:
    rng = np.random.default_rng(4)
    k, n = 33, 20
    constants = {"w": integers(rng, (k, n), "uint8"), "ws": rng.random(n).astype("float32"), "wz": integers(rng, (n,), "uint8")}
    constants["b"] = rng.standard_normal(n).astype("float32")
    node = helper.make_node("MatMulIntegerToFloat", ["a", "w", "s", "ws", "z", "wz", "b"], ["y"], domain="com.microsoft")
    inputs = {"a": ("int8", ["n", k]), "s": ("float32", []), "z": ("int8", [])}
    module = model([node], inputs, constants)
    assert KERNEL in script(module)
    for m in ROWS:
        agree(module, integers(rng, (m, k), "int8"), np.array(0.02, "float32"), np.array(-7, "int8"))


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("zero", [None, "int8", "uint8"])
def test_non_constant_scales(left: str, rows: bool, linear: bool, zero: str | None) -> None:
    rng = np.random.default_rng(5)
    k, n = 40, 24
    op, const = relax.op, relax.const
    bb, count = relax.BlockBuilder(), pliant.tir.Var("n", "int64")
    dims = [count] if rows else []
    params = [relax.Var("x", relax.TensorStructInfo([count, k], left)), relax.Var("s", relax.TensorStructInfo(dims, "float32"))]
    if zero:
        params.append(relax.Var("z", relax.TensorStructInfo(dims, zero)))
    w = integers(rng, (n, k) if linear else (k, n), "int8")
    scales = rng.random(n).astype("float32")
    with bb.function("main", params), bb.dataflow():
        shift = params[2] if zero else const(np.zeros((), left))
        a = bb.emit(op.dequantize(params[0], params[1], shift, axis=0))
        v = bb.emit(op.dequantize(const(w), const(scales), const(np.int8(2)), axis=0 if linear else 1))
        bias = const(rng.standard_normal(n).astype("float32"))
        y = bb.emit(op.linear(a, v, bias)) if linear else bb.emit(op.matmul(a, v))
        gv = bb.emit_output(op.nn.relu(y))
        bb.emit_func_output(gv)
    module = bb.get()
    assert KERNEL in script(module)
    for m in ROWS:
        size = (m,) if rows else ()
        feed = [integers(rng, (m, k), left), rng.random(size).astype("float32")]
        agree(module, *feed, *([integers(rng, size, zero)] if zero else []))


def test_batches() -> None:
    rng = np.random.default_rng(6)
    k, n = 16, 33
    op, const = relax.op, relax.const
    bb = relax.BlockBuilder()
    lead = [pliant.tir.Var("b", "int64"), pliant.tir.Var("n", "int64")]
    x, s = relax.Var("x", relax.TensorStructInfo([*lead, k], "int8")), relax.Var("s", relax.TensorStructInfo([], "float32"))
    with bb.function("main", [x, s]), bb.dataflow():
        a = bb.emit(op.dequantize(x, s, const(np.int8(3))))
        v = bb.emit(op.dequantize(const(integers(rng, (k, n), "int8")), const(np.float32(0.1)), const(np.int8(0))))
        gv = bb.emit_output(op.matmul(a, v))
        bb.emit_func_output(gv)
    module = bb.get()
    assert KERNEL in script(module)
    for b, m in ((0, 3), (1, 1), (3, 5)):
        agree(module, integers(rng, (b, m, k), "int8"), np.array(0.5, "float32"))


def test_unsupported_forms_stay_loops() -> None:
    """Tests layers that stay loops: sums that may exceed 32 bits, per-channel scales and zero
    points, and non-finite numbers.
    """
    rng = np.random.default_rng(7)
    op, const = relax.op, relax.const

    def program(k: int, x_scale: float, w: np.ndarray, scale: np.ndarray, zero: np.ndarray, x_zero: np.ndarray) -> pliant.IRModule:
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "uint8"))
        with bb.function("main", [x]), bb.dataflow():
            a = bb.emit(op.dequantize(x, const(np.float32(x_scale)), const(x_zero)))
            v = bb.emit(op.dequantize(const(w), const(scale), const(zero), axis=0 if scale.ndim else 1))
            gv = bb.emit_output(op.matmul(a, v))
            bb.emit_func_output(gv)
        return bb.get()

    one, none = np.array(1, "float32"), np.array(0, "int8")
    fits = (2**31 - 1) // (255 * 127)
    small = integers(rng, (32, 8), "int8")
    full = np.full((fits + 1, 8), 127, "int8")
    cases = [
        (True, program(fits, 0.5, full[:fits], one, none, none)),
        (False, program(fits + 1, 0.5, full, one, none, none)),
        (True, program(32, 0.5, small, one, none, none)),
        (False, program(32, np.inf, small, one, none, none)),
        (False, program(32, np.nan, small, one, none, none)),
        (False, program(32, 0.5, small, np.array(np.inf, "float32"), none, none)),
        (False, program(32, 0.5, small, rng.random(32).astype("float32"), none, none)),
        (False, program(32, 0.5, small, one, np.array(0.5, "float32"), none)),
        (False, program(32, 0.5, small, one, none, np.array(0.5, "float32"))),
        (True, program(32, 0.5, small, one, np.array(3, "float32"), np.array(-2, "float32"))),
    ]
    for i, (taken, module) in enumerate(cases):
        assert (KERNEL in script(module)) == taken, i
        k = small.shape[0] if i > 1 else fits + i
        x = np.full((2, k), 255, "uint8")
        want = np.asarray(pliant.compile(module, kernels="off")(x))
        np.testing.assert_allclose(np.asarray(pliant.compile(module)(x)), want, rtol=1e-4)


def test_reads_stay_before_writes() -> None:
    """Checks that reads are not moved across writes: in-place calls overwrite the left operand and a scale factor after the
    integer matmul and before the operators that scale its sums.
    """
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clear(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "int8")
        for i, j in T.grid(n, 4):
            A[i, j] = T.int8(1)

    @T.prim_func(private=True)
    def grow(s: T.Buffer((1,), "float32")):
        for i in range(1):
            s[i] = s[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", 4), "int8"), s: R.Tensor((1,), "float32")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            d = R.dequantize(x, s, R.const(1, "int8"))
            w = R.dequantize(W, R.const(0.5, "float32"), R.const(0, "int8"))
            y = R.matmul(d, w)
            a = R.matmul(x, W, out_dtype="int32")
            b = R.astype(a, "float32")
            e = R.call_tir_inplace(cls.clear, (x,), [0], R.Tensor((n, 4), "int8"))
            f = R.call_tir_inplace(cls.grow, (s,), [0], R.Tensor((1,), "float32"))
            z = R.multiply(b, s)
            v = R.matmul(d, w)
            R.output(e, f, y, z, v)
        return (e, f, y, z, v)
"""
    weights = np.arange(-6, 6, dtype="int8").reshape(4, 3)
    module = pliant.script.from_source(text, {"W": relax.const(weights)})
    x, s = np.arange(8, dtype="int8").reshape(2, 4), np.array([0.25], "float32")
    product = (x.astype("float32") - 1) @ weights * 0.125
    for kernels in ("on", "off"):
        results = pliant.compile(module, kernels=kernels)(x.copy(), s.copy())[2:]
        for got, want in zip(results, (product, x.astype("float32") @ weights * 0.5, product), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_random_programs() -> None:
    """Tests random chains of layers that quantize, multiply and apply an epilogue."""
    rng = np.random.default_rng(8)
    op, const = relax.op, relax.const
    for _ in range(25):
        bb = relax.BlockBuilder()
        k = int(rng.integers(1, 70))
        x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "float32"))
        first = k
        with bb.function("main", [x]), bb.dataflow():
            e = x
            for _ in range(int(rng.integers(1, 4))):
                n = int(rng.integers(1, 80))
                left, right = (str(rng.choice(["int8", "uint8"])) for _ in range(2))
                scale, zero = const(np.float32(rng.random() / 8 + 0.01)), const(np.array(rng.integers(0, 100), left))
                q = bb.emit(op.quantize(e, scale, zero, out_dtype=left))
                a = bb.emit(op.dequantize(q, scale, zero))
                linear, wide = bool(rng.integers(2)), bool(rng.integers(2))
                size = (n,) if wide else ()
                w = integers(rng, (n, k) if linear else (k, n), right)
                parts = [const(w), const(rng.random(size).astype("float32") / k), const(integers(rng, size, right))]
                v = bb.emit(op.dequantize(*parts, axis=0 if linear else 1))
                bias = rng.standard_normal(n).astype("float32")
                if linear and rng.integers(2):
                    e = bb.emit(op.linear(a, v, const(bias)))
                else:
                    e = bb.emit(op.linear(a, v) if linear else op.matmul(a, v))
                    e = bb.emit(op.add(e, const(bias[None]))) if rng.integers(2) else e
                follow = rng.integers(4)
                if follow == 0:
                    e = bb.emit(op.nn.relu(e))
                elif follow == 1:
                    e = bb.emit(op.clip(e, -0.5, 1.5))
                elif follow == 2:
                    e = bb.emit(op.add(e, e))
                k = n
            gv = bb.emit_output(op.negative(e))
            bb.emit_func_output(gv)
        module = bb.get()
        assert KERNEL in script(module)
        loops, kernels = pliant.compile(module, kernels="off"), pliant.compile(module)
        for m in (0, 1, 5):
            feed = rng.standard_normal((m, first)).astype("float32")
            want, got = np.asarray(loops(feed)), np.asarray(kernels(feed))
            assert got.shape == want.shape
            # A value of a row that is halfway between two steps of a layer may be rounded to the
            # other one.
            far = np.abs(got - want) > 1e-4 * max(1.0, float(np.abs(want).max(initial=0)))
            assert far.any(axis=1).sum() <= 1, np.abs(got - want).max()


BIASED = """
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), "int8"), b: R.Tensor((5, 8), "float32"), c: R.Tensor((), "bool")):
        if c:
            a = LEFT
            w = R.dequantize(WEIGHTS, R.const(0.5, "float32"), R.const(0, "int8"))
            r = R.linear(a, w, b)
        else:
            r = R.zeros((1, 8), "float32")
        return r
"""


@pytest.mark.parametrize("left", ['R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))', 'R.astype(x, "float32")'])
def test_mismatched_bias_is_a_run_time_error(left: str) -> None:
    """Checks that a mismatched bias is a run-time error of the original operator, in the branch
    that is taken, whichever pass handles the matmul.
    """
    weights = f'R.const({np.arange(32).reshape(8, 4).tolist()}, "int8")'
    module = from_source(BIASED.replace("LEFT", left).replace("WEIGHTS", weights))
    x, b = np.zeros((1, 4), "int8"), np.zeros((5, 8), "float32")
    for kernels in ("on", "off"):
        run = pliant.compile(module, kernels=kernels)
        assert np.asarray(run(x, b, np.array(False))).shape == (1, 8)
        with pytest.raises(pliant.ShapeError, match="relax.linear: dim 0 of bias, 5"):
            run(x, b, np.array(True))


def test_large_scales_stay_finite() -> None:
    """Tests large scales: the sums times the left scale would exceed float32 before the right scale
    reduces them.
    """
    n = pliant.tir.Var("n", "int64")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([n, 64], "int8"))
    with bb.function("main", [x]), bb.dataflow():
        zero = relax.const(np.int8(0))
        data = bb.emit(relax.op.dequantize(x, relax.const(np.float32(1e34)), zero))
        weights = bb.emit(relax.op.dequantize(relax.const(np.full((64, 20), 100, "int8")), relax.const(np.float32(1e-30)), zero))
        gv = bb.emit_output(relax.op.matmul(data, weights))
        bb.emit_func_output(gv)
    assert np.isfinite(agree(bb.get(), np.full((9, 64), 100, "int8"))).all()

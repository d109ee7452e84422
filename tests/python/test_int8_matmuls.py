"""Tests that library kernels, generated loops and the interpreter agree bit by bit on matmuls of 8-bit integers."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pliant
from pliant import relax
from pliant.testing import interpret

TYPES = ("int8", "uint8")
PAIRS = list(itertools.product(TYPES, TYPES))
SIZES = [(0, 5, 7), (1, 1, 1), (2, 0, 3), (3, 4, 16), (5, 7, 33), (6, 64, 65), (13, 130, 70)]


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def agree(module: pliant.IRModule, want: np.ndarray, *feed: np.ndarray) -> None:
    """Checks that kernels, loops and the interpreter return the expected result."""
    models = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
    for model in [*models, pliant.compile(module, kernels="off")]:
        np.testing.assert_array_equal(np.asarray(model(*feed)), want)
    zero = relax.transform.FoldConstant()(module)
    packed = relax.transform.OffloadKernels()(zero)
    assert 'T.call_kernel("matmul_int8"' in packed.script()
    if want.size < 500:
        np.testing.assert_array_equal(interpret(module, *feed).numpy(), want)
        np.testing.assert_array_equal(interpret(packed, *feed).numpy(), want)


@pytest.mark.parametrize(("m", "k", "n"), SIZES)
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_operands_of_equal_and_mixed_types(m: int, k: int, n: int, left: str, right: str) -> None:
    rng = np.random.default_rng(m + k + n)
    a, w = integers(rng, (m, k), left), integers(rng, (k, n), right)
    if k == 0:
        a = np.zeros((m, 0), left)
    bb = relax.BlockBuilder()
    rows = pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([rows, k], left))
    with bb.function("main", [x]), bb.dataflow():
        wide = bb.emit(relax.op.astype(x, "int32"))
        gv = bb.emit_output(bb.normalize(relax.op.matmul(wide, relax.const(w.astype("int32")))))
        bb.emit_func_output(gv)
    agree(bb.get(), a.astype("int32") @ w.astype("int32"), a)
    if left != right:
        return
    bb = relax.BlockBuilder()
    with bb.function("main", [x]), bb.dataflow():
        gv = bb.emit_output(bb.normalize(relax.op.matmul(x, relax.const(w), out_dtype="int32")))
        bb.emit_func_output(gv)
    agree(bb.get(), a.astype("int32") @ w.astype("int32"), a)


def model(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[str, list]], out: str, constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    def kind(dtype: str) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    infos = [helper.make_tensor_value_info(name, kind(dtype), dims) for name, (dtype, dims) in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", kind(out), None)]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("batch", [[], ["b"]])
def test_matmul_integer(left: str, right: str, columns: bool, batch: list[str]) -> None:
    rng = np.random.default_rng(7)
    k, n = 11, 37
    w = integers(rng, (k, n), right)
    w_zero = integers(rng, (n,) if columns else (), right)
    node = helper.make_node("MatMulInteger", ["a", "w", "z", "wz"], ["y"])
    program = model([node], {"a": (left, [*batch, "n", k]), "z": (left, [])}, "int32", {"w": w, "wz": w_zero})
    module = relax.frontend.onnx.from_onnx(program)
    for m in (0, 1, 4, 7):
        a = integers(rng, ((3,) if batch else ()) + (m, k), left)
        z = integers(rng, (), left)
        want = (a.astype("int32") - z.astype("int32")) @ (w.astype("int32") - w_zero.astype("int32"))
        agree(module, want, a, z)


@pytest.mark.parametrize("left", TYPES)
def test_zero_points_per_row(left: str) -> None:
    rng = np.random.default_rng(8)
    k, n, m = 9, 20, 8
    w = integers(rng, (k, n), "int8")
    node = helper.make_node("MatMulInteger", ["a", "w", "z"], ["y"])
    module = relax.frontend.onnx.from_onnx(model([node], {"a": (left, [m, k]), "z": (left, [m])}, "int32", {"w": w}))
    a, z = integers(rng, (m, k), left), integers(rng, (m,), left)
    agree(module, (a.astype("int32") - z.astype("int32")[:, None]) @ w.astype("int32"), a, z)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_qlinear_matmul(left: str, right: str) -> None:
    rng = np.random.default_rng(9)
    k, n = 40, 24
    w, zero = integers(rng, (k, n), right), integers(rng, (), right)
    scales = {"as": np.float32(0.02), "ws": np.float32(0.03), "ys": np.float32(0.9)}
    constants = {"w": w, "wz": zero, "az": integers(rng, (), left), "yz": np.array(3, left), **scales}
    names = ["a", "as", "az", "w", "ws", "wz", "ys", "yz"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    module = relax.frontend.onnx.from_onnx(model([node], {"a": (left, ["n", k])}, left, constants))
    loops = pliant.compile(module, kernels="off")
    for m in (0, 1, 9, 65, 300):
        a = integers(rng, (m, k), left)
        agree(module, np.asarray(loops(a)), a)


@pytest.mark.parametrize("result", TYPES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("n", [1, 33, 100])
def test_terms_and_requantization_are_part_of_the_kernel(result: str, columns: bool, n: int) -> None:
    rng = np.random.default_rng(n)
    k, size = 70, (n,) if columns else ()
    nodes = [
        helper.make_node("MatMulInteger", ["a", "w", "az"], ["i"]),
        helper.make_node("Add", ["i", "terms"], ["t"]),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "scale"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "ys", "yz"], ["y"]),
    ]
    constants = {
        "w": integers(rng, (k, n), "int8"),
        "az": np.uint8(7),
        "terms": rng.integers(-9000, 9000, n, dtype="int32"),
        "scale": np.asarray(rng.random(size, "float32") / 50),
        "ys": np.float32(0.9),
        "yz": np.array(3, result),
    }
    module = relax.frontend.onnx.from_onnx(model(nodes, {"a": ("uint8", ["m", k])}, result, constants))
    packed = relax.transform.OffloadKernels()(relax.transform.FoldConstant()(module)).script()
    assert packed.count("T.call_kernel(") == 1
    assert "terms=" in packed
    assert "out_scale=" in packed
    assert packed.count("R.round") == 0
    loops = pliant.compile(module, kernels="off")
    for m in (0, 1, 6, 100):
        a = integers(rng, (m, k), "uint8")
        agree(module, np.asarray(loops(a)), a)


def test_non_constant_limits_are_not_part_of_the_kernel() -> None:
    rng = np.random.default_rng(5)
    k, n = 40, 24
    nodes = [
        helper.make_node("MatMulInteger", ["a", "w"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["f", "s"], ["d"]),
        helper.make_node("Round", ["d"], ["r"]),
        helper.make_node("Max", ["r", "low"], ["m"]),
        helper.make_node("Min", ["m", "t"], ["l"]),
        helper.make_node("Min", ["l", "high"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=TensorProto.UINT8),
    ]
    constants = {"w": integers(rng, (k, n), "int8"), "s": np.float32(9)}
    constants |= {"low": np.float32(0), "high": np.float32(255)}
    inputs = {"a": ("uint8", ["m", k]), "t": ("float32", [])}
    module = relax.frontend.onnx.from_onnx(model(nodes, inputs, "uint8", constants))
    a = integers(rng, (9, k), "uint8")
    got = np.asarray(pliant.compile(module)(a, np.float32(50)))
    assert got.max() == 50
    np.testing.assert_array_equal(got, np.asarray(pliant.compile(module, kernels="off")(a, np.float32(50))))


def test_dynamic_quantization() -> None:
    rng = np.random.default_rng(10)
    k, n = 64, 48
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["both"]),
        helper.make_node("Mul", ["f", "both"], ["y"]),
    ]
    w = integers(rng, (k, n), "int8")
    constants = {"w": w, "wz": np.int8(0), "ws": np.float32(0.01)}
    module = relax.frontend.onnx.from_onnx(model(nodes, {"x": ("float32", ["n", k])}, "float32", constants))
    loops = pliant.compile(module, kernels="off")
    for m in (1, 2, 7):
        x = rng.standard_normal((m, k)).astype("float32")
        want = np.asarray(loops(x))
        agree(module, want, x)
        np.testing.assert_allclose(want, x @ (w * np.float32(0.01)), atol=0.2)


def test_sums_wrap_around_and_zero_points_may_be_large() -> None:
    rng = np.random.default_rng(11)
    k, n = 300, 17
    w = integers(rng, (k, n), "uint8")
    bb = relax.BlockBuilder()
    rows = pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([rows, k], "uint8"))
    z = relax.Var("z", relax.TensorStructInfo([1, 1], "int32"))
    with bb.function("main", [x, z]), bb.dataflow():
        wide = bb.emit(relax.op.astype(x, "int32"))
        centred = bb.emit(relax.op.subtract(wide, z))
        gv = bb.emit_output(bb.normalize(relax.op.matmul(centred, relax.const(w.astype("int32")))))
        bb.emit_func_output(gv)
    a = integers(rng, (5, k), "uint8")
    for zero in (0, 255, 2**31 - 1, -(2**31)):
        big = np.array([[zero]], "int32")
        want = (a.astype("int64") - zero) @ w.astype("int64")
        agree(bb.get(), want.astype("int32"), a, big)


def test_reads_stay_before_writes() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clear(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "int8")
        for i, j in T.grid(n, 4):
            A[i, j] = T.int8(1)

    @R.function
    def main(x: R.Tensor(("n", 4), "int8")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            a = R.astype(x, "int32")
            w = R.call_tir_inplace(cls.clear, (x,), [0], R.Tensor((n, 4), "int8"))
            y = R.matmul(a, W)
            R.output(w, y)
        return (w, y)
"""
    weights = np.arange(12, dtype="int32").reshape(4, 3)
    module = pliant.script.from_source(text, {"W": relax.const(weights)})
    x = np.arange(8, dtype="int8").reshape(2, 4)
    for kernels in ("on", "off"):
        _, y = pliant.compile(module, kernels=kernels)(x.copy())
        np.testing.assert_array_equal(np.asarray(y), x.astype("int32") @ weights)


@pytest.mark.parametrize("zeros", ["none", "tensor", "columns"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "symbolic"])
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_non_constant_right_operands(left: str, right: str, known: bool, zeros: str) -> None:
    for m, k, n in SIZES:
        rng = np.random.default_rng(m + k + n)
        a, w = integers(rng, (m, k), left), integers(rng, (k, n), right)
        zero = {"none": None, "tensor": (), "columns": (n,)}[zeros]
        bb = relax.BlockBuilder()
        rows, inner, columns = (pliant.tir.Var(name, "int64") for name in "mkn")
        dims = [k, n] if known else [inner, columns]
        x = relax.Var("x", relax.TensorStructInfo([rows, dims[0]], left))
        y = relax.Var("y", relax.TensorStructInfo(dims, right))
        params, feed, offset = [x, y], [a, w], np.zeros((), "int32")
        if zero is not None:
            params.append(relax.Var("z", relax.TensorStructInfo([dims[1]] if zero else [], "int32")))
            offset = rng.integers(-128, 256, zero).astype("int32")
            feed.append(offset)
        with bb.function("main", params), bb.dataflow():
            wide = [bb.emit(relax.op.astype(e, "int32")) for e in (x, y)]
            if zero is not None:
                wide[1] = bb.emit(relax.op.subtract(wide[1], params[2]))
            gv = bb.emit_output(bb.normalize(relax.op.matmul(*wide)))
            bb.emit_func_output(gv)
        want = a.astype("int32") @ (w.astype("int32") - offset)
        agree(bb.get(), want, *feed)


def test_transposed_non_constant_operand() -> None:
    rng = np.random.default_rng(3)
    a, w = integers(rng, (5, 70), "uint8"), integers(rng, (90, 70), "int8")
    bb = relax.BlockBuilder()
    rows = pliant.tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo([rows, 70], "uint8"))
    y = relax.Var("y", relax.TensorStructInfo([90, 70], "int8"))
    with bb.function("main", [x, y]), bb.dataflow():
        transposed = bb.emit(relax.op.permute_dims(y))
        wide = [bb.emit(relax.op.astype(e, "int32")) for e in (x, transposed)]
        gv = bb.emit_output(bb.normalize(relax.op.matmul(*wide)))
        bb.emit_func_output(gv)
    agree(bb.get(), a.astype("int32") @ w.T.astype("int32"), a, w)

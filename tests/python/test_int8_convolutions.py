"""Tests that library kernels, generated loops, the interpreter and the definition agree bit by bit on convolutions of 8-bit
integers."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import pliant
from pliant import relax
from pliant.testing import interpret

TYPES = ("int8", "uint8")


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[str, list]], out: str, constants: dict[str, np.ndarray]
) -> pliant.IRModule:
    def kind(dtype: str) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    infos = [helper.make_tensor_value_info(name, kind(dtype), dims) for name, (dtype, dims) in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", kind(out), None)]
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, outputs, initializers)
    return relax.frontend.onnx.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


KERNEL = 'call_kernel("conv_int8"'


def script(module: pliant.IRModule) -> str:
    return relax.get_pipeline("zero")(module).script()


def convolved(x: np.ndarray, w: np.ndarray, attrs: dict) -> np.ndarray:
    """Computes the convolution by its definition, without zero points, in int64."""
    dims = x.ndim - 2
    strides, dilations = attrs.get("strides", [1] * dims), attrs.get("dilations", [1] * dims)
    pads, groups = attrs.get("pads", [0] * 2 * dims), attrs.get("group", 1)
    x = np.pad(x.astype("int64"), [(0, 0), (0, 0), *((pads[d], pads[dims + d]) for d in range(dims))])
    kernel = w.shape[2:]
    reach = [(kernel[d] - 1) * dilations[d] + 1 for d in range(dims)]
    sizes = [(x.shape[2 + d] - reach[d]) // strides[d] + 1 for d in range(dims)]
    filters, own = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), "int64")
    for tap in itertools.product(*map(range, kernel)):
        places = (
            slice(tap[d] * dilations[d], tap[d] * dilations[d] + (sizes[d] - 1) * strides[d] + 1, strides[d]) for d in range(dims)
        )
        part = x[(slice(None), slice(None), *places)]
        for g in range(groups):
            of_filters = w[(slice(g * filters, (g + 1) * filters), slice(None), *tap)].astype("int64")
            rows = part[:, g * own : (g + 1) * own]
            y[:, g * filters : (g + 1) * filters] += np.einsum("bc...,fc->bf...", rows, of_filters)
    return y


def agree(module: pliant.IRModule, want: np.ndarray, *feed: np.ndarray) -> None:
    """Checks that kernels, loops and the interpreter return the expected result."""
    models = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
    for compiled in [*models, pliant.compile(module, kernels="off")]:
        np.testing.assert_array_equal(np.asarray(compiled(*feed)), want)
    if want.size < 400:
        packed = relax.get_pipeline("zero")(module)
        np.testing.assert_array_equal(interpret(packed, *feed).numpy(), want)


CASES = {
    "plain": ((5, 7), (3, 3), {}),
    "padded": ((5, 7), (3, 3), {"pads": [1, 1, 1, 1]}),
    "unlike": ((5, 6), (3, 2), {"pads": [2, 0, 1, 3], "strides": [2, 1]}),
    "strides": ((9, 9), (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 3]}),
    "dilated": ((9, 8), (3, 3), {"pads": [2, 3, 2, 3], "dilations": [2, 3]}),
    "one": ((4, 5), (1, 1), {}),
    "one strided": ((5, 5), (1, 1), {"strides": [2, 2]}),
    "line": ((11,), (4,), {"pads": [3, 1]}),
    "space": ((3, 4, 5), (2, 3, 2), {"pads": [1, 1, 0, 0, 1, 1]}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(TYPES, TYPES)))
def test_conv_integer(case: str, left: str, right: str) -> None:
    rng = np.random.default_rng(len(case))
    size, kernel, attrs = CASES[case]
    w, w_zero = integers(rng, (6, 5, *kernel), right), integers(rng, (6,), right)
    if left == "int8":
        w_zero = w_zero[:1].reshape(())
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"], **attrs)
    dims = ["n", 5, *(f"d{d}" for d in range(len(size)))]
    module = model([node], {"x": (left, dims), "z": (left, [])}, "int32", {"w": w, "wz": w_zero})
    assert KERNEL in script(module)
    for batch in (0, 1, 2):
        x, z = integers(rng, (batch, 5, *size), left), integers(rng, (), left)
        shift = w_zero.astype("int64").reshape(-1, *[1] * (w.ndim - 1)) if w_zero.ndim else int(w_zero)
        want = convolved(x.astype("int64") - int(z), w.astype("int64") - shift, attrs)
        agree(module, want.astype("int32"), x, z)


@pytest.mark.parametrize(("channels", "filters", "groups"), [(8, 8, 8), (21, 21, 21), (6, 4, 2), (4, 12, 4), (1, 3, 1)])
@pytest.mark.parametrize("left", TYPES)
def test_groups(channels: int, filters: int, groups: int, left: str) -> None:
    rng = np.random.default_rng(channels)
    attrs = {"pads": [1, 1, 1, 1], "strides": [1, 2], "group": groups}
    w = integers(rng, (filters, channels // groups, 3, 3), "int8")
    zero = np.array(9, left)
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], **attrs)
    module = model([node], {"x": (left, ["n", channels, "h", "w"])}, "int32", {"w": w, "z": zero})
    assert KERNEL in script(module)
    for size in ((0, 4, 5), (1, 1, 1), (2, 5, 6)):
        x = integers(rng, (size[0], channels, *size[1:]), left)
        agree(module, convolved(x.astype("int64") - 9, w, attrs).astype("int32"), x)


def test_long_sums_do_not_saturate() -> None:
    rng = np.random.default_rng(3)
    w = np.full((3, 600, 9, 9), -128, "int8")
    x = np.full((1, 600, 9, 9), 255, "uint8")
    x[0, 0] = integers(rng, (9, 9), "uint8")
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"])
    module = model([node], {"x": ("uint8", ["n", 600, "h", "w"])}, "int32", {"w": w})
    want = convolved(x, w, {})
    assert abs(int(want.min())) < 2**31
    assert np.array_equal(np.asarray(pliant.compile(module)(x)), want.astype("int32"))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("left", "out"), list(itertools.product(TYPES, TYPES)))
def test_qlinear_conv(columns: bool, bias: bool, left: str, out: str) -> None:
    """Tests two quantized layers with a pool between them: only the kernel calls, the pool, and
    transposes at both ends remain.
    """
    rng = np.random.default_rng(4)
    scales = (rng.random(20 if columns else ()) + 0.5).astype("float32") / 500
    constants = {
        "xs": np.float32(0.02),
        "xz": np.array(3, left),
        "w": integers(rng, (20, 5, 3, 3), "int8"),
        "ws": scales,
        "wz": np.zeros(20 if columns else (), "int8"),
        "ys": np.float32(0.06),
        "yz": np.array(7, out),
        "b": rng.integers(-9000, 9000, 20).astype("int32"),
        "v": integers(rng, (6, 20, 1, 1), "int8"),
    }
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    more = {"vs": np.float32(0.004), "vz": np.int8(2), "zs": np.float32(0.3), "zz": np.array(1, left)}
    nodes = [
        helper.make_node("QLinearConv", names + ["b"] * bias, ["p"], pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["p"], ["q"], kernel_shape=[2, 2]),
        helper.make_node("QLinearConv", ["q", "ys", "yz", "v", "vs", "vz", "zs", "zz"], ["y"]),
    ]
    module = model(nodes, {"x": (left, ["n", 5, "h", "w"])}, left, {**constants, **more})
    text = script(module)
    assert text.count(KERNEL) == 2
    assert text.count("@T.prim_func") == 5
    for size in ((0, 4, 5), (1, 2, 2), (2, 6, 5), (1, 9, 17)):
        x = integers(rng, (size[0], 5, *size[1:]), left)
        want = np.asarray(pliant.compile(module, kernels="off")(x))
        agree(module, want, x)


@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("out", ["float32", "uint8"])
def test_convolutions_of_two_dequantized_operands(groups: int, columns: bool, out: str) -> None:
    """Tests a convolution as exporters of quantized models write it: the layer becomes one call
    that sums integers.
    """
    rng = np.random.default_rng(7)
    scales = (rng.random(8 if columns else ()) + 0.5).astype("float32") / 500
    constants = {
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "w": integers(rng, (8, 8 // groups, 3, 3), "int8"),
        "ws": scales,
        "wz": np.zeros(8 if columns else (), "int8"),
        "b": rng.normal(size=8).astype("float32"),
        "ys": np.float32(0.04),
        "yz": np.uint8(7),
    }
    attrs = {"pads": [1, 1, 1, 1], "strides": [2, 1], "group": groups}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
        helper.make_node("Conv", ["xf", "wf", "b"], ["c"], **attrs),
        helper.make_node("Relu", ["c"], ["y" if out == "float32" else "r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ][: 4 if out == "float32" else 5]
    module = model(nodes, {"x": ("uint8", ["n", 8, "h", "w"])}, out, constants)
    assert KERNEL in script(module)
    for size in ((0, 4, 5), (1, 1, 1), (2, 9, 6), (1, 16, 17)):
        x = integers(rng, (size[0], 8, *size[1:]), "uint8")
        factors = 0.02 * np.broadcast_to(scales, 8).astype("float64").reshape(-1, 1, 1)
        c = convolved(x.astype("int64") - 120, constants["w"], attrs) * factors
        want = np.maximum(c + constants["b"].reshape(-1, 1, 1), 0)
        if out == "uint8":
            want = np.clip(np.rint(want / 0.04) + 7, 0, 255)
        for kernels in ("on", "off"):
            y = np.asarray(pliant.compile(module, kernels=kernels)(x))
            assert y.dtype == out
            # If a sum is halfway between two steps, or nearly, rounding may go either way.
            near = {"rtol": 1e-5, "atol": 1e-5} if out == "float32" else {"atol": 1}
            np.testing.assert_allclose(y.astype("float64"), want, **near)
            if out == "uint8":
                assert np.mean(y != want) < 0.01 if y.size else True


def test_input_zero_points_that_padding_cannot_represent() -> None:
    """Tests zero points outside of a byte, which cannot be used as padding: the layer multiplies
    floats.
    """
    rng = np.random.default_rng(8)
    w = integers(rng, (4, 3, 3, 3), "int8")
    bb = relax.BlockBuilder()
    v = relax.Var("x", relax.TensorStructInfo([1, 3, 5, 5], "int8"))
    with bb.function("main", [v]), bb.dataflow():
        wide = bb.emit(relax.op.astype(v, "float32"))
        rest = bb.emit(relax.op.subtract(wide, relax.const(300.0, "float32")))
        weights = bb.emit(relax.op.dequantize(relax.const(w), relax.const(0.5, "float32"), relax.const(0, "int8")))
        y = bb.emit_output(relax.op.nn.conv2d(rest, weights, padding=1))
        bb.emit_func_output(y)
    module = bb.get()
    assert KERNEL not in script(module)
    x = integers(rng, (1, 3, 5, 5), "int8")
    want = convolved(x.astype("int64") - 300, w, {"pads": [1] * 4}) * 0.5
    np.testing.assert_allclose(np.asarray(pliant.compile(module)(x)), want, rtol=1e-5, atol=1e-2)


def test_non_constant_scales_and_zero_points() -> None:
    rng = np.random.default_rng(5)
    w = integers(rng, (9, 4, 3, 3), "uint8")
    inputs = {"x": ("uint8", ["n", 4, "h", "w"]), "xs": ("float32", []), "xz": ("uint8", [])}
    inputs |= {"ys": ("float32", []), "yz": ("uint8", [])}
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], pads=[1, 0, 1, 2])
    module = model([node], inputs, "uint8", {"w": w, "ws": np.float32(0.01), "wz": np.uint8(100)})
    assert KERNEL in script(module)
    x = integers(rng, (2, 4, 5, 6), "uint8")
    for scale in (0.5, 1e-6, 1e30, np.nan):
        feed = (x, np.float32(0.03), np.uint8(250), np.float32(scale), np.uint8(13))
        agree(module, np.asarray(pliant.compile(module, kernels="off")(*feed)), *feed)


def test_unsupported_convolutions_stay_loops() -> None:
    """Tests convolutions that stay loops: zero points that may be outside of a byte, with padding,
    and weights that span more than 8 bits.
    """
    rng = np.random.default_rng(6)
    x = integers(rng, (1, 3, 4, 4), "int8")
    for span, zero, pads, taken in [(200, 5, 1, True), (200, 700, 0, True), (200, 700, 1, False), (300, 5, 0, False)]:
        w = np.zeros((2, 3, 3, 3), "int32")
        w[0, 0, 0, 0] = span
        w[1] = rng.integers(-9, 9, (3, 3, 3))
        bb = relax.BlockBuilder()
        v = relax.Var("x", relax.TensorStructInfo([1, 3, 4, 4], "int8"))
        with bb.function("main", [v]), bb.dataflow():
            wide = bb.emit(relax.op.astype(v, "int32"))
            rest = bb.emit(relax.op.subtract(wide, relax.const(zero, "int32")))
            y = bb.emit_output(relax.op.nn.conv2d(rest, relax.const(w), padding=pads))
            bb.emit_func_output(y)
        module = bb.get()
        assert (KERNEL in script(module)) == taken
        want = convolved(x.astype("int64") - zero, w, {"pads": [pads] * 4})
        agree(module, want.astype("int32"), x)


def test_reads_stay_before_writes() -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clear(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 1, 4), "int8")
        for i, j in T.grid(n, 4):
            A[i, 0, j] = T.int8(1)

    @R.function
    def main(x: R.Tensor(("n", 1, 4), "int8")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            a = R.astype(x, "int32")
            w = R.call_tir_inplace(cls.clear, (x,), [0], R.Tensor((n, 1, 4), "int8"))
            y = R.nn.conv1d(a, W)
            R.output(w, y)
        return (w, y)
"""
    weights = np.arange(6, dtype="int32").reshape(2, 1, 3)
    module = pliant.script.from_source(text, {"W": relax.const(weights)})
    x = np.arange(8, dtype="int8").reshape(2, 1, 4)
    for kernels in ("on", "off"):
        _, y = pliant.compile(module, kernels=kernels)(x.copy())
        np.testing.assert_array_equal(np.asarray(y), convolved(x, weights, {}))

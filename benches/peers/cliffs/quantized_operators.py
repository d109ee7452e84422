"""Test cases for quantized operators and operators of the com.microsoft domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

from .benchmark_case import MICROSOFT, OperatorCase, Operand, grid, ints, generated, normal, uniform
from .elementwise_operators import IMAGE, PLANE
from .matmul_convolution_operators import CONVOLUTIONS, PICTURES, ROWS

WIDTH = 768
# The peer's kernels for AVX2 saturate sums of two products of wider weights.
SEVEN_BITS = (-63, 64)


def scalars(*names: str) -> dict[str, Any]:
    """Returns constants with the scale and zero point of a uint8 tensor `x`, named `xs` and
    `xz`.
    """
    return {f"{n}{s}": np.float32(0.02) if s == "s" else np.uint8(120) for n in names for s in "sz"}


def conversions() -> Iterator[OperatorCase]:
    """Yields test cases for quantization and dequantization."""
    for dtype in ("uint8", "int8", "int16", "uint16"):
        zero = np.array(3, dtype)
        yield OperatorCase(
            "QuantizeLinear", {"x": normal("n c")}, PLANE, {"s": np.float32(0.03), "z": zero}, variant=dtype, step=1
        )
        operand = {"x": ints("n c", 0, 99, dtype)}
        yield OperatorCase("DequantizeLinear", operand, PLANE, {"s": np.float32(0.03), "z": zero}, variant=dtype)
    for axis in (0, 1):
        dims = ("768 c", "n 768")[axis]
        constants = {"s": uniform("768", 0.01, 0.05), "z": ints("768", 0, 9, "int8")}
        yield OperatorCase(
            "QuantizeLinear", {"x": normal(dims)}, PLANE, constants, {"axis": axis}, variant=f"axis {axis}", step=1
        )
        yield OperatorCase(
            "DequantizeLinear", {"x": ints(dims, -99, 99, "int8")}, PLANE, constants, {"axis": axis}, variant=f"axis {axis}"
        )
    blocked = {"s": uniform("24 64", 0.01, 0.05), "z": ints("24 64", 0, 9, "int8")}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    constants = {"w": ints("768 64", -99, 99, "int8"), **blocked}
    yield OperatorCase(
        "DequantizeLinear", {"x": normal("m 768")}, ROWS, constants, nodes=nodes, variant="blocked weights", error=2e-2
    )
    half = {"s": np.float16(0.03), "z": np.uint8(3)}
    yield OperatorCase("QuantizeLinear", {"x": normal("n c", "float16")}, PLANE, half, variant="float16", step=1)
    yield OperatorCase("DynamicQuantizeLinear", {"x": normal("n c")}, PLANE, outputs=("y", "s", "z"), step=1)


def products() -> Iterator[OperatorCase]:
    """Yields test cases for integer matrix products and convolutions."""
    for kind, (a, b) in {"u8 x s8": ("uint8", "int8"), "u8 x u8": ("uint8", "uint8"), "s8 x s8": ("int8", "int8")}.items():
        weights = {"w": ints("768 768", 0, 99, b)}
        zeros = {"xz": np.array(3, a), "wz": np.array(0, b)}
        yield OperatorCase("MatMulInteger", {"x": ints("m 768", 0, 99, a)}, ROWS, {**weights, **zeros}, variant=kind)
        free = {"x": ints("m 768", 0, 99, a), "w": ints("768 n", 0, 99, b)}
        yield OperatorCase("MatMulInteger", free, grid(m=[1, 32, 512], n=[8, 64, 768]), zeros, variant=f"{kind}, non-constant")
        constants = {"xs": np.float32(0.02), "xz": zeros["xz"], "w": weights["w"], "ws": np.float32(0.01), "wz": zeros["wz"]}
        constants |= {"ys": np.float32(3), "yz": np.array(3, a)}
        yield OperatorCase("QLinearMatMul", {"x": ints("m 768", 0, 99, a)}, ROWS, constants, variant=kind, step=1)
    for variant in (
        "3x3",
        "1x1",
        "3x3 depthwise",
        "3x3 strided",
        "3x3 dilated",
        "3x3 grouped",
        "7x7 strided of 3 channels",
        "7x7 depthwise",
    ):
        channels, filters, attrs = CONVOLUTIONS[variant]
        window = " ".join(map(str, attrs["kernel_shape"]))
        weights = {"w": ints(f"{filters} {channels // attrs.get('group', 1)} {window}", *SEVEN_BITS, "int8")}
        x = {"x": ints(f"n {channels} h w", 0, 255, "uint8")}
        scales = {"ws": uniform(str(filters), 0.005, 0.02), "wz": np.zeros(filters, np.int8)}
        constants = {"xs": np.float32(0.02), "xz": np.uint8(120), **weights, **scales, "ys": np.float32(1), "yz": np.uint8(120)}
        bias = {"b": ints(str(filters), -999, 999, "int32")}
        yield OperatorCase("QLinearConv", x, PICTURES, {**constants, **bias}, attrs, variant=variant, step=1)
        if variant in ("3x3", "1x1", "3x3 depthwise"):
            signed = {"x": ints(x["x"].dims, -99, 99, "int8")}
            int8 = {**constants, "xz": np.int8(0), "yz": np.int8(0)}
            yield OperatorCase("QLinearConv", signed, PICTURES, {**int8, **bias}, attrs, variant=f"{variant} int8", step=1)
            zero = {"xz": np.uint8(120)}
            unsigned = {"w": ints(weights["w"].dims, 0, 99, "uint8")}
            yield OperatorCase("ConvInteger", x, PICTURES, {**unsigned, **zero}, attrs, variant=variant)


def microsoft_quantized() -> Iterator[OperatorCase]:
    """Yields test cases for the quantized operators of ONNX Runtime."""
    plane = {"x": ints("n c", 0, 255, "uint8")}
    two = {"a": ints("n c", 0, 255, "uint8"), "b": ints("n c", 0, 255, "uint8")}
    order: tuple[str, ...]
    for op in ("QLinearAdd", "QLinearMul"):
        order = ("a", "as", "az", "b", "bs", "bz", "ys", "yz")
        yield OperatorCase(op, two, PLANE, scalars("a", "b", "y"), domain=MICROSOFT, order=order, step=1)
        row = {"a": two["a"], "b": ints("c", 0, 255, "uint8")}
        yield OperatorCase(op, row, PLANE, scalars("a", "b", "y"), domain=MICROSOFT, order=order, step=1, variant="row")
    for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        yield OperatorCase(op, plane, PLANE, scalars("x", "y"), domain=MICROSOFT, step=1)
    image = {"x": ints("n c h w", 0, 255, "uint8")}
    yield OperatorCase("QLinearGlobalAveragePool", image, IMAGE, scalars("x", "y"), domain=MICROSOFT, step=1)
    order = ("ys", "yz", "a", "as", "az", "b", "bs", "bz")
    yield OperatorCase("QLinearConcat", two, PLANE, scalars("y", "a", "b"), {"axis": 1}, domain=MICROSOFT, order=order, step=1)
    weights = {"w": ints("768 768", *SEVEN_BITS, "int8"), "ws": uniform("768", 0.01, 0.02), "wz": np.zeros(768, np.int8)}
    order = ("x", "w", "ws", "wz")
    yield OperatorCase("DynamicQuantizeMatMul", {"x": normal("m 768")}, ROWS, weights, domain=MICROSOFT, order=order, error=1e-2)
    eight = {"x": ints("m 768", 0, 99, "uint8")}
    constants = {**weights, "xs": np.float32(0.02), "xz": np.uint8(3)}
    order = ("x", "w", "xs", "ws", "xz", "wz")
    yield OperatorCase("MatMulIntegerToFloat", eight, ROWS, constants, domain=MICROSOFT, order=order, error=1e-3)
    order = ("x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz")
    constants |= {"b": ints("768", -99, 99, "int32"), "ys": np.float32(1), "yz": np.uint8(120)}
    yield OperatorCase("QGemm", eight, ROWS, constants, domain=MICROSOFT, order=order, step=1)
    for bits, block in ((4, 32), (4, 128), (8, 32)):
        blob = block * bits // 8
        blocks = 768 // block
        packed: dict[str, Operand] = {
            "w": ints(f"768 {blocks} {blob}", 0, 255, "uint8"),
            "s": uniform(str(768 * blocks), 0.01, 0.02),
        }
        attrs = {"K": 768, "N": 768, "bits": bits, "block_size": block}
        yield OperatorCase(
            "MatMulNBits",
            {"x": normal("m 768")},
            ROWS,
            packed,
            attrs,
            domain=MICROSOFT,
            variant=f"{bits} bits by {block}",
            error=1e-2,
        )


def microsoft() -> Iterator[OperatorCase]:
    """Yields test cases for the fused operators of ONNX Runtime."""
    tokens = grid(b=[1, 2, 8], s=[4, 64, 512])
    x = {"x": normal(f"b s {WIDTH}")}
    vector = {k: normal(str(WIDTH)) for k in ("g", "h", "b")}
    yield OperatorCase("BiasGelu", x, tokens, {"b": vector["b"]}, domain=MICROSOFT)
    for op in ("FastGelu", "Gelu", "QuickGelu"):
        yield OperatorCase(op, x, tokens, domain=MICROSOFT, error=1e-3)
    skip = {**x, "k": normal(f"b s {WIDTH}")}
    yield OperatorCase("SkipLayerNormalization", skip, tokens, vector, domain=MICROSOFT)
    yield OperatorCase("SkipSimplifiedLayerNormalization", skip, tokens, {"g": vector["g"]}, domain=MICROSOFT)
    yield OperatorCase("SimplifiedLayerNormalization", x, tokens, {"g": vector["g"]})
    attrs: dict[str, Any]
    for transposed in (0, 1):
        operands = {"x": normal("b s 64"), "w": normal("b s 64" if transposed else "b 64 s")}
        attrs = {"transB": transposed, "alpha": 0.125}
        yield OperatorCase(
            "FusedMatMul", operands, tokens, attrs=attrs, domain=MICROSOFT, variant=f"transB={transposed}", error=1e-3
        )
    gemm = {"w": normal("768 768"), "c": normal("768")}
    yield OperatorCase("FusedGemm", {"x": normal("m 768")}, ROWS, gemm, {"activation": "Relu"}, domain=MICROSOFT, error=1e-3)
    conv = {"w": normal("32 32 3 3", scale=0.1), "b": normal("32")}
    attrs = {"kernel_shape": [3, 3], "pads": [1] * 4, "activation": "Relu"}
    yield OperatorCase("FusedConv", {"x": normal("n 32 h w")}, PICTURES, conv, attrs, domain=MICROSOFT, error=1e-3)
    shared = {"w": normal(f"{WIDTH} {3 * WIDTH}", scale=0.03), "bias": normal(str(3 * WIDTH))}
    attention = {**x, "m": generated("b", lambda r, s: np.full(s, 4), "int32")}
    order: tuple[str, ...] = ("x", "w", "bias", "m")
    few = grid(b=[1, 1, 2], s=[4, 64, 256])
    yield OperatorCase("Attention", x, few, shared, {"num_heads": 12}, domain=MICROSOFT, error=1e-2)
    yield OperatorCase(
        "Attention", attention, few, shared, {"num_heads": 12}, domain=MICROSOFT, order=order, variant="mask", error=1e-2
    )
    heads = {"q": normal("b s 512"), "k": normal("b t 512"), "v": normal("b t 512")}
    pairs = grid(b=[1, 1, 2], s=[4, 64, 512], t=[5, 64, 512])
    yield OperatorCase("MultiHeadAttention", heads, pairs, attrs={"num_heads": 8}, domain=MICROSOFT, error=1e-3)
    biased = {**heads, "a": normal("b 8 s t")}
    order = ("q", "k", "v", "", "", "a")
    yield OperatorCase(
        "MultiHeadAttention", biased, pairs, attrs={"num_heads": 8}, domain=MICROSOFT, order=order, variant="bias", error=1e-3
    )
    yield from embeddings(few)


def embeddings(few: list[dict[str, int]]) -> Iterator[OperatorCase]:
    """Yields test cases for grouped-query attention, rotary embeddings and token embeddings."""
    grouped = {
        "q": normal("b s 512"),
        "k": normal("b s 128"),
        "v": normal("b s 128"),
        "pk": normal("b 2 0 64"),
        "pv": normal("b 2 0 64"),
        "l": generated("b", lambda r, s: np.full(s, -1), "int32"),
        "t": generated("", lambda r, s: np.array(-1), "int32"),
    }

    class Grouped(OperatorCase):
        """A test case for grouped-query attention, whose sequence lengths are inputs."""

        def feeds(self, sizes: Any) -> dict[str, Any]:
            made_ = super().feeds(sizes)
            made_["l"] = np.full(sizes["b"], sizes["s"] - 1, np.int32)
            made_["t"] = np.array(sizes["s"], np.int32)
            return made_

    attrs = {"num_heads": 8, "kv_num_heads": 2}
    yield Grouped("GroupQueryAttention", grouped, few, attrs=attrs, domain=MICROSOFT, outputs=("y", "ok", "ov"), error=1e-3)
    rotary = {"x": normal("b 8 s 64"), "i": generated("b s", lambda r, s: np.tile(np.arange(s[1]), (s[0], 1)), "int64")}
    caches = {"c": normal("512 32"), "n": normal("512 32")}
    yield OperatorCase("RotaryEmbedding", rotary, few, caches, domain=MICROSOFT)
    ids = {"i": ints("b s", 0, 1000, "int32"), "t": ints("b s", 0, 2, "int32")}
    tables = {"w": normal("1000 256"), "p": normal("512 256"), "e": normal("2 256"), "g": normal("256"), "h": normal("256")}
    outputs = ("y", "mask")
    yield OperatorCase("EmbedLayerNormalization", ids, few, tables, domain=MICROSOFT, outputs=outputs, error=1e-3)


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from conversions()
    yield from products()
    yield from microsoft_quantized()
    yield from microsoft()

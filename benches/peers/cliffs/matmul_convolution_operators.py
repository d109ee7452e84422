"""Test cases for matrix products, einsums, convolutions and pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

from .benchmark_case import OperatorCase, grid, ints, normal
from .elementwise_operators import IMAGE

ROWS = grid(m=[1, 32, 512])
BATCHES = grid(b=[1, 4, 32], m=[4, 64, 256], k=[8, 64, 128], n=[4, 64, 256])
SQUARE = grid(m=[3, 64, 512], k=[5, 64, 512], n=[7, 64, 512])


def products() -> Iterator[OperatorCase]:
    """Yields test cases for MatMul and Gemm."""
    for k, n in ((64, 64), (768, 768), (768, 3072), (1000, 1), (1, 1000)):
        yield OperatorCase(
            "MatMul", {"x": normal(f"m {k}")}, ROWS, {"w": normal(f"{k} {n}")}, variant=f"constant {k} x {n}", error=1e-3
        )
    for dtype, error in (("float32", 1e-3), ("float16", 2e-2), ("float64", 1e-4)):
        yield OperatorCase("MatMul", {"x": normal("m k", dtype), "w": normal("k n", dtype)}, SQUARE, variant=dtype, error=error)
        operands = {"x": normal("b m k", dtype), "w": normal("b k n", dtype)}
        yield OperatorCase("MatMul", operands, BATCHES, variant=f"batched {dtype}", error=error)
        constant = {"w": normal("512 512", dtype)}
        yield OperatorCase(
            "MatMul", {"x": normal("m 512", dtype)}, ROWS, constant, variant=f"constant 512 x 512 {dtype}", error=error
        )
    for dtype in ("int32", "int64"):
        yield OperatorCase("MatMul", {"x": ints("m k", 0, 9, dtype), "w": ints("k n", 0, 9, dtype)}, SQUARE, variant=dtype)
    heads = {"x": normal("b 8 m k"), "w": normal("b 8 k n")}
    yield OperatorCase(
        "MatMul", heads, grid(b=[1, 1, 4], m=[4, 64, 256], k=[8, 64, 64], n=[4, 64, 256]), variant="4-D", error=1e-3
    )
    yield OperatorCase("MatMul", {"x": normal("b m k"), "w": normal("k n")}, BATCHES, variant="broadcast right", error=1e-3)
    yield OperatorCase("MatMul", {"x": normal("m k"), "w": normal("b k n")}, BATCHES, variant="broadcast left", error=1e-3)
    yield OperatorCase("MatMul", {"x": normal("b 1 m k"), "w": normal("4 k n")}, BATCHES, variant="broadcast both", error=1e-3)
    vectors = grid(m=[3, 256, 2048], k=[5, 256, 2048])
    yield OperatorCase("MatMul", {"x": normal("m k"), "w": normal("k")}, vectors, variant="matrix x vector", error=1e-3)
    yield OperatorCase("MatMul", {"x": normal("k"), "w": normal("k m")}, vectors, variant="vector x matrix", error=1e-3)
    yield OperatorCase("MatMul", {"x": normal("k"), "w": normal("k")}, grid(k=[5, 5000, 5000000]), variant="dot", error=1e-3)
    many = grid(b=[8, 1000, 100000])
    yield OperatorCase("MatMul", {"x": normal("b 4 4"), "w": normal("b 4 4")}, many, variant="many of 4 x 4")
    yield OperatorCase("MatMul", {"x": normal("b 1 32"), "w": normal("b 32 1")}, many, variant="many dots of 32")
    yield OperatorCase(
        "MatMul",
        {"x": normal("m k"), "w": normal("k n")},
        grid(m=[2, 4, 4], k=[9, 9999, 999999], n=[2, 4, 4]),
        variant="deep",
        error=1e-3,
    )
    yield from gemms()


def gemms() -> Iterator[OperatorCase]:
    """Yields test cases for Gemm: its transposes and optional operands."""
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        operands = {"x": normal("k m" if a else "m k"), "w": normal("n k" if b else "k n"), "c": normal("n")}
        attrs = {"transA": a, "transB": b, "alpha": 0.5, "beta": 2.0}
        yield OperatorCase("Gemm", operands, SQUARE, attrs=attrs, variant=f"transA={a} transB={b}", error=1e-3)
    constants = {"w": normal("768 768"), "c": normal("768")}
    yield OperatorCase("Gemm", {"x": normal("m 768")}, ROWS, constants, {"transB": 1}, variant="constant", error=1e-3)
    wide = {"x": normal("m k"), "w": normal("k n"), "c": normal("m 1")}
    yield OperatorCase("Gemm", wide, SQUARE, variant="column bias", error=1e-3)
    half = {"x": normal("m k", "float16"), "w": normal("k n", "float16"), "c": normal("n", "float16")}
    yield OperatorCase("Gemm", half, SQUARE, variant="float16", error=2e-2)


EINSUMS = {
    "bij,bjk->bik": ("b m k", "b k n"),
    "bhid,bhjd->bhij": ("b 4 m k", "b 4 n k"),
    "bhij,bhjd->bhid": ("b 4 m k", "b 4 k n"),
    "bihd,bjhd->bhij": ("b m 4 k", "b n 4 k"),
    "abc,cd->abd": ("b m k", "k n"),
    "bchw,bkc->bkhw": ("b k m 4", "b n k"),
    "bfnm,bfdm->bfdn": ("b 2 m k", "b 2 n k"),
    "i,j->ij": ("m", "n"),
    "bij,bij->b": ("b m k", "b m k"),
    "bij,bij->bij": ("b m k", "b m k"),
    "bij,bij->bj": ("b m k", "b m k"),
    "ij->ji": ("m n",),
    "bij->bi": ("b m n",),
    "bii->bi": ("b m m",),
    "...ij,...jk->...ik": ("b 2 m k", "b 2 k n"),
    "bi,bj,bk->bijk": ("b 32", "b 32", "b 32"),
    "ij,jk,kl->il": ("m k", "k n", "n 64"),
}


def einsums() -> Iterator[OperatorCase]:
    """Yields test cases for einsums of one, two and three operands."""
    for equation, shapes in EINSUMS.items():
        operands = {f"x{i}": normal(dims) for i, dims in enumerate(shapes)}
        yield OperatorCase("Einsum", operands, BATCHES, attrs={"equation": equation}, variant=equation, error=1e-3)


Window = dict[str, Any]
CONVOLUTIONS: dict[str, tuple[int, int, Window]] = {
    "3x3": (32, 64, {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "3x3 of 3 channels": (3, 32, {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "3x3 strided": (32, 64, {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}),
    "3x3 dilated": (32, 64, {"kernel_shape": [3, 3], "pads": [2] * 4, "dilations": [2, 2]}),
    "3x3 dilated 6": (32, 32, {"kernel_shape": [3, 3], "pads": [6] * 4, "dilations": [6, 6]}),
    "3x3 grouped": (32, 64, {"kernel_shape": [3, 3], "pads": [1] * 4, "group": 4}),
    "3x3 grouped dilated": (32, 32, {"kernel_shape": [3, 3], "pads": [2] * 4, "group": 8, "dilations": [2, 2]}),
    "3x3 depthwise": (64, 64, {"kernel_shape": [3, 3], "pads": [1] * 4, "group": 64}),
    "3x3 depthwise strided": (64, 64, {"kernel_shape": [3, 3], "pads": [1] * 4, "group": 64, "strides": [2, 2]}),
    "3x3 depthwise dilated": (64, 64, {"kernel_shape": [3, 3], "pads": [2] * 4, "group": 64, "dilations": [2, 2]}),
    "depthwise multiplier": (32, 64, {"kernel_shape": [3, 3], "pads": [1] * 4, "group": 32}),
    "7x7 depthwise": (64, 64, {"kernel_shape": [7, 7], "pads": [3] * 4, "group": 64}),
    "13x13 depthwise": (32, 32, {"kernel_shape": [13, 13], "pads": [6] * 4, "group": 32}),
    "1x1": (64, 64, {"kernel_shape": [1, 1]}),
    "1x1 strided": (64, 64, {"kernel_shape": [1, 1], "strides": [2, 2]}),
    "7x7 strided of 3 channels": (3, 32, {"kernel_shape": [7, 7], "pads": [3] * 4, "strides": [2, 2]}),
    "patches": (3, 64, {"kernel_shape": [4, 4], "strides": [4, 4]}),
    "1x7": (32, 32, {"kernel_shape": [1, 7], "pads": [0, 3, 0, 3]}),
    "7x1": (32, 32, {"kernel_shape": [7, 1], "pads": [3, 0, 3, 0]}),
    "5x5": (16, 32, {"kernel_shape": [5, 5], "pads": [2] * 4}),
    "to one channel": (64, 1, {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "asymmetric pads": (32, 32, {"kernel_shape": [3, 3], "pads": [0, 0, 1, 1], "strides": [2, 2]}),
    "SAME_UPPER": (32, 32, {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
}
PICTURES = grid(n=[1, 1, 2], h=[9, 28, 96], w=[11, 28, 96])


def convolutions() -> Iterator[OperatorCase]:
    """Yields test cases for Conv in one to three dims."""
    for variant, (channels, filters, attrs) in CONVOLUTIONS.items():
        window = " ".join(map(str, attrs["kernel_shape"]))
        weights = normal(f"{filters} {channels // attrs.get('group', 1)} {window}", scale=0.1)
        x = normal(f"n {channels} h w")
        yield OperatorCase(
            "Conv", {"x": x}, PICTURES, {"w": weights, "b": normal(str(filters))}, attrs, variant=variant, error=1e-3
        )
        if variant in ("3x3", "3x3 dilated", "3x3 depthwise", "1x1", "3x3 grouped"):
            yield OperatorCase(
                "Conv", {"x": x, "w": weights}, PICTURES, attrs=attrs, variant=f"{variant}, non-constant", error=1e-3
            )
            halves = {"x": normal(x.dims, "float16")}, {"w": normal(weights.dims, "float16", 0.1)}
            yield OperatorCase("Conv", halves[0], PICTURES, halves[1], attrs, variant=f"{variant} float16", error=2e-2)
    lines = grid(n=[1, 1, 4], h=[20, 500, 8000])
    for variant, (channels, filters, attrs) in LINES.items():
        weights = normal(f"{filters} {channels // attrs.get('group', 1)} {attrs['kernel_shape'][0]}", scale=0.1)
        yield OperatorCase(
            "Conv", {"x": normal(f"n {channels} h")}, lines, {"w": weights}, attrs, variant=f"1-D {variant}", error=1e-3
        )
    volumes = grid(n=[1, 1, 1], d=[5, 8, 16], h=[6, 16, 48], w=[7, 16, 48])
    for variant, attrs in VOLUMES.items():
        weights = normal(f"16 {16 // attrs.get('group', 1)} " + " ".join(map(str, attrs["kernel_shape"])), scale=0.1)
        yield OperatorCase(
            "Conv", {"x": normal("n 16 d h w")}, volumes, {"w": weights}, attrs, variant=f"3-D {variant}", error=1e-3
        )
    yield from transposed()


LINES: dict[str, tuple[int, int, Window]] = {
    "3": (64, 64, {"kernel_shape": [3], "pads": [1, 1]}),
    "strided": (64, 64, {"kernel_shape": [3], "pads": [1, 1], "strides": [2]}),
    "dilated": (32, 32, {"kernel_shape": [3], "pads": [8, 8], "dilations": [8]}),
    "depthwise 31": (64, 64, {"kernel_shape": [31], "pads": [15, 15], "group": 64}),
    "wide strided of one channel": (1, 64, {"kernel_shape": [10], "strides": [5]}),
    "grouped 128": (64, 64, {"kernel_shape": [19], "pads": [9, 9], "group": 16}),
}
VOLUMES: dict[str, Window] = {
    "3x3x3": {"kernel_shape": [3, 3, 3], "pads": [1] * 6},
    "3x3x3 strided": {"kernel_shape": [3, 3, 3], "pads": [1] * 6, "strides": [2, 2, 2]},
    "3x1x1": {"kernel_shape": [3, 1, 1], "pads": [1, 0, 0, 1, 0, 0]},
    "1x3x3": {"kernel_shape": [1, 3, 3], "pads": [0, 1, 1, 0, 1, 1]},
    "depthwise": {"kernel_shape": [3, 3, 3], "pads": [1] * 6, "group": 16},
}
TRANSPOSED: dict[str, Window] = {
    "2x2 strided": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "4x4 strided": {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4},
    "3x3": {"kernel_shape": [3, 3], "pads": [1] * 4},
    "3x3 strided, output padding": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]},
    "8x8 by 4": {"kernel_shape": [8, 8], "strides": [4, 4], "pads": [2] * 4},
    "3x3 by 3": {"kernel_shape": [3, 3], "strides": [3, 3]},
    "3x3 dilated": {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2] * 4},
    "4x4 depthwise": {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4, "group": 32},
    "4x4 grouped": {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1] * 4, "group": 4},
    "2x3 strided 1x2": {"kernel_shape": [2, 3], "strides": [1, 2]},
}


def transposed() -> Iterator[OperatorCase]:
    """Yields test cases for transposed convolutions."""
    sizes = grid(n=[1, 1, 2], h=[5, 14, 48], w=[7, 14, 48])
    for variant, attrs in TRANSPOSED.items():
        weights = normal(f"32 {32 // attrs.get('group', 1)} " + " ".join(map(str, attrs["kernel_shape"])), scale=0.1)
        x = {"x": normal("n 32 h w")}
        yield OperatorCase("ConvTranspose", x, sizes, {"w": weights, "b": normal("32")}, attrs, variant=variant, error=1e-3)
        if variant == "4x4 strided":
            yield OperatorCase(
                "ConvTranspose", {**x, "w": weights}, sizes, attrs=attrs, variant=f"{variant}, non-constant", error=1e-3
            )
    lines = grid(n=[1, 1, 2], h=[9, 200, 4000])
    attrs = {"kernel_shape": [16], "strides": [8], "pads": [4, 4]}
    yield OperatorCase(
        "ConvTranspose",
        {"x": normal("n 64 h")},
        lines,
        {"w": normal("64 32 16", scale=0.1)},
        attrs,
        variant="1-D 16 by 8",
        error=1e-3,
    )
    volumes = grid(n=[1, 1, 1], d=[3, 5, 8], h=[3, 8, 24], w=[4, 8, 24])
    attrs = {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}
    yield OperatorCase(
        "ConvTranspose", {"x": normal("n 16 d h w")}, volumes, {"w": normal("16 16 2 2 2")}, attrs, variant="3-D", error=1e-3
    )


POOLS: dict[str, Window] = {
    "2x2": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "3x3 strided": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4},
    "3x3": {"kernel_shape": [3, 3], "pads": [1] * 4},
    "13x13": {"kernel_shape": [13, 13], "pads": [6] * 4},
    "5x5": {"kernel_shape": [5, 5], "pads": [2] * 4},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    "dilated": {"kernel_shape": [3, 3], "dilations": [2, 2]},
    "1x2": {"kernel_shape": [1, 2], "strides": [1, 2]},
}


def pooling() -> Iterator[OperatorCase]:
    """Yields test cases for pooling windows."""
    sizes = grid(n=[1, 2, 8], c=[3, 32, 64], h=[15, 28, 64], w=[15, 28, 64])
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for variant, attrs in POOLS.items():
            yield OperatorCase(op, {"x": normal("n c h w")}, sizes, attrs=attrs, variant=variant, opset=22, error=1e-3)
    for op in ("MaxPool", "AveragePool"):
        yield OperatorCase(
            op,
            {"x": normal("n c h")},
            grid(n=[1, 2, 8], c=[3, 32, 64], h=[20, 1000, 8000]),
            attrs={"kernel_shape": [3], "strides": [2]},
            variant="1-D",
        )
        volumes = grid(n=[1, 1, 2], c=[3, 16, 32], d=[4, 8, 16], h=[6, 16, 48], w=[6, 16, 48])
        yield OperatorCase(
            op, {"x": normal("n c d h w")}, volumes, attrs={"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}, variant="3-D"
        )
        yield OperatorCase(
            op, {"x": normal("n c h w", "float16")}, sizes, attrs=POOLS["3x3 strided"], variant="float16", error=5e-3
        )
    attrs = {**POOLS["3x3"], "count_include_pad": 1}
    yield OperatorCase("AveragePool", {"x": normal("n c h w")}, sizes, attrs=attrs, variant="count_include_pad")
    yield OperatorCase("MaxPool", {"x": normal("n c h w")}, sizes, attrs=POOLS["2x2"], variant="indices", outputs=("y", "i"))
    yield OperatorCase("MaxPool", {"x": ints("n c h w", 0, 99, "uint8")}, sizes, attrs=POOLS["3x3"], variant="uint8")
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p", "i"], **POOLS["2x2"]),
        helper.make_node("MaxUnpool", ["p", "i"], ["y"], **POOLS["2x2"]),
    ]
    yield OperatorCase("MaxUnpool", {"x": normal("n c h w")}, sizes, nodes=nodes)


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from products()
    yield from einsums()
    yield from convolutions()
    yield from pooling()
    yield OperatorCase("Det", {"x": normal("b n n")}, grid(b=[2, 16, 64], n=[3, 16, 64]), error=1e-2)
    unfolded = {"x": normal("n 9*c h*w"), "s": normal("h w")}
    shape = [
        helper.make_node("Shape", ["s"], ["z"]),
        helper.make_node("Col2Im", ["x", "z", "k"], ["y"], pads=[1] * 4),
    ]
    yield OperatorCase("Col2Im", unfolded, IMAGE, {"k": np.array([3, 3])}, nodes=shape)

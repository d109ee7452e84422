"""Test cases for reductions, norms, softmax, scans, sorting and losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import helper

from .benchmark_case import OperatorCase, bools, grid, ints, generated, normal, uniform
from .elementwise_operators import IMAGE, PLANE

REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]
CUBE = grid(a=[2, 16, 64], b=[3, 32, 256], c=[5, 64, 256])
TALL = grid(n=[9, 4096, 1000000], c=[4, 4, 4])
WIDE = grid(n=[2, 2, 2], c=[9, 4096, 1000000])
TOKENS = grid(n=[1, 2, 8], s=[4, 64, 512], d=[16, 128, 768])


def reductions() -> Iterator[OperatorCase]:
    """Yields test cases for sums, extrema and norms over axes."""
    axes: dict[str, tuple[int, ...]] = {"last": (2,), "first": (0,), "middle": (1,), "outer": (0, 2), "all": (0, 1, 2)}
    for op in REDUCTIONS:
        for variant, value in axes.items():
            operand = uniform("a b c", 0.99, 1.01) if op == "ReduceProd" else uniform("a b c", 0.1, 2.0)
            constants = {"axes": np.array(value)}
            attrs = {"keepdims": int(variant == "middle")}
            yield OperatorCase(op, {"x": operand}, CUBE, constants, attrs, variant=f"{variant} axis", error=1e-3)
    for op in ("ReduceSum", "ReduceMax", "ReduceMean"):
        for dtype in ("float16", "float64", "int32", "int64"):
            operand = uniform("a b c", 0, 2, dtype) if dtype.startswith("f") else ints("a b c", 0, 9, dtype)
            for variant in ("last", "first"):
                constants = {"axes": np.array(axes[variant])}
                yield OperatorCase(op, {"x": operand}, CUBE, constants, variant=f"{dtype} {variant} axis", error=5e-3)
        yield OperatorCase(
            op, {"x": uniform("n c", 0, 1)}, TALL, {"axes": np.array([0])}, variant="of a tall matrix, columns", error=1e-3
        )
        yield OperatorCase(op, {"x": uniform("n c", 0, 1)}, TALL, {"axes": np.array([1])}, variant="of a tall matrix, rows")
        yield OperatorCase(op, {"x": uniform("n c", 0, 1)}, WIDE, {"axes": np.array([0])}, variant="of a wide matrix, columns")
        yield OperatorCase(
            op, {"x": uniform("n c", 0, 1)}, WIDE, {"axes": np.array([1])}, variant="of a wide matrix, rows", error=1e-3
        )
    yield OperatorCase("ReduceMax", {"x": bools("a b c")}, CUBE, {"axes": np.array([2])}, variant="bool")
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, 2):
            yield OperatorCase(op, {"x": normal("a b c")}, CUBE, attrs={"axis": axis}, variant=f"axis {axis}")
        yield OperatorCase(
            op, {"x": ints("a b c", 0, 9)}, CUBE, attrs={"axis": 2, "select_last_index": 1}, variant="last index, int64"
        )
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield OperatorCase(op, {"x": normal("n c h w")}, IMAGE)
    yield OperatorCase("GlobalAveragePool", {"x": normal("n c h w", "float16")}, IMAGE, variant="float16", error=5e-3)


def softmax() -> Iterator[OperatorCase]:
    """Yields test cases for Softmax and related operators."""
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (0, 1, 2):
            yield OperatorCase(op, {"x": normal("a b c")}, CUBE, attrs={"axis": axis}, variant=f"axis {axis}")
        yield OperatorCase(op, {"x": normal("n c")}, TALL, attrs={"axis": 1}, variant="of short rows")
        yield OperatorCase(op, {"x": normal("n c")}, WIDE, attrs={"axis": 1}, variant="of long rows")
    yield OperatorCase("Softmax", {"x": normal("a b c", "float16")}, CUBE, attrs={"axis": 2}, variant="float16", error=5e-3)
    yield OperatorCase("Softmax", {"x": normal("a b c", "float64")}, CUBE, attrs={"axis": 2}, variant="float64")
    yield OperatorCase("Softmax", {"x": normal("a b c")}, CUBE, attrs={"axis": 1}, variant="opset 11, flattened", opset=11)
    labels = {"x": normal("n 64"), "t": ints("n", 0, 64)}
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        sizes = grid(n=[4, 256, 65536])
        for reduction in ("mean", "sum", "none"):
            yield OperatorCase(op, labels, sizes, attrs={"reduction": reduction}, variant=reduction, error=1e-3)
        images = {"x": normal("n 21 h w"), "t": ints("n h w", 0, 21)}
        yield OperatorCase(op, images, IMAGE_SIZES, variant="images", error=1e-3)


IMAGE_SIZES = grid(n=[1, 2, 4], h=[4, 28, 128], w=[5, 28, 128])


def norms() -> Iterator[OperatorCase]:
    """Yields test cases for normalizations."""
    for width in (64, 768):
        scale = {"g": normal(str(width)), "b": normal(str(width))}
        yield OperatorCase("LayerNormalization", {"x": normal(f"n s {width}")}, TOKENS, scale, variant=f"{width}")
        half = {"g": normal(str(width), "float16"), "b": normal(str(width), "float16")}
        yield OperatorCase(
            "LayerNormalization", {"x": normal(f"n s {width}", "float16")}, TOKENS, half, variant=f"{width} float16", error=1e-2
        )
        yield OperatorCase(
            "RMSNormalization", {"x": normal(f"n s {width}")}, TOKENS, {"g": scale["g"]}, variant=f"{width}", opset=23
        )
    yield OperatorCase(
        "LayerNormalization", {"x": normal("n s d"), "g": normal("d"), "b": normal("d")}, TOKENS, variant="symbolic width"
    )
    axis = {"g": normal("64 32")}
    yield OperatorCase(
        "LayerNormalization", {"x": normal("n s 64 32")}, grid(n=[1, 2, 4], s=[2, 32, 512]), axis, {"axis": 2}, variant="axis 2"
    )
    statistics = {k: uniform("32", 0.5, 1.5) for k in ("g", "b", "m", "v")}
    yield OperatorCase("BatchNormalization", {"x": normal("n 32 h w")}, IMAGE, statistics)
    yield OperatorCase("BatchNormalization", {"x": normal("n 32")}, grid(n=[2, 256, 65536]), statistics, variant="matrix")
    pair = {k: uniform("32", 0.5, 1.5) for k in ("g", "b")}
    yield OperatorCase("InstanceNormalization", {"x": normal("n 32 h w")}, IMAGE, pair)
    yield OperatorCase(
        "InstanceNormalization", {"x": normal("n 32 h")}, grid(n=[1, 2, 8], h=[9, 999, 20000]), pair, variant="1-D"
    )
    yield OperatorCase("GroupNormalization", {"x": normal("n 32 h w")}, IMAGE, pair, {"num_groups": 8})
    yield OperatorCase("LRN", {"x": normal("n c h w")}, IMAGE, attrs={"size": 5})
    yield OperatorCase("MeanVarianceNormalization", {"x": normal("n c h w")}, IMAGE)
    for p, where in ((1, 0), (2, 0), (2, 1), (2, 2)):
        yield OperatorCase(
            "LpNormalization", {"x": normal("a b c")}, CUBE, attrs={"p": p, "axis": where}, variant=f"L{p} axis {where}"
        )


def scans() -> Iterator[OperatorCase]:
    """Yields test cases for cumulative operators."""
    for op, opset in (("CumSum", 21), ("CumProd", 26)):
        for axis in (0, 1, 2):
            operand = uniform("a b c", 0.99, 1.01)
            yield OperatorCase(op, {"x": operand}, CUBE, {"k": np.array(axis)}, variant=f"axis {axis}", opset=opset)
    attrs = {"exclusive": 1, "reverse": 1}
    yield OperatorCase(
        "CumSum", {"x": normal("a b c")}, CUBE, {"k": np.array(2)}, attrs, variant="exclusive, reverse", error=1e-3
    )
    yield OperatorCase("CumSum", {"x": ints("n c", 0, 2)}, WIDE, {"k": np.array(1)}, variant="long int64 rows")
    yield OperatorCase("CumSum", {"x": normal("n c")}, WIDE, {"k": np.array(1)}, variant="long rows", error=1e-3)


def shuffled(rand: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Returns a random permutation of 0, 1, ..., so that no two values are equal."""
    return rand.permutation(int(np.prod(shape))).reshape(shape)


def sorting() -> Iterator[OperatorCase]:
    """Yields test cases for TopK, Unique, NonZero, NonMaxSuppression and OneHot."""
    two = ("v", "i")
    for name, sizes in (("cube", CUBE), ("long rows", WIDE), ("short rows", TALL)):
        dims = "a b c" if name == "cube" else "n c"
        for k in (1, 3):
            yield OperatorCase(
                "TopK", {"x": generated(dims, shuffled)}, sizes, {"k": np.array([k])}, variant=f"{k} of {name}", outputs=two
            )
    for k in (50, 1000):
        sizes = grid(n=[1, 8, 16], c=[1000, 10000, 200000])
        yield OperatorCase(
            "TopK", {"x": generated("n c", shuffled)}, sizes, {"k": np.array([k])}, variant=f"{k} of rows", outputs=two
        )
    sizes = grid(c=[9, 1000, 500000])
    zoo_models = {"x": generated("c", shuffled, "int64"), "k": generated("1", lambda r, s: np.array([1]), "int64")}
    yield OperatorCase("TopK", zoo_models, sizes, variant="non-constant k", outputs=two)
    every = [helper.make_node("Shape", ["x"], ["k"]), helper.make_node("TopK", ["x", "k"], ["v", "i"])]
    yield OperatorCase("TopK", {"x": generated("c", shuffled)}, sizes, nodes=every, variant="whole sort", outputs=two)
    yield OperatorCase(
        "TopK", {"x": generated("a b c", shuffled)}, CUBE, {"k": np.array([2])}, {"axis": 0}, variant="axis 0", outputs=two
    )
    smallest = {"largest": 0, "axis": 1}
    yield OperatorCase(
        "TopK", {"x": generated("a b c", shuffled)}, CUBE, {"k": np.array([2])}, smallest, variant="smallest, axis 1", outputs=two
    )
    for dtype in ("int64", "float32"):
        yield OperatorCase(
            "Unique", {"x": ints("c", 0, 1000, dtype)}, grid(c=[9, 1000, 500000]), variant=dtype, outputs=("y", "i", "v", "n")
        )
    yield OperatorCase("Unique", {"x": ints("n 2", 0, 9)}, grid(n=[9, 100, 20000]), attrs={"axis": 0}, variant="rows")
    for dtype in ("float32", "int64", "bool"):
        yield OperatorCase("NonZero", {"x": ints("n c", 0, 2, dtype)}, PLANE, variant=dtype)
    yield OperatorCase("NonZero", {"x": generated("n c", lambda r, s: r.random(s) < 0.001)}, PLANE, variant="sparse")
    for axis in (-1, 0):
        constants = {"d": np.int64(64), "v": np.array([0, 1], np.float32)}
        yield OperatorCase(
            "OneHot",
            {"x": ints("n c", 0, 64)},
            grid(n=[2, 64, 256], c=[3, 64, 256]),
            constants,
            {"axis": axis},
            variant=f"axis {axis}",
        )
    yield from suppression()


def boxes(rand: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Returns random boxes in the unit square, given by their corners."""
    corner = rand.random((*shape[:-1], 2))
    return np.concatenate([corner, corner + 0.02 + 0.1 * rand.random(corner.shape)], -1)


def suppression() -> Iterator[OperatorCase]:
    """Yields test cases for NonMaxSuppression."""
    sizes = grid(n=[8, 500, 5000])
    limits = {"m": np.array([100]), "t": np.array([0.5], np.float32), "s": np.array([0.1], np.float32)}
    for classes in (1, 20):
        operands = {"b": generated("1 n 4", boxes), "c": generated(f"1 {classes} n", shuffled_scores)}
        yield OperatorCase("NonMaxSuppression", operands, sizes, limits, variant=f"{classes} classes")


def shuffled_scores(rand: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Returns distinct random scores in [0, 1)."""
    return shuffled(rand, shape) / np.prod(shape)


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from reductions()
    yield from softmax()
    yield from norms()
    yield from scans()
    yield from sorting()

"""Test cases for operators that move data: gathers, scatters, transposes, slices and shape
operators.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .benchmark_case import OperatorCase, Operand, bools, grid, ints, generated, normal
from .elementwise_operators import IMAGE, PLANE
from .reduction_operators import CUBE, TALL, shuffled

TABLE = grid(n=[3, 128, 16384], v=[7, 1000, 50000])
NARROW = grid(n=[2, 64, 512], c=[5, 64, 512])
INDEXED = grid(n=[4, 1000, 200000], v=[9, 1000, 100000])


def array(*values: int) -> np.ndarray:
    """Returns an int64 tensor constant."""
    return np.array(values, np.int64)


def joins() -> Iterator[OperatorCase]:
    """Yields test cases for Concat and Split."""
    for axis in (0, 1, 2):
        yield OperatorCase(
            "Concat", {k: normal("a b c") for k in "xyz"}, CUBE, attrs={"axis": axis}, variant=f"axis {axis}", outputs=("o",)
        )
        outputs = tuple(f"o{i}" for i in range(2))
        constants = {"s": array(1, 31)}
        x = normal(" ".join("32" if i == axis else d for i, d in enumerate("abc")))
        yield OperatorCase("Split", {"x": x}, CUBE, constants, {"axis": axis}, variant=f"axis {axis}", outputs=outputs)
    many = {f"x{i}": normal("n c") for i in range(32)}
    yield OperatorCase("Concat", many, NARROW, attrs={"axis": 1}, variant="of 32", outputs=("o",))
    parts = tuple(f"o{i}" for i in range(32))
    yield OperatorCase(
        "Split", {"x": normal("n 2048")}, PLANE, attrs={"axis": 1, "num_outputs": 32}, variant="into 32", outputs=parts
    )
    yield OperatorCase(
        "Concat", {k: ints("a b c", 0, 9, "uint8") for k in "xy"}, CUBE, attrs={"axis": 2}, variant="uint8", outputs=("o",)
    )


SLICES: dict[str, tuple[list[int], list[int], list[int], list[int]]] = {
    "last axis": ([1], [-1], [2], [1]),
    "first axis": ([1], [2**31], [0], [1]),
    "step 2 of the last axis": ([0], [2**31], [2], [2]),
    "step 2 of the first axis": ([0], [2**31], [0], [2]),
    "step 2 of all axes": ([0, 0, 0], [2**31] * 3, [0, 1, 2], [2, 2, 2]),
    "reversed last axis": ([-1], [-(2**31)], [2], [-1]),
    "reversed first axis": ([-1], [-(2**31)], [0], [-1]),
}


def slices() -> Iterator[OperatorCase]:
    """Yields test cases for Slice, Pad, Trilu and shape operators."""
    for variant, (starts, ends, axes, steps) in SLICES.items():
        constants = {"s": array(*starts), "e": array(*ends), "a": array(*axes), "t": array(*steps)}
        yield OperatorCase("Slice", {"x": normal("a b c")}, CUBE, constants, variant=variant)
    bounds = {"s": generated("1", lambda r, s: np.array([1]), "int64"), "e": generated("1", lambda r, s: np.array([-1]), "int64")}
    free = {"x": normal("a b c"), **bounds}
    yield OperatorCase("Slice", free, CUBE, {"axes": array(2)}, variant="non-constant bounds")
    for mode in ("constant", "reflect", "edge", "wrap"):
        constants = {"p": array(0, 0, 1, 2, 0, 0, 2, 1)}
        yield OperatorCase("Pad", {"x": normal("n c h w")}, IMAGE, constants, {"mode": mode}, variant=mode)
    yield OperatorCase("Pad", {"x": normal("n c h w")}, IMAGE, {"p": array(0, 0, -1, -1, 0, 0, -1, -1)}, variant="negative")
    yield OperatorCase("Pad", {"x": normal("a b c")}, CUBE, {"p": array(1, 0, 0, 0, 0, 0)}, variant="first axis")
    for upper in (0, 1):
        yield OperatorCase(
            "Trilu", {"x": normal("n c c")}, grid(n=[1, 4, 16], c=[5, 64, 512]), attrs={"upper": upper}, variant=f"upper={upper}"
        )
    yield OperatorCase("EyeLike", {"x": normal("n c")}, PLANE)
    yield OperatorCase("CenterCropPad", {"x": normal("n c h w")}, IMAGE, {"s": array(24, 80)}, {"axes": [2, 3]})
    yield OperatorCase("Compress", {"x": normal("n c"), "m": bools("n")}, PLANE, attrs={"axis": 0}, variant="axis 0")
    yield OperatorCase("Compress", {"x": normal("n c"), "m": bools("c")}, PLANE, attrs={"axis": 1}, variant="axis 1")
    lengths = generated("b", lambda r, s: np.full(s, 3), "int64")
    for time in (0, 1):
        dims = "b a c" if time else "a b c"
        x = {"x": normal(dims), "l": lengths}
        yield OperatorCase(
            "ReverseSequence",
            x,
            grid(a=[3, 256, 512], b=[3, 16, 64], c=[5, 64, 128]),
            attrs={"time_axis": time, "batch_axis": 1 - time},
            variant=f"time {time}",
        )


def transposes() -> Iterator[OperatorCase]:
    """Yields test cases for Transpose and for operators that rearrange pixels, such as DepthToSpace."""
    perm: tuple[int, ...]
    for perm in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)):
        yield OperatorCase("Transpose", {"x": normal("a b c")}, CUBE, attrs={"perm": perm}, variant=str(perm))
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (0, 1, 3, 2)):
        yield OperatorCase("Transpose", {"x": normal("n c h w")}, IMAGE, attrs={"perm": perm}, variant=str(perm))
    perm = (0, 1, 3, 2, 4, 5)
    windows = {"x": normal("n h 7 w 7 32")}
    yield OperatorCase(
        "Transpose", windows, grid(n=[1, 1, 4], h=[1, 4, 16], w=[1, 4, 16]), attrs={"perm": perm}, variant="windows"
    )
    for dtype in ("uint8", "float16", "int64", "bool"):
        yield OperatorCase("Transpose", {"x": ints("n c", 0, 2, dtype)}, PLANE, attrs={"perm": (1, 0)}, variant=f"matrix {dtype}")
    yield OperatorCase("Transpose", {"x": normal("n c")}, TALL, attrs={"perm": (1, 0)}, variant="tall matrix")
    for mode in ("DCR", "CRD"):
        yield OperatorCase("DepthToSpace", {"x": normal("n 16 h w")}, IMAGE, attrs={"blocksize": 2, "mode": mode}, variant=mode)
    yield OperatorCase(
        "SpaceToDepth",
        {"x": normal("n c 2*h 2*w")},
        grid(n=[1, 2, 8], c=[3, 32, 64], h=[3, 14, 48], w=[3, 14, 48]),
        attrs={"blocksize": 2},
    )
    yield from shapes()


def shapes() -> Iterator[OperatorCase]:
    """Yields test cases for operators that only change shapes, and for filled tensors."""
    yield OperatorCase("Reshape", {"x": normal("a b c")}, CUBE, {"s": array(0, -1)})
    yield OperatorCase("Flatten", {"x": normal("a b c")}, CUBE)
    yield OperatorCase("Squeeze", {"x": normal("a 1 c")}, CUBE, {"s": array(1)})
    yield OperatorCase("Unsqueeze", {"x": normal("a b c")}, CUBE, {"s": array(1)})
    yield OperatorCase("Shape", {"x": normal("a b c")}, CUBE)
    yield OperatorCase("Size", {"x": normal("a b c")}, CUBE)
    targets = {"rows": "1 c", "columns": "n 1", "scalar": "1 1"}
    for variant, dims in targets.items():
        size = [helper.make_node("Shape", ["z"], ["s"]), helper.make_node("Expand", ["x", "s"], ["y"])]
        yield OperatorCase("Expand", {"x": normal(dims), "z": ints("n c", 0, 2, "bool")}, PLANE, nodes=size, variant=variant)
    yield OperatorCase(
        "Tile", {"x": normal("a b c")}, grid(a=[2, 8, 16], b=[3, 16, 64], c=[5, 64, 256]), {"r": array(2, 1, 3)}, variant="2 1 3"
    )
    yield OperatorCase(
        "Tile", {"x": normal("n c")}, grid(n=[1, 64, 1024], c=[1, 8, 16]), {"r": array(1, 64)}, variant="short rows"
    )
    for dtype in ("int64", "float32"):
        size = [
            helper.make_node("Size", ["x"], ["l"]),
            helper.make_node("Cast", ["l"], ["e"], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))),
            helper.make_node("Range", ["b", "e", "d"], ["y"]),
        ]
        constants = {"b": np.array(0, dtype), "d": np.array(1, dtype)}
        yield OperatorCase("Range", {"x": bools("n c")}, PLANE, constants, nodes=size, variant=dtype)
    fill = numpy_helper.from_array(np.array([2.5], np.float32))
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["y"], value=fill)]
    yield OperatorCase("ConstantOfShape", {"x": bools("n c")}, PLANE, nodes=nodes)


def gathers() -> Iterator[OperatorCase]:
    """Yields test cases for Gather and related operators."""
    for dtype in ("int64", "int32"):
        yield OperatorCase("Gather", {"x": normal("v 64"), "i": ints("n", 0, 7, dtype)}, TABLE, variant=f"rows, {dtype}")
    yield OperatorCase("Gather", {"x": normal("v"), "i": ints("n 8", -7, 7)}, TABLE, variant="elements")
    for axis in (1, 2):
        operands = {"x": normal("a b c"), "i": ints("n", 0, 3)}
        sizes = grid(a=[2, 16, 64], b=[3, 32, 256], c=[5, 64, 256], n=[2, 32, 200])
        yield OperatorCase("Gather", operands, sizes, attrs={"axis": axis}, variant=f"axis {axis}")
    yield OperatorCase("Gather", {"x": normal("a b c")}, CUBE, {"i": np.int64(1)}, {"axis": 1}, variant="constant scalar, axis 1")
    yield OperatorCase("Gather", {"x": ints("v 64", 0, 9, "uint8"), "i": ints("n", 0, 7)}, TABLE, variant="rows, uint8")
    for axis in (0, 1):
        operands = {"x": normal("n c"), "i": ints("n c", 0, 2)}
        yield OperatorCase("GatherElements", operands, PLANE, attrs={"axis": axis}, variant=f"axis {axis}")
    yield OperatorCase("GatherND", {"x": normal("v 3 16"), "i": ints("n 2", 0, 3)}, TABLE, variant="rows")
    yield OperatorCase("GatherND", {"x": normal("v 3 5"), "i": ints("n 3", 0, 3)}, TABLE, variant="elements")
    batch = {"x": normal("n c 16"), "i": ints("n 32 1", 0, 2)}
    yield OperatorCase("GatherND", batch, grid(n=[2, 64, 2048], c=[5, 64, 256]), attrs={"batch_dims": 1}, variant="batch_dims=1")
    yield OperatorCase("ArrayFeatureExtractor", {"x": normal("n c"), "i": ints("1 3", 0, 3)}, PLANE, domain="ai.onnx.ml")


def scatters() -> Iterator[OperatorCase]:
    """Yields test cases for Scatter operators, with and without reductions."""
    for reduction in ("none", "add", "mul", "max"):
        attrs = {"reduction": reduction}
        unique = generated("v 1", shuffled, "int64")
        indices = unique if reduction == "none" else ints("v 1", 0, 9)
        rows = {"x": normal("v 32"), "i": indices, "u": normal("v 32", scale=0.1)}
        yield OperatorCase("ScatterND", rows, INDEXED, attrs=attrs, variant=f"rows, {reduction}", error=1e-3)
        permutation = generated("n", shuffled, "int64")
        flat = {"x": normal("n"), "i": permutation if reduction == "none" else ints("n", 0, 4), "u": normal("n", scale=0.1)}
        yield OperatorCase("ScatterElements", flat, INDEXED, attrs=attrs, variant=f"flat, {reduction}", error=1e-2)
        if reduction != "none":
            for axis in (0, 1):
                plane = {"x": normal("n c"), "i": ints("n c", 0, 2), "u": normal("n c", scale=0.1)}
                sizes = grid(n=[4, 128, 1024], c=[8, 256, 1024])
                yield OperatorCase(
                    "ScatterElements",
                    plane,
                    sizes,
                    attrs={**attrs, "axis": axis},
                    variant=f"axis {axis}, {reduction}",
                    error=1e-2,
                )
    yield OperatorCase(
        "ScatterND",
        {"x": normal("v 3"), "i": generated("v 1", shuffled, "int64"), "u": normal("v 3")},
        INDEXED,
        variant="short rows",
    )
    update = {"p": normal("b 4 v 64"), "u": normal("b 4 1 64"), "i": generated("b", lambda r, s: np.arange(*s), "int64")}
    sizes = grid(b=[2, 4, 8], v=[9, 128, 1024])
    yield OperatorCase("TensorScatter", update, sizes, opset=24, attrs={"axis": 2}, order=("p", "u", "i"))


def sequences() -> Iterator[OperatorCase]:
    """Yields test cases for operators on sequences of tensors."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "s"], ["q"], axis=0),
        helper.make_node("ConcatFromSequence", ["q"], ["y"], axis=1),
    ]
    yield OperatorCase("SplitToSequence", {"x": normal("4*n c")}, NARROW, {"s": np.int64(4)}, nodes=nodes, variant="and concat")
    pick = [helper.make_node("SequenceConstruct", ["a", "b"], ["q"]), helper.make_node("SequenceAt", ["q", "k"], ["y"])]
    yield OperatorCase(
        "SequenceConstruct", {"a": normal("n c"), "b": normal("n c")}, PLANE, {"k": np.int64(1)}, nodes=pick, variant="and at"
    )
    empty = [
        helper.make_node("SequenceEmpty", [], ["e"], dtype=TensorProto.FLOAT),
        helper.make_node("SequenceInsert", ["e", "a"], ["f"]),
        helper.make_node("SequenceInsert", ["f", "b"], ["q"]),
        helper.make_node("SequenceErase", ["q", "k"], ["r"]),
        helper.make_node("SequenceLength", ["r"], ["n"]),
        helper.make_node("ConcatFromSequence", ["r"], ["y"], axis=0),
    ]
    operands: dict[str, Operand] = {"a": normal("n c"), "b": normal("n c")}
    yield OperatorCase("SequenceInsert", operands, PLANE, {"k": np.int64(0)}, nodes=empty, outputs=("y", "n"))


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from joins()
    yield from slices()
    yield from transposes()
    yield from gathers()
    yield from scatters()
    yield from sequences()

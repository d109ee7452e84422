"""Test cases for elementwise operators: element types, broadcasts and casts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .benchmark_case import OperatorCase, Operand, bools, grid, ints, normal, uniform

PLANE = grid(n=[4, 256, 2048], c=[8, 256, 2048])
SMALLER = grid(n=[4, 128, 1024], c=[8, 256, 1024])
IMAGE = grid(n=[1, 2, 8], c=[3, 32, 64], h=[5, 28, 96], w=[7, 28, 96])

UNIT = ("Acos", "Asin", "Atanh")
POSITIVE = ("Log", "Sqrt", "Reciprocal")
UNARY = [
    "Abs",
    "Atan",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Asinh",
]
HALF = [
    "Abs",
    "Exp",
    "Erf",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Gelu",
    "Sqrt",
    "Log",
    "Neg",
    "Softplus",
    "HardSwish",
    "LeakyRelu",
    "Sin",
    "Cos",
]
DOUBLE = [
    "Abs",
    "Exp",
    "Erf",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Sqrt",
    "Log",
    "Neg",
    "Sin",
    "Cos",
    "Floor",
    "Round",
    "Atan",
    "Sinh",
]
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min")


def domain_of(op: str, dtype: str = "float32") -> Operand:
    """Returns an operand whose values lie within the domain of the operator."""
    if op in UNIT:
        return uniform("n c", -0.99, 0.99, dtype)
    if op in POSITIVE:
        return uniform("n c", 0.05, 4.0, dtype)
    return uniform("n c", 1.0, 4.0, dtype) if op == "Acosh" else normal("n c", dtype)


def unary() -> Iterator[OperatorCase]:
    """Yields test cases for elementwise functions of one operand."""
    for op in (*UNARY, *UNIT, *POSITIVE, "Acosh"):
        yield OperatorCase(op, {"x": domain_of(op)}, PLANE, opset=24 if op == "Swish" else 22)
    for op in HALF:
        yield OperatorCase(op, {"x": domain_of(op, "float16")}, PLANE, variant="float16", error=5e-3, opset=22)
    for op in DOUBLE:
        yield OperatorCase(op, {"x": domain_of(op, "float64")}, SMALLER, variant="float64", opset=22)
    for op, dtype in [(o, d) for o in ("Abs", "Neg", "Sign") for d in ("int8", "int32", "int64")]:
        yield OperatorCase(op, {"x": ints("n c", -100, 100, dtype)}, PLANE, variant=dtype)
    yield OperatorCase("Relu", {"x": ints("n c", -100, 100, "int32")}, PLANE, variant="int32")
    yield OperatorCase("Gelu", {"x": normal("n c")}, PLANE, attrs={"approximate": "tanh"}, variant="tanh")
    yield OperatorCase("Exp", {"x": normal("n c", scale=60.0)}, PLANE, variant="overflow and subnormals")
    yield OperatorCase("Tanh", {"x": normal("n c", scale=1e-3)}, PLANE, variant="near 0")
    yield OperatorCase("Sin", {"x": normal("n c", scale=1e5)}, PLANE, variant="large arguments", error=1e-2)
    yield OperatorCase("Not", {"x": bools("n c")}, PLANE)
    yield OperatorCase("BitwiseNot", {"x": ints("n c", 0, 100, "int32")}, PLANE)
    yield OperatorCase("Dropout", {"x": normal("n c")}, PLANE)
    yield OperatorCase("Clip", {"x": normal("n c")}, PLANE, {"lo": np.float32(-0.5), "hi": np.float32(0.5)})
    yield OperatorCase(
        "Clip", {"x": ints("n c", -99, 99, "int64")}, PLANE, {"lo": np.int64(-5), "hi": np.int64(5)}, variant="int64"
    )
    yield OperatorCase(
        "Clip", {"x": normal("n c"), "lo": normal(""), "hi": uniform("", 1, 2)}, PLANE, variant="non-constant bounds"
    )


def floats(op: str, dtype: str, a: str, b: str) -> dict[str, Operand]:
    """Returns the operands of a binary float operator. `a` and `b` are their dims, as text."""
    first = uniform(a, 0.1, 3.0, dtype) if op == "Pow" else normal(a, dtype)
    return {"a": first, "b": uniform(b, 0.5, 2.0, dtype)}


def binary() -> Iterator[OperatorCase]:
    """Yields test cases for binary arithmetic: broadcasts and element types."""
    broadcasts = {"": ("n c", "n c"), "row": ("n c", "c"), "column": ("n c", "n 1"), "outer": ("n 1", "c"), "scalar": ("n c", "")}
    for op in BINARY:
        for variant, (a, b) in broadcasts.items():
            yield OperatorCase(op, floats(op, "float32", a, b), PLANE, variant=variant)
        yield OperatorCase(op, floats(op, "float16", "n c", "n c"), PLANE, variant="float16", error=5e-3)
        yield OperatorCase(op, floats(op, "float64", "n c", "n c"), SMALLER, variant="float64")
        for dtype in ("int32", "int64", "uint8"):
            operands = {"a": ints("n c", 0, 9, dtype), "b": ints("n c", 1, 3, dtype)}
            yield OperatorCase(op, operands, PLANE, variant=dtype)
    images = {"channel": "1 c 1 1", "rows": "n c h 1", "planes": "n 1 h w", "columns": "n c 1 w"}
    for op, (variant, dims) in [(o, i) for o in ("Add", "Mul") for i in images.items()]:
        yield OperatorCase(op, floats(op, "float32", "n c h w", dims), IMAGE, variant=variant)
    yield OperatorCase("Div", {"a": normal("n c")}, PLANE, {"b": np.float32(3)}, variant="by a constant")
    yield OperatorCase("Div", {"a": ints("n c", -99, 99)}, PLANE, {"b": np.int64(7)}, variant="int64 by a constant")
    for value in (2.0, 3.0, 0.5, -1.0, 1.7):
        yield OperatorCase("Pow", {"a": uniform("n c", 0.1, 3)}, PLANE, {"b": np.float32(value)}, variant=f"constant {value}")
    yield OperatorCase("Mod", {"a": ints("n c", -99, 99), "b": ints("n c", 1, 9)}, PLANE, variant="int64")
    yield OperatorCase("Mod", {"a": ints("n c", -99, 99, "int32"), "b": ints("n c", 1, 9, "int32")}, PLANE, variant="int32")
    yield OperatorCase("Mod", {"a": normal("n c", scale=9), "b": uniform("n c", 1, 2)}, PLANE, attrs={"fmod": 1}, variant="fmod")
    yield OperatorCase("PRelu", {"x": normal("n c")}, PLANE, {"s": normal("1")}, variant="one slope")
    yield OperatorCase("PRelu", {"x": normal("n 32 h w")}, IMAGE, {"s": normal("32 1 1")}, variant="channels")
    for op in ("Sum", "Mean", "Max", "Min"):
        yield OperatorCase(op, {k: normal("n c") for k in "abc"}, PLANE, variant="of three")
    yield OperatorCase("Sum", {k: normal(d) for k, d in zip("abc", ("n c", "c", "n 1"), strict=True)}, PLANE, variant="broadcast")


def logic() -> Iterator[OperatorCase]:
    """Yields test cases for comparisons, logical and bitwise operators, and selection."""
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        yield OperatorCase(op, {"a": normal("n c"), "b": normal("n c")}, PLANE)
        yield OperatorCase(op, {"a": normal("n c"), "b": normal("c")}, PLANE, variant="row")
        yield OperatorCase(op, {"a": ints("n c", 0, 5), "b": ints("n c", 0, 5)}, PLANE, variant="int64")
    yield OperatorCase("Equal", {"a": bools("n c"), "b": bools("n c")}, PLANE, variant="bool")
    for op in ("And", "Or", "Xor"):
        yield OperatorCase(op, {"a": bools("n c"), "b": bools("n c")}, PLANE)
        yield OperatorCase(op, {"a": bools("n c"), "b": bools("n 1")}, PLANE, variant="column")
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield OperatorCase(op, {"a": ints("n c", 0, 99, "int32"), "b": ints("n c", 0, 99, "int32")}, PLANE)
    for direction in ("LEFT", "RIGHT"):
        operands = {"a": ints("n c", 0, 99, "uint32"), "b": ints("n c", 0, 5, "uint32")}
        yield OperatorCase("BitShift", operands, PLANE, attrs={"direction": direction}, variant=direction)
    wheres = {"": ("n c", "n c", "n c"), "scalar": ("n c", "n c", ""), "row": ("c", "n c", "n c"), "column": ("n 1", "n c", "c")}
    for variant, (cond, a, b) in wheres.items():
        yield OperatorCase("Where", {"m": bools(cond), "a": normal(a), "b": normal(b)}, PLANE, variant=variant)
    for dtype in ("int64", "float16", "uint8"):
        yield OperatorCase(
            "Where", {"m": bools("n c"), "a": ints("n c", 0, 9, dtype), "b": ints("n c", 0, 9, dtype)}, PLANE, variant=dtype
        )


CASTS = [
    *[("float32", t) for t in ("float16", "float64", "int8", "uint8", "int32", "int64", "bool")],
    *[(t, "float32") for t in ("float16", "float64", "int8", "uint8", "int32", "int64", "bool")],
    *[("int64", "int32"), ("int32", "int64"), ("int64", "bool"), ("bool", "int64"), ("float16", "int64"), ("float16", "float64")],
]


def casts() -> Iterator[OperatorCase]:
    """Yields test cases for conversions of element types."""
    from onnx import TensorProto, helper

    for source, target in CASTS:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        x = bools("n c") if source == "bool" else uniform("n c", 0, 99, source)
        yield OperatorCase("Cast", {"x": x}, PLANE, attrs={"to": to}, variant=f"{source} to {target}", step=0)
    yield OperatorCase("CastLike", {"x": normal("n c"), "like": ints("1", 0, 9)}, PLANE)
    nodes: list[Any] = [
        helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    yield OperatorCase("Cast", {"x": normal("n c")}, PLANE, nodes=nodes, variant="through bfloat16")
    eight = [
        helper.make_node("Cast", ["x"], ["b"], to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    yield OperatorCase("Cast", {"x": normal("n c")}, PLANE, nodes=eight, variant="through float8e4m3fn")


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from unary()
    yield from binary()
    yield from logic()
    yield from casts()

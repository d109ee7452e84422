"""Test cases for operators that few models use, and for older opsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from .benchmark_case import FLOAT, MICROSOFT, OperatorCase, branch, grid, ints, generated, normal
from .elementwise_operators import PLANE
from .reduction_operators import shuffled


def quantized() -> Iterator[OperatorCase]:
    """Yields test cases for quantization in the com.microsoft domain."""
    constants = {"s": np.float32(0.03), "z": np.uint8(120)}
    yield OperatorCase("QuantizeLinear", {"x": normal("n c")}, PLANE, constants, domain=MICROSOFT, step=1)
    yield OperatorCase("DequantizeLinear", {"x": ints("n c", 0, 255, "uint8")}, PLANE, constants, domain=MICROSOFT)


def optionals() -> Iterator[OperatorCase]:
    """Yields test cases for optionals, and for maps over sequences."""
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    yield OperatorCase("Optional", {"x": normal("n c")}, PLANE, nodes=nodes, variant="and get")
    value = helper.make_tensor_value_info("e", FLOAT, None)
    body = branch("body", [helper.make_node("Exp", ["e"], ["f"])], {"f": FLOAT}, [value])
    mapped = [
        helper.make_node("SplitToSequence", ["x", "k"], ["q"], axis=0),
        helper.make_node("SequenceMap", ["q"], ["r"], body=body),
        helper.make_node("ConcatFromSequence", ["r"], ["y"], axis=0),
    ]
    sizes = grid(n=[1, 16, 64], c=[8, 256, 2048])
    yield OperatorCase("SequenceMap", {"x": normal("4*n c")}, sizes, {"k": np.int64(4)}, nodes=mapped)


def texts() -> Iterator[OperatorCase]:
    """Yields test cases for n-grams of integers."""
    attrs: dict[str, Any] = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 0,
        "ngram_counts": [0, 4],
        "ngram_indexes": list(range(8)),
        "pool_int64s": [1, 2, 3, 4, 1, 2, 2, 3, 3, 4, 4, 1],
    }
    yield OperatorCase("TfIdfVectorizer", {"x": ints("n c", 0, 6)}, grid(n=[1, 16, 256], c=[8, 256, 2048]), attrs=attrs)


def rows() -> Iterator[OperatorCase]:
    """Yields all test cases of this file."""
    yield from quantized()
    yield from optionals()
    yield from texts()
    flat = {"x": normal("n c"), "i": generated("n 1", lambda r, s: shuffled(r, s) * 0, "int64"), "u": normal("n 1")}
    yield OperatorCase("Scatter", flat, PLANE, attrs={"axis": 1}, opset=9)
    heads = {"q": normal("b 8 s 64"), "k": normal("b 8 s 64")}
    sizes = grid(b=[1, 1, 2], s=[4, 64, 512])
    yield OperatorCase("TransposeMatMul", heads, sizes, attrs={"transB": 1}, domain=MICROSOFT, error=1e-3)
    yield OperatorCase("BitCast", {"x": normal("n c")}, PLANE, attrs={"to": TensorProto.INT32}, opset=26)
    gate = {"x": normal("n c"), "g": normal("n c")}
    yield OperatorCase("SwiGLU", gate, PLANE, opset=28)

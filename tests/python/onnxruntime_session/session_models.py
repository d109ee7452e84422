"""The ONNX models of the tests of sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensor(name: str, dims: list[int | str | None] | None, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """Declares a tensor."""
    return helper.make_tensor_value_info(name, element, dims)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], initializers: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """Builds a model of opset 18 and returns its bytes."""
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants, doc_string="of the graph")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9, **fields)
    for key, value in {"author": "somebody", "classes": "{0: 'cat'}"}.items():
        made.metadata_props.add(key=key, value=value)
    data: bytes = made.SerializeToString()
    return data


def add_model() -> bytes:
    """The model `z = in/x + in.y; w = -z`, whose names are no identifiers."""
    nodes = [helper.make_node("Add", ["in/x", "in.y"], ["z:0"]), helper.make_node("Neg", ["z:0"], ["w"])]
    inputs = [tensor("in/x", ["batch size", 2]), tensor("in.y", ["batch size", 2])]
    outputs = [tensor("z:0", ["batch size", 2]), tensor("w", None)]
    return model(nodes, inputs, outputs, producer_name="tests", domain="a.b", model_version=7, doc_string="adds")


def identity_model(element: int, dims: list[int | str | None] | None = None) -> bytes:
    """A model that returns its input."""
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    return model(nodes, [tensor("x", dims or ["n"], element)], [tensor("y", dims or ["n"], element)])


def default_model() -> bytes:
    """A model that adds `w`, an input with a value in the file."""
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    inputs = [tensor("x", ["n", 2]), tensor("w", [2])]
    return model(nodes, inputs, [tensor("y", ["n", 2])], {"w": np.array([10, 20], np.float32)})


def sequence_model() -> bytes:
    """A model that returns a sequence of its two inputs, and the second item of a sequence that it takes."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["pair"]),
        helper.make_node("SequenceAt", ["items", "one"], ["item"]),
    ]
    items = helper.make_tensor_sequence_value_info("items", TensorProto.INT64, None)
    pair = helper.make_tensor_sequence_value_info("pair", TensorProto.FLOAT, None)
    return model(nodes, [tensor("x", ["n"]), items], [pair, tensor("item", None, TensorProto.INT64)], {"one": np.int64(1)})


def broadcast_model() -> bytes:
    """A model whose inputs have the same name for dims that broadcast."""
    nodes = [helper.make_node("Add", ["x", "y"], ["z"])]
    return model(nodes, [tensor("x", ["n"]), tensor("y", ["n"])], [tensor("z", ["n"])])

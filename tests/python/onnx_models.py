"""Small ONNX models for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(
    nodes: list[Any], inputs: dict[str, Any], outputs: list[str], constants: dict[str, Any] | None = None, opset: int = 18
) -> onnx.ModelProto:
    """Builds a model. An input is given by its dims, or by its element type and dims."""
    infos = []
    for name, spec in inputs.items():
        dtype, dims = spec if isinstance(spec, tuple) else (FLOAT, spec)
        infos.append(helper.make_tensor_value_info(name, dtype, dims))
    results = [onnx.ValueInfoProto(name=o) for o in outputs]
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", infos, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)

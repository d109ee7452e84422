"""Runs the node tests again with every input reshaped to a rank that is known only at run time. The results must be the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from conformance import CASES, exclusion, model_and_data
from onnx import TensorProto, helper

import pliant

EACH = 24
"""Only every 24th test runs: the sample takes seconds, all tests would take minutes."""

NAMES = [name for kind, name in CASES if kind == "node" and not exclusion(kind, name)]


def renamed(graph: Any, names: dict[str, str]) -> None:
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
        for attr in node.attribute:
            if attr.HasField("g"):
                renamed(attr.g, names)


def open_ranks(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with each input passed as a vector and a shape, so that its rank is
    unknown.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    inputs, nodes = list(graph.input), list(graph.node)
    for group in (graph.input, graph.node, graph.value_info):
        del group[:]
    for info in inputs:
        name = info.name
        graph.input.append(helper.make_tensor_value_info(name, info.type.tensor_type.elem_type, [None]))
        graph.input.append(helper.make_tensor_value_info(name + "_shape", TensorProto.INT64, [None]))
    graph.node.extend(nodes)
    renamed(graph, {i.name: i.name + "_open" for i in inputs})
    for i in reversed(inputs):
        graph.node.insert(0, helper.make_node("Reshape", [i.name, i.name + "_shape"], [i.name + "_open"]))
    for output in graph.output:
        output.type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize("name", NAMES[::EACH])
def test_unknown_ranks(name: str) -> None:
    model, data = model_and_data(CASES["node", name])
    values = list(model.graph.input) + list(model.graph.output)
    opsets = {o.domain: o.version for o in model.opset_import}
    tensors = all(v.type.HasField("tensor_type") for v in values)
    arrays = [np.asarray(a) for a in data[0][0]] if tensors else []
    if not tensors or any(a.dtype.kind not in "biuf" for a in arrays) or len(arrays) != len(model.graph.input) or opsets.get("", 0) < 13:
        pytest.skip("its rank cannot be hidden: a Reshape in front takes numeric tensors, and all types only from opset 13")
    feeds = {i.name: a for i, a in zip(model.graph.input, arrays, strict=True)}
    flat: dict[str, Any] = {k: a.reshape(-1) for k, a in feeds.items()}
    flat |= {k + "_shape": np.array(a.shape, np.int64) for k, a in feeds.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = pliant.compile(model).run(None, feeds)
        got = pliant.compile(open_ranks(model)).run(None, flat)
    for a, b in zip(got, want, strict=True):
        assert (np.shape(a), np.asarray(a).dtype) == (np.shape(b), np.asarray(b).dtype)
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=1e-4, atol=1e-5)

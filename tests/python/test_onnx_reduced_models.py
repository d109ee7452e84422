"""Tests the reduced models that ``check`` writes for each problem of an ONNX model, also for problems downstream of others."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper

from pliant.frontend.onnx import check

from onnx_models import FLOAT, INT64, model_of, node


def test_reduced_models_of_downstream_problems_load(tmp_path: Path) -> None:
    nodes = [
        node("Foo", "x", "t", domain="custom"),
        node("Bar", "t", "u", domain="custom"),
        node("Cast", "u", "i", to=INT64),
        node("Reshape", "x i", "r"),
        node("Baz", "r x", "y", domain="custom"),
    ]
    model = model_of(nodes, {"x": ["n", 4]}, ["y"])
    model.opset_import.append(helper.make_opsetid("custom", 1))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, ["n"]))
    report = check(model, reduce=tmp_path)
    assert [f.operator for f in report.findings] == ["custom.Foo", "custom.Bar", "custom.Baz"]
    assert len(report.reduced) == 3
    for path, finding in zip(report.reduced, report.findings, strict=True):
        small = onnx.load(path)
        onnx.checker.check_model(small)
        assert len(small.graph.node) == 1
        assert [(f.operator, f.message) for f in check(small).findings] == [(finding.operator, finding.message)]

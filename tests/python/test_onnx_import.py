"""Tests the import of ONNX models: symbols are kept, shapes are folded, all unsupported features are reported at once, and
hostile files are refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import BOOL, FLOAT, INT64, model_of, node

import pliant
from pliant.frontend.onnx import from_onnx

def test_names_of_dims_become_symbols() -> None:
    nodes = [node("MatMul", "x w", "y"), node("Relu", "y", "z")]
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
    model = pliant.compile(model_of(nodes, {"x": ["batch", "2*seq", 4]}, ["z"], {"w": w}))
    assert "batch" in str(model.inputs) and "seq * 2" in str(model.inputs)
    for shape in [(1, 2, 4), (3, 0, 4), (2, 6, 4)]:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(model(x), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-5)
    with pytest.raises(pliant.ShapeError):
        model(np.zeros((1, 3, 4), np.float32))


def test_arithmetic_on_shapes_folds() -> None:
    """Checks that Shape, Gather, Concat, Unsqueeze and Reshape become a reshape with symbols."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "b"),
        node("Gather", "s last", "d"),
        node("Mul", "d two", "d2"),
        node("Unsqueeze", "b axis", "b1"),
        node("Unsqueeze", "d2 axis", "d1"),
        node("Concat", "b1 minus d1", "target", axis=0),
        node("Reshape", "x target", "y"),
    ]
    ints = {"zero": 0, "last": -1, "two": 2}
    constants: dict[str, Any] = {k: np.int64(v) for k, v in ints.items()}
    constants |= {"axis": np.array([0]), "minus": np.array([-1])}
    module = from_onnx(model_of(nodes, {"x": ["b", "s", "d"]}, ["y"], constants))
    assert "tensor_to_shape" not in module.script()
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    np.testing.assert_array_equal(pliant.compile(module)(x), x.reshape(2, 2, 6))


def test_operators_of_a_model_are_fused() -> None:
    nodes = [node("Exp", "x", "a"), node("Add", "a x", "b"), node("Relu", "b", "y")]
    module = from_onnx(model_of(nodes, {"x": ["n"]}, ["y"]))
    assert "R.dataflow()" in module.script()
    model = pliant.compile(module)
    # There may be one function that computes sizes in addition to the kernel.
    assert model.stats().kernels <= 2, model.stats()
    x = np.linspace(-2, 2, 7, dtype=np.float32)
    np.testing.assert_allclose(model(x), np.maximum(np.exp(x) + x, 0), rtol=1e-6)


def test_sizes_cannot_be_minus_one() -> None:
    """Tests the patterns of exporters for ``expand(-1, seq)`` and for splitting heads: all
    decisions are made at compile time, since a size is never -1.
    """
    nodes = [
        node("Shape", "x", "s"),
        node("Equal", "s minus", "open"),
        node("ConstantOfShape", "rank", "ones", value=helper.make_tensor("v", INT64, [1], [1])),
        node("Where", "open ones s", "target"),
        node("Expand", "x target", "wide"),
        node("Reshape", "wide heads", "y"),
    ]
    constants = {"minus": np.array([-1]), "rank": np.array([3]), "heads": np.array([0, 0, -1, 4])}
    module = from_onnx(model_of(nodes, {"x": ["b", "t", 12]}, ["y"], constants))
    text = module.script()
    assert "Select" not in text and "if_then_else" not in text and "//" not in text, text
    model = pliant.compile(module)
    for shape in [(2, 5, 12), (1, 1, 12), (0, 3, 12), (3, 0, 12)]:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(model(x), x.reshape(*shape[:2], 3, 4))


def test_reshape_with_non_constant_shape() -> None:
    nodes = [node("Reshape", "x shape", "y")]
    model = pliant.compile(model_of(nodes, {"x": ["n", "m"], "shape": (INT64, [2])}, ["y"]))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for target in ([4, 3], [-1, 6], [0, -1], [12, 1]):
        want = x.reshape([3 if t == 0 else t for t in target])
        np.testing.assert_array_equal(model(x, np.array(target)), want)


@pytest.mark.parametrize("holds", [True, False])
def test_branches_use_outer_values(holds: bool) -> None:
    def branch(op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, "x one", "r")], op, [], [onnx.ValueInfoProto(name="r")])

    nodes = [node("If", "c", "y", then_branch=branch("Add"), else_branch=branch("Sub"))]
    model = pliant.compile(
        model_of(nodes, {"c": (BOOL, []), "x": ["n"]}, ["y"], {"one": np.float32(1)})
    )
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(model(np.array(holds), x), x + 1 if holds else x - 1)


def test_model_functions_are_inlined() -> None:
    double = helper.make_function(
        "own", "Scale", ["a"], ["b"], [node("Constant", "", "k", value_float=3.0), node("Mul", "a k", "b")],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    proto = model_of([helper.make_node("Scale", ["x"], ["y"], domain="own")], {"x": ["n"]}, ["y"])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(double)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(pliant.compile(proto)(x), x * 3)


def test_all_unsupported_features_are_reported_at_once() -> None:
    nodes = [
        node("Add", "x x", "a"),
        helper.make_node("Foo", ["a"], ["b"], name="first"),
        node("Relu", "b", "c"),
        helper.make_node("Bar", ["a"], ["d"], name="second", domain="com.example"),
    ]
    with pytest.raises(pliant.UnsupportedError) as told:
        from_onnx(model_of(nodes, {"x": ["n"]}, ["c", "d"]))
    text = str(told.value)
    assert "2 problems" in text and "Foo 'first'" in text and "com.example.Bar" in text


@pytest.mark.parametrize(
    ("nodes", "part"),
    [
        ([node("Add", "x gone", "y")], "reads 'gone'"),
        ([node("Add", "x b", "y"), node("Relu", "y", "b")], "before"),
        ([node("Add", "x y", "y")], "cycle"),
        ([node("Relu", "x", "y"), node("Relu", "x", "y")], "another value"),
        ([node("Relu", "x", "z")], "no node computes the output 'y'"),
    ],
)
def test_invalid_graphs_are_rejected(nodes: list[Any], part: str) -> None:
    with pytest.raises(pliant.CompileError, match=part):
        from_onnx(model_of(nodes, {"x": ["n"]}, ["y"]))


def external(tmp_path: Path, location: str, **more: str) -> Path:
    """Writes a model whose weight is in another file. Returns the path of the model."""
    proto = model_of([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.zeros(4, np.float32)})
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        weight.external_data.add(key=key, value=value)
    path = tmp_path / "model" / "m.onnx"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_is_mapped(tmp_path: Path) -> None:
    path = external(tmp_path, "w.bin", offset="16", length="16")
    (path.parent / "w.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(pliant.compile(path)(x), np.arange(4, 8) + 1)


def test_sub_byte_elements_in_external_data(tmp_path: Path) -> None:
    """Tests external data with two elements per byte, of which the first is in the lower half."""
    nodes = [node("DequantizeLinear", "w scale", "d"), node("Add", "x d", "y")]
    proto = model_of(nodes, {"x": [5]}, ["y"], {"scale": np.float32(0.5)}, opset=21)
    weight = helper.make_tensor("w", TensorProto.INT4, [5], [-8, 7, 0, -1, 3])
    (tmp_path / "w.bin").write_bytes(bytes(16) + bytes([0x78, 0xF0, 0x03]))
    for stale in ("raw_data", "int32_data"):
        weight.ClearField(stale)
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": "16", "length": "3"}.items():
        weight.external_data.add(key=key, value=value)
    proto.graph.initializer.append(weight)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    y = pliant.compile(tmp_path / "m.onnx")(np.zeros(5, np.float32))
    np.testing.assert_array_equal(y, np.array([-4, 3.5, 0, -0.5, 1.5], np.float32))


@pytest.mark.parametrize(
    ("location", "part"),
    [("../w.bin", "leaves"), ("/etc/hostname", "absolute"), ("link.bin", "symbolic link"), ("hard.bin", "hard link"),
     ("folder", "regular"), ("none.bin", "cannot be opened"), ("short.bin", "has 8 bytes"), ("in/../../w.bin", "leaves")],
)  # fmt: skip
def test_external_data_must_be_in_the_folder(tmp_path: Path, location: str, part: str) -> None:
    path = external(tmp_path, location)
    outside = tmp_path / "w.bin"
    outside.write_bytes(bytes(16))
    os.symlink(outside, path.parent / "link.bin")
    os.link(outside, path.parent / "hard.bin")
    (path.parent / "folder").mkdir()
    (path.parent / "short.bin").write_bytes(bytes(8))
    with pytest.raises(pliant.CompileError, match=part):
        pliant.compile(path)


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08\x07", bytes(range(256)) * 4])
def test_invalid_bytes_are_rejected(data: bytes) -> None:
    with pytest.raises(pliant.CompileError, match="not an ONNX model"):
        from_onnx(data)

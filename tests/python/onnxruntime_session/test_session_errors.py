"""Tests the errors of sessions: files, bytes, arguments, inputs and outputs that are invalid. Each row states what ONNX Runtime
raises: the type of the exception and the essence of its message."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from session_models import add_model, identity_model, model, tensor

import pliant.onnxruntime

X = np.ones((3, 2), np.float32)
MODEL = add_model()

# The outputs and inputs of a run, and its error: a built-in exception or the name of one of ONNX Runtime, and a part of the message.
INVALID_RUNS: dict[str, tuple[Any, Any, type[Exception] | str, str]] = {
    "missing input": (None, {"in/x": X}, ValueError, r"Required inputs (['in.y']) are missing from input feed (['in/x'])."),
    "no input": (None, {}, ValueError, "Required inputs (['in/x', 'in.y']) are missing"),
    "unknown input": (None, {"in/x": X, "in.y": X, "q": X}, "InvalidArgument", "Invalid input name: q"),
    "misspelled input": (None, {"in_x": X, "in.y": X}, ValueError, "Required inputs (['in/x'])"),
    "unknown output": (["q"], {"in/x": X, "in.y": X}, "InvalidArgument", "Invalid output name:q"),
    "one unknown output": (["w", "q"], {"in/x": X, "in.y": X}, "InvalidArgument", "Invalid output name:q"),
    "text as outputs": ("w", {"in/x": X, "in.y": X}, TypeError, "run(): incompatible function arguments"),
    "numbers as outputs": ([1], {"in/x": X, "in.y": X}, TypeError, "run(): incompatible function arguments"),
    "lower rank": (None, {"in/x": X[0], "in.y": X}, "InvalidArgument", "Invalid rank for input: in/x Got: 1 Expected: 2"),
    "higher rank": (None, {"in/x": X[None], "in.y": X}, "InvalidArgument", "Invalid rank for input: in/x Got: 3 Expected: 2"),
    "fixed dim": (
        None,
        {"in/x": np.ones((3, 5), np.float32), "in.y": X},
        "InvalidArgument",
        "Got invalid dimensions for input: in/x for the following indices\n index: 1 Got: 5 Expected: 2\n",
    ),
    "float64": (None, {"in/x": X.astype(float), "in.y": X}, "InvalidArgument", "Actual: (tensor(double)) , expected: (tensor(float))"),
    "int64": (None, {"in/x": X.astype(int), "in.y": X}, "InvalidArgument", "Actual: (tensor(int64)) , expected: (tensor(float))"),
    "bool": (None, {"in/x": X > 0, "in.y": X}, "InvalidArgument", "Actual: (tensor(bool)) , expected: (tensor(float))"),
    "objects": (None, {"in/x": X.astype(object), "in.y": X}, "InvalidArgument", "Actual: (tensor(string)) , expected: (tensor(float))"),
    "complex": (None, {"in/x": X.astype(complex), "in.y": X}, RuntimeError, "can't be converted"),
    "text": (None, {"in/x": "abc", "in.y": X}, RuntimeError, "Input must be a list of dictionaries or a single numpy array"),
    "ragged list": (None, {"in/x": [[1.0], [1.0, 2.0]], "in.y": X}, RuntimeError, "Could not create tensor from given input list"),
    "None": (None, {"in/x": None, "in.y": X}, "Fail", "Missing Input: in/x"),
    "pairs": (None, [("in/x", X)], AttributeError, "has no attribute 'keys'"),
    "no mapping": (None, None, AttributeError, "has no attribute 'keys'"),
    "number as name": (None, {1: X, "in/x": X, "in.y": X}, TypeError, "run()"),
}


@pytest.mark.parametrize("case", INVALID_RUNS)
def test_invalid_runs(session: Any, state: ModuleType, case: str) -> None:
    outputs, feeds, kind, message = INVALID_RUNS[case]
    expected = getattr(state, kind) if isinstance(kind, str) else kind
    with pytest.raises(expected, match=re.escape(message)) as caught:
        session.run(outputs, feeds)
    assert type(caught.value) is expected
    # The session can still be used.
    assert len(session.run(None, {"in/x": X, "in.y": X})) == 2


@pytest.mark.parametrize("case", INVALID_RUNS)
def test_invalid_runs_with_options(ort: ModuleType, session: Any, state: ModuleType, case: str) -> None:
    outputs, feeds, kind, message = INVALID_RUNS[case]
    with pytest.raises(getattr(state, kind) if isinstance(kind, str) else kind, match=re.escape(message)):
        session.run(outputs, feeds, ort.RunOptions())


def test_run_options_of_another_type(session: Any) -> None:
    with pytest.raises(TypeError, match="run()"):
        session.run(None, {"in/x": X, "in.y": X}, 3)


def test_number_of_elements_changes_during_a_run(ort: ModuleType, state: ModuleType) -> None:
    """A node that fails at run time ends the run, with the reason, and not the session."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="to_shape")
    inputs = [tensor("x", ["n"]), tensor("shape", [2], TensorProto.INT64)]
    session = ort.InferenceSession(model([node], inputs, [tensor("y", ["a", "b"])]))
    x = np.ones(6, np.float32)
    with pytest.raises((state.Fail, state.RuntimeException, state.InvalidArgument), match="to_shape"):
        session.run(None, {"x": x, "shape": np.array([4, 4])})
    assert session.run(None, {"x": x, "shape": np.array([2, 3])})[0].shape == (2, 3)


def test_equal_dims_that_differ_name_the_inputs() -> None:
    session = pliant.onnxruntime.InferenceSession(MODEL)
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    with pytest.raises(InvalidArgument, match="dim 0 must equal n = 3|dim 0 must equal batch_size = 3") as caught:
        session.run(None, {"in/x": X, "in.y": X[:2]})
    assert isinstance(caught.value.__cause__, pliant.error.ShapeError)


def _file(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    return str(path)


# What is passed as the model, and the error.
INVALID_MODELS: dict[str, tuple[Callable[[Path], Any], type[Exception] | str, str]] = {
    "missing file": (lambda tmp: str(tmp / "no.onnx"), "NoSuchFile", "no.onnx failed. File doesn't exist"),
    "folder": (str, "InvalidProtobuf", "Protobuf parsing failed."),
    "empty path": (lambda _: "", TypeError, "__init__()"),
    "empty bytes": (lambda _: b"", "InvalidArgument", "No graph was found in the protobuf."),
    "garbage": (lambda _: b"garbage, not a model", "InvalidProtobuf", "Failed to load model because protobuf parsing failed."),
    "truncated bytes": (lambda _: MODEL[: len(MODEL) // 2], "InvalidProtobuf", "protobuf parsing failed."),
    "empty file": (lambda tmp: _file(tmp, b""), "InvalidArgument", "model.onnx failed:No graph was found in the protobuf."),
    "garbage in a file": (lambda tmp: _file(tmp, b"hello world"), "InvalidProtobuf", "model.onnx failed:Protobuf parsing failed."),
    "number": (lambda _: 3, TypeError, "Unable to load from type '<class 'int'>'"),
    "None": (lambda _: None, TypeError, "Unable to load from type"),
    "bytearray": (lambda _: bytearray(MODEL), TypeError, "Unable to load from type '<class 'bytearray'>'"),
}


@pytest.mark.parametrize("case", INVALID_MODELS)
def test_invalid_models(ort: ModuleType, state: ModuleType, tmp_path: Path, case: str) -> None:
    source, kind, message = INVALID_MODELS[case]
    expected = getattr(state, kind) if isinstance(kind, str) else kind
    with pytest.raises(expected, match=re.escape(message)) as caught:
        ort.InferenceSession(source(tmp_path))
    assert type(caught.value) is expected


def test_invalid_graphs(ort: ModuleType, state: ModuleType) -> None:
    unknown = model([helper.make_node("Neg", ["missing"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])])
    with pytest.raises((state.InvalidGraph, state.InvalidArgument), match="missing"):
        ort.InferenceSession(unknown)


def test_unsupported_operators() -> None:
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

    node = helper.make_node("Frobnicate", ["x"], ["y"], name="last", domain="com.example")
    graph = helper.make_graph([node], "g", [tensor("x", ["n"])], [tensor("y", ["n"])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)], ir_version=9)
    with pytest.raises(NotImplemented, match="Frobnicate 'last'"):
        pliant.onnxruntime.InferenceSession(made.SerializeToString())


def test_files_of_onnx_runtime(tmp_path: Path) -> None:
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

    path = tmp_path / "model.ort"
    path.write_bytes(b"\x18\x00\x00\x00ORTM")
    with pytest.raises(NotImplemented, match="use the .onnx file"):
        pliant.onnxruntime.InferenceSession(path)


def test_options_of_another_type(ort: ModuleType) -> None:
    with pytest.raises(TypeError):
        ort.InferenceSession(MODEL, 3)


def test_lists_are_converted_only_without_loss() -> None:
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    session = pliant.onnxruntime.InferenceSession(identity_model(TensorProto.UINT8))
    assert session.run(None, {"x": [1.0, 255]})[0].tolist() == [1, 255]
    with pytest.raises(InvalidArgument, match="expected: \\(tensor\\(uint8\\)\\)"):
        session.run(None, {"x": [1.5]})
    with pytest.raises(RuntimeError, match="Could not create tensor"):
        session.run(None, {"x": [256]})


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    session = pliant.onnxruntime.InferenceSession(MODEL)
    x = torch.ones(3, 2)
    assert session.run(["w"], {"in/x": x, "in.y": x.T.contiguous().T})[0].tolist() == [[-2, -2]] * 3
    for wrong, message in ((x.double(), "Actual: \\(tensor\\(double\\)\\)"), (x[0], "Got: 1 Expected: 2"), (x[:, :1], "index: 1 Got: 1")):
        with pytest.raises(InvalidArgument, match=message):
            session.run(None, {"in/x": wrong, "in.y": x})
    with pytest.raises(TypeError, match="requires_grad"):
        session.run(None, {"in/x": torch.ones(3, 2, requires_grad=True), "in.y": x})


def test_replaced_initializers_of_another_shape() -> None:
    from session_models import default_model

    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import Fail

    options = pliant.onnxruntime.SessionOptions()
    options.add_initializer("w", pliant.onnxruntime.OrtValue(np.ones(3, np.float32)))
    with pytest.raises(Fail, match="'w' is 2, but the tensor has size 3"):
        pliant.onnxruntime.InferenceSession(default_model(), options)


def test_exceptions_derive_from_exception(state: ModuleType) -> None:
    names = "DeviceReset EPFail EngineError Fail InvalidArgument InvalidGraph InvalidProtobuf ModelLoadCanceled ModelLoaded " \
        "ModelRequiresCompilation NoModel NoSuchFile NotFound NotImplemented RuntimeException"
    assert all(getattr(state, name).__bases__ == (Exception,) for name in names.split())

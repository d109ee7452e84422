"""Tests what sessions tell about their models: inputs and outputs with the names of the file, and the description."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from onnx import TensorProto, helper
from session_models import add_model, identity_model, model, sequence_model, tensor


def described(args: Any) -> list[tuple[str, str, list[Any]]]:
    return [(arg.name, arg.type, list(arg.shape)) for arg in args]


def test_names_types_and_dims_are_those_of_the_file(session: Any) -> None:
    shape = ["batch size", 2]
    assert described(session.get_inputs()) == [("in/x", "tensor(float)", shape), ("in.y", "tensor(float)", shape)]
    # The type of the second output is inferred.
    assert described(session.get_outputs())[0] == ("z:0", "tensor(float)", shape)
    name, kind, dims = described(session.get_outputs())[1]
    assert (name, kind, len(dims), dims[1]) == ("w", "tensor(float)", 2, 2)
    assert str(session.get_inputs()[0]) == "NodeArg(name='in/x', type='tensor(float)', shape=['batch size', 2])"


def test_dims_of_all_kinds(ort: ModuleType) -> None:
    args = [
        tensor("dims", [None, "n + 1", "n", 3]),
        tensor("scalar", []),
        tensor("rank", None),
        helper.make_tensor_sequence_value_info("sequence", TensorProto.INT64, None),
        helper.make_value_info("optional", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))),
    ]
    nodes = [helper.make_node("Shape", ["dims"], ["shape"])]
    session = ort.InferenceSession(model(nodes, args, [tensor("shape", None, TensorProto.INT64)]))
    assert described(session.get_inputs()) == [
        ("dims", "tensor(float)", [None, "n + 1", "n", 3]),
        ("scalar", "tensor(float)", []),
        ("rank", "tensor(float)", []),
        ("sequence", "seq(tensor(int64))", []),
        ("optional", "optional(tensor(float))", [2]),
    ]
    assert described(session.get_outputs()) == [("shape", "tensor(int64)", [4])]


@pytest.mark.parametrize(
    ("element", "name"),
    [("FLOAT", "float"), ("DOUBLE", "double"), ("FLOAT16", "float16"), ("BFLOAT16", "bfloat16"), ("BOOL", "bool"), ("UINT8", "uint8")],
)
def test_type_strings(ort: ModuleType, element: str, name: str) -> None:
    session = ort.InferenceSession(identity_model(getattr(TensorProto, element)))
    assert [arg.type for arg in (*session.get_inputs(), *session.get_outputs())] == [f"tensor({name})"] * 2


def test_sequences(ort: ModuleType) -> None:
    session = ort.InferenceSession(sequence_model())
    assert described(session.get_outputs())[0] == ("pair", "seq(tensor(float))", [])


def test_description(session: Any) -> None:
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.domain, meta.description) == ("tests", "graph", "a.b", "adds")
    assert (meta.graph_description, meta.version) == ("of the graph", 7)
    assert meta.custom_metadata_map == {"author": "somebody", "classes": "{0: 'cat'}"}


def test_files_and_bytes_are_equal(ort: ModuleType, tmp_path: Any) -> None:
    path = tmp_path / "model with spaces.onnx"
    path.write_bytes(add_model())
    sessions = [ort.InferenceSession(source) for source in (path, str(path), add_model())]
    assert len({str(described(session.get_inputs())) for session in sessions}) == 1


def test_memory_infos(session: Any) -> None:
    infos = session.get_input_memory_infos()
    assert [info.name for info in infos] == ["Cpu", "Cpu"] and infos[0].device_id == 0
    assert len(session.get_output_memory_infos()) == 2

"""Tests the options of sessions and runs: values, types, and those that have an effect."""

from __future__ import annotations

import json
import logging
import pathlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from session_models import add_model, default_model, model, tensor

import pliant.onnxruntime

MODEL = add_model()

DEFAULTS = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "profile_file_prefix": "onnxruntime_profile_",
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
}


def test_defaults(ort: ModuleType) -> None:
    options = ort.SessionOptions()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    assert options.execution_order == ort.ExecutionOrder.DEFAULT


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("intra_op_num_threads", 3, 3),
        ("intra_op_num_threads", np.int64(3), 3),
        ("intra_op_num_threads", -1, -1),
        ("enable_profiling", 1, True),
        ("enable_mem_pattern", False, False),
        ("logid", "x", "x"),
        ("log_severity_level", 9, 9),
    ],
)
def test_values(ort: ModuleType, name: str, value: Any, stored: Any) -> None:
    options = ort.SessionOptions()
    setattr(options, name, value)
    assert getattr(options, name) == stored and type(getattr(options, name)) is type(stored)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intra_op_num_threads", "a"),
        ("intra_op_num_threads", 2.0),
        ("graph_optimization_level", 99),
        ("execution_mode", 1),
        ("enable_profiling", "x"),
        ("optimized_model_filepath", pathlib.Path("a")),
        ("logid", 3),
    ],
)
def test_values_of_other_types(ort: ModuleType, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match="incompatible"):
        setattr(ort.SessionOptions(), name, value)


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_unknown_options(ort: ModuleType, kind: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'treads'"):
        getattr(ort, kind)().treads = 1


def test_entries(ort: ModuleType) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError, match="does not have configuration with key: other"):
        options.get_session_config_entry("other")
    with pytest.raises(RuntimeError, match="Config key is empty or longer"):
        options.add_session_config_entry("", "1")
    with pytest.raises(TypeError):
        options.add_session_config_entry("a", 1)
    run = ort.RunOptions()
    run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert run.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def test_levels_modes_and_threads_give_equal_results(ort: ModuleType) -> None:
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(MODEL, sess_options=options)
        assert session.get_session_options().intra_op_num_threads == 1
        assert session.run(["w"], {"in/x": [[1, 2]], "in.y": [[3, 4]]})[0].tolist() == [[-4, -6]]


def test_free_dimension_overrides(ort: ModuleType, state: ModuleType) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch size", 5)
    session = ort.InferenceSession(MODEL, options)
    assert [arg.shape for arg in (*session.get_inputs(), *session.get_outputs())] == [[5, 2]] * 4
    x = np.ones((5, 2), np.float32)
    assert session.run(None, {"in/x": x, "in.y": x})[0].shape == (5, 2)
    with pytest.raises(state.InvalidArgument, match="index: 0 Got: 3 Expected: 5"):
        session.run(None, {"in/x": x[:3], "in.y": x})
    with pytest.raises(TypeError):
        options.add_free_dimension_override_by_name("n", "5")


def test_free_dimension_overrides_by_denotation(ort: ModuleType) -> None:
    x = tensor("x", ["n", 2])
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    file = model([helper.make_node("Neg", ["x"], ["y"])], [x], [tensor("y", None)])
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 4)
    session = ort.InferenceSession(file, options)
    assert [arg.shape for arg in (*session.get_inputs(), *session.get_outputs())] == [[4, 2], [4, 2]]


def test_replaced_initializers(ort: ModuleType) -> None:
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(np.array([100, 200], np.float32))
    options.add_initializer("w", value)
    session = ort.InferenceSession(default_model(), options)
    assert session.run(None, {"x": np.zeros((1, 2), np.float32)})[0].tolist() == [[100, 200]]


def test_one_of_several_initializers_is_replaced(ort: ModuleType) -> None:
    nodes = [helper.make_node("Add", ["x", "a"], ["t"]), helper.make_node("Mul", ["t", "b"], ["y"])]
    constants = {"a": np.array([1], np.float32), "b": np.array([10], np.float32)}
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(np.array([7], np.float32))
    options.add_initializer("b", value)
    session = ort.InferenceSession(model(nodes, [tensor("x", ["n"])], [tensor("y", ["n"])], constants), options)
    assert session.run(None, {"x": np.array([1, 2], np.float32)})[0].tolist() == [14, 21]


def test_profile(ort: ModuleType, tmp_path: pathlib.Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(MODEL, options)
    session.run(None, {"in/x": [[1, 2]], "in.y": [[3, 4]]})
    assert session.get_profiling_start_time_ns() > 0
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "profile_20")) and path.endswith(".json")
    names = {event["name"] for event in json.loads(pathlib.Path(path).read_text())}
    assert {"session_initialization", "model_run"} <= names
    assert session.end_profiling() == ""


def test_session_without_profile(session: Any) -> None:
    assert session.end_profiling() == ""


def test_custom_operators(ort: ModuleType, state: ModuleType, tmp_path: pathlib.Path) -> None:
    with pytest.raises(state.Fail, match="Failed to load library /missing.so"):
        ort.SessionOptions().register_custom_ops_library("/missing.so")
    library = tmp_path / "library.so"
    library.write_bytes(b"")
    with pytest.raises((state.Fail, state.NotImplemented)):
        ort.SessionOptions().register_custom_ops_library(str(library))


def test_severities(ort: ModuleType) -> None:
    for severity in (0, 1, 3, 4, 2):
        ort.set_default_logger_severity(severity)
    for severity in (-1, 5):
        with pytest.raises(RuntimeError, match="Invalid logging severity"):
            ort.set_default_logger_severity(severity)
    ort.set_default_logger_verbosity(1)
    options = ort.SessionOptions()
    options.log_severity_level = 9
    with pytest.raises(RuntimeError, match="Invalid session log severity level"):
        ort.InferenceSession(MODEL, options)


def _fixed_dim_model() -> bytes:
    """A model in which a named dim can only be 1 or 8."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "table"], ["y"], name="places")]
    return model(nodes, [tensor("x", ["n", "seq"])], [tensor("y", None)], {"table": np.zeros(8, np.float32)})


def test_fixed_dims_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pliant.onnxruntime"):
        session = pliant.onnxruntime.InferenceSession(_fixed_dim_model())
    assert "the node needs seq to be 1 or 8" in caplog.text
    assert session.run(None, {"x": np.ones((2, 8), np.float32)})[0].shape == (2, 8)
    assert session.run(None, {"x": np.ones((2, 1), np.float32)})[0].shape == (2, 8)


def test_messages_below_the_severity_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    options = pliant.onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with caplog.at_level(logging.DEBUG, "pliant.onnxruntime"):
        pliant.onnxruntime.InferenceSession(_fixed_dim_model(), options)
    assert caplog.text == ""


def test_session_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    pliant.onnxruntime.InferenceSession(MODEL).run(None, {"in/x": [[1, 2]], "in.y": [[3, 4]]})
    assert capfd.readouterr() == ("", "")


def test_canceled_creation(ort: ModuleType, state: ModuleType) -> None:
    options = ort.SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(state.ModelLoadCanceled, match="canceled due to user request"):
        ort.InferenceSession(MODEL, options)
    options.set_load_cancellation_flag(False)
    ort.InferenceSession(MODEL, options)


def test_enumerations(ort: ModuleType) -> None:
    level = ort.GraphOptimizationLevel
    assert [int(getattr(level, name)) for name in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL")] == [0, 1, 99]
    assert level(99) == level.ORT_ENABLE_ALL and level.ORT_ENABLE_ALL.name == "ORT_ENABLE_ALL"
    assert int(ort.OrtMemType.DEFAULT) == 0 and ort.OrtMemType.CPU.value == ort.OrtMemType.CPU_OUTPUT.value
    assert str(ort.ExecutionMode.ORT_PARALLEL) == "ExecutionMode.ORT_PARALLEL"
    assert TensorProto.FLOAT == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # ONNX Runtime reports errors of callbacks so.
def test_callback_of_the_logger(ort: ModuleType) -> None:
    messages: list[tuple[Any, ...]] = []
    try:
        ort.set_default_logger_callback(lambda *arguments: messages.append(arguments), severity=0)
        options = ort.SessionOptions()
        options.logid = "mine"
        ort.InferenceSession(MODEL, options)
        assert messages and all([type(part) for part in message] == [int, str, str, str, str] for message in messages)
        ort.set_default_logger_callback(lambda *arguments: 1 / 0, severity=0)
        ort.InferenceSession(MODEL)
        for callback, severity in (("text", 0), (print, 5), (print, -1)):
            with pytest.raises(RuntimeError):
                ort.set_default_logger_callback(callback, severity=severity)
    finally:
        ort.set_default_logger_callback(None)
        ort.set_default_logger_severity(2 if ort is pliant.onnxruntime else 4)


def test_optimized_model(ort: ModuleType, tmp_path: pathlib.Path) -> None:
    """Pliant writes the model as it was passed, so that an application can load it from there."""
    (tmp_path / "model.onnx").write_bytes(MODEL)
    for i, source in enumerate((MODEL, tmp_path / "model.onnx")):
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / f"optimized{i}.onnx")
        ort.InferenceSession(source, options)
        session = ort.InferenceSession(options.optimized_model_filepath)
        assert session.run(["w"], {"in/x": [[1, 2]], "in.y": [[3, 4]]})[0].tolist() == [[-4, -6]]


def test_optimized_model_that_cannot_be_written(ort: ModuleType, state: ModuleType, tmp_path: pathlib.Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "missing" / "model.onnx")
    with pytest.raises(state.InvalidArgument, match="SystemError : 2"):
        ort.InferenceSession(MODEL, options)


def _model_with_options(text: str) -> bytes:
    from onnx import load_model_from_string

    loaded = load_model_from_string(MODEL)
    loaded.metadata_props.add(key="ort_config", value=text)
    data: bytes = loaded.SerializeToString()
    return data


def test_options_in_the_model(ort: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _model_with_options('{"session_options": {"intra_op_num_threads": 2, "graph_optimization_level": 1}}')
    assert ort.InferenceSession(file).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    options = ort.InferenceSession(file).get_session_options()
    assert options.intra_op_num_threads == 2
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_BASIC


@pytest.mark.parametrize("text", ["{", "[]", '{"session_options": {"treads": 2}}', '{"session_options": {"intra_op_num_threads": "a"}}'])
def test_invalid_options_in_the_model(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import Fail

    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    with pytest.raises(Fail, match="ort_config"):
        pliant.onnxruntime.InferenceSession(_model_with_options(text))


def test_allocators(ort: ModuleType) -> None:
    assert ort.OrtArenaCfg(8, 0, 4, 2).initial_chunk_size_bytes == 4
    assert ort.OrtArenaCfg({"max_mem": 16, "arena_extend_strategy": 1}).max_mem == 16
    kind = ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    info = ort.OrtMemoryInfo("Cpu", kind, 0, ort.OrtMemType.DEFAULT)
    assert (info.name, info.allocator_type, info.device_id, info.device_vendor_id) == ("Cpu", kind, 0, 0)
    cpu = ort.OrtMemoryInfoDeviceType.CPU
    info = ort.OrtMemoryInfo.create_v2("Test", cpu, 0, 0, ort.OrtDeviceMemoryType.DEFAULT, 128, kind)
    assert (info.name, info.mem_type, info.device_mem_type) == ("Test", ort.OrtMemType.DEFAULT, ort.OrtDeviceMemoryType.DEFAULT)
    if ort is pliant.onnxruntime:
        ort.create_and_register_allocator(info, None)


def test_functions_of_the_process(ort: ModuleType) -> None:
    ort.set_seed(3)
    ort.disable_telemetry_events()
    ort.enable_telemetry_events()
    assert "Build Info" in ort.get_build_info() and ort.get_version_string() == ort.__version__
    assert ort.has_collective_ops() is False


def test_graph_assignment_needs_an_option(session: Any, state: ModuleType) -> None:
    with pytest.raises(state.Fail, match="must be set to"):
        session.get_provider_graph_assignment_info()

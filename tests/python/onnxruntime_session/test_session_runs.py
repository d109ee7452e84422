"""Tests runs of sessions: inputs of all kinds, selected outputs, optional values, asynchronous runs, threads."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from session_models import add_model, broadcast_model, default_model, identity_model, sequence_model

import pliant.onnxruntime

X = np.arange(6, dtype=np.float32).reshape(3, 2)

# Values that stand for X.
SAME_AS_X = {
    "list": X.tolist(),
    "list of arrays": list(X),
    "ints": X.astype(int).tolist(),
    "fortran order": np.asfortranarray(X),
    "strided": np.repeat(X, 2, axis=0)[::2],
    "reversed": X[::-1].copy()[::-1],
    "read-only": np.frombuffer(X.tobytes(), np.float32).reshape(3, 2),
}
# Values that ONNX Runtime does not accept.
ONLY_PLIANT = {"tuple": tuple(map(tuple, X.tolist())), "big endian": X.astype(">f4"), "NDArray": pliant.nd.array(X)}


@pytest.mark.parametrize("kind", SAME_AS_X)
def test_kinds_of_values(session: Any, kind: str) -> None:
    total, negative = session.run(None, {"in/x": SAME_AS_X[kind], "in.y": X})
    np.testing.assert_array_equal(total, 2 * X)
    np.testing.assert_array_equal(negative, -2 * X)


@pytest.mark.parametrize("kind", ONLY_PLIANT)
def test_kinds_of_values_beyond_onnx_runtime(kind: str) -> None:
    session = pliant.onnxruntime.InferenceSession(add_model())
    np.testing.assert_array_equal(session.run(["z:0"], {"in/x": ONLY_PLIANT[kind], "in.y": X})[0], 2 * X)


@pytest.mark.parametrize(
    ("names", "signs"), [(None, [1, -1]), ([], [1, -1]), (["w"], [-1]), (("w", "z:0"), [-1, 1]), (["w", "w"], [-1, -1])]
)
def test_outputs_by_name(session: Any, names: list[str] | None, signs: list[int]) -> None:
    results = session.run(names, {"in/x": X, "in.y": X})
    assert isinstance(results, list) and len(results) == len(signs)
    for result, sign in zip(results, signs, strict=True):
        assert type(result) is np.ndarray and result.flags.writeable
        np.testing.assert_array_equal(result, sign * 2 * X)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_sizes_without_new_sessions(session: Any, rows: int) -> None:
    x = np.ones((rows, 2), np.float32)
    assert session.run(output_names=["w"], input_feed={"in/x": x, "in.y": x})[0].shape == (rows, 2)


def test_results_do_not_change(session: Any) -> None:
    x = X.copy()
    (first,) = session.run(["w"], {"in/x": x, "in.y": x})
    x[:] = 9
    session.run(["w"], {"in/x": x, "in.y": x})
    np.testing.assert_array_equal(first, -2 * X)


def test_inputs_that_are_outputs_are_copied(ort: ModuleType) -> None:
    from onnx import helper
    from session_models import model, tensor

    x = tensor("x", ["n"])
    session = ort.InferenceSession(model([helper.make_node("Neg", ["x"], ["y"])], [x], [tensor("y", ["n"]), x]))
    array = np.ones(3, np.float32)
    negative, same = session.run(None, {"x": array})
    array[:] = 5
    assert (negative.tolist(), same.tolist()) == ([-1] * 3, [1] * 3)


def test_constant_outputs_can_be_changed(ort: ModuleType) -> None:
    from onnx import helper
    from session_models import model, tensor

    nodes = [helper.make_node("Identity", ["c"], ["k"]), helper.make_node("Neg", ["x"], ["y"])]
    outputs = [tensor("k", [3]), tensor("y", ["n"]), tensor("c", [3])]
    session = ort.InferenceSession(model(nodes, [tensor("x", ["n"])], outputs, {"c": np.arange(3, dtype=np.float32)}))
    for _ in range(2):
        results = session.run(None, {"x": np.ones(2, np.float32)})
        assert [result.tolist() for result in results] == [[0, 1, 2], [-1, -1], [0, 1, 2]]
        for result in results:
            result[:] = 9


def test_models_without_inputs(ort: ModuleType) -> None:
    from onnx import helper
    from session_models import model, tensor

    file = model([helper.make_node("Neg", ["c"], ["y"])], [], [tensor("y", [3])], {"c": np.arange(3, dtype=np.float32)})
    session = ort.InferenceSession(file)
    session.run(None, {})[0][:] = 9
    assert session.get_inputs() == [] and session.run(None, {})[0].tolist() == [0, -1, -2]


def test_run_options(ort: ModuleType, session: Any, state: ModuleType) -> None:
    options = ort.RunOptions()
    options.logid = "request 7"
    assert session.run(["w"], {"in/x": X, "in.y": X}, options)[0].shape == (3, 2)
    options.terminate = True
    with pytest.raises(state.Fail, match="terminate flag"):
        session.run(["w"], {"in/x": X, "in.y": X}, options)
    options.terminate = False
    assert session.run(["w"], {"in/x": X, "in.y": X}, options)[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("element", "array"),
    [
        (TensorProto.BOOL, np.array([True, False])),
        (TensorProto.INT8, np.array([-128, 127], np.int8)),
        (TensorProto.UINT64, np.array([0, 2**64 - 1], np.uint64)),
        (TensorProto.FLOAT16, np.array([1.5, np.inf], np.float16)),
        (TensorProto.DOUBLE, np.array([1e300, -0.0])),
    ],
)
def test_element_types(ort: ModuleType, element: int, array: np.ndarray[Any, Any]) -> None:
    (result,) = ort.InferenceSession(identity_model(element)).run(None, {"x": array})
    assert result.dtype == array.dtype and result.tobytes() == array.tobytes()
    (result,) = ort.InferenceSession(identity_model(element)).run(None, {"x": array.tolist()})
    assert result.dtype == array.dtype


@pytest.mark.parametrize("name", ["bfloat16", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_element_types_of_ml_dtypes(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    code = {"float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2", "float4_e2m1fn": "FLOAT4E2M1"}.get(name, name.upper())
    array = np.array([0, 1, 2, 3]).astype(getattr(ml_dtypes, name))
    session = pliant.onnxruntime.InferenceSession(identity_model(getattr(TensorProto, code)))
    (result,) = session.run(None, {"x": array})
    assert result.dtype == array.dtype and result.tobytes() == array.tobytes()


def test_scalars(ort: ModuleType) -> None:
    session = ort.InferenceSession(_scalar_model())
    for value in (np.array(3, np.int64), np.array([3], np.int64), np.array([[3]], np.int64)):
        assert session.run(None, {"x": value})[0].item() == 3


def test_python_numbers_as_scalars() -> None:
    session = pliant.onnxruntime.InferenceSession(_scalar_model())
    assert session.run(None, {"x": 3})[0] == 3
    assert session.run(None, {"x": np.int64(3)})[0] == 3


def _scalar_model() -> bytes:
    from onnx import helper
    from session_models import model, tensor

    node = helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])
    return model(list(node), [tensor("x", [], TensorProto.INT64)], [tensor("y", None, TensorProto.INT64)])


def test_sequences(ort: ModuleType, state: ModuleType) -> None:
    session = ort.InferenceSession(sequence_model())
    assert [arg.type for arg in session.get_inputs()] == ["tensor(float)", "seq(tensor(int64))"]
    x, items = np.ones(2, np.float32), [np.arange(2), np.arange(3)]
    pair, item = session.run(None, {"x": x, "items": items})
    assert isinstance(pair, list) and len(pair) == 2
    np.testing.assert_array_equal(pair[1], x)
    np.testing.assert_array_equal(item, items[1])
    with pytest.raises(state.InvalidArgument, match="'items' expected to be of type"):
        session.run(None, {"x": x, "items": np.arange(3)})


def test_initializers_can_be_overridden(ort: ModuleType, state: ModuleType) -> None:
    session = ort.InferenceSession(default_model())
    x = np.zeros((1, 2), np.float32)
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [(arg.name, arg.shape) for arg in session.get_overridable_initializers()] == [("w", [2])]
    for _ in range(2):
        assert session.run(None, {"x": x})[0].tolist() == [[10, 20]]
        assert session.run(None, {"x": x, "w": np.array([1, 2], np.float32)})[0].tolist() == [[1, 2]]
    with pytest.raises(state.InvalidArgument, match="index: 0 Got: 3 Expected: 2"):
        session.run(None, {"x": x, "w": np.zeros(3, np.float32)})


def test_dims_with_equal_names_may_differ(ort: ModuleType) -> None:
    """ONNX Runtime does not compare dims with equal names, so a model may run although its names are wrong."""
    session = ort.InferenceSession(broadcast_model())
    for _ in range(2):
        assert session.run(None, {"x": np.ones(4, np.float32), "y": np.ones(1, np.float32)})[0].shape == (4,)
    assert session.run(None, {"x": np.ones(3, np.float32), "y": np.ones(3, np.float32)})[0].shape == (3,)


def test_run_async(ort: ModuleType, session: Any) -> None:
    calls: list[tuple[Any, ...]] = []
    done = threading.Semaphore(0)

    def callback(*arguments: Any) -> None:
        calls.append(arguments)
        done.release()

    session.run_async(["w"], {"in/x": X, "in.y": X}, callback, "data")
    session.run_async(["w"], {"in/x": X.astype(int), "in.y": X}, callback, None)
    assert done.acquire(timeout=60) and done.acquire(timeout=60)
    (results, data, error), (failed, none, message) = sorted(calls, key=lambda call: len(call[2]))
    np.testing.assert_array_equal(results[0], -2 * X)
    assert (data, error, list(failed), none) == ("data", "", [], None)
    assert message.startswith("Unexpected input data type. Actual: (tensor(int64))")
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_async(None, {}, callback, None)


def test_concurrent_runs(session: Any) -> None:
    def request(n: int) -> bool:
        x = np.full((n, 2), n, np.float32)
        return all(np.array_equal(session.run(["z:0"], {"in/x": x, "in.y": x})[0], 2 * x) for _ in range(20))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(request, range(24)))


def test_sessions_can_be_pickled() -> None:
    session = pliant.onnxruntime.InferenceSession(add_model())
    copy = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(copy.run(["w"], {"in/x": X, "in.y": X})[0], -2 * X)


class PicklableSession(pliant.onnxruntime.InferenceSession):
    """A session as applications define it, because those of ONNX Runtime cannot be pickled."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = content

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.content}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["content"])  # type: ignore[misc]


def test_subclasses_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(PicklableSession(add_model())))
    assert type(copy) is PicklableSession and copy.run(["w"], {"in/x": X, "in.y": X})[0].shape == (3, 2)

"""Tests `IOBinding`: inputs and outputs that are bound to memory."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from session_models import add_model

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def binding(session: Any) -> Any:
    """A binding whose inputs are bound to X."""
    binding = session.io_binding()
    binding.bind_cpu_input("in/x", X)
    binding.bind_cpu_input("in.y", X)
    return binding


def test_outputs_without_memory(session: Any, binding: Any) -> None:
    binding.bind_output("w")
    binding.bind_output("z:0", "cpu")
    session.run_with_iobinding(binding)
    negative, total = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(negative, -2 * X)
    np.testing.assert_array_equal(total, 2 * X)
    assert [value.shape() for value in binding.get_outputs()] == [[3, 2], [3, 2]]
    assert len(binding.get_outputs_as_ortvaluevector()) == 2


def test_outputs_in_memory_of_the_caller(session: Any, binding: Any) -> None:
    out = np.zeros((3, 2), np.float32)
    binding.bind_output("w", "cpu", 0, np.float32, [3, 2], out.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, -2 * X)
    assert binding.get_outputs()[0].data_ptr() == out.ctypes.data


def test_values(ort: ModuleType, session: Any) -> None:
    binding = session.io_binding()
    binding.bind_ortvalue_input("in/x", ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_input("in.y", "cpu", 0, 1, [3, 2], X.ctypes.data)
    target = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_ortvalue_output("z:0", target)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(target.numpy(), 2 * X)


def test_inputs_are_read_at_each_run(session: Any) -> None:
    x = X.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("in/x", x)
    binding.bind_cpu_input("in.y", x)
    binding.bind_output("z:0")
    for factor in (1, 3):
        x[:] = factor * X
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * factor * X)


@pytest.mark.parametrize(
    ("bind", "message"),
    [
        (lambda b: None, "At least one output should be requested"),
        (lambda b: b.bind_output("q"), "Invalid output name:"),
        (lambda b: b.bind_output("w", "cpu", 0, np.float64, [3, 2], np.zeros((3, 2)).ctypes.data), "Unexpected output data type"),
        (lambda b: b.bind_output("w", "cpu", 0, np.float32, [2, 2], np.zeros((3, 2)).ctypes.data), "computed output shape for this"),
        (lambda b: (b.bind_output("w"), b.bind_input("in/x", "cpu", 0, np.int64, [3], X.ctypes.data)), "Unexpected input data type"),
    ],
)
def test_runs_that_fail(session: Any, binding: Any, bind: Any, message: str) -> None:
    bind(binding)
    with pytest.raises(RuntimeError, match=f"Error in execution: .*{message}"):
        session.run_with_iobinding(binding)


def test_bindings_that_fail(session: Any, binding: Any) -> None:
    with pytest.raises(RuntimeError, match="Failed to find NodeArg with name: q in the def list"):
        binding.bind_cpu_input("q", X)
    with pytest.raises(RuntimeError, match="Unable to create OrtValue"):
        binding.bind_cpu_input("in/x", [[1, 2]])
    with pytest.raises(ValueError, match="`element_type` and `shape` are to be provided"):
        binding.bind_output("w", buffer_ptr=X.ctypes.data)
    with pytest.raises(RuntimeError):
        binding.bind_input("in/x", "cuda", 0, np.float32, [3, 2], X.ctypes.data)


def test_cleared_bindings(session: Any, binding: Any) -> None:
    binding.bind_output("w")
    binding.clear_binding_inputs()
    with pytest.raises(RuntimeError, match="Error in execution"):
        session.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="At least one output"):
        session.run_with_iobinding(binding)


def test_bindings_of_another_session(ort: ModuleType, binding: Any) -> None:
    with pytest.raises(ValueError, match="IOBinding must be used with the session that created it"):
        ort.InferenceSession(add_model()).run_with_iobinding(binding)

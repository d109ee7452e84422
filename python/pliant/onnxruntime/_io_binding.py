"""Inputs and outputs that are bound to memory before a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.onnxruntime._devices import check_device
from pliant.onnxruntime._ortvalue import OrtValue, OrtValueVector, array_at
from pliant.onnxruntime._status import status_message

if TYPE_CHECKING:
    from pliant.onnxruntime._options import RunOptions
    from pliant.onnxruntime._session import Session

__all__ = ["IOBinding"]


class IOBinding:
    """Binds the inputs and outputs of a session to memory. Inputs are not copied."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._held: dict[str, object] = {}  # What the bound inputs hold.
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    @property
    def _iobinding(self) -> IOBinding:
        """The binding itself. In ONNX Runtime, this is the object of the C++ library."""
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray[Any, Any]) -> None:
        """Binds an input to an array. Raises ``RuntimeError`` for unknown names and for objects other than arrays."""
        session = self._session
        if not any(arg.name == name for arg in (*session.get_inputs(), *session.get_overridable_initializers())):
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        if not isinstance(arr_on_cpu, np.ndarray):
            raise RuntimeError("Unable to create OrtValue from the given python object")
        self._bind(name, OrtValue(arr_on_cpu))

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds an input to foreign memory, which the caller keeps alive. ``element_type`` is a NumPy type, or a number of
        ``TensorProto``. Raises ``RuntimeError`` for devices other than the CPU."""
        check_device(device_type)
        self._bind(name, array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to a value."""
        self._bind(name, ortvalue._get_c_value())

    def _bind(self, name: str, value: OrtValue) -> None:
        self._inputs[name] = value
        self._held[name] = value._value

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Requests an output. With ``buffer_ptr``, each run writes it to this memory, which the caller keeps alive.

        Raises ``ValueError`` if the type or the shape of the memory is missing, and ``RuntimeError`` for devices other than the CPU.
        """
        check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
        elif element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        else:
            self._outputs[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Requests an output, which each run writes to the memory of a tensor."""
        self._outputs[name] = ortvalue._get_c_value()

    def synchronize_inputs(self) -> None:
        """Returns at once: everything lies in host memory."""

    def synchronize_outputs(self) -> None:
        """Returns at once: everything lies in host memory."""

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Returns the outputs of the last run as a vector."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Returns the outputs of the last run as arrays."""
        return [value.numpy() if value.is_tensor() else value._value for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Removes the inputs."""
        self._inputs.clear()
        self._held.clear()

    def clear_binding_outputs(self) -> None:
        """Removes the outputs."""
        self._outputs.clear()
        self._results = []

    def _run(self, run_options: RunOptions | None) -> None:
        """Runs the session. Raises ``RuntimeError`` if that fails, as ONNX Runtime."""
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        try:
            results = self._session._run_ort_values(list(self._outputs), self._inputs, self._held, run_options)
            self._results = [
                result if target is None else _stored(name, target, result)
                for (name, target), result in zip(self._outputs.items(), results, strict=True)
            ]
        except Exception as e:
            raise RuntimeError(f"Error in execution: {status_message(e)}") from e


def _stored(name: str, target: OrtValue, result: OrtValue) -> OrtValue:
    """Copies a result to the memory that is bound to its output, and returns the tensor there."""
    if target.data_type() != result.data_type():
        raise ValueError(f"Unexpected output data type. Actual: ({target.data_type()}) , expected: ({result.data_type()})")
    if target.shape() != result.shape():
        raise ValueError(
            f"The output OrtValue provided for output '{name}' has shape {target.shape()} but the computed output shape for this "
            f"run is {result.shape()}. Either bind the output without memory, or memory of the right shape."
        )
    target.update_inplace(result)
    return target

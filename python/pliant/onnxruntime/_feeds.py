"""Checks and converts the inputs of runs, with ONNX Runtime's errors.

The program checks its arguments itself. A run checks its inputs here only if the program rejected them, or if the values need a
conversion, such as lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pliant import _core
from pliant.error import PliantError
from pliant.onnxruntime._element_types import ElementType, element_from_numpy, element_of_type
from pliant.onnxruntime._metadata import NodeArg
from pliant.onnxruntime._ortvalue import OrtValue
from pliant.onnxruntime._status import Fail, InvalidArgument, run_error, status_error

__all__ = ["InputChecker", "dims_differ", "require_inputs"]

Array = np.ndarray[Any, Any]

_ARITHMETIC = frozenset("+-*/%(")


def require_inputs(inputs: Iterable[NodeArg], names: list[str]) -> None:
    """Raises ``ValueError`` if an input that is not optional has no value."""
    missing = [arg.name for arg in inputs if arg.name not in names and not arg.type.startswith("optional")]
    if missing:
        raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")


def dims_differ(inputs: Iterable[NodeArg], values: Mapping[str, object]) -> bool:
    """Whether dims with equal names have different sizes, or whether a dim is an arithmetic expression, which may have another
    value."""
    sizes: dict[str, int] = {}
    for arg in inputs:
        shape = getattr(values[arg.name], "shape", ())
        for dim, size in zip(arg.shape, shape, strict=False):
            if isinstance(dim, str) and (sizes.setdefault(dim, size) != size or not _ARITHMETIC.isdisjoint(dim)):
                return True
    return False


class InputChecker:
    """Checks the inputs of a model and converts them to arguments of its program."""

    def __init__(self, inputs: list[NodeArg], initializers: list[NodeArg], scalars: frozenset[str]) -> None:
        """``scalars`` are the names of inputs that are declared without dims."""
        self._inputs, self._scalars = inputs, scalars
        self._known = {arg.name: arg for arg in (*inputs, *initializers)}

    def checked(self, feeds: Mapping[str, object]) -> dict[str, object]:
        """Returns the values of a run as arguments of the program, by name. Absent optional inputs are ``None``.

        Raises ``ValueError`` for missing inputs, ``InvalidArgument`` for unknown names and wrong types and dims, ``TypeError`` for
        names that are not strings, and ``RuntimeError`` for values that are no tensors.
        """
        require_inputs(self._inputs, list(feeds.keys()))
        values: dict[str, object] = {arg.name: None for arg in self._inputs if arg.name not in feeds}
        for name, value in feeds.items():
            if not isinstance(name, str):
                raise TypeError(f"run(): the names of inputs must be str, got {name!r}")
            if name not in self._known:
                raise status_error(InvalidArgument, f"Invalid input name: {name}")
            arg = self._known[name]
            argument = _argument(arg, arg.type, value)
            if name in self._scalars and isinstance(argument, np.ndarray) and argument.size == 1:
                argument = argument.reshape(())  # ONNX Runtime accepts one element of any rank as a scalar.
            values[name] = argument
        return values


def _argument(arg: NodeArg, declared: str, value: object) -> object:
    """Converts a value to an argument of the declared type."""
    if isinstance(value, OrtValue):
        return _argument(arg, declared, value._value if value._element is None else _array_of(value))
    if declared.startswith("optional("):
        return None if value is None else _argument(arg, declared[len("optional(") : -1], value)
    if value is None:
        raise status_error(Fail, f"Missing Input: {arg.name}")
    if declared.startswith("seq("):
        if not isinstance(value, list | tuple):
            message = f"input with name: '{arg.name}' expected to be of type: 3 ({declared}) but received a tensor"
            raise status_error(InvalidArgument, message)
        return [_item(declared[len("seq(") : -1], arg.name, item) for item in value]
    element = element_of_type(declared)
    if element is None:
        return value
    array = _tensor(arg.name, element, value)
    _check_dims(arg, array)
    return element.to_program(array)


def _item(declared: str, name: str, value: object) -> object:
    """Converts an item of a sequence, whose dims are not declared."""
    return _argument(NodeArg(name, declared, []), declared, value)


def _array_of(value: OrtValue) -> object:
    """Returns the elements of a tensor in its ONNX type, or as they are if NumPy lacks this type."""
    try:
        return value.numpy()
    except RuntimeError:
        return value._value


def _tensor(name: str, element: ElementType, value: object) -> Array:
    """Converts a value to an array of the declared element type."""
    if isinstance(value, np.ndarray):
        return _native(name, element, value)
    if hasattr(value, "__dlpack__"):
        return _native(name, element, _shared(value))
    if isinstance(value, str | bytes) and element.name != "string":
        raise RuntimeError(f"Input must be a list of dictionaries or a single numpy array for input '{name}'.")
    try:
        array = np.asarray(value, object if element.name == "string" else None)
        if array.size and array.dtype.kind not in "biufUSO":
            raise ValueError(f"elements of type {array.dtype}")
    except ValueError as e:
        raise RuntimeError(f"Could not create tensor from given input list ({name}: {e})") from e
    if array.dtype == object and element.name != "string":
        raise RuntimeError(f"Unable to handle object of type {type(value)} for input '{name}'")
    if isinstance(value, np.generic):
        return _native(name, element, array)
    try:
        converted = np.asarray(value, element.dtype())
    except OverflowError as e:
        raise RuntimeError(f"Could not create tensor from given input list ({name}: {e})") from e
    if converted.dtype.kind in "biu" and not np.array_equal(converted, array):
        raise _wrong_type(element_from_numpy(array.dtype).tensor_type, element)
    return converted


def _shared(value: object) -> Array:
    """Returns an array that shares the memory of an object with DLPack."""
    try:
        return np.asarray(_core.from_dlpack(value))
    except PliantError as e:
        raise run_error(e) from e


def _native(name: str, element: ElementType, array: Array) -> Array:
    """Checks the type of an array and returns it with the byte order of the machine."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name == element.numpy_name or array.dtype.name == element.passed_as:
        return array
    actual = element_from_numpy(array.dtype)
    if actual != element:
        raise _wrong_type(actual.tensor_type, element)
    return array


def _wrong_type(actual: str, expected: ElementType) -> Exception:
    message = f"Unexpected input data type. Actual: ({actual}) , expected: ({expected.tensor_type})"
    return status_error(InvalidArgument, message)


def _check_dims(arg: NodeArg, array: Array) -> None:
    """Checks rank and fixed dims."""
    if not arg.shape:
        return
    if array.ndim != len(arg.shape):
        message = f"Invalid rank for input: {arg.name} Got: {array.ndim} Expected: {len(arg.shape)} "
        raise status_error(InvalidArgument, message + "Please fix either the inputs/outputs or the model.")
    wrong = [
        f" index: {axis} Got: {size} Expected: {dim}\n"
        for axis, (size, dim) in enumerate(zip(array.shape, arg.shape, strict=True))
        if isinstance(dim, int) and size != dim
    ]
    if wrong:
        message = f"Got invalid dimensions for input: {arg.name} for the following indices\n{''.join(wrong)}"
        raise status_error(InvalidArgument, message + " Please fix either the inputs/outputs or the model.")

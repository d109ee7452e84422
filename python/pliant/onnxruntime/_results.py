"""Converts results of programs to the values that sessions return."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant._core import NDArray
from pliant.onnxruntime._element_types import ElementType, element_of_type
from pliant.onnxruntime._metadata import NodeArg
from pliant.onnxruntime._ortvalue import OrtValue

__all__ = ["ResultConverter", "writable_array"]


def writable_array(value: NDArray) -> np.ndarray[Any, Any]:
    """Converts a tensor to an array that shares its memory, or copies it if it is a constant of the program."""
    array = np.asarray(value)
    return array if array.flags.writeable else array.copy()


class ResultConverter:
    """Converts the results of a model's program."""

    def __init__(self, outputs: list[NodeArg]) -> None:
        self._elements = [element_of_type(output.type) for output in outputs]

    @property
    def is_trivial(self) -> bool:
        """Whether results are tensors whose NumPy arrays have the right element type."""
        return all(element is not None and element.passed_as is None for element in self._elements)

    def values(self, result: object, indices: list[int]) -> list[OrtValue]:
        """Returns the outputs with these indices."""
        # A single output that is a sequence is also a tuple.
        all_values = result if isinstance(result, tuple) and len(self._elements) != 1 else (result,)
        return [self._value(all_values[i], self._elements[i]) for i in indices]

    def _value(self, value: object, element: ElementType | None) -> OrtValue:
        if element is not None and isinstance(value, NDArray):
            array = writable_array(value)
            return OrtValue.of_tensor(element.from_program(array) if element.passed_as else array, element)
        return OrtValue(_to_numpy(value))


def _to_numpy(value: object) -> Any:
    """Converts a tensor to an array that shares its memory, and a sequence to a list."""
    if isinstance(value, NDArray):
        return writable_array(value)
    if isinstance(value, tuple):
        return [_to_numpy(item) for item in value]
    return value

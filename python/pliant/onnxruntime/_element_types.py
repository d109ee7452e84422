"""The element types of ONNX tensors: their numbers in ``TensorProto``, their names in ONNX Runtime and their NumPy types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.onnxruntime._status import InvalidArgument, status_error

__all__ = ["ElementType", "element_from_numpy", "element_of_code", "element_of_name", "element_of_type"]


@dataclass(frozen=True)
class ElementType:
    """An element type of ONNX."""

    code: int
    """The number in ``TensorProto.DataType``."""
    name: str
    """The name in ONNX Runtime's type strings, such as ``float`` in ``tensor(float)``."""
    numpy_name: str
    """The name of the NumPy type. Types that NumPy lacks have the name of the package ``ml_dtypes``."""
    passed_as: str | None = None
    """The NumPy type in which arrays enter and leave the compiled program, if it is another one: 8-bit integers for narrow integers,
    and the bits as uint8 for floats of at most 8 bits."""

    @property
    def tensor_type(self) -> str:
        """The type string of tensors with these elements."""
        return f"tensor({self.name})"

    def dtype(self) -> np.dtype[Any]:
        """Returns the NumPy type. Raises ``RuntimeError`` if it belongs to ``ml_dtypes`` and that package is not installed."""
        try:
            return np.dtype(self.numpy_name)
        except TypeError:
            pass
        try:
            import ml_dtypes
        except ImportError as e:
            message = f"No corresponding Numpy type for Tensor Type. {self.name} (it needs the package ml_dtypes)"
            raise RuntimeError(message) from e
        scalar: type[np.generic] = getattr(ml_dtypes, self.numpy_name)
        return np.dtype(scalar)

    def to_program(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Converts an array of this element type to the type in which the compiled program takes it."""
        return _reinterpreted(array, np.dtype(self.passed_as)) if self.passed_as else array

    def from_program(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Converts a result of the compiled program to this element type."""
        return _reinterpreted(array, self.dtype()) if self.passed_as else array


def _reinterpreted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Converts narrow integers by value, and floats of at most 8 bits bit by bit."""
    if array.dtype == dtype:
        return array
    is_float = array.dtype.name.startswith("float") or dtype.name.startswith("float")
    return array.view(dtype) if is_float else array.astype(dtype)


_ELEMENT_TYPES = [
    ElementType(1, "float", "float32"),
    ElementType(2, "uint8", "uint8"),
    ElementType(3, "int8", "int8"),
    ElementType(4, "uint16", "uint16"),
    ElementType(5, "int16", "int16"),
    ElementType(6, "int32", "int32"),
    ElementType(7, "int64", "int64"),
    ElementType(8, "string", "object"),
    ElementType(9, "bool", "bool"),
    ElementType(10, "float16", "float16"),
    ElementType(11, "double", "float64"),
    ElementType(12, "uint32", "uint32"),
    ElementType(13, "uint64", "uint64"),
    ElementType(14, "complex64", "complex64"),
    ElementType(15, "complex128", "complex128"),
    ElementType(16, "bfloat16", "bfloat16"),
    ElementType(17, "float8e4m3fn", "float8_e4m3fn", "uint8"),
    ElementType(18, "float8e4m3fnuz", "float8_e4m3fnuz", "uint8"),
    ElementType(19, "float8e5m2", "float8_e5m2", "uint8"),
    ElementType(20, "float8e5m2fnuz", "float8_e5m2fnuz", "uint8"),
    ElementType(21, "uint4", "uint4", "uint8"),
    ElementType(22, "int4", "int4", "int8"),
    ElementType(23, "float4e2m1", "float4_e2m1fn", "uint8"),
    ElementType(24, "float8e8m0", "float8_e8m0fnu", "uint8"),
    ElementType(25, "uint2", "uint2", "uint8"),
    ElementType(26, "int2", "int2", "int8"),
]
_BY_CODE = {element.code: element for element in _ELEMENT_TYPES}
_BY_TYPE = {element.tensor_type: element for element in _ELEMENT_TYPES}
# As in ONNX Runtime, complex arrays are no tensors.
_BY_NUMPY_NAME = {e.numpy_name: e for e in _ELEMENT_TYPES if not e.name.startswith("complex")}
_STRING = _BY_CODE[8]


def element_of_code(code: int) -> ElementType:
    """Returns the element type with this number. Raises ``InvalidArgument`` for other numbers."""
    if code not in _BY_CODE:
        raise status_error(InvalidArgument, f"{code} is not an element type of ONNX (TensorProto.DataType)")
    return _BY_CODE[code]


def element_of_type(tensor_type: str) -> ElementType | None:
    """Returns the element type of a type string such as ``tensor(float)``. ``None`` for types other than tensors."""
    return _BY_TYPE.get(tensor_type)


def element_from_numpy(dtype: Any) -> ElementType:
    """Returns the element type of a NumPy type. All types of text are ``string``.

    Raises ``RuntimeError``, as ONNX Runtime, for a type that ONNX lacks.
    """
    dtype = np.dtype(dtype)
    return _STRING if dtype.kind in "USOT" else element_of_name(dtype.name)


def element_of_name(name: str) -> ElementType:
    """Returns the element type with the name of a NumPy type or a type of Pliant, such as ``float32``.

    Raises ``RuntimeError``, as ONNX Runtime, for a type that ONNX lacks.
    """
    found = _BY_NUMPY_NAME.get(name)
    if found is None:
        raise RuntimeError(f"the type {name} can't be converted to an element type of ONNX")
    return found

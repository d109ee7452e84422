"""Calls native functions with tensors as ``DLTensor`` structures."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pliant import _core
from pliant._core import NDArray


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class NativeLibrary:
    """A loaded shared library. Raises ``ValueError`` if it lacks one of the functions."""

    def __init__(self, content: bytes, names: list[str]) -> None:
        # The file may be deleted after it is loaded.
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(content)
            file.flush()
            self._library = ctypes.CDLL(str(Path(file.name)))
        self._functions: dict[str, Callable[..., None]] = {}
        for name in names:
            if not hasattr(self._library, name):
                raise ValueError(f"the native code of an external module does not define '{name}' with C linkage")
            self._functions[name] = self._wrap(name)

    def _wrap(self, name: str) -> Callable[..., None]:
        native = getattr(self._library, name)
        native.restype = ctypes.c_int

        def call(*args: Any) -> None:
            capsules: list[Any] = []  # Keep the tensors alive during the call.
            status = native(*(_argument(arg, capsules) for arg in args))
            if status != 0:
                raise RuntimeError(f"the external function '{name}' failed with the status {status}")

        return call

    def register(self) -> None:
        """Registers the functions as packed functions, in place of earlier ones with the same names."""
        for name, function in self._functions.items():
            _core.registry_register(name, function, True)


def _argument(value: Any, capsules: list[Any]) -> Any:
    if isinstance(value, NDArray):
        capsule = value.__dlpack__()
        capsules.append(capsule)
        # A managed tensor begins with the DLTensor.
        return ctypes.cast(_get_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor))
    if isinstance(value, bool | int):
        return ctypes.c_int64(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode())
    raise TypeError(f"a native function cannot take a value of type {type(value).__name__}")


__all__ = ["NativeLibrary"]

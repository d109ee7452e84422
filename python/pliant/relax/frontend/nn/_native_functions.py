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
        self._functions = {name: self._function(name) for name in names}

    def _function(self, name: str) -> Callable[..., None]:
        """Wraps a function that a macro of TVM exports, or one with C linkage."""
        for symbol, wrap in ((f"__pliant_packed_{name}", _wrap_packed), (name, _wrap_plain)):
            if hasattr(self._library, symbol):
                native = getattr(self._library, symbol)
                native.restype = ctypes.c_int
                return wrap(name, native)
        raise ValueError(f"the native code of an external module does not define '{name}' with C linkage")

    def register(self) -> None:
        """Registers the functions as packed functions, in place of earlier ones with the same names."""
        for name, function in self._functions.items():
            _core.registry_register(name, function, True)


def _wrap_plain(name: str, native: Any) -> Callable[..., None]:
    def call(*args: Any) -> None:
        capsules: list[Any] = []  # Keep the tensors alive during the call.
        status = native(*(_argument(arg, capsules)[0] for arg in args))
        if status != 0:
            raise RuntimeError(f"the external function '{name}' failed with the status {status}")

    return call


def _wrap_packed(name: str, native: Any) -> Callable[..., None]:
    """Wraps a function that takes the addresses of its arguments and their kinds, and a buffer for an error."""

    def call(*args: Any) -> None:
        capsules: list[Any] = []
        values = [_argument(arg, capsules) for arg in args]
        addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value, _ in values))
        kinds = "".join(kind for _, kind in values).encode()
        error = ctypes.create_string_buffer(1024)
        if native(addresses, kinds, len(values), error, len(error)) != 0:
            raise RuntimeError(f"the external function '{name}' failed: {error.value.decode(errors='replace')}")

    return call


def _argument(value: Any, capsules: list[Any]) -> tuple[Any, str]:
    """Converts an argument. Also returns its kind: tensor, integer, double or string."""
    if isinstance(value, NDArray):
        capsule = value.__dlpack__()
        capsules.append(capsule)
        # A managed tensor begins with the DLTensor.
        return ctypes.cast(_get_pointer(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)), "t"
    if isinstance(value, bool | int):
        return ctypes.c_int64(value), "i"
    if isinstance(value, float):
        return ctypes.c_double(value), "d"
    if isinstance(value, str):
        return ctypes.c_char_p(value.encode()), "s"
    raise TypeError(f"a native function cannot take a value of type {type(value).__name__}")


__all__ = ["NativeLibrary"]

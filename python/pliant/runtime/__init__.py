"""Run-time values: tensors, shapes, devices."""

from __future__ import annotations

import io
import os
from typing import Any

from pliant import _core
from pliant._core import Device, NDArray, PackedFunction, ShapeTuple, cpu, device, from_dlpack
from pliant.runtime.data_type import DataType, DataTypeCode

Tensor = NDArray
Shape = ShapeTuple
PackedFunc = PackedFunction
Object = object
String = str

__all__ = [
    "DataType",
    "DataTypeCode",
    "Device",
    "NDArray",
    "Object",
    "PackedFunc",
    "Shape",
    "ShapeTuple",
    "String",
    "Tensor",
    "const",
    "convert",
    "cpu",
    "device",
    "empty",
    "enabled",
    "from_dlpack",
    "held_bytes",
    "load_module",
    "load_param_dict",
    "memory_limit",
    "num_threads",
    "save_param_dict",
    "set_memory_limit",
    "tensor",
]


def tensor(arr: Any, device: Device | None = None, dtype: str | None = None) -> NDArray:
    """Creates a tensor with a copy of the elements of an array-like object. By default, the tensor
    has the data type of the object; Python floats become float32, and ints int64. ``device`` is
    ignored.

    Raises ``TypeError`` for an object that is not array-like, and ``DTypeError`` for an unsupported
    data type.
    """
    return _core.array(arr, device, dtype)


def empty(shape: Any, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """Creates a tensor of zeros with this shape and data type. ``device`` is ignored."""
    return _core.empty(shape, dtype, device)


def set_memory_limit(bytes: int | None) -> None:
    """Sets the maximum number of bytes that Pliant's tensors may take at a time. A run that needs
    more fails with a ``VMError``.

    By default, and with ``None``, the limit is dynamic: nine tenths of the sum of the memory that
    Pliant holds and the memory that is available at the time of an allocation. The available memory
    depends on the machine, the control groups of the process and its own limits (``ulimit -v``).

    The environment variable ``PLIANT_MEMORY_LIMIT`` sets the initial limit. Its value is a number
    of bytes, or a number followed by ``K``, ``M``, ``G`` or ``T`` for multiples of 1024 (``4G``).
    With an invalid value, every allocation fails with an error that says so.

    Memory-mapped weights and arrays of other libraries do not count.

    Raises ``TypeError`` for values other than an int or ``None``, and ``ValueError`` for an int
    outside of 1 to 2**63 - 1.
    """
    if bytes is not None and (isinstance(bytes, bool) or not isinstance(bytes, int)):
        raise TypeError(f"set_memory_limit: expected a number of bytes or None, got {bytes!r}")
    if bytes is not None and not 1 <= bytes < 2**63:
        raise ValueError(f"set_memory_limit: the limit must be from 1 to 2**63 - 1, got {bytes}")
    _core.set_memory_limit(bytes)


def memory_limit() -> int | None:
    """Returns the memory limit that was set in bytes, or ``None`` if the limit is dynamic."""
    return _core.memory_state()[0]


def held_bytes() -> int:
    """Returns the number of bytes that Pliant's tensors take now, including free blocks that are
    kept for later runs."""
    return _core.memory_state()[1]


def load_module(path: str) -> Any:
    """Loads an executable that ``export_library`` saved. The file is validated and not trusted.

    Raises ``OSError`` if the file cannot be read, and ``ExecutableError`` if it is damaged, invalid
    or written by another version.
    """
    return _core.Executable.load(path)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """Creates a scalar constant. By default, a Python int is int32 and a float float32."""
    return _core.tir_const(value, dtype)


def convert(value: Any) -> Any:
    """Converts a Python value to an object of the IR: numbers become scalar constants; lists, dicts, strings and functions are
    used as they are."""
    return value if isinstance(value, str | list | tuple | dict) or callable(value) or value is None else _core.tir_const(value)


def enabled(target: str) -> bool:
    """Whether code can be generated for a target."""
    return str(target).split()[:1] in (["llvm"], ["cpu"], ["c"])


def num_threads() -> int:
    """Returns the number of processors that the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def save_param_dict(params: dict[str, Any]) -> bytes:
    """Converts named tensors to bytes, in NumPy's format ``npz``."""
    import numpy as np

    file = io.BytesIO()
    values = {name: value.numpy() if isinstance(value, NDArray) else value for name, value in params.items()}
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in values.items()}
    np.savez(file, **arrays)
    return file.getvalue()


def load_param_dict(param_bytes: bytes) -> dict[str, NDArray]:
    """Loads the tensors that :func:`save_param_dict` saved. Raises ``ValueError`` for other bytes."""
    import numpy as np

    with np.load(io.BytesIO(param_bytes), allow_pickle=False) as arrays:
        return {name: tensor(arrays[name]) for name in arrays.files}

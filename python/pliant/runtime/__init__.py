"""Run-time values: tensors, shapes, devices."""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant._core import Device, NDArray, ShapeTuple, cpu, device, from_dlpack

Tensor = NDArray
Shape = ShapeTuple

__all__ = [
    "Device",
    "NDArray",
    "Shape",
    "ShapeTuple",
    "Tensor",
    "cpu",
    "device",
    "empty",
    "from_dlpack",
    "held_bytes",
    "load_module",
    "memory_limit",
    "set_memory_limit",
    "tensor",
]


def tensor(arr: Any, device: Device | None = None, dtype: str | None = None) -> NDArray:
    """A new tensor with a copy of the elements of anything array-like."""
    return _core.array(arr, device, dtype)


def empty(shape: Any, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """A new tensor of zeros."""
    return _core.empty(shape, dtype, device)


def set_memory_limit(bytes: int | None) -> None:
    """How many bytes tensors of Pliant may take at once: a run that needs more ends with a ``VMError``. At first, and with
    ``None``, the limit follows the machine, the process's control groups and its own limits (``ulimit -v``): nine tenths of
    what is held and of what they have left when more is asked for. The environment variable ``PLIANT_MEMORY_LIMIT`` sets one for processes:
    a number of bytes, or of multiples of 1024 with ``K``, ``M``, ``G`` or ``T`` behind it (``4G``); where it is anything else, whatever
    takes memory ends with an error that says so. Weights that are mapped from
    files and arrays of other libraries do not count."""
    if bytes is not None and (isinstance(bytes, bool) or not isinstance(bytes, int)):
        raise TypeError(f"set_memory_limit: expected a number of bytes or None, got {bytes!r}")
    if bytes is not None and not 1 <= bytes < 2**63:
        raise ValueError(f"set_memory_limit: a limit must be from 1 to 2**63 - 1, got {bytes}")
    _core.set_memory_limit(bytes)


def memory_limit() -> int | None:
    """The limit that was set, in bytes; ``None`` where it follows the machine."""
    return _core.memory_state()[0]


def held_bytes() -> int:
    """Bytes that tensors of Pliant take now, with the free blocks that are kept for the next run."""
    return _core.memory_state()[1]


def load_module(path: str) -> Any:
    """Loads an executable saved by ``export_library``. Its bytes are validated; nothing in it is trusted."""
    return _core.Executable.load(path)

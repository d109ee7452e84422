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
    "load_module",
    "tensor",
]


def tensor(arr: Any, device: Device | None = None, dtype: str | None = None) -> NDArray:
    """A new tensor with a copy of the elements of anything array-like."""
    return _core.array(arr, device, dtype)


def empty(shape: Any, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """A new tensor of zeros."""
    return _core.empty(shape, dtype, device)


def load_module(path: str) -> Any:
    """Loads an executable saved by ``export_library``. Its bytes are validated; nothing in it is trusted."""
    return _core.Executable.load(path)

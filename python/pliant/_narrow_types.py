"""Element types of fewer than 8 bits, and floats of 8 bits: arrays of the package ``ml_dtypes``, which enter and leave programs as
8-bit integers.

Narrow integers become int8 or uint8 of the same value, and narrow floats their bits as uint8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["from_program", "to_program"]

_HELD_AS = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}


def to_program(value: Any) -> Any:
    """Converts an array of a narrow type to the type in which a program takes it, also within lists. Returns other values
    unchanged."""
    if isinstance(value, list | tuple) and any(isinstance(item, np.ndarray) for item in value):
        return [to_program(item) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    name = value.dtype.name
    if name.startswith(("float8", "float4")):
        return value.view(np.uint8)
    return value.astype(_HELD_AS[name]) if name in _HELD_AS else value


def from_program(value: Any, name: str) -> Any:
    """Converts a result to the narrow type with this name, such as ``int4``. Returns it unchanged if it is not an array of 8-bit
    integers, if the name is empty, or if ``ml_dtypes`` is not installed."""
    if not name or not isinstance(value, np.ndarray) or value.dtype not in (np.int8, np.uint8):
        return value
    try:
        import ml_dtypes
    except ImportError:
        return value
    dtype = np.dtype(getattr(ml_dtypes, name))
    return value.view(dtype) if name.startswith("float") else value.astype(dtype)

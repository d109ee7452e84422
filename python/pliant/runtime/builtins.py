"""Builtins of the VM as packed functions, for Python code that calls them by name. Programs run the builtins of the VM itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant._core import NDArray, ShapeTuple


def reshape(array: NDArray, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Returns the elements with another shape. The result shares the memory of ``array``."""
    return array.numpy().reshape(tuple(int(size) for size in shape))


def copy(array: NDArray) -> NDArray:
    """Returns a copy of an array."""
    return array.copy()


def shape_of(array: NDArray) -> ShapeTuple:
    """Returns the shape of an array."""
    return ShapeTuple(array.shape)


def make_tuple(*fields: Any) -> tuple[Any, ...]:
    """Returns a tuple of values."""
    return fields


def tuple_getitem(values: Sequence[Any], index: int) -> Any:
    """Returns a field of a tuple."""
    return values[int(index)]


__all__ = ["copy", "make_tuple", "reshape", "shape_of", "tuple_getitem"]

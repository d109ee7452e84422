"""Data types of torch and of Pliant, and torch's type promotion."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from pliant.error import UnsupportedError

Scalar = bool | int | float
"""A Python number."""

_NAMES = {
    torch.bool: "bool",
    torch.uint8: "uint8",
    torch.uint16: "uint16",
    torch.uint32: "uint32",
    torch.uint64: "uint64",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a data type. Raises ``UnsupportedError`` for a type that Pliant does not have, such as complex64."""
    if dtype not in _NAMES:
        raise UnsupportedError(f"tensors of {dtype} are not supported")
    return _NAMES[dtype]


def torch_dtype(name: str) -> torch.dtype:
    """The data type of torch with this name."""
    return _TYPES[name]


def is_float(name: str) -> bool:
    """Whether a data type is a float type."""
    return name.startswith(("float", "bfloat"))


def is_integer(name: str) -> bool:
    """Whether a data type is an integer type; bool is not."""
    return name.startswith(("int", "uint"))


Operand = tuple[str, bool]
"""The data type of an operand, and whether it has dims: tensors with dims take precedence over scalars of the same kind."""


@lru_cache(maxsize=4096)
def result_type(operands: tuple[Operand | type, ...]) -> str:
    """The type to which torch promotes operands: data types of tensors, and the Python types of numbers."""
    values: list[Any] = []
    for operand in operands:
        if isinstance(operand, type):
            values.append(operand(1))
        else:
            name, has_dims = operand
            values.append(torch.empty((1,) if has_dims else (), dtype=_TYPES[name], device="meta"))
    result = values[0]
    if len(values) == 1:
        return dtype_name(result.dtype if isinstance(result, torch.Tensor) else torch.tensor(result).dtype)
    # ``torch.result_type`` takes two operands. A fold is not associative for scalars, so that tensors come first.
    values.sort(key=lambda v: (not isinstance(v, torch.Tensor), getattr(v, "ndim", 0) == 0))
    dtype = torch.result_type(values[0], values[1])
    for value in values[2:]:
        shape = (1,) if any(getattr(v, "ndim", 0) for v in values) else ()
        dtype = torch.result_type(torch.empty(shape, dtype=dtype, device="meta"), value)
    return dtype_name(dtype)

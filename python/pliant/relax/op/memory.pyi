"""The operators under `R.memory`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_storage(size: Operand, virtual_device_index: Operand, storage_scope: Operand, dtype: Operand) -> Expr:
    """Allocates a storage, which kill_storage frees."""

def alloc_tensor(storage: Operand, offset: Operand, shape: Operand, dtype: Operand, runtime_device_index: Operand | None = None) -> Expr:
    """Creates a tensor in a storage, at an offset in bytes."""

def ensure_zero_offset(data: Operand) -> Expr:
    """The same tensor with offset 0 in its storage.

    Data types: `data` any type; result as `data`."""

def kill_storage(storage: Operand) -> Expr:
    """Frees a storage."""

def kill_tensor(tensor: Operand) -> Expr:
    """Ends the lifetime of a tensor."""

def view(data: Operand, shape: Operand | None = None, dtype: Any = None, relative_byte_offset: int | Sequence[int] = 0) -> Expr:
    """Reinterprets the memory of a tensor, from an offset in bytes on, as a tensor of another shape and data type. By default, shape and type are those of `data`. Raises an error if the result needs more bytes than `data` has, or the element size changes without a shape.

    Data types: `data` any type."""

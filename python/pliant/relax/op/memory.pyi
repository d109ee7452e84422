"""The operators under `R.memory`, generated from their declarations (see docs/reference/operators.md). A test compares both."""

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
    """The same tensor with offset 0 in its storage."""

def kill_storage(storage: Operand) -> Expr:
    """Frees a storage."""

def kill_tensor(tensor: Operand) -> Expr:
    """Ends the lifetime of a tensor."""

def view(data: Operand, shape: Operand | None = None, dtype: Any = None, relative_byte_offset: int | Sequence[int] = 0) -> Expr:
    """Reinterprets the memory of a tensor, from an offset in bytes on, as a tensor of another shape and data type."""

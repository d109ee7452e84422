"""The operators under `R.memory`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_storage(size: Operand, virtual_device_index: Operand, storage_scope: Operand, dtype: Operand) -> Expr:
    """New memory, to be freed by kill_storage."""

def alloc_tensor(storage: Operand, offset: Operand, shape: Operand, dtype: Operand, runtime_device_index: Operand | None = None) -> Expr:
    """A tensor in memory."""

def ensure_zero_offset(data: Operand) -> Expr:
    """The same tensor, which begins where its memory does."""

def kill_storage(storage: Operand) -> Expr:
    """Frees memory."""

def kill_tensor(tensor: Operand) -> Expr:
    """Ends the life of a tensor."""

def view(data: Operand, shape: Operand | None = None, dtype: Any = None, relative_byte_offset: int | Sequence[int] = 0) -> Expr:
    """The memory of a tensor, from an offset in bytes on, read as a tensor of that shape and data type."""

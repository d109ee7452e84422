"""The operators under `R.vm`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_shape_heap(size: Operand) -> Expr:
    """A heap of so many sizes."""

def alloc_storage(size: Operand, runtime_device_index: Operand, dtype: Operand, storage_scope: Operand | None = None) -> Expr:
    """New memory of the machine."""

def alloc_tensor(storage: Operand, offset: Operand, shape: Operand, dtype: Operand, runtime_device_index: Operand | None = None) -> Expr:
    """A tensor in memory of the machine."""

def call_tir_dyn(func: Operand, args: Operand) -> Expr:
    """Calls a loop function with sizes unpacked from a shape."""

def kill_object(obj: Operand) -> Expr:
    """Clears a register."""

def load_shape(heap: Operand, *slots: Operand) -> Expr:
    """The shape in slots of a heap."""

def store_shape(shape: Operand, heap: Operand, *slots: Operand) -> Expr:
    """Writes the dims of a shape into slots of a heap."""

"""The operators under `R.vm`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_shape_heap(size: Operand) -> Expr:
    """Allocates a shape heap with the given number of slots."""

def alloc_storage(size: Operand, runtime_device_index: Operand, dtype: Operand, storage_scope: Operand | None = None) -> Expr:
    """Allocates a storage in the VM."""

def alloc_tensor(storage: Operand, offset: Operand, shape: Operand, dtype: Operand, runtime_device_index: Operand | None = None) -> Expr:
    """Creates a tensor in a storage of the VM, at an offset in bytes."""

def call_tir_dyn(func: Operand, args: Operand) -> Expr:
    """Calls a loop function with sizes unpacked from a shape."""

def kill_object(obj: Operand) -> Expr:
    """Clears a VM register."""

def load_shape(heap: Operand, *slots: Operand) -> Expr:
    """Reads a shape from slots of a shape heap."""

def store_shape(shape: Operand, heap: Operand, *slots: Operand) -> Expr:
    """Writes the dims of a shape to slots of a shape heap."""

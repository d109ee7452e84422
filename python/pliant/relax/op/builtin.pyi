"""The operators under `R.builtin`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_tensor(shape: Operand, dtype: Operand, runtime_device_index: Operand, storage_scope: Operand | None = None) -> Expr:
    """Allocates a tensor."""

def stop_lift_params(x: Operand) -> Expr:
    """The identity. LiftTransformParams does not lift computations across it.

    Data types: `x` any type; result as `x`."""

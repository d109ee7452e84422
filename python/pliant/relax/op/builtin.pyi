"""The operators under `R.builtin`, generated from their declarations (see docs/reference/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def alloc_tensor(shape: Operand, dtype: Operand, runtime_device_index: Operand, storage_scope: Operand | None = None) -> Expr:
    """Allocates a tensor."""

def stop_lift_params(x: Operand) -> Expr:
    """The identity. LiftTransformParams does not lift computations across it."""

"""Modules, global variables, structural equality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pliant import _core
from pliant._core import IRModule, Range

if TYPE_CHECKING:
    from pliant._core import PrimFunc
    from pliant._core.relax import Function

GlobalVar = _core.relax.GlobalVar

__all__ = [
    "GlobalVar",
    "IRModule",
    "Range",
    "assert_structural_equal",
    "structural_equal",
    "structural_hash",
]


def structural_equal(
    lhs: IRModule | Function | PrimFunc, rhs: IRModule | Function | PrimFunc, map_free_vars: bool = False
) -> bool:
    """Whether both are the same up to the names of variables."""
    return _core.structural_difference(lhs, rhs) is None


def assert_structural_equal(
    lhs: IRModule | Function | PrimFunc, rhs: IRModule | Function | PrimFunc, map_free_vars: bool = False
) -> None:
    """Raises ``ValueError`` that tells the first difference unless both are the same up to names."""
    difference = _core.structural_difference(lhs, rhs)
    if difference is not None:
        raise ValueError(f"StructuralEqual check failed: {difference}")


def structural_hash(node: IRModule | Function | PrimFunc, map_free_vars: bool = False) -> int:
    """A hash that is the same for structurally equal functions and modules."""
    return _core.structural_hash(node)

"""Passes and rules for tests of the pass infrastructure and of the lowering."""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant.relax.expr_functor import PyExprMutator, mutator
from pliant.transform import PassContext, module_pass

__all__ = ["ApplyEmptyCppMutator", "LowerWithRelayOpStrategyPass"]


def ApplyEmptyCppMutator() -> Any:
    """Creates a pass that rebuilds every graph function without changes."""

    @mutator
    class Identity(PyExprMutator):
        """Rebuilds an expression."""

    @module_pass(opt_level=0, name="ApplyEmptyCppMutator")
    def rebuild(mod: Any, ctx: PassContext) -> Any:
        for var, func in mod.functions_items():
            if isinstance(func, _core.relax.Function):
                mod.update_func(var, Identity(mod).visit_expr(func))
        return mod

    return rebuild


def LowerWithRelayOpStrategyPass(target: Any = None) -> Any:
    """Creates the pass that lowers operators. TVM's pass of this name used the schedules of Relay; ``target`` is ignored."""
    from pliant.relax.transform import LegalizeOps

    return LegalizeOps()

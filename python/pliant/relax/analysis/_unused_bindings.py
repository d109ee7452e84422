"""Removes unused bindings from functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax.analysis import contains_impure_call, used_vars
from pliant.relax.expr_functor import PyExprMutator

if TYPE_CHECKING:
    from pliant._core.relax import Expr, Function, Var

_relax = _core.relax


class _RemoveUnused(PyExprMutator):
    """Removes unused bindings. Bindings are examined from the last to the first, so that a chain of
    unused bindings is removed in one pass."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self._counts: dict[Var, int] = {}
        for binding in _relax.all_bindings(func):
            self._count(binding.value, 1)
        results = [node.body for node in _relax.post_order(func) if isinstance(node, _relax.SeqExpr)]
        for result in results:
            self._count(result, 1)
        self._dead: dict[Var, None] = {}
        for binding in reversed(_relax.all_bindings(func)):
            if self._removable(binding):
                self._dead[binding.var] = None
                self._count(binding.value, -1)

    def _removable(self, binding: Any) -> bool:
        # A match_cast defines sizes and is a run-time check, so it is kept.
        return (
            isinstance(binding, _relax.VarBinding)
            and not self._counts.get(binding.var, 0)
            and not isinstance(binding.value, _relax.If)
            and not contains_impure_call(binding.value)
        )

    def _count(self, expr: Expr, by: int) -> None:
        if isinstance(expr, _relax.If):
            expr = expr.cond
        for var in used_vars(expr):
            self._counts[var] = self._counts.get(var, 0) + by

    def visit_binding(self, binding: Any) -> None:
        if binding.var not in self._dead:
            super().visit_binding(binding)


def remove_all_unused(func: Function) -> Function:
    """Removes unused bindings without side effects."""
    result: Function = _RemoveUnused(func).visit_expr(func)
    return result


__all__ = ["remove_all_unused"]

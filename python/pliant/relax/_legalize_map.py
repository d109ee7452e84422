"""Replaces operators by the results of user-defined functions (``LegalizeOps`` with a map)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pliant import _core
from pliant._core import IRModule
from pliant.ir import Op
from pliant.relax.expr_functor import PyExprMutator, mutator


def legalize_by_map(mod: IRModule, rules: Mapping[str, Callable[..., Any]], skip: set[str]) -> IRModule:
    """Replaces calls of operators by the results of the user's functions. ``rules`` maps names of
    operators to functions. Operators in ``skip`` are not replaced.

    Raises ``TypeError`` if a function does not return an expression.
    """

    @mutator
    class Legalizer(PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            name = str(getattr(call.op, "name", ""))
            if name in skip or name not in rules or not isinstance(call.op, Op):
                return call
            result = rules[name](self.builder_, call)
            if not isinstance(result, _core.relax.Expr):
                what = type(result).__name__
                raise TypeError(f"the legalization function for operator {name} returned {what}, not an expression")
            return result

    legalizer = Legalizer(mod)
    for var, func in mod.functions_items():
        if isinstance(func, _core.relax.Function):
            result = legalizer.visit_expr(func)
            if result is not func:
                legalizer.builder_.update_func(var, result)
    return legalizer.builder_.get()

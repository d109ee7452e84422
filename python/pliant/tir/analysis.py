"""Analyses of loop functions, with the names of ``tvm.tir.analysis``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import _core
from pliant._core import IRModule, PrimExpr, PrimFunc
from pliant.tir.stmt_functor import post_order_visit

__all__ = ["expr_deep_equal", "undefined_vars", "verify_memory", "verify_ssa", "verify_well_formed"]


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """Whether two expressions have the same structure and the same variables. No expression is simplified."""
    from pliant.ir import structural_equal

    return structural_equal(lhs, rhs)


def undefined_vars(node: Any, defs: Sequence[PrimExpr] = ()) -> list[PrimExpr]:
    """Returns the variables that a statement or an expression uses without defining them, each once. ``defs`` are variables that
    are defined outside."""
    if isinstance(node, PrimExpr):
        used = list(_core.tir_free_vars(node))
        inside: list[PrimExpr] = []
    else:
        used, inside = [], []

        def visit(part: Any) -> None:
            if isinstance(part, _core.Var):
                used.append(part)
            for field in ("loop_var", "var"):
                defined = getattr(part, field, None) if not isinstance(part, PrimExpr) else None
                if isinstance(defined, PrimExpr):
                    inside.append(defined)
            inside.extend(axis.var for axis in getattr(part, "iter_vars", ()) if not isinstance(part, PrimExpr))

        post_order_visit(node, visit)
    known = [*defs, *inside]
    result: list[PrimExpr] = []
    for var in used:
        if not any(var.same_as(other) for other in (*known, *result)):
            result.append(var)
    return result


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether loop functions follow the rules of the IR. With ``assert_mode``, raises ``ValueError`` with the violations
    instead of returning ``False``."""
    module = obj if isinstance(obj, IRModule) else IRModule({"main": obj})
    problems = _core.verify_module(module)
    if problems and assert_mode:
        raise ValueError("the loop function is not well-formed:\n" + "\n".join(problems))
    return not problems


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is defined once. A function that violates this cannot be created, so the result is ``True``."""
    return True


def verify_memory(func: PrimFunc) -> bool:
    """Whether the host accesses only its own memory. There is one device, so the result is ``True``."""
    return True

"""Computes the floats that a program derives from sizes (``SymFloat``), such as ``1 / sqrt(n)``."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pliant.error import UnsupportedError

if TYPE_CHECKING:
    from pliant.frontend.torch.function_importer import FunctionImporter

OPERATORS = {
    "Add": "add",
    "Mul": "multiply",
    "IntTrueDiv": "divide",
    "FloatTrueDiv": "divide",
    "FloatPow": "power",
    "Pow": "power",
    "Max": "maximum",
    "Min": "minimum",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_exp": "exp",
    "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_sin": "sin",
    "OpaqueUnaryFn_cos": "cos",
    "OpaqueUnaryFn_tanh": "tanh",
}
"""The Relax operators for functions of floats, by sympy class."""


def float_scalar(cx: FunctionImporter, value: Any) -> Any:
    """Emits the computation of a ``SymFloat``, or of a sympy expression, and returns a float64 tensor of rank 0.

    Raises ``UnsupportedError`` for an unsupported function.
    """
    expr = value.node.expr if hasattr(value, "node") else value
    name = type(expr).__name__
    if getattr(expr, "is_number", False):
        return cx.tensor(float(expr), "float64")
    if name in ("ToFloat", "Identity"):
        return float_scalar(cx, expr.args[0])
    if getattr(expr, "is_integer", False):
        return cx.tensor(cx.sizes.convert(expr), "float64")
    if name not in OPERATORS:
        raise UnsupportedError(f"the number {expr} is not supported (function {name})")
    rule = getattr(cx.ops, OPERATORS[name])
    operands = [float_scalar(cx, a) for a in expr.args]
    return rule(*operands) if len(operands) == 1 else reduce(rule, operands)

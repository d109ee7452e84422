"""What code around ``topi`` asks of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import arith
from pliant._core import PrimExpr

__all__ = ["equal_const_int", "get_const_int", "get_const_tuple", "prod", "simplify"]


def simplify(expr: Any) -> Any:
    """The expression in a simpler form; numbers as they are."""
    return arith.Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def get_const_int(expr: Any) -> int:
    """The integer that an expression is.

    Raises ``ValueError`` where its value is known only at run time."""
    value = simplify(expr)
    number = value if isinstance(value, int) else getattr(value, "value", None)
    if number is None:
        raise ValueError(f"{expr} is known only at run time")
    return int(number)


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """The sizes, as integers where they are known."""
    values = [simplify(v) for v in in_tuple]
    return tuple(v if isinstance(v, int) else getattr(v, "value", v) for v in values)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is known to be that integer."""
    known = simplify(expr)
    return (known if isinstance(known, int) else getattr(known, "value", None)) == value


def prod(x: Sequence[Any]) -> Any:
    """The product; 1 of none."""
    result: Any = 1
    for factor in x:
        result = result * factor
    return result

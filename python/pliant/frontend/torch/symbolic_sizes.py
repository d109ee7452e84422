"""Converts the symbolic sizes of torch (sympy expressions) to Pliant's size expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from pliant import tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.float_factors import quotient_of

if TYPE_CHECKING:
    import sympy

    from pliant._core import PrimExpr

Size = Any
"""A size: an int, or an int64 ``PrimExpr``."""


class SymbolicSizes:
    """The symbols of one exported program, and the size variables that stand for them.

    ``names`` maps the names of torch's symbols (``s77``) to the names of the size variables (``batch``). Symbols that it lacks keep
    their names.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = dict(names or {})
        self._variables: dict[str, Any] = {}
        self._defined: set[str] = set()
        self._converted: dict[Any, Any] = {}

    def variable(self, symbol: str) -> Any:
        """The size variable of one of torch's symbols."""
        if symbol not in self._variables:
            self._variables[symbol] = tir.Var(self.names.get(symbol, symbol), "int64")
        return self._variables[symbol]

    def name(self, symbol: str) -> str:
        """The name of the size variable of one of torch's symbols."""
        return self.names.get(symbol, symbol)

    def define(self, expr: Any) -> None:
        """Records that the program defines all symbols of a size, by a parameter or a ``match_cast``."""
        self._defined.update(self.symbols(expr))

    @property
    def defined(self) -> frozenset[str]:
        """The names of torch's symbols that the program defines."""
        return frozenset(self._defined)

    def undefined(self, expr: Any) -> set[str]:
        """The symbols of a size that no parameter and no earlier ``match_cast`` defines."""
        return self.symbols(expr) - self._defined

    @staticmethod
    def symbols(expr: Any) -> set[str]:
        """The names of torch's symbols in an int, ``SymInt`` or ``SymBool``."""
        node = getattr(expr, "node", None)
        return {s.name for s in node.expr.free_symbols} if node is not None else set()

    def convert(self, value: Any) -> Any:
        """Converts an int, ``SymInt``, ``SymBool`` or sympy expression to an int, a bool or a ``PrimExpr``.

        Raises ``UnsupportedError`` for an expression that size expressions cannot represent.
        """
        if isinstance(value, bool | int):
            return value
        expr = value.node.expr if hasattr(value, "node") else value
        if expr not in self._converted:
            self._converted[expr] = self._expression(expr)
        return self._converted[expr]

    def _expression(self, expr: sympy.Basic) -> Any:
        if getattr(expr, "is_Symbol", False):
            return self.variable(expr.name)  # type: ignore[attr-defined]
        if getattr(expr, "is_Integer", False):
            return int(expr)  # type: ignore[call-overload]
        name = type(expr).__name__
        if name in ("BooleanTrue", "BooleanFalse"):
            return bool(expr)
        if name in ROUNDINGS:
            return self._rounded(name, expr.args[0])
        if name == "Pow" or name == "PowByNatural":
            base, exponent = expr.args
            if getattr(exponent, "is_Integer", False) and int(exponent) >= 0:  # type: ignore[call-overload]
                return reduce(operator.mul, [self.convert(base)] * int(exponent), 1)  # type: ignore[call-overload]
        rule = RULES.get(name)
        if rule is None:
            raise UnsupportedError(f"the size expression {expr} is not supported (function {name})")
        return rule(*(self.convert(a) for a in expr.args))

    def _rounded(self, rounding: str, expr: sympy.Basic) -> Size:
        """Rounds a float expression to a size."""
        if rounding == "TruncToInt" and getattr(expr, "is_nonnegative", False):
            rounding = "FloorToInt"
        floats = [a for a in expr.args if getattr(a, "is_Float", False)]
        if type(expr).__name__ == "Mul" and len(floats) == 1 and len(expr.args) == 2:
            p, q = quotient_of(float(floats[0]), rounding)
            size = next(a for a in expr.args if a not in floats)
            numerator, denominator = self._quotient(size)
            if isinstance(denominator, int) and denominator == 1:
                return ROUNDINGS[rounding](numerator * p, q)
        return ROUNDINGS[rounding](*self._quotient(expr))

    def _quotient(self, expr: sympy.Basic) -> tuple[Size, Size]:
        """Converts a float expression over sizes to an exact quotient of two size expressions with a positive divisor."""
        if getattr(expr, "is_Float", False):
            return float(expr).as_integer_ratio()  # type: ignore[arg-type]
        if getattr(expr, "is_Rational", False):
            return int(expr.p), int(expr.q)  # type: ignore[attr-defined]
        name = type(expr).__name__
        if name in ("ToFloat", "Identity"):
            return self._quotient(expr.args[0])
        if name in ("IntTrueDiv", "FloatTrueDiv"):
            (a, b), (c, d) = map(self._quotient, expr.args)
            return a * d, b * c
        if name == "Mul":
            pairs = [self._quotient(a) for a in expr.args]
            return reduce(operator.mul, (p for p, _ in pairs), 1), reduce(operator.mul, (q for _, q in pairs), 1)
        if name == "Add":
            return reduce(_sum_of_quotients, map(self._quotient, expr.args))
        return self.convert(expr), 1


def _sum_of_quotients(left: tuple[Size, Size], right: tuple[Size, Size]) -> tuple[Size, Size]:
    (a, b), (c, d) = left, right
    return a * d + c * b, b * d


def _fold(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *args: reduce(combine, args)


def _expr(value: Any) -> PrimExpr:
    return tir.const(value, "int64") if isinstance(value, int) else value


def _floor(numerator: Size, denominator: Size) -> Size:
    return numerator if isinstance(denominator, int) and denominator == 1 else numerator // denominator


def _truncate(numerator: Size, denominator: Size) -> Size:
    if isinstance(denominator, int) and denominator == 1:
        return numerator
    return tir.Select(_expr(numerator) >= 0, numerator // denominator, -((-numerator) // denominator))


def _ceil(numerator: Size, denominator: Size) -> Size:
    return _floor(numerator + denominator - 1, denominator)


def _round(numerator: Size, denominator: Size) -> Size:
    """Rounds a quotient to the nearest integer, ties to even."""
    doubled, halves = 2 * numerator + denominator, 2 * denominator
    up = _floor(doubled, halves)
    tie = tir.all(_expr(doubled % halves).equal(0), _expr(up % 2).equal(1))
    return tir.Select(tie, _expr(up - 1), _expr(up))


ROUNDINGS: dict[str, Callable[[Size, Size], Size]] = {
    "FloorToInt": _floor,
    "TruncToInt": _truncate,
    "CeilToInt": _ceil,
    "RoundToInt": _round,
}
"""Functions of a float expression whose result is a size, by sympy class."""

RULES: dict[str, Callable[..., Any]] = {
    "Add": _fold(operator.add),
    "Mul": _fold(operator.mul),
    "Max": _fold(lambda a, b: tir.max(_expr(a), _expr(b))),
    "Min": _fold(lambda a, b: tir.min(_expr(a), _expr(b))),
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "CeilDiv": lambda a, b: (a + b - 1) // b,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "ModularIndexing": lambda base, divisor, modulus: (base // divisor) % modulus,
    "Where": lambda c, a, b: tir.Select(c, _expr(a), _expr(b)),
    "Abs": lambda a: tir.max(_expr(a), -_expr(a)),
    "Identity": lambda a: a,
    "LShift": lambda a, b: a * 2**b,
    "RShift": lambda a, b: a // 2**b,
    "Equality": lambda a, b: _expr(a).equal(_expr(b)),
    "Unequality": lambda a, b: tir.Not(_expr(a).equal(_expr(b))),
    "StrictLessThan": lambda a, b: _expr(a) < b,
    "LessThan": lambda a, b: _expr(a) <= b,
    "StrictGreaterThan": lambda a, b: _expr(a) > b,
    "GreaterThan": lambda a, b: _expr(a) >= b,
    "And": _fold(lambda a, b: tir.all(a, b)),
    "Or": _fold(lambda a, b: tir.any(a, b)),
    "Not": lambda a: tir.Not(a),
}
"""Conversions of sympy classes whose operands are sizes or conditions, by class."""

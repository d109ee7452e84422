"""Functions that create scalar expressions. They accept numbers wherever they accept
expressions.

Two operands are converted to a common type. A constant gets the type of the other operand. Otherwise, a
float type is preferred to an integer type, an integer type to bool, and a wider type to a narrower one.

All functions raise ``TypeError`` for an operand that is neither a scalar expression nor a number. The data
types of operands are checked when the loop function is compiled, which raises ``CompileError``.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex, TypeAlias

from pliant import _core

if TYPE_CHECKING:
    from pliant._core import PrimExpr

PrimExprLike: TypeAlias = "PrimExpr | SupportsIndex | SupportsFloat"

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "ceil",
    "ceildiv",
    "clz",
    "const",
    "copysign",
    "cos",
    "cosh",
    "div",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "likely",
    "log",
    "log10",
    "log1p",
    "log2",
    "max_value",
    "min_value",
    "multiply",
    "nearbyint",
    "nextafter",
    "popcount",
    "pow",
    "power",
    "reinterpret",
    "round",
    "rsqrt",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "substitute",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "undefined_vars",
]


class Op(str):
    """The name of an intrinsic, such as ``"tir.exp"``. The property ``op`` of a call has this
    type."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the intrinsic as a plain string."""
        return str(self)

    @staticmethod
    def get(op_name: str) -> Op:
        """Returns the intrinsic with this name. The name is not checked."""
        return Op(op_name)

    def same_as(self, other: object) -> bool:
        """Whether both are the same intrinsic."""
        return self == other


class Let:
    """``Let(var, value, body)`` returns ``body`` with the variable replaced by the value. The value
    is still computed only once, because expressions share their parts. Therefore there is no node
    of this kind.

    Raises ``UnsupportedError`` if the value calls a packed or extern function, because such a call
    must happen exactly once. Use ``tir.LetStmt`` around the statement instead.
    """

    def __new__(cls, var: PrimExpr, value: PrimExprLike, body: PrimExpr) -> PrimExpr:  # type: ignore[misc]
        return _core.tir_let(var, value, body)


def call_intrin(dtype: str, func_name: str, *args: PrimExprLike | str) -> PrimExpr:
    """Calls an intrinsic by name. ``dtype`` is the type of the result.

    Raises ``ValueError`` for an unknown intrinsic, and ``TypeError`` for a wrong number of
    arguments or another type of the result.
    """
    return _core.Call(dtype, func_name, list(args))


def exp(x: PrimExprLike) -> PrimExpr:
    """``e^x``. ``x`` is a float, and the result has its type."""
    return _core.tir_call("exp", x)


def exp2(x: PrimExprLike) -> PrimExpr:
    """``2^x``. ``x`` is a float, and the result has its type."""
    return _core.tir_call("exp2", x)


def exp10(x: PrimExprLike) -> PrimExpr:
    """``10^x``, of the type of ``x``."""
    value = _core.tir_const(x)
    return power(const(10, value.dtype), value)


def hypot(x1: PrimExprLike, x2: PrimExprLike) -> PrimExpr:
    """``sqrt(x1^2 + x2^2)`` of floats, without intermediate overflow. NaN if one operand is NaN. The result has the
    common type of the operands.

    Raises ``TypeError`` for integers.
    """
    a, b = abs(_core.tir_const(x1)), abs(_core.tir_const(x2))
    large, small = max(a, b), min(a, b)
    zero, one = const(0, large.dtype), const(1, large.dtype)
    part = small / if_then_else(large > zero, large, one)
    # The quotient of two infinities is NaN.
    part = if_then_else(small == large, if_then_else(large > zero, one, zero), part)
    return large * sqrt(one + part * part)


def copysign(x1: PrimExprLike, x2: PrimExprLike) -> PrimExpr:
    """``x1`` with the sign of ``x2``, for floats. ``x2`` is converted to the type of ``x1``, which is the type of the
    result.

    Raises ``TypeError`` if ``x1`` is not a float.
    """
    a, b = _core.tir_const(x1), _core.tir_const(x2)
    bits = _bits_of(a.dtype)
    sign = const(-(1 << (int(bits[3:]) - 1)), bits)
    joined = bitwise_or(
        bitwise_and(reinterpret(bits, a), bitwise_not(sign)),
        bitwise_and(reinterpret(bits, b.astype(a.dtype)), sign),
    )
    return reinterpret(a.dtype, joined)


def nextafter(x1: PrimExprLike, x2: PrimExprLike) -> PrimExpr:
    """The float after ``x1`` in the direction of ``x2``. The result is ``x2`` if both are equal, and NaN if ``x1`` or ``x2`` is
    NaN.

    Raises ``TypeError`` if ``x1`` is not a float.
    """
    a = _core.tir_const(x1)
    b = _core.tir_const(x2).astype(a.dtype)
    bits = _bits_of(a.dtype)
    zero, one = const(0, a.dtype), const(1, bits)
    least = copysign(reinterpret(a.dtype, one), b)
    # The bit pattern of a float grows with its distance from 0, regardless of the sign.
    outward = (a > zero) == (b > a)
    step = reinterpret(a.dtype, reinterpret(bits, a) + if_then_else(outward, one, -one))
    moved = if_then_else(a == zero, least, step)
    moved = if_then_else(a == b, b, moved)
    return if_then_else(any(isnan(a), isnan(b)), a + b, moved)


def ldexp(x1: PrimExprLike, x2: PrimExprLike) -> PrimExpr:
    """``x1 * 2^x2`` for a float ``x1`` and an integer ``x2``. The result has the type of ``x1``."""
    value = _core.tir_const(x1)
    # The power is applied in four factors, so that no factor overflows before the product does.
    power_of_two = min(max(_core.tir_const(x2).astype("int32"), -4400), 4400)
    quarter = floordiv(power_of_two, 4)
    for part in (quarter, quarter, quarter, power_of_two - quarter * 3):
        value = value * exp2(part.astype(value.dtype))
    return value


def _bits_of(dtype: str) -> str:
    """Returns the integer type with the same width as a float type. Raises ``TypeError`` if
    ``dtype`` is not a float type.
    """
    found = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}.get(dtype)
    if found is None:
        raise TypeError(f"the argument must have a float type, but its data type is {dtype}")
    return found


def log(x: PrimExprLike) -> PrimExpr:
    """The natural logarithm. ``x`` is a float, and the result has its type."""
    return _core.tir_call("log", x)


def log2(x: PrimExprLike) -> PrimExpr:
    """The logarithm to base 2. ``x`` is a float, and the result has its type."""
    return _core.tir_call("log2", x)


def log10(x: PrimExprLike) -> PrimExpr:
    """The logarithm to base 10. ``x`` is a float, and the result has its type."""
    return _core.tir_call("log10", x)


def log1p(x: PrimExprLike) -> PrimExpr:
    """``log(1 + x)``. ``x`` is a float, and the result has its type."""
    return _core.tir_call("log1p", x)


def sqrt(x: PrimExprLike) -> PrimExpr:
    """The square root; NaN for negative numbers. ``x`` is a float, and the result has its type."""
    return _core.tir_call("sqrt", x)


def rsqrt(x: PrimExprLike) -> PrimExpr:
    """``1 / sqrt(x)``. ``x`` is a float, and the result has its type."""
    return _core.tir_call("rsqrt", x)


def sin(x: PrimExprLike) -> PrimExpr:
    """The sine of an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("sin", x)


def cos(x: PrimExprLike) -> PrimExpr:
    """The cosine of an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("cos", x)


def tan(x: PrimExprLike) -> PrimExpr:
    """The tangent of an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("tan", x)


def sinh(x: PrimExprLike) -> PrimExpr:
    """The hyperbolic sine. ``x`` is a float, and the result has its type."""
    return _core.tir_call("sinh", x)


def cosh(x: PrimExprLike) -> PrimExpr:
    """The hyperbolic cosine. ``x`` is a float, and the result has its type."""
    return _core.tir_call("cosh", x)


def tanh(x: PrimExprLike) -> PrimExpr:
    """The hyperbolic tangent. ``x`` is a float, and the result has its type."""
    return _core.tir_call("tanh", x)


def asin(x: PrimExprLike) -> PrimExpr:
    """The inverse sine, an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("asin", x)


def acos(x: PrimExprLike) -> PrimExpr:
    """The inverse cosine, an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("acos", x)


def atan(x: PrimExprLike) -> PrimExpr:
    """The inverse tangent, an angle in radians. ``x`` is a float, and the result has its type."""
    return _core.tir_call("atan", x)


def asinh(x: PrimExprLike) -> PrimExpr:
    """The inverse hyperbolic sine. ``x`` is a float, and the result has its type."""
    return _core.tir_call("asinh", x)


def acosh(x: PrimExprLike) -> PrimExpr:
    """The inverse hyperbolic cosine. ``x`` is a float, and the result has its type."""
    return _core.tir_call("acosh", x)


def atanh(x: PrimExprLike) -> PrimExpr:
    """The inverse hyperbolic tangent. ``x`` is a float, and the result has its type."""
    return _core.tir_call("atanh", x)


def sigmoid(x: PrimExprLike) -> PrimExpr:
    """``1 / (1 + e^-x)``. ``x`` is a float, and the result has its type."""
    return _core.tir_call("sigmoid", x)


def erf(x: PrimExprLike) -> PrimExpr:
    """The error function. ``x`` is a float, and the result has its type."""
    return _core.tir_call("erf", x)


def floor(x: PrimExprLike) -> PrimExpr:
    """``x`` rounded towards minus infinity. ``x`` is a number, and the result has its type; integers are returned
    unchanged.
    """
    return _core.tir_call("floor", x)


def ceil(x: PrimExprLike) -> PrimExpr:
    """``x`` rounded towards plus infinity. ``x`` is a number, and the result has its type; integers are returned
    unchanged.
    """
    return _core.tir_call("ceil", x)


def trunc(x: PrimExprLike) -> PrimExpr:
    """``x`` rounded towards zero. ``x`` is a number, and the result has its type; integers are returned unchanged."""
    return _core.tir_call("trunc", x)


def round(x: PrimExprLike) -> PrimExpr:
    """``x`` rounded to nearest, ties to even. ``x`` is a number, and the result has its type; integers are returned
    unchanged.
    """
    return _core.tir_call("round", x)


def nearbyint(x: PrimExprLike) -> PrimExpr:
    """``x`` rounded to nearest, ties to even: the same as ``round``. ``x`` is a number, and the result has its type;
    integers are returned unchanged.
    """
    return _core.tir_call("nearbyint", x)


def isnan(x: PrimExprLike) -> PrimExpr:
    """Whether the float ``x`` is NaN, as a bool."""
    return _core.tir_call("isnan", x)


def isinf(x: PrimExprLike) -> PrimExpr:
    """Whether the float ``x`` is infinite, as a bool."""
    return _core.tir_call("isinf", x)


def isfinite(x: PrimExprLike) -> PrimExpr:
    """Whether the float ``x`` is neither NaN nor infinite, as a bool."""
    return _core.tir_call("isfinite", x)


def popcount(x: PrimExprLike) -> PrimExpr:
    """The number of one bits of an integer or bool ``x``, in the type of ``x``."""
    return _core.tir_call("popcount", x)


def clz(x: PrimExprLike) -> PrimExpr:
    """The number of leading zero bits of an integer or bool ``x``, in the type of ``x``."""
    return _core.tir_call("clz", x)


def bitwise_not(x: PrimExprLike) -> PrimExpr:
    """The bitwise complement of an integer ``x``, or the negation of a bool. The result has the type of ``x``."""
    return _core.tir_call("bitwise_not", x)


def likely(x: PrimExprLike) -> PrimExpr:
    """Marks a bool condition ``x`` that is nearly always true. The result is the condition."""
    return _core.tir_call("likely", x)


def add(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """``lhs + rhs`` of numbers. The result has the common type of the operands; integers wrap around."""
    return _core.tir_binary("add", lhs, rhs)


def subtract(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """``lhs - rhs`` of numbers. The result has the common type of the operands; integers wrap around."""
    return _core.tir_binary("sub", lhs, rhs)


def multiply(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """``lhs * rhs`` of numbers. The result has the common type of the operands; integers wrap around."""
    return _core.tir_binary("mul", lhs, rhs)


def floordiv(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """``a // b`` of numbers, rounded towards minus infinity. The result has the common type of the operands.

    Raises ``ZeroDivisionError`` if ``b`` is the integer constant 0.
    """
    return _core.tir_binary("floordiv", a, b)


def floormod(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """``a % b`` of numbers, with the sign of ``b``. The result has the common type of the operands.

    Raises ``ZeroDivisionError`` if ``b`` is the integer constant 0.
    """
    return _core.tir_binary("floormod", a, b)


def truncdiv(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The quotient of integers, rounded towards zero. The result has the common type of the operands.

    Raises ``ZeroDivisionError`` if ``b`` is the integer constant 0.
    """
    return _core.tir_binary("truncdiv", a, b)


def truncmod(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The remainder of integers, with the sign of ``a``. The result has the common type of the operands.

    Raises ``ZeroDivisionError`` if ``b`` is the integer constant 0.
    """
    return _core.tir_binary("truncmod", a, b)


def atan2(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The angle of the point with the coordinates ``(b, a)``, in radians. The operands are floats. The result has the
    common type of the operands.
    """
    return _core.tir_call("atan2", a, b)


def fmod(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The remainder of floats, with the sign of ``a``. The result has the common type of the operands."""
    return _core.tir_call("fmod", a, b)


def bitwise_and(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The bitwise and of two integers or bools. The result has the common type of the operands."""
    return _core.tir_call("bitwise_and", a, b)


def bitwise_or(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The bitwise or of two integers or bools. The result has the common type of the operands."""
    return _core.tir_call("bitwise_or", a, b)


def bitwise_xor(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The bitwise exclusive or of two integers or bools. The result has the common type of the operands."""
    return _core.tir_call("bitwise_xor", a, b)


def shift_left(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """``a << b`` of integers. The result has the common type of the operands."""
    return _core.tir_call("shift_left", a, b)


def shift_right(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """``a >> b`` of integers. The sign of signed integers is preserved. The result has the common type of the operands.
    """
    return _core.tir_call("shift_right", a, b)


indexdiv = floordiv
indexmod = floormod


def ceildiv(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """``ceil(lhs / rhs)`` of integers. ``rhs`` must be constant or positive. The result has the common type of the
    operands.

    Raises ``ZeroDivisionError`` if ``rhs`` is the integer constant 0.
    """
    return _core.tir_ceildiv(lhs, rhs)


def div(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The quotient of numbers, rounded towards zero for integers. The result has the common type of the operands.

    Raises ``ZeroDivisionError`` if ``b`` is the integer constant 0.
    """
    return _core.tir_binary("div", a, b)


def min(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The smaller of two values of any type. The result has the common type of the operands."""
    return _core.tir_binary("min", a, b)


def max(a: PrimExprLike, b: PrimExprLike) -> PrimExpr:
    """The larger of two values of any type. The result has the common type of the operands."""
    return _core.tir_binary("max", a, b)


def abs(x: PrimExprLike) -> PrimExpr:
    """The absolute value. The result has the type of ``x``."""
    return _core.tir_call("abs", x)


def power(x: PrimExprLike, y: PrimExprLike) -> PrimExpr:
    """``x`` to the power of ``y``, for numbers. The result has the common type of the operands."""
    return _core.tir_call("pow", x, y)


pow = power


def fma(a: PrimExprLike, b: PrimExprLike, c: PrimExprLike) -> PrimExpr:
    """``a * b + c``, rounded once. The operands are floats of one type, which is the type of the result."""
    return _core.tir_call("fma", a, b, c)


def if_then_else(cond: PrimExprLike, t: PrimExprLike, f: PrimExprLike) -> PrimExpr:
    """``t`` if the bool ``cond`` holds, otherwise ``f``. Only the chosen operand is evaluated. The result has the
    common type of ``t`` and ``f``.
    """
    return _core.tir_call("if_then_else", cond, t, f)


def all(*args: PrimExprLike) -> PrimExpr:
    """Whether all conditions hold, as a bool. True without conditions. Numbers count as true if they are not 0."""
    result = _core.tir_const(True)
    for arg in args:
        result = _core.tir_binary("and", result, arg)
    return result


def any(*args: PrimExprLike) -> PrimExpr:
    """Whether at least one condition holds, as a bool. False without conditions. Numbers count as true if they are not
    0.
    """
    result = _core.tir_const(False)
    for arg in args:
        result = _core.tir_binary("or", result, arg)
    return result


def const(value: builtins.int | builtins.float | builtins.bool, dtype: str | None = None) -> PrimExpr:
    """Creates a constant. By default, ints are int64, floats float32 and bools bool.

    Raises ``ValueError`` if the data type cannot represent an int, and ``DTypeError`` for an unknown data type.
    """
    return _core.tir_const(value, dtype)


def max_value(dtype: str) -> PrimExpr:
    """Returns the largest finite value of a data type, as a constant of this type.

    Raises ``DTypeError`` for an unknown data type.
    """
    return _core.tir_limit(dtype, True)


def min_value(dtype: str) -> PrimExpr:
    """Returns the smallest finite value of a data type, as a constant of this type. For floats, this is the negative
    value with the largest magnitude.

    Raises ``DTypeError`` for an unknown data type.
    """
    return _core.tir_limit(dtype, False)


def infinity(dtype: str) -> PrimExpr:
    """Returns positive infinity as a constant of ``dtype``, a float type.

    Raises ``DTypeError`` for an unknown data type.
    """
    return _core.tir_const(float("inf"), dtype)


def reinterpret(dtype: str, value: PrimExprLike) -> PrimExpr:
    """Interprets the bits of a value as ``dtype``, another data type of the same size.

    Raises ``DTypeError`` for an unknown data type.
    """
    return _core.tir_call_typed("reinterpret", dtype, value)


def call_extern(dtype: str, func_name: str, *args: PrimExprLike | str) -> PrimExpr:
    """Calls a symbol that is linked into the program. Buffers are passed as addresses. ``dtype`` is the type of the
    result.

    Raises ``DTypeError`` for an unknown data type. ``TypeError`` is raised for an argument that is neither a scalar, a
    string nor a buffer.
    """
    return _core.tir_call_extern(False, dtype, func_name, *args)


call_pure_extern = call_extern


def call_packed(func_name: str, *args: PrimExprLike | str) -> PrimExpr:
    """Calls a registered packed function. Buffers are passed as addresses. The result has the type int64.

    Raises ``TypeError`` for an argument that is neither a scalar, a string nor a buffer.
    """
    return _core.tir_call_extern(True, "int64", func_name, *args)


def substitute(expr: PrimExpr, vmap: Mapping[PrimExpr, PrimExprLike]) -> PrimExpr:
    """Replaces variables in an expression.

    Raises ``TypeError`` if a key is not a variable.
    """
    return _core.tir_substitute(expr, [(k, v) for k, v in vmap.items()])


def undefined_vars(expr: PrimExpr) -> list[PrimExpr]:
    """Returns the variables of an expression, in order of appearance.

    Raises ``TypeError`` if ``expr`` is not a scalar expression.
    """
    return _core.tir_free_vars(expr)

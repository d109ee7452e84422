"""Elementwise operators, comparisons and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Tensor, wrap_nested


class Unary(Protocol):
    """The type of operators with one operand."""

    def __call__(self, x: Tensor, name: str = ...) -> Tensor: ...


class Binary(Protocol):
    """The type of operators with two operands, which are broadcast."""

    def __call__(self, a: Tensor, b: Tensor, name: str = ...) -> Tensor: ...


class Reduction(Protocol):
    """The type of reductions over one axis, several axes or all axes."""

    def __call__(
        self, x: Tensor, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., name: str = ...
    ) -> Tensor: ...


def _named(func: Any, name: str, doc: str) -> Any:
    func.__name__ = func.__qualname__ = name
    func.__doc__ = doc
    return func


def _unary(operator: Callable[..., Any], own: str, doc: str, hint: str | None = None) -> Unary:
    def apply(x: Tensor, name: str = hint or own) -> Tensor:
        return wrap_nested(operator(x._expr), name)

    return _named(apply, own, doc)


def _binary(operator: Callable[..., Any], own: str, doc: str, hint: str | None = None) -> Binary:
    def apply(a: Tensor, b: Tensor, name: str = hint or own) -> Tensor:
        return wrap_nested(operator(a._expr, b._expr), name)

    return _named(apply, own, doc)


def _reduction(operator: Callable[..., Any], own: str, doc: str) -> Reduction:
    def apply(x: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False, name: str = own) -> Tensor:
        return wrap_nested(operator(x._expr, axis, keepdims), name)

    return _named(apply, own, doc)


add = _binary(_op.add, "add", "The sum ``a + b``, broadcast.")
subtract = _binary(_op.subtract, "subtract", "The difference ``a - b``, broadcast.")
multiply = _binary(_op.multiply, "multiply", "The product ``a * b``, broadcast.", "mul")
divide = _binary(_op.divide, "divide", "The quotient ``a / b``, broadcast. Integer quotients are rounded towards zero.")
less = _binary(_op.less, "less", "The comparison ``a < b``, broadcast.")
less_equal = _binary(_op.less_equal, "less_equal", "The comparison ``a <= b``, broadcast.")
greater = _binary(_op.greater, "greater", "The comparison ``a > b``, broadcast.")
greater_equal = _binary(_op.greater_equal, "greater_equal", "The comparison ``a >= b``, broadcast.")
equal = _binary(_op.equal, "equal", "The comparison ``a == b``, broadcast.")
not_equal = _binary(_op.not_equal, "not_equal", "The comparison ``a != b``, broadcast.")

relu = _unary(_op.nn.relu, "relu", "The larger of ``x`` and 0.")
relu6 = _unary(_op.nn.relu6, "relu6", "``x``, clamped to the range from 0 to 6.")
silu = _unary(_op.nn.silu, "silu", "``x * sigmoid(x)``. Requires floats.")
sigmoid = _unary(_op.sigmoid, "sigmoid", "``1 / (1 + exp(-x))``. Requires floats.")
tanh = _unary(_op.tanh, "tanh", "The hyperbolic tangent. Requires floats.")
exp = _unary(_op.exp, "exp", "The exponential function. Requires floats.")
log = _unary(_op.log, "log", "The natural logarithm. Requires floats.")
floor = _unary(_op.floor, "floor", "Rounds towards minus infinity.")
negative = _unary(_op.negative, "negative", "``-x``.", "neg")
square = _unary(_op.square, "square", "``x * x``.")
sqrt = _unary(_op.sqrt, "sqrt", "The square root. Requires floats.")

sum = _reduction(_op.sum, "sum", "The sum over axes, by default over all.")  # noqa: A001
max = _reduction(_op.max, "max", "The maximum over axes, by default over all.")  # noqa: A001
min = _reduction(_op.min, "min", "The minimum over axes, by default over all.")  # noqa: A001


def maximum(x1: Tensor, x2: Tensor, name: str = "maximum") -> Tensor:
    """The elementwise maximum, broadcast."""
    return wrap_nested(_op.maximum(x1._expr, x2._expr), name)


def minimum(x1: Tensor, x2: Tensor, name: str = "minimum") -> Tensor:
    """The elementwise minimum, broadcast."""
    return wrap_nested(_op.minimum(x1._expr, x2._expr), name)


def where(condition: Tensor, x1: Tensor, x2: Tensor, name: str = "where") -> Tensor:
    """Selects elements of ``x1`` where the condition holds, and elements of ``x2`` elsewhere. The operands are broadcast. A
    condition that is not bool is converted."""
    return wrap_nested(_op.where(astype(condition, "bool")._expr, x1._expr, x2._expr), name)


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """``x`` times the standard normal distribution function of ``x``. ``approximate="tanh"`` selects the approximation by ``tanh``.
    Requires floats."""
    if approximate not in (None, "none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return wrap_nested(_op.nn.gelu_tanh(x._expr) if approximate == "tanh" else _op.nn.gelu(x._expr), name)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0, name: str = "softplus") -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, or ``x`` where ``beta * x`` exceeds the threshold. Requires floats."""
    return wrap_nested(_op.nn.softplus(x._expr, beta=beta, threshold=threshold), name)


def prelu(x: Tensor, alpha: Tensor, name: str = "prelu") -> Tensor:
    """``x`` where it is positive, and ``alpha * x`` elsewhere. ``alpha`` has one element, or one per index of axis 1."""
    return wrap_nested(_op.nn.prelu(x._expr, alpha._expr), name)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """``exp(x) / sum(exp(x))`` along an axis. Requires floats."""
    return wrap_nested(_op.nn.softmax(x._expr, axis), name)


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """Converts the elements to another data type. Returns ``x`` itself if it has this type."""
    return x if x.dtype == dtype else wrap_nested(_op.astype(x._expr, dtype), name)


__all__ = [
    "add",
    "astype",
    "divide",
    "equal",
    "exp",
    "floor",
    "gelu",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "prelu",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "sqrt",
    "square",
    "subtract",
    "sum",
    "tanh",
    "where",
]

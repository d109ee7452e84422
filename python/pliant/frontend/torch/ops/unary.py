"""Elementwise operators with one tensor operand, including activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pliant import te, tir
from pliant.frontend.torch.data_types import is_float
from pliant.frontend.torch.function_importer import FunctionImporter

Converter = Callable[..., Any]


def _operator(name: str, floats: bool = True) -> Converter:
    """The converter to the Relax operator ``name``. With ``floats``, integers are converted to floats first."""
    path = name.split(".")

    def convert(cx: FunctionImporter, x: Any, **_: Any) -> Any:
        rule = cx.ops
        for part in path:
            rule = getattr(rule, part)
        return rule(cx.as_float(x) if floats else x)

    return convert


def elementwise(cx: FunctionImporter, formula: Callable[..., Any], *operands: Any, name: str = "elementwise") -> Any:
    """Emits a loop function that applies a formula on scalars to tensors of the same shape. Formulas of 16-bit floats are computed
    in float32."""
    dtype = cx.dtype(operands[0])
    narrow = is_float(dtype) and dtype not in ("float32", "float64")
    if narrow:
        operands = tuple(cx.cast(x, "float32") for x in operands)

    def compute(*tensors: Any) -> Any:
        return te.compute(tensors[0].shape, lambda *i: formula(*(t(*i) for t in tensors)), name=name)

    result = cx.te(compute, *operands, primfunc_name_hint=name)
    return cx.cast(result, dtype) if narrow and is_float(cx.dtype(result)) else result


def _formula(formula: Callable[[Any], Any], name: str) -> Converter:
    """The converter to a loop function that applies a formula on float scalars."""
    return lambda cx, x, **_: elementwise(cx, formula, cx.as_float(x), name=name)


def _const(value: float, like: Any) -> Any:
    return tir.const(value, like.dtype)


def _expm1(x: Any) -> Any:
    # exp(x) - 1 cancels near 0; this product does not.
    one, half = _const(1.0, x), _const(0.5, x)
    return tir.if_then_else(tir.abs(x) < one, te.tanh(x * half) * (te.exp(x) + one), te.exp(x) - one)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """A polynomial, with the coefficient of the highest power first."""
    result = _const(coefficients[0], x)
    for c in coefficients[1:]:
        result = result * x + _const(c, x)
    return result


def _erfinv(y: Any) -> Any:
    """Giles' approximation, refined by two steps of Newton's method."""
    one = _const(1.0, y)
    w = -te.log((one - y) * (one + y))
    central = _polynomial(w - _const(2.5, y), _ERFINV_CENTRAL)
    tail = _polynomial(te.sqrt(w) - _const(3.0, y), _ERFINV_TAIL)
    x = tir.Select(w < _const(5.0, y), central, tail) * y
    for _ in range(2):
        slope = _const(2.0 / math.sqrt(math.pi), y) * te.exp(-x * x)
        x = tir.Select(tir.abs(x) < _const(2.5, y), x - (te.erf(x) - y) / slope, x)
    infinite = tir.Select(y > _const(0.0, y), te.infinity(y.dtype), -te.infinity(y.dtype))
    return tir.Select(tir.abs(y).equal(one), infinite, x)


_ERFINV_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
                   0.246640727, 1.50140941)  # fmt: skip
_ERFINV_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
                1.00167406, 2.83297682)  # fmt: skip


def absolute(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``abs``. Bools are returned unchanged."""
    return x if cx.dtype(x) == "bool" else cx.ops.abs(x)


def square(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``square`` to a product. Bools are returned unchanged."""
    return x if cx.dtype(x) == "bool" else cx.ops.multiply(x, x)


def reciprocal(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``reciprocal`` to a division. Integers become floats first, so that the reciprocal of 0 is infinite."""
    x = cx.as_float(x)
    return cx.ops.divide(cx.tensor(1.0, cx.dtype(x)), x)


def round_decimals(cx: FunctionImporter, x: Any, *, decimals: int) -> Any:
    """Converts ``round.decimals``, with ties to even. Negative ``decimals`` round to powers of ten. Integers are unchanged."""
    if decimals == 0 or not is_float(cx.dtype(x)):
        return cx.ops.round(x)
    factor = cx.tensor(10.0 ** abs(decimals), cx.dtype(x))
    scale, unscale = (cx.ops.multiply, cx.ops.divide) if decimals > 0 else (cx.ops.divide, cx.ops.multiply)
    return unscale(cx.ops.round(scale(x, factor)), factor)


def sign(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``sign`` and ``sgn``. The sign of NaN is 0, whereas Relax keeps NaN. Bools are returned unchanged."""
    if cx.dtype(x) == "bool":
        return x
    if not is_float(cx.dtype(x)):
        return cx.ops.sign(x)
    # torch.sign(nan) is 0.
    return cx.ops.where(cx.ops.isnan(x), cx.tensor(0.0, cx.dtype(x)), cx.ops.sign(x))


def signbit(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``signbit``, which is true for -0.0 and for NaN with a sign bit, and false for bools."""
    if is_float(cx.dtype(x)):
        one = cx.tensor(1.0, cx.dtype(x))
        from pliant.frontend.torch.ops.binary import copysign

        return cx.ops.less(copysign(cx, one, x), cx.tensor(0.0, cx.dtype(x)))
    if cx.dtype(x) == "bool":
        return cx.ops.zeros_like(x)
    return cx.ops.less(x, cx.tensor(0, cx.dtype(x)))


def _infinite_with_sign(positive: bool) -> Converter:
    """The converter of ``isposinf`` or ``isneginf``, which are false for all integers and bools."""

    def convert(cx: FunctionImporter, x: Any) -> Any:
        if not is_float(cx.dtype(x)):
            return cx.ops.zeros_like(x, dtype="bool")
        return cx.ops.equal(x, cx.tensor(math.inf if positive else -math.inf, cx.dtype(x)))

    return convert


def isnan(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``isnan``, which is false for all integers and bools."""
    return cx.ops.isnan(x) if is_float(cx.dtype(x)) else cx.ops.zeros_like(x, dtype="bool")


def bitwise_not(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``bitwise_not``, which is the logical negation of bools."""
    return cx.ops.logical_not(x) if cx.dtype(x) == "bool" else cx.ops.bitwise_not(x)


def fraction(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``frac`` to ``x - trunc(x)``, which has the sign of ``x``."""
    return cx.ops.subtract(x, cx.ops.trunc(x))


def nan_to_num(cx: FunctionImporter, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """Converts ``nan_to_num``. Defaults are 0 and the finite limits of the data type. Integers are returned unchanged."""
    dtype = cx.dtype(x)
    if not is_float(dtype):
        return x
    import torch

    from pliant.frontend.torch.data_types import torch_dtype

    limits = torch.finfo(torch_dtype(dtype))
    x = cx.ops.where(cx.ops.isnan(x), cx.tensor(0.0 if nan is None else nan, dtype), x)
    largest, smallest = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    for infinity, value in ((math.inf, largest), (-math.inf, smallest)):
        x = cx.ops.where(cx.ops.equal(x, cx.tensor(infinity, dtype)), cx.tensor(value, dtype), x)
    return x


def angle(cx: FunctionImporter, x: Any) -> Any:
    """The angle of real numbers: 0 or pi, or NaN."""
    x = cx.as_float(x)
    dtype = cx.dtype(x)
    value = cx.ops.where(cx.ops.less(x, cx.tensor(0.0, dtype)), cx.tensor(math.pi, dtype), cx.tensor(0.0, dtype))
    return cx.ops.where(cx.ops.isnan(x), x, value)


def gelu(cx: FunctionImporter, x: Any, *, approximate: str = "none") -> Any:
    """Converts ``gelu``. The exact formula uses ``erf``; ``approximate="tanh"`` selects the approximation."""
    return cx.ops.nn.gelu_tanh(x) if approximate == "tanh" else cx.ops.nn.gelu(x)


def leaky_relu(cx: FunctionImporter, x: Any, slope: float) -> Any:
    """Converts ``leaky_relu``, which multiplies negative elements by ``slope``."""
    return cx.ops.nn.leakyrelu(x, alpha=float(slope))


def elu(cx: FunctionImporter, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """Converts ``elu``. Elements up to 0 become ``scale * alpha * (exp(input_scale * x) - 1)``, without cancellation near 0."""

    def formula(v: Any) -> Any:
        negative = _expm1(v * _const(input_scale, v)) * _const(alpha * scale, v)
        return tir.Select(v > _const(0.0, v), v * _const(scale, v), negative)

    return elementwise(cx, formula, x, name="elu")


def celu(cx: FunctionImporter, x: Any, alpha: float) -> Any:
    """Converts ``celu`` to ``elu`` with an input scale of ``1 / alpha``."""
    return elu(cx, x, alpha, 1.0, 1.0 / alpha)


def softplus(cx: FunctionImporter, x: Any, beta: float, threshold: float) -> Any:
    """Converts ``softplus``, which returns ``x`` where ``beta * x`` exceeds ``threshold``."""
    return cx.ops.nn.softplus(x, beta=float(beta), threshold=float(threshold))


def clamp_range(cx: FunctionImporter, x: Any, low: Any, high: Any) -> Any:
    """Clamps to the range between two numbers, either of which may be ``None``. NaN stays NaN."""
    dtype = cx.dtype(x)
    if low is not None:
        x = cx.ops.maximum(x, cx.tensor(low, dtype))
    return x if high is None else cx.ops.minimum(x, cx.tensor(high, dtype))


def hardtanh(cx: FunctionImporter, x: Any, low: Any, high: Any) -> Any:
    """Converts ``hardtanh``. NaN stays NaN."""
    return clamp_range(cx, x, low, high)


def hardsigmoid(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``hardsigmoid`` to ``clamp(x + 3, 0, 6) / 6``."""
    dtype = cx.dtype(x)
    return cx.ops.divide(clamp_range(cx, cx.ops.add(x, cx.tensor(3.0, dtype)), 0.0, 6.0), cx.tensor(6.0, dtype))


def hardswish(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``hardswish`` to ``x * hardsigmoid(x)``."""
    return cx.ops.multiply(x, hardsigmoid(cx, x))


def mish(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``mish`` to ``x * tanh(softplus(x))``."""
    return cx.ops.multiply(x, cx.ops.tanh(cx.ops.nn.softplus(x)))


def log_sigmoid(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``log_sigmoid`` to ``min(x, 0) - log1p(exp(-abs(x)))``, which does not overflow."""

    def formula(v: Any) -> Any:
        zero = _const(0.0, v)
        return te.min(v, zero) - te.log1p(te.exp(-tir.abs(v)))

    return elementwise(cx, formula, x, name="log_sigmoid")


def threshold(cx: FunctionImporter, x: Any, limit: Any, value: Any) -> Any:
    """Converts ``threshold``. Elements up to ``limit`` become ``value``; NaN stays NaN."""
    dtype = cx.dtype(x)
    return cx.ops.where(cx.ops.less_equal(x, cx.tensor(limit, dtype)), cx.tensor(value, dtype), x)


def hardshrink(cx: FunctionImporter, x: Any, limit: float) -> Any:
    """Converts ``hardshrink``. Elements from ``-limit`` to ``limit`` become 0; NaN stays NaN."""
    dtype = cx.dtype(x)
    inside = cx.ops.less_equal(cx.ops.abs(x), cx.tensor(limit, dtype))
    return cx.ops.where(inside, cx.tensor(0.0, dtype), x)


def softshrink(cx: FunctionImporter, x: Any, limit: float) -> Any:
    """Converts ``softshrink``, which moves elements towards 0 by ``limit``, but not beyond 0. NaN stays NaN."""

    def formula(v: Any) -> Any:
        zero, bound = _const(0.0, v), _const(limit, v)
        shrunk = tir.Select(v > bound, v - bound, tir.Select(v < -bound, v + bound, v * zero))
        return shrunk

    return elementwise(cx, formula, x, name="softshrink")


def logit(cx: FunctionImporter, x: Any, eps: float | None) -> Any:
    """Converts ``logit``. Elements are clamped to ``eps`` and ``1 - eps``. Without ``eps``, those outside of 0 to 1 become NaN."""
    x = cx.as_float(x)
    if eps is not None:
        x = clamp_range(cx, x, eps, 1.0 - eps)
    return elementwise(cx, lambda v: te.log(v / (_const(1.0, v) - v)), x, name="logit")


def glu(cx: FunctionImporter, x: Any, dim: int) -> Any:
    """Converts ``glu``: multiplies the first half along a dim by the sigmoid of the second half."""
    value, gate = cx.fields(cx.ops.split(x, 2, axis=cx.axis(x, dim)))
    return cx.ops.multiply(value, cx.ops.sigmoid(gate))


def identity(cx: FunctionImporter, x: Any, *_: Any, **__: Any) -> Any:
    """Converts operators that return their operand, such as ``clone``. The importer converts the data type of the result."""
    return x


def _sinc(v: Any) -> Any:
    angle = v * _const(math.pi, v)
    return tir.Select(v.equal(_const(0.0, v)), _const(1.0, v), te.sin(angle) / angle)


def _names(names: str, convert: Converter) -> dict[str, Converter]:
    return dict.fromkeys(names.split(), convert)


FLOAT_OPERATORS = {
    "acos": "acos arccos", "acosh": "acosh arccosh", "asin": "asin arcsin", "asinh": "asinh arcsinh", "atan": "atan arctan",
    "atanh": "atanh arctanh", "cos": "cos", "cosh": "cosh", "erf": "erf special_erf", "exp": "exp", "log": "log", "rsqrt": "rsqrt",
    "sigmoid": "sigmoid special_expit", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
    "nn.silu": "silu", "nn.selu": "selu",
}  # fmt: skip
"""Relax operators that need floats, each with torch's names."""

OTHER_OPERATORS = {
    "ceil": "ceil", "floor": "floor", "trunc": "trunc fix", "negative": "neg negative", "logical_not": "logical_not",
    "isinf": "isinf", "isfinite": "isfinite", "nn.relu": "relu", "nn.relu6": "relu6",
}  # fmt: skip
"""Relax operators that keep the data type of their operand, each with torch's names."""

TABLE: dict[str, Converter] = {
    **{name: _operator(rule) for rule, names in FLOAT_OPERATORS.items() for name in names.split()},
    **{name: _operator(rule, floats=False) for rule, names in OTHER_OPERATORS.items() for name in names.split()},
    **_names("abs absolute", absolute),
    "square": square,
    "reciprocal": reciprocal,
    "round": _operator("round", floats=False),
    "round.decimals": round_decimals,
    **_names("sign sgn", sign),
    "signbit": signbit,
    "isposinf": _infinite_with_sign(True),
    "isneginf": _infinite_with_sign(False),
    "isnan": isnan,
    "bitwise_not": bitwise_not,
    "frac": fraction,
    "nan_to_num": nan_to_num,
    "angle": angle,
    **_names("exp2 special_exp2", _formula(te.exp2, "exp2")),
    **_names("expm1 special_expm1", _formula(_expm1, "expm1")),
    **_names("log1p special_log1p", _formula(te.log1p, "log1p")),
    "log2": _formula(te.log2, "log2"),
    "log10": _formula(te.log10, "log10"),
    **_names("erfinv special_erfinv", _formula(_erfinv, "erfinv")),
    **_names("sinc special_sinc", _formula(_sinc, "sinc")),
    "deg2rad": lambda cx, x: cx.ops.multiply(cx.as_float(x), cx.tensor(math.pi / 180, cx.dtype(cx.as_float(x)))),
    "rad2deg": lambda cx, x: cx.ops.multiply(cx.as_float(x), cx.tensor(180 / math.pi, cx.dtype(cx.as_float(x)))),
    "gelu": gelu,
    "leaky_relu": leaky_relu,
    "elu": elu,
    "celu": celu,
    "softplus": softplus,
    "hardtanh": hardtanh,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "mish": mish,
    "log_sigmoid": log_sigmoid,
    "log_sigmoid_forward": lambda cx, x: (log_sigmoid(cx, x), cx.ops.zeros([0], cx.dtype(x))),
    "threshold": threshold,
    "hardshrink": hardshrink,
    "softshrink": softshrink,
    **_names("logit special_logit", logit),
    "glu": glu,
    **_names(
        "alias detach lift_fresh_copy lift_fresh clone positive contiguous conj_physical resolve_conj resolve_neg real", identity
    ),
}
"""The converters of this family."""

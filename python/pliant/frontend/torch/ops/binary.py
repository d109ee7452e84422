"""Elementwise operators with several tensor operands: arithmetic, comparisons, logic and selection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pliant import te, tir
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import is_float, result_type
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter, elementwise

PYTHON_NUMBER = (bool, int, float)


def _float_type(cx: FunctionImporter, *operands: Any) -> str:
    """The type of the result of an operator that computes floats from any operands."""
    dtype = cx.promoted_type(*operands)
    return dtype if is_float(dtype) else result_type((float,))


def _operator(name: str, floats: bool = False) -> Converter:
    """The converter to a Relax operator on operands of their common type, or on floats."""

    def convert(cx: FunctionImporter, a: Any, b: Any, **_: Any) -> Any:
        dtype = _float_type(cx, a, b) if floats else cx.promoted_type(a, b)
        return getattr(cx.ops, name)(cx.tensor(a, dtype), cx.tensor(b, dtype))

    return convert


def _broadcast(cx: FunctionImporter, formula: Callable[..., Any], *operands: Any, name: str) -> Any:
    """Emits a loop function that applies a formula on scalars to tensors of one type, which it broadcasts."""
    return elementwise(cx, formula, *cx_broadcast(cx, *operands), name=name)


def cx_broadcast(cx: FunctionImporter, *operands: Any) -> list[Any]:
    """Broadcasts tensors to the shape of the result."""
    shape = cx.out_shape
    return [x if cx.same_shape(cx.shape(x), shape) else cx.ops.broadcast_to(x, shape) for x in operands]


def _formula(formula: Callable[..., Any], name: str, floats: bool = True) -> Converter:
    def convert(cx: FunctionImporter, a: Any, b: Any, **_: Any) -> Any:
        dtype = _float_type(cx, a, b) if floats else cx.promoted_type(a, b)
        return _broadcast(cx, formula, cx.tensor(a, dtype), cx.tensor(b, dtype), name=name)

    return convert


def _scaled(cx: FunctionImporter, x: Any, alpha: Any, dtype: str) -> Any:
    x = cx.tensor(x, dtype)
    if isinstance(alpha, PYTHON_NUMBER) and alpha == 1:
        return x
    return cx.ops.multiply(x, cx.tensor(alpha, dtype)) if dtype != "bool" else cx.ops.logical_and(x, cx.tensor(bool(alpha), dtype))


def add(cx: FunctionImporter, a: Any, b: Any, alpha: Any = 1, **_: Any) -> Any:
    """Converts ``add`` to ``a + alpha * b`` in the promoted type. The sum of bools is their logical or."""
    dtype = cx.promoted_type(a, b)
    left, right = cx.tensor(a, dtype), _scaled(cx, b, alpha, dtype)
    return cx.ops.logical_or(left, right) if dtype == "bool" else cx.ops.add(left, right)


def subtract(cx: FunctionImporter, a: Any, b: Any, alpha: Any = 1, **_: Any) -> Any:
    """Converts ``sub`` to ``a - alpha * b`` in the promoted type."""
    dtype = cx.promoted_type(a, b)
    return cx.ops.subtract(cx.tensor(a, dtype), _scaled(cx, b, alpha, dtype))


def reverse_subtract(cx: FunctionImporter, a: Any, b: Any, alpha: Any = 1) -> Any:
    """Converts ``rsub`` to ``b - alpha * a``."""
    return subtract(cx, b, a, alpha)


def multiply(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``mul`` in the promoted type. The product of bools is their logical and."""
    dtype = cx.promoted_type(a, b)
    left, right = cx.tensor(a, dtype), cx.tensor(b, dtype)
    return cx.ops.logical_and(left, right) if dtype == "bool" else cx.ops.multiply(left, right)


def divide(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``div`` without rounding. Integers and bools become floats first, since Relax truncates integer quotients."""
    dtype = _float_type(cx, a, b)
    return cx.ops.divide(cx.tensor(a, dtype), cx.tensor(b, dtype))


def divide_mode(cx: FunctionImporter, a: Any, b: Any, *, rounding_mode: str | None) -> Any:
    """Converts ``div`` with a rounding mode: ``None``, ``"trunc"`` or ``"floor"``. With rounding, integers stay integers."""
    if rounding_mode is None:
        return divide(cx, a, b)
    if rounding_mode == "floor":
        return floor_divide(cx, a, b)
    left, right = cx.promote(a, b)
    return cx.ops.trunc(cx.ops.divide(left, right))


def floor_divide(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``floor_divide``. Float quotients derive from ``fmod``, as in torch, and are infinite or NaN for a divisor of 0."""
    left, right = cx.promote(a, b)
    if not is_float(cx.dtype(left)):
        return cx.ops.floor_divide(left, right)

    def formula(x: Any, y: Any) -> Any:
        zero, one, half = (tir.const(v, x.dtype) for v in (0.0, 1.0, 0.5))
        remainder = te.fmod(x, y)
        quotient = (x - remainder) / y
        opposite = tir.all(tir.Not(remainder.equal(zero)), tir.Not((y < zero).equal(remainder < zero)))
        quotient = tir.Select(opposite, quotient - one, quotient)
        floor = te.floor(quotient)
        floor = tir.Select(quotient - floor > half, floor + one, floor)
        floor = tir.Select(quotient.equal(zero), te.copysign(zero, x / y), floor)
        return tir.Select(y.equal(zero), x / y, floor)

    return _broadcast(cx, formula, left, right, name="floor_divide")


def remainder(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``remainder``. A result other than 0 has the sign of the divisor ``b``."""
    left, right = cx.promote(a, b)
    if not is_float(cx.dtype(left)):
        return cx.ops.floor_mod(left, right)

    def formula(x: Any, y: Any) -> Any:
        zero = tir.const(0.0, x.dtype)
        r = te.fmod(x, y)
        return tir.Select(tir.all(tir.Not(r.equal(zero)), tir.Not((y < zero).equal(r < zero))), r + y, r)

    return _broadcast(cx, formula, left, right, name="remainder")


def fmod(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``fmod``. A result other than 0 has the sign of the dividend ``a``; integer quotients are truncated."""
    left, right = cx.promote(a, b)
    if is_float(cx.dtype(left)):
        return _broadcast(cx, te.fmod, left, right, name="fmod")
    quotient = cx.ops.divide(left, right)
    return cx.ops.subtract(left, cx.ops.multiply(quotient, right))


def power(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``pow``. The constant exponents 2, 1, 0.5 and -0.5 become a product, the base itself, ``sqrt`` and ``rsqrt``."""
    dtype = cx.promoted_type(a, b)
    if isinstance(b, PYTHON_NUMBER) and cx.is_tensor(a):
        x = cx.tensor(a, dtype)
        if b == 2 and dtype != "bool":
            return cx.ops.multiply(x, x)
        if b == 0.5 and is_float(dtype):
            return cx.ops.sqrt(x)
        if b == 1:
            return x
        if b == -0.5 and is_float(dtype):
            return cx.ops.rsqrt(x)
    return cx.ops.power(cx.tensor(a, dtype), cx.tensor(b, dtype))


def float_power(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``float_power``, which computes in float64 whatever the types of the operands are."""
    return cx.ops.power(cx.tensor(a, "float64"), cx.tensor(b, "float64"))


def copysign(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``copysign`` in floats. The sign bit of ``b`` counts, also that of -0.0 and NaN."""
    dtype = _float_type(cx, a, b)
    return _broadcast(cx, te.copysign, cx.tensor(a, dtype), cx.tensor(b, dtype), name="copysign")


def _ignoring_nan(name: str) -> Converter:
    """``fmax`` or ``fmin``: the other operand if one is NaN."""

    def convert(cx: FunctionImporter, a: Any, b: Any) -> Any:
        left, right = cx.promote(a, b)
        chosen = getattr(cx.ops, name)(left, right)
        if not is_float(cx.dtype(left)):
            return chosen
        return cx.ops.where(cx.ops.isnan(left), right, cx.ops.where(cx.ops.isnan(right), left, chosen))

    return convert


def _bitwise(name: str, logical: str) -> Converter:
    def convert(cx: FunctionImporter, a: Any, b: Any) -> Any:
        left, right = cx.promote(a, b)
        return getattr(cx.ops, logical if cx.dtype(left) == "bool" else name)(left, right)

    return convert


def _logical(name: str) -> Converter:
    def convert(cx: FunctionImporter, a: Any, b: Any) -> Any:
        return getattr(cx.ops, name)(cx.tensor(a, "bool"), cx.tensor(b, "bool"))

    return convert


def xlogy(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``xlogy``, ``a * log(b)``. The result is 0 where ``a`` is 0, unless ``b`` is NaN."""

    def formula(x: Any, y: Any) -> Any:
        zero = tir.const(0.0, x.dtype)
        product = tir.Select(x.equal(zero), zero, x * te.log(y))
        return tir.Select(te.isnan(y), y, product)

    return _formula(formula, "xlogy")(cx, a, b)


def logaddexp2(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``logaddexp2`` without overflow. Equal operands, which may be infinite, result in ``a + 1``."""

    def formula(x: Any, y: Any) -> Any:
        high, low = te.max(x, y), te.min(x, y)
        scale = tir.const(1 / math.log(2), x.dtype)
        return tir.Select(x.equal(y), high + tir.const(1.0, x.dtype), high + te.log1p(te.exp2(low - high)) * scale)

    return _formula(formula, "logaddexp2")(cx, a, b)


def where(cx: FunctionImporter, condition: Any, a: Any, b: Any) -> Any:
    """Converts ``where``. Both alternatives have their promoted type. A condition of integers selects ``a`` if nonzero."""
    left, right = cx.promote(a, b)
    return cx.ops.where(cx.cast(condition, "bool"), left, right)


def clamp(cx: FunctionImporter, x: Any, low: Any = None, high: Any = None) -> Any:
    """Converts ``clamp`` with bounds that are tensors, numbers or ``None``. NaN propagates, and ``high`` wins if ``low > high``."""
    dtype = cx.promoted_type(x, low, high)
    x = cx.tensor(x, dtype)
    if low is not None:
        x = cx.ops.maximum(x, cx.tensor(low, dtype))
    return x if high is None else cx.ops.minimum(x, cx.tensor(high, dtype))


def masked_fill(cx: FunctionImporter, x: Any, mask: Any, value: Any) -> Any:
    """Converts ``masked_fill``. The fill value is a number or scalar tensor, and is converted to the type of ``x``."""
    return cx.ops.where(mask, cx.tensor(value, cx.dtype(x)), x)


def lerp(cx: FunctionImporter, start: Any, end: Any, weight: Any) -> Any:
    """Converts ``lerp``. Weights of at least 0.5 interpolate from ``end``, so that a weight of 1 results in exactly ``end``."""
    dtype = cx.promoted_type(start, end)
    start, end, weight = (cx.tensor(v, dtype) for v in (start, end, weight))
    difference = cx.ops.subtract(end, start)
    near = cx.ops.add(start, cx.ops.multiply(weight, difference))
    far = cx.ops.subtract(end, cx.ops.multiply(difference, cx.ops.subtract(cx.tensor(1.0, dtype), weight)))
    return cx.ops.where(cx.ops.less(cx.ops.abs(weight), cx.tensor(0.5, dtype)), near, far)


def _multiply_add(combine: str) -> Converter:
    """``addcmul`` or ``addcdiv``."""

    def convert(cx: FunctionImporter, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
        dtype = cx.promoted_type(x, a, b)
        left, right = cx.tensor(a, dtype), cx.tensor(b, dtype)
        return cx.ops.add(cx.tensor(x, dtype), _scaled(cx, getattr(cx.ops, combine)(left, right), value, dtype))

    return convert


def ldexp(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``ldexp`` to ``a * exp2(b)`` in floats. As in torch, ``exp2(b)`` may overflow where the product would not."""
    dtype = _float_type(cx, a, b)
    return cx.ops.multiply(cx.tensor(a, dtype), elementwise(cx, te.exp2, cx.tensor(b, dtype), name="exp2"))


def prelu(cx: FunctionImporter, x: Any, weight: Any) -> Any:
    """Converts ``prelu``. A weight vector with several elements has one per channel (axis 1); other weights are broadcast."""
    rank, count = cx.rank(x), cx.shape(weight)
    if count != [1] and cx.rank(weight) == 1 and rank > 1:
        weight = cx.ops.reshape(weight, [1, count[0]] + [1] * (rank - 2))
    elif rank == 0:
        weight = cx.ops.reshape(weight, [])
    positive = cx.ops.greater(x, cx.tensor(0.0, cx.dtype(x)))
    return cx.ops.where(positive, x, cx.ops.multiply(x, weight))


def heaviside(cx: FunctionImporter, x: Any, values: Any) -> Any:
    """Converts ``heaviside``. Elements equal to 0 result in ``values``, positive ones in 1, negative ones and NaN in 0."""
    dtype = cx.dtype(x)
    zero = cx.tensor(0, dtype)
    positive = cx.cast(cx.ops.greater(x, zero), dtype)
    return cx.ops.where(cx.ops.equal(x, zero), values, positive)


def isclose(cx: FunctionImporter, a: Any, b: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Converts ``isclose``. Equal infinities are close; integers are compared in float64, and bools must be equal."""
    close = cx.ops.equal(a, b)
    dtype = cx.dtype(a)
    if dtype == "bool":
        return close
    if not is_float(dtype):
        a, b = cx.cast(a, "float64"), cx.cast(b, "float64")
        dtype = "float64"
    elif equal_nan:
        close = cx.ops.logical_or(close, cx.ops.logical_and(cx.ops.isnan(a), cx.ops.isnan(b)))
    distance = cx.ops.abs(cx.ops.subtract(a, b))
    allowed = cx.ops.add(cx.tensor(atol, dtype), cx.ops.abs(cx.ops.multiply(cx.tensor(rtol, dtype), b)))
    near = cx.ops.logical_and(cx.ops.isfinite(distance), cx.ops.less_equal(distance, allowed))
    return cx.ops.logical_or(close, near)


def _shift(name: str) -> Converter:
    """The converter of shifts of integers to the Relax operator ``name``. Shifts of floats are not supported."""

    def convert(cx: FunctionImporter, a: Any, b: Any) -> Any:
        left, right = cx.promote(a, b)
        if is_float(cx.dtype(left)):
            raise UnsupportedError("shifts of floats are not supported")
        return getattr(cx.ops, name)(left, right)

    return convert


def _overloads(names: str, convert: Converter, overloads: str = "Tensor Scalar") -> dict[str, Converter]:
    return {f"{name}.{overload}": convert for name in names.split() for overload in overloads.split()}


COMPARISONS = {
    "equal": "eq", "not_equal": "ne not_equal", "less": "lt less", "less_equal": "le less_equal", "greater": "gt greater",
    "greater_equal": "ge greater_equal",
}  # fmt: skip

TABLE: dict[str, Converter] = {
    **_overloads("add", add),
    **_overloads("sub subtract", subtract),
    **_overloads("rsub", reverse_subtract),
    **_overloads("mul multiply", multiply),
    **_overloads("div divide true_divide", divide),
    **_overloads("div divide", divide_mode, "Tensor_mode Scalar_mode"),
    **{"floor_divide": floor_divide, "floor_divide.Scalar": floor_divide},
    **_overloads("remainder", remainder, "Tensor Scalar Scalar_Tensor"),
    **_overloads("fmod", fmod),
    **_overloads("pow", power, "Tensor_Tensor Tensor_Scalar Scalar"),
    **_overloads("float_power", float_power, "Tensor_Tensor Tensor_Scalar Scalar"),
    **{"maximum": _operator("maximum"), "max.other": _operator("maximum")},
    **{"minimum": _operator("minimum"), "min.other": _operator("minimum")},
    **{"fmax": _ignoring_nan("maximum"), "fmin": _ignoring_nan("minimum")},
    **{"atan2": _operator("atan2", floats=True), "arctan2": _operator("atan2", floats=True)},
    **_overloads("copysign", copysign),
    "hypot": _formula(te.hypot, "hypot"),
    "nextafter": _formula(te.nextafter, "nextafter"),
    "logaddexp": _operator("log_add_exp", floats=True),
    "logaddexp2": logaddexp2,
    **_overloads("xlogy", xlogy, "Tensor Scalar_Self Scalar_Other"),
    **_overloads("special_xlogy", xlogy, "default other_scalar self_scalar"),
    "ldexp.Tensor": ldexp,
    **{
        f"{name}.{operand}": _operator(rule)
        for rule, names in COMPARISONS.items()
        for name in names.split()
        for operand in ("Tensor", "Scalar")
    },
    **_overloads("bitwise_and", _bitwise("bitwise_and", "logical_and"), "Tensor Scalar Scalar_Tensor"),
    **_overloads("__and__", _bitwise("bitwise_and", "logical_and")),
    **_overloads("bitwise_or", _bitwise("bitwise_or", "logical_or"), "Tensor Scalar Scalar_Tensor"),
    **_overloads("__or__", _bitwise("bitwise_or", "logical_or")),
    **_overloads("bitwise_xor", _bitwise("bitwise_xor", "logical_xor"), "Tensor Scalar Scalar_Tensor"),
    **_overloads("__xor__", _bitwise("bitwise_xor", "logical_xor")),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    **_overloads("bitwise_left_shift", _shift("bitwise_left_shift"), "Tensor Tensor_Scalar Scalar_Tensor"),
    **_overloads("__lshift__", _shift("bitwise_left_shift")),
    **_overloads("bitwise_right_shift", _shift("bitwise_right_shift"), "Tensor Tensor_Scalar Scalar_Tensor"),
    **_overloads("__rshift__", _shift("bitwise_right_shift")),
    **_overloads("where", where, "self ScalarSelf ScalarOther Scalar"),
    **_overloads("clamp clip", clamp, "default Tensor"),
    **_overloads("clamp_min", lambda cx, x, low: clamp(cx, x, low), "default Tensor"),
    **_overloads("clamp_max", lambda cx, x, high: clamp(cx, x, None, high), "default Tensor"),
    **_overloads("masked_fill", masked_fill),
    **_overloads("lerp", lerp),
    "addcmul": _multiply_add("multiply"),
    "addcdiv": _multiply_add("divide"),
    **{"prelu": prelu, "_prelu_kernel": prelu},
    "heaviside": heaviside,
    "isclose": isclose,
}
"""The converters of this family."""

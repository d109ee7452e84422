"""Cases of elementwise operators with one and two operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases


def truncated(a: Array, b: Array) -> Array:
    """Divides integers, rounding towards zero."""
    return np.trunc(a / b).astype(a.dtype)


def added_if_they_fit(a: Array, b: Array) -> Array | Refusal:
    fits = a.shape == b.shape or 1 in (a.size, b.size)
    return a + b if fits else Refusal("cannot be broadcast together")


BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "mod": np.mod,
    "floor_mod": np.mod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "negative": np.negative,
    "square": np.square,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": sigmoid,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "nn.relu": lambda a: np.maximum(a, 0),
    "nn.relu6": lambda a: np.clip(a, 0, 6),
    "nn.selu": lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(a)),
    "nn.leakyrelu": lambda a: np.where(a < 0, np.float32(0.01) * a, a),
    "nn.softplus": lambda a: np.logaddexp(0, a),
    "nn.gelu": lambda a: 0.5 * a * (1 + erf(a / math.sqrt(2))),
    "nn.gelu_tanh": lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    "nn.silu": lambda a: a * sigmoid(a),
}
UNIT_UNARY: dict[str, Callable[..., Any]] = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}
SPECIAL_UNARY: dict[str, Callable[..., Any]] = {
    **{op: UNARY[op] for op in ("abs", "exp", "sin", "cos", "tanh", "sigmoid", "tan", "sinh", "cosh", "atan", "asinh")},
    **UNIT_UNARY,
    **{"log": np.log, "sqrt": np.sqrt, "acosh": np.arccosh, "floor": np.floor, "sign": np.sign},
    **{"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite},
    **{op: UNARY[op] for op in ("nn.relu", "nn.relu6", "nn.leakyrelu", "nn.softplus")},
}
BITS: dict[str, Callable[..., Any]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
SHIFTS: dict[str, Callable[..., Any]] = {"left_shift": np.left_shift, "right_shift": np.right_shift}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POSITIVE_UNARY: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "acosh": np.arccosh,
}


def whole(dtype: str) -> Draw:
    """Draws random values of an integer type, including its extremes."""
    info = np.iinfo(dtype)

    def draws(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        ends = np.array([info.min, info.max, 0, 1], dtype)[rng.integers(0, 4, shape)]
        return np.where(rng.random(shape) < 0.3, ends, values)

    return draws


def distance(dtype: str) -> Draw:
    """Draws shift distances within the width of the type, some beyond it and some negative."""
    bits = np.iinfo(dtype).bits
    low = -2 if np.iinfo(dtype).min < 0 else 0
    return lambda rng, shape: rng.integers(low, bits + 3, shape)


def shifted(reference: Callable[..., Any], dtype: str) -> Callable[..., Array]:
    """Returns the reference function of a shift for an integer type. It shifts Python integers and wraps the results to the width
    of the type. A distance that is negative or at least this width shifts out all bits.
    """
    bits = np.iinfo(dtype).bits

    def one(a: int, by: int) -> int:
        if reference is np.left_shift:
            return a << by if 0 <= by < bits else 0
        return a >> by if 0 <= by < bits else (-1 if a < 0 else 0)

    def run(a: Array, by: Array) -> Array:
        values = [one(int(v), int(d)) & (2**bits - 1) for v, d in zip(a, by, strict=True)]
        return np.array(values, f"uint{bits}").view(dtype)

    return run


def fused(a: Array, b: Array, c: Array) -> Array:
    return (a.astype("float64") * b + c).astype("float32")


def elementwise() -> list[Case]:
    cases = []
    for op, ref in BINARY.items():
        ints = truncated if op == "divide" else ref
        call = f"R.{op}(x, y)"
        int8 = (Param("x", "int8", ("n",)), Param("y", "int8", ("n",), nonzero))
        cases += [
            Case(f"{op}_broadcast", (x("n", 1, 4), y("m", 1)), call, ref),
            Case(f"{op}_same", (x("n", "m"), y("n", "m")), call, ref),
            Case(f"{op}_int64", (i64("x", "n", "m"), i64("y", "m", draw=nonzero)), call, ints),
            Case(f"{op}_int8", int8, call, ints),
        ]
        if op not in ("mod", "floor_mod"):
            cases.append(Case(f"{op}_special", (x("n", draw=special), y("n", draw=special)), call, ref))
    for op, ref in UNARY.items():
        cases.append(Case(op, (x("n", "m"),), f"R.{op}(x)", rounded(ref)))
    for op, ref in SPECIAL_UNARY.items():
        cases.append(Case(f"{op}_special", (x("n", draw=special),), f"R.{op}(x)", ref))
    for op, ref in UNIT_UNARY.items():
        cases.append(Case(op, (x("n", "m", draw=unit),), f"R.{op}(x)", rounded(ref)))
    for op, ref in BITS.items():
        for dtype in (*INTEGERS, "bool"):
            draws = None if dtype == "bool" else whole(dtype)
            params = (Param("x", dtype, ("n", 1), draws), Param("y", dtype, ("m",), draws))
            cases.append(Case(f"{op}_{dtype}", params, f"R.{op}(x, y)", ref, runs=4))
    for op, ref in SHIFTS.items():
        for dtype in INTEGERS:
            params = (Param("x", dtype, ("n",), whole(dtype)), Param("y", dtype, ("n",), distance(dtype)))
            cases.append(Case(f"{op}_{dtype}", params, f"R.{op}(x, y)", shifted(ref, dtype), runs=4))
    for dtype in (*INTEGERS, "bool"):
        draws = None if dtype == "bool" else whole(dtype)
        params = (Param("x", dtype, ("n",), draws),)
        cases.append(Case(f"bitwise_not_{dtype}", params, "R.bitwise_not(x)", np.invert, runs=3))
        for op, ref in {"isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf}.items():
            cases.append(Case(f"{op}_{dtype}", params, f"R.{op}(x)", ref, runs=2))
    for op, ref in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items():
        for dtype in ("bool", "int32", "float32"):
            few = None if dtype == "bool" else between(0, 3)
            params = (Param("x", dtype, ("n", "m"), few), Param("y", dtype, ("m",), few))
            cases.append(Case(f"logical_{op}_{dtype}", params, f"R.logical_{op}(x, y)", ref, runs=4))
    for op in ("exp", "tanh", "sigmoid", "asinh", "nn.gelu", "nn.relu6", "nn.softplus"):
        params = (Param("x", "float16", ("n",)),)
        wide = UNARY[op]
        half = lambda a, r=wide: r(a.astype("float64")).astype("float16")  # noqa: E731
        cases.append(Case(f"{op}_float16", params, f"R.{op}(x)", half, runs=3))
    for op in ("tan", "sinh", "cosh", "atan", "asinh"):
        cases.append(Case(f"{op}_float64", (Param("x", "float64", ("n",)),), f"R.{op}(x)", UNARY[op], runs=3))
    cases += [
        Case("atan2", (x("n", 1), y("m")), "R.atan2(x, y)", rounded(np.arctan2)),
        Case("atan2_special", (x("n", draw=special), y("n", draw=special)), "R.atan2(x, y)", np.arctan2, runs=12),
        Case("log_add_exp", (x("n", 1), y("m")), "R.log_add_exp(x, y)", rounded(np.logaddexp)),
        Case("log_add_exp_special", (x("n", draw=special), y("n", draw=special)), "R.log_add_exp(x, y)", np.logaddexp),
        Case("clip", (x("n", "m"),), "R.clip(x, -1, 1.5)", lambda a: np.clip(a, np.float32(-1), np.float32(1.5))),
        Case("clip_special", (x("n", draw=special),), "R.clip(x, -1, 1)", lambda a: np.clip(a, -1, 1)),
        Case("clip_contradicting", (x("n"),), "R.clip(x, 2, -2)", lambda a: np.full_like(a, -2)),
        Case("clip_int8", (Param("x", "int8", ("n",)),), "R.clip(x, -3, 4)", lambda a: np.clip(a, -3, 4)),
        Case(
            "clip_by_values",
            (i64("x", "n"), i64("y"), i64("z")),
            "R.clip(x, y, z)",
            lambda a, low, high: np.minimum(np.maximum(a, low), high),
        ),
        Case("ewise_fma", (x("n", "m"), y("m"), f32("z", "n", 1)), "R.ewise_fma(x, y, z)", fused),
        Case(
            "ewise_fma_int32",
            tuple(Param(p, "int32", ("n",)) for p in "xyz"),
            "R.ewise_fma(x, y, z)",
            lambda a, b, c: a * b + c,
        ),
        Case(
            "masked_fill",
            (x("n", "m"), boolean("y", "m")),
            "R.masked_fill(x, y, -5.0)",
            lambda a, mask: np.where(mask, np.float32(-5), a),
        ),
        Case(
            "masked_fill_value",
            (i64("x", "n"), boolean("y", "m", 1), i64("z")),
            "R.masked_fill(x, y, z)",
            lambda a, mask, v: np.where(mask, v, a),
        ),
        Case("bitcast", (x("n", "m", draw=special),), 'R.bitcast(x, "int32")', lambda a: a.view("int32")),
        Case("bitcast_to_float64", (i64("x", "n"),), 'R.bitcast(x, "float64")', lambda a: a.view("float64")),
        Case("bitcast_to_uint8", (Param("x", "int8", ("n",)),), 'R.bitcast(x, "uint8")', lambda a: a.view("uint8")),
        Case("bitcast_of_bool", (boolean("x", "n"),), 'R.bitcast(x, "int8")', lambda a: a.view("int8")),
        Case("bitcast_to_bool", (Param("x", "int8", ("n",)),), 'R.bitcast(x, "bool")', lambda a: a != 0),
        Case("wrap_param", (i64("x", "n"),), "R.wrap_param(x)", lambda a: a.astype("float32")),
        Case(
            "nn.leakyrelu_alpha",
            (x("n"),),
            "R.nn.leakyrelu(x, alpha=0.25)",
            lambda a: np.where(a < 0, np.float32(0.25) * a, a),
        ),
        Case(
            "nn.prelu",
            (x("n", "m", 3), y("m")),
            "R.nn.prelu(x, y)",
            lambda a, s: np.where(a < 0, a * s[:, None], a),
        ),
        Case("nn.prelu_last", (x("n", "m"), y("m")), "R.nn.prelu(x, y, -1)", lambda a, s: np.where(a < 0, a * s, a)),
        Case("nn.prelu_of_one", (x("n"), y(1)), "R.nn.prelu(x, y)", lambda a, s: np.where(a < 0, a * s, a)),
        Case(
            "nn.prelu_of_unequal_sizes",
            (x("n", "m"), y("k")),
            "R.nn.prelu(x, y)",
            lambda a, s: np.where(a < 0, a * s, a) if a.shape[1] == len(s) else Refusal("m"),
            sizes=(0, 2, 3),
            runs=12,
        ),
        Case(
            "nn.softplus_beta",
            (x("n"),),
            "R.nn.softplus(x, beta=2.5, threshold=1.0)",
            rounded(lambda a: np.where(2.5 * a > 1, a, np.log1p(np.exp(2.5 * a)) / 2.5)),
        ),
        Case("nn.dropout", (x("n", "m"),), "R.nn.dropout(x, rate=0.3)", lambda a: [a, np.ones_like(a)]),
    ]
    for op, ref in POSITIVE_UNARY.items():
        cases.append(Case(op, (x("n", "m", draw=positive),), f"R.{op}(x)", rounded(ref)))
    two = "R.power(x, R.const(2.0, 'float32'))"
    cases += [
        Case("power", (x("n", draw=positive), y("n")), "R.power(x, y)", rounded(np.power)),
        Case("power_of_two", (x("n"),), two, lambda a: a * a),
        Case("logical_not", (boolean("x", "n", "m"),), "R.logical_not(x)", np.logical_not),
        Case("same_operand", (x("n"),), "R.multiply(x, x)", lambda a: a * a),
        Case(
            "add_of_unequal_sizes",
            (x("n"), y("m")),
            "R.add(x, y)",
            added_if_they_fit,
            sizes=(0, 1, 2, 3),
            runs=16,
            # Only a size that is known to be 1 broadcasts.
            constant=False,
        ),
    ]
    for dtype in ("int32", "int8", "bool", "float64", "int64"):
        to = f'R.astype(x, dtype="{dtype}")'
        cases.append(Case(f"astype_{dtype}", (x("n"),), to, lambda a, dtype=dtype: a.astype(dtype)))
    for param in (boolean("x", "n"), i64("x", "n")):
        to = 'R.astype(x, dtype="float32")'
        cases.append(Case(f"astype_from_{param.dtype}", (param,), to, lambda a: a.astype("float32")))
    return cases


CASES = elementwise()

i32 = Param("i", "int32", ("n",))
REFUSED = [
    *(
        Refused(f"{op}_of_integers", (i32,), f"R.{op}(i)", "must be a tensor of floats, but is int32")
        for op in ("exp", "tan", "sinh", "acosh", "atanh", "nn.selu", "nn.leakyrelu", "nn.softplus", "nn.dropout")
    ),
    *(
        Refused(f"{op}_of_floats", (x("n"), y("n")), f"R.{op}(x, y)", "must be a tensor of integers")
        for op in (*BITS, *SHIFTS)
    ),
    Refused("bitwise_not_of_floats", (x("n"),), "R.bitwise_not(x)", "must be a tensor of integers or bools"),
    Refused("left_shift_of_bools", (boolean("x", "n"), boolean("y", "n")), "R.left_shift(x, y)", "but is bool"),
    Refused("atan2_of_integers", (i32,), "R.atan2(i, i)", "must be a tensor of floats"),
    Refused("bitwise_and_of_two_types", (i32, i64("y", "n")), "R.bitwise_and(i, y)", "x1 is int32, but x2 is int64"),
    Refused("logical_xor_of_shapes", (boolean("x", 3), boolean("y", 4)), "R.logical_xor(x, y)", "dims 3 and 4"),
    Refused("log_add_exp_of_shapes", (x(3), y(4)), "R.log_add_exp(x, y)", "cannot be broadcast together"),
    Refused("clip_by_vectors", (x("n"), y("n")), "R.clip(x, y, 1.0)", "min must be a scalar"),
    Refused("fma_of_shapes", (x(3), y(3), f32("z", 5)), "R.ewise_fma(x, y, z)", "cannot be broadcast together"),
    Refused(
        "masked_fill_by_numbers", (x("n"), y("n")), "R.masked_fill(x, y, 0.0)", "the mask must be a tensor of bool"
    ),
    Refused("prelu_of_shapes", (x(2, 3), y(4)), "R.nn.prelu(x, y)", "axis 1 of data has size 3, but alpha has 4"),
    Refused("prelu_of_matrix", (x(2, 3), y(4, 4)), "R.nn.prelu(x, y)", "alpha must have 1 dim"),
    Refused("prelu_axis", (x(2, 3), y(3)), "R.nn.prelu(x, y, axis=2)", "axis 2 is out of range"),
    Refused("softplus_beta", (x("n"),), "R.nn.softplus(x, beta=0.0)", "beta must not be 0"),
    Refused("dropout_rate", (x("n"),), "R.nn.dropout(x, rate=1.5)", "rate must be between 0 and 1"),
    Refused("leakyrelu_alpha", (x("n"),), 'R.nn.leakyrelu(x, alpha="a")', "alpha must be a number"),
]

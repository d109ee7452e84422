"""Operators on elements, one and two operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .base import *  # the vocabulary of cases


def truncated(a: Array, b: Array) -> Array:
    """Integers are divided towards zero."""
    return np.trunc(a / b).astype(a.dtype)


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
    "nn.relu": lambda a: np.maximum(a, 0),
    "nn.gelu": lambda a: 0.5 * a * (1 + erf(a / math.sqrt(2))),
    "nn.gelu_tanh": lambda a: 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))),
    "nn.silu": lambda a: a * sigmoid(a),
}
POSITIVE_UNARY: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
}


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
        if op not in ("floor_divide", "mod", "floor_mod"):
            cases.append(Case(f"{op}_special", (x("n", draw=special), y("n", draw=special)), call, ref))
    for op, ref in UNARY.items():
        cases.append(Case(op, (x("n", "m"),), f"R.{op}(x)", rounded(ref)))
    for op, ref in POSITIVE_UNARY.items():
        cases.append(Case(op, (x("n", "m", draw=positive),), f"R.{op}(x)", rounded(ref)))
    two = "R.power(x, R.const(2.0, 'float32'))"
    cases += [
        Case("power", (x("n", draw=positive), y("n")), "R.power(x, y)", rounded(np.power)),
        Case("power_of_two", (x("n"),), two, lambda a: a * a),
        Case("logical_and", (boolean("x", "n", "m"), boolean("y", "m")), "R.logical_and(x, y)", np.logical_and),
        Case("logical_or", (boolean("x", "n", "m"), boolean("y", "m")), "R.logical_or(x, y)", np.logical_or),
        Case("logical_not", (boolean("x", "n", "m"),), "R.logical_not(x)", np.logical_not),
        Case("same_operand", (x("n"),), "R.multiply(x, x)", lambda a: a * a),
        Case(
            "add_of_unequal_sizes",
            (x("n"), y("m")),
            "R.add(x, y)",
            lambda a, b: a + b if a.shape == b.shape else Refusal("n"),
            sizes=(0, 1, 2, 3),
            runs=16,
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

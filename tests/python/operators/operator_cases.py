"""The operators and what NumPy makes of the same inputs, as one table of cases.

Every dim that is a name is a symbol of the program; the test draws sizes for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

SIZES = (0, 1, 2, 3, 7, 8, 31, 64)
"""What dims are drawn from where a case does not say so."""
SMALL = (0, 1, 2, 3, 7, 31)
"""For operands of three dims."""


@dataclass(frozen=True)
class Refusal:
    """What a reference gives where the program must refuse the inputs: a part of the message."""

    part: str


@dataclass(frozen=True)
class Param:
    """A tensor parameter; a dim is a number or the name of a symbol."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]
    draw: Draw | None = None


@dataclass(frozen=True)
class Case:
    """One operator with its operands, and the same in NumPy: an array, several, or a refusal."""

    name: str
    params: tuple[Param, ...]
    expr: str
    reference: Callable[..., Any]
    sizes: tuple[int, ...] = SIZES
    runs: int = 8
    cancels: bool = False
    """Whether terms larger than the result cancel: then its error is small beside the largest result only."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({d for p in self.params for d in p.dims if isinstance(d, str)}))

    @property
    def script(self) -> str:
        params = ", ".join(
            f'{p.name}: R.Tensor(({"".join(f"{d!r}, " for d in p.dims)}), dtype="{p.dtype}")' for p in self.params
        )
        symbols = "".join(f"        {s} = T.int64()\n" for s in self.symbols)
        return (
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({params}):\n{symbols}"
            f"        with R.dataflow():\n            gv = {self.expr}\n            R.output(gv)\n"
            "        return gv\n"
        )


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.abs(rng.standard_normal(shape)) * 2 + 0.1


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Between -0.9 and 0.9."""
    return rng.random(shape) * 1.8 - 0.9


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Zeros, infinities and NaN among numbers."""
    values = np.array([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan])
    return values[rng.integers(0, len(values), shape)]


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    values = rng.integers(-9, 10, shape)
    return np.where(values == 0, 3, values)


def between(low: int, high: int) -> Draw:
    """Integers from ``low`` up to ``high``, without it."""
    return lambda rng, shape: rng.integers(low, high, shape)


def f32(name: str, *dims: int | str, draw: Draw | None = None) -> Param:
    return Param(name, "float32", dims, draw)


def i64(name: str, *dims: int | str, draw: Draw | None = None) -> Param:
    return Param(name, "int64", dims, draw)


def boolean(name: str, *dims: int | str) -> Param:
    return Param(name, "bool", dims)


def x(*dims: int | str, draw: Draw | None = None) -> Param:
    return f32("x", *dims, draw=draw)


def y(*dims: int | str, draw: Draw | None = None) -> Param:
    return f32("y", *dims, draw=draw)


def rounded(reference: Callable[..., Any]) -> Callable[..., Array]:
    """A reference in float64, rounded to float32."""
    return lambda *args: np.asarray(
        reference(*(a.astype("float64") if a.dtype == "float32" else a for a in args))
    ).astype("float32")


# ---- elementwise ----


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


# ---- shapes and indices ----


def taken(a: Array, i: Array) -> Array | Refusal:
    inside = i.size == 0 or (i.max() < len(a) and i.min() >= -len(a))
    return np.take(a, i, 0) if inside else Refusal("out of range")


def halves(a: Array) -> list[Array] | Refusal:
    return np.split(a, 2, 0) if len(a) % 2 == 0 else Refusal("equal parts")


def index(name: str, *dims: int | str, low: int, high: int) -> Param:
    return i64(name, *dims, draw=between(low, high))


END = -(2**63) + 1
MANIPULATE: list[Case] = [
    Case("reshape", (x("n", "m", 4),), "R.reshape(x, (n, -1))", lambda a: a.reshape(len(a), a.shape[1] * 4)),
    Case("reshape_of_symbols", (x("n", "m"),), "R.reshape(x, R.shape([m, n]))", lambda a: a.reshape(a.shape[::-1])),
    Case("reshape_heads", (x("b", "s", 24),), "R.reshape(x, (b, s, 4, 6))", lambda a: a.reshape(*a.shape[:2], 4, 6)),
    Case("flatten", (x("n", "m"),), "R.flatten(x)", np.ravel),
    Case("expand_dims", (x("n", "m"),), "R.expand_dims(x, axis=[0, 2])", lambda a: np.expand_dims(a, (0, 2))),
    Case("squeeze", (x(1, "n", 1),), "R.squeeze(x, axis=[0])", lambda a: a[0]),
    Case("permute_dims", (x("n", "m", 3),), "R.permute_dims(x, axes=[2, 0, 1])", lambda a: a.transpose(2, 0, 1)),
    Case(
        "permute_dims_heads",
        (x("b", "s", 4, 6),),
        "R.permute_dims(x, axes=[0, 2, 1, 3])",
        lambda a: a.transpose(0, 2, 1, 3),
    ),
    Case("permute_dims_reversed", (x("n", "m"),), "R.permute_dims(x)", np.transpose),
    Case("broadcast_to", (x("n", 1),), "R.broadcast_to(x, (2, n, 5))", lambda a: np.broadcast_to(a, (2, len(a), 5))),
    Case("concat", (x("n", 4), y("m", 4)), "R.concat((x, y), axis=0)", lambda a, b: np.concatenate([a, b])),
    Case("concat_last", (x("k", "n"), y("k", "m")), "R.concat((x, y, x), axis=-1)", lambda a, b: np.hstack([a, b, a])),
    Case("split", (x("n", 6),), "R.split(x, indices_or_sections=2, axis=1)", lambda a: np.split(a, 2, 1)),
    Case("split_symbolic", (x("n"),), "R.split(x, indices_or_sections=2, axis=0)", halves),
    Case(
        "split_at", (x("n", "m"),), "R.split(x, indices_or_sections=[1, 3], axis=0)", lambda a: np.split(a, [1, 3], 0)
    ),
    Case(
        "strided_slice",
        (x("n", "m"),),
        "R.strided_slice(x, axes=[0, 1], begin=[1, 0], end=[-1, 3], strides=[1, 2])",
        lambda a: a[1:-1, 0:3:2],
    ),
    Case(
        "strided_slice_reversed",
        (x("n"),),
        f"R.strided_slice(x, axes=[0], begin=[-1], end=[{END}], strides=[-1])",
        lambda a: a[::-1],
    ),
    Case("repeat", (x("n", "m"),), "R.repeat(x, repeats=3, axis=1)", lambda a: np.repeat(a, 3, 1)),
    Case("repeat_flat", (x("n", "m"),), "R.repeat(x, repeats=2)", lambda a: np.repeat(a, 2)),
    Case("tile", (x("n", "m"),), "R.tile(x, (2, 1, 3))", lambda a: np.tile(a, (2, 1, 3))),
    Case(
        "take",
        (x(9, "m"), index("i", "b", "s", low=-9, high=9)),
        "R.take(x, i, axis=0)",
        lambda a, i: np.take(a, i, 0),
    ),
    Case("take_last", (x("n", 5), index("i", "s", low=0, high=5)), "R.take(x, i, axis=1)", lambda a, i: a[:, i]),
    Case("take_symbolic", (x("n", 4), index("i", "s", low=-3, high=3)), "R.take(x, i, axis=0)", taken, runs=30),
    Case("take_scalar", (x("n", 5), index("i", low=0, high=5)), "R.take(x, i, axis=1)", lambda a, i: a[:, i]),
    *(
        Case(
            f"take_{mode}",
            (x(5), index("i", "s", low=-9, high=9)),
            f'R.take(x, i, axis=0, mode="{mode}")',
            lambda a, i, mode=mode: np.take(a, i, 0, mode=mode),
        )
        for mode in ("clip", "wrap")
    ),
    Case("where", (boolean("c", "n", 1), x("m"), y("n", "m")), "R.where(c, x, y)", np.where),
    Case(
        "where_constant",
        (boolean("c", "n"), x("n")),
        'R.where(c, x, R.const(-1.0, "float32"))',
        lambda c, a: np.where(c, a, np.float32(-1)),
    ),
    Case("tril", (x("n", "m"),), "R.tril(x, k=1)", lambda a: np.tril(a, 1)),
    Case("triu", (x("b", "n", "m"),), "R.triu(x)", np.triu),
]

CREATE: list[Case] = [
    Case("zeros", (x("n", "m"),), 'R.zeros((m, n), dtype="float32")', lambda a: np.zeros(a.shape[::-1], "float32")),
    Case("ones", (x("n"),), 'R.ones((n, 2), dtype="int64")', lambda a: np.ones((len(a), 2), "int64")),
    Case("full", (x("n"), f32("v")), "R.full((n, 3), v)", lambda a, v: np.full((len(a), 3), v)),
    Case("full_like", (x("n"),), 'R.full_like(x, R.const(7.0, "float32"))', lambda a: np.full_like(a, 7)),
    Case("zeros_like", (x("n", "m"),), "R.zeros_like(x)", np.zeros_like),
    Case("ones_like", (x("n", "m"),), "R.ones_like(x)", np.ones_like),
    Case(
        "arange",
        (x("n"),),
        'R.arange(R.prim_value(0), R.prim_value(n), R.prim_value(1), dtype="int64")',
        lambda a: np.arange(len(a)),
    ),
    Case(
        "arange_downwards",
        (x("n"),),
        'R.arange(R.prim_value(n), R.prim_value(-5), R.prim_value(-3), dtype="int64")',
        lambda a: np.arange(len(a), -5, -3),
    ),
    Case("size", (x("n", "m"),), "R.size(x)", lambda a: np.asarray(a.size, "int64")),
    Case(
        "shape_to_tensor",
        (x("n", "m"),),
        "R.shape_to_tensor(R.shape([n, m, 3]))",
        lambda a: np.asarray([*a.shape, 3], "int64"),
    ),
]

# ---- reductions ----


def over(axis: Any) -> Any:
    """NumPy's spelling of an axis attribute."""
    return tuple(axis) if isinstance(axis, list) else axis


def reductions() -> list[Case]:
    cases = []
    three = (x("n", "m", 3),)

    def add(name: str, expr: str, reference: Callable[..., Any], sizes: tuple[int, ...] = SMALL) -> None:
        cases.append(Case(name, three, expr, reference, sizes, runs=6))

    sums = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "variance": np.var, "std": np.std}
    for op, ref in sums.items():
        for axis in (0, 1, [0, 1], [-1], None, [0, 2]):
            for keep in (False, True):
                add(
                    f"{op}_{axis}_{keep}",
                    f"R.{op}(x, axis={axis}, keepdims={keep})",
                    rounded(lambda a, r=ref, v=over(axis), k=keep: r(a, axis=v, keepdims=k)),
                )
    extremes = {"max": (np.max, -math.inf), "min": (np.min, math.inf)}
    for op, (ref, start) in extremes.items():
        for axis in (0, 1, [0, 1], [-1], None):
            add(
                f"{op}_{axis}",
                f"R.{op}(x, axis={axis})",
                lambda a, r=ref, v=over(axis), s=start: np.asarray(r(a, axis=v, initial=s)).astype(a.dtype),
            )
    for op, ref in {"argmax": np.argmax, "argmin": np.argmin}.items():
        for axis in (0, 1, -1, None):
            add(
                f"{op}_{axis}",
                f"R.{op}(x, axis={axis})",
                lambda a, r=ref, v=axis: np.asarray(r(a, axis=v)).astype("int64"),
                sizes=(1, 2, 3, 7, 31),
            )
    lowest = np.iinfo("int64").min
    cases += [
        Case("sum_int64", (i64("x", "n", "m"),), "R.sum(x, axis=1)", lambda a: a.sum(1)),
        Case("max_int64", (i64("x", "n", "m"),), "R.max(x, axis=1)", lambda a: a.max(1, initial=lowest)),
    ]
    return cases


# ---- linear algebra and layers ----

matmul = rounded(np.matmul)


def matmul_if_equal(a: Array, b: Array) -> Array | Refusal:
    return matmul(a, b) if a.shape[1] == b.shape[0] else Refusal("k")


PRODUCTS: list[Case] = [
    Case("matmul", (x("n", "k"), y("k", "m")), "R.matmul(x, y)", matmul, runs=20),
    Case("matmul_weight", (x("b", "s", 16), y(16, 24)), "R.matmul(x, y)", matmul, runs=20),
    Case(
        "matmul_batched", (x("b", "n", "k"), y("b", "k", "m")), "R.matmul(x, y)", matmul, sizes=(0, 1, 2, 3, 8), runs=20
    ),
    Case("matmul_heads", (x("b", 4, "s", 8), y("b", 4, 8, "s")), "R.matmul(x, y)", matmul, runs=20),
    Case(
        "matmul_broadcast", (x("b", 1, "n", "k"), y(3, "k", 5)), "R.matmul(x, y)", matmul, sizes=(0, 1, 2, 7), runs=20
    ),
    Case("matmul_vectors", (x("k"), y("k")), "R.matmul(x, y)", matmul),
    Case("matmul_vector_matrix", (x("k"), y("k", "m")), "R.matmul(x, y)", matmul),
    Case("matmul_matrix_vector", (x("n", "k"), y("k")), "R.matmul(x, y)", matmul),
    *(
        Case(
            f"matmul_{dtype}",
            (Param("x", dtype, ("n", "k")), Param("y", dtype, ("k", "m"))),
            "R.matmul(x, y)",
            np.matmul,
        )
        for dtype in ("float64", "int32")
    ),
    Case(
        "matmul_of_unequal_sizes",
        (x("n", "k"), y("j", "m")),
        "R.matmul(x, y)",
        matmul_if_equal,
        sizes=(0, 1, 2, 3),
        runs=30,
    ),
    Case(
        "linear",
        (x("n", "k"), y("m", "k"), f32("z", "m")),
        "R.linear(x, y, z)",
        rounded(lambda a, w, b: np.matmul(a, w.T) + b),
    ),
    Case("outer", (x("n"), y("m")), "R.outer(x, y)", np.outer),
]
LINEAR = [replace(case, cancels=True) for case in PRODUCTS]


def log_softmax(a: Array, axis: int) -> Any:
    shifted = a - a.max(axis, keepdims=True, initial=-1e9)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def layer_norm(a: Array, gamma: Array, beta: Array) -> Any:
    centred = a - a.mean(-1, keepdims=True)
    return centred / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * gamma + beta


def rms_norm(a: Array, gamma: Array) -> Any:
    return a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-5) * gamma


LAYERS: list[Case] = [
    *(
        Case(
            f"softmax_{axis}",
            (x("n", "m", "s"),),
            f"R.nn.softmax(x, axis={axis})",
            rounded(lambda a, v=axis: np.exp(log_softmax(a, v))),
            SMALL,
            runs=10,
        )
        for axis in (-1, 0, 1)
    ),
    *(
        Case(
            f"log_softmax_{axis}",
            (x("n", "m", "s"),),
            f"R.nn.log_softmax(x, axis={axis})",
            rounded(lambda a, v=axis: log_softmax(a, v)),
            SMALL,
            runs=10,
        )
        for axis in (-1, 0, 1)
    ),
    Case(
        "layer_norm",
        (x("b", "s", 24), f32("g", 24), f32("h", 24)),
        "R.nn.layer_norm(x, g, h, axes=[-1])",
        rounded(layer_norm),
        runs=12,
        cancels=True,
    ),
    Case(
        "layer_norm_symbolic",
        (x("b", "s", "h"), f32("g", "h"), f32("k", "h")),
        "R.nn.layer_norm(x, g, k, axes=[-1], epsilon=1e-5)",
        rounded(layer_norm),
        runs=12,
        cancels=True,
    ),
    Case("rms_norm", (x("b", "h"), f32("g", "h")), "R.nn.rms_norm(x, g, axes=[-1])", rounded(rms_norm)),
]

# ---- results whose shape depends on values ----


def unique_with_places(a: Array) -> list[Array]:
    values, first, inverse, counts = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    return [values, first, inverse.ravel(), counts]


def unique_columns(a: Array) -> Array:
    return np.unique(a, axis=1)


few = between(-2, 3)
PLACES = "R.unique(x, return_index=True, return_inverse=True, return_counts=True)"
DATA_DEPENDENT: list[Case] = [
    Case("unique", (x("n", "m", draw=few),), PLACES, unique_with_places),
    Case("unique_special", (x("n", draw=special),), "R.unique(x)", np.unique),
    Case("unique_int64", (i64("x", "n", draw=few),), "R.unique(x)", np.unique),
    Case("unique_rows", (i64("x", "n", 2, draw=few),), "R.unique(x, axis=0)", lambda a: np.unique(a, axis=0)),
    Case("unique_columns", (x(2, "m", draw=few),), "R.unique(x, axis=-1)", unique_columns),
    Case("nonzero", (x("n", "m", draw=few),), "R.nonzero(x)", lambda a: np.stack(np.nonzero(a))),
    Case("nonzero_bool", (boolean("x", "n"),), "R.nonzero(x)", lambda a: np.stack(np.nonzero(a))),
]

CASES: list[Case] = [
    *elementwise(),
    *MANIPULATE,
    *CREATE,
    *reductions(),
    *LINEAR,
    *LAYERS,
    *DATA_DEPENDENT,
]

"""Times every operator at a medium size against NumPy, both with one thread. Prints all ratios and the worst ten.

All sizes are symbolic. Operators without a counterpart in NumPy are timed alone.
`python operators_against_numpy.py sort conv` times the operators whose names contain `sort` or `conv`.
"""

from __future__ import annotations

import os

for _name in ("PLIANT_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from timing import geomean, interleaved, require_release

import pliant
from pliant.script import from_source

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(0)
NAMES = "xyzw"


@dataclass(frozen=True)
class Entry:
    """A benchmarked operator: its operands, and its counterpart in NumPy if there is one."""

    name: str
    call: str
    inputs: tuple[Array, ...]
    numpy: Callable[..., Any] | None = None
    constant: tuple[tuple[int, int], ...] = field(default=())
    """Pairs of operand and dim that the program declares with a constant size."""

    @property
    def script(self) -> str:
        params = []
        symbols: dict[int, str] = {}
        for k, array in enumerate(self.inputs):
            dims = [
                str(size) if (k, axis) in self.constant or size <= 5 else repr(symbols.setdefault(size, f"n{size}"))
                for axis, size in enumerate(array.shape)
            ]
            params.append(f'{NAMES[k]}: R.Tensor(({"".join(f"{d}, " for d in dims)}), "{array.dtype.name}")')
        return (
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({', '.join(params)}):\n        with R.dataflow():\n            gv = {self.call}\n"
            "            R.output(gv)\n        return gv\n"
        )


def normal(*shape: int, dtype: str = "float32") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def positive(*shape: int) -> Array:
    return np.abs(normal(*shape)) + np.float32(0.1)


def integers(low: int, high: int, *shape: int, dtype: str = "int64") -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


FLAT = normal(1000, 999)
OTHER = normal(1000, 999)
SMALL = normal(300, 301)
ROWS = normal(1000, 768)


def elementwise() -> list[Entry]:
    same = ("exp", "sin", "cos", "tanh", "sinh", "cosh", "tan", "abs", "negative", "square", "sign", "floor", "ceil")
    same += ("trunc", "round", "isnan", "isinf", "isfinite")
    entries = [Entry(op, f"R.{op}(x)", (FLAT,), getattr(np, op)) for op in same]
    entries += [Entry(op, f"R.{op}(x)", (positive(1000, 999),), getattr(np, op)) for op in ("log", "sqrt")]
    unit = np.clip(FLAT / 5, -0.9, 0.9)
    inverse = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atanh": np.arctanh, "asinh": np.arcsinh}
    entries += [Entry(op, f"R.{op}(x)", (unit,), f) for op, f in inverse.items()]
    entries += [
        Entry("acosh", "R.acosh(x)", (positive(1000, 999) + 1,), np.arccosh),
        Entry("rsqrt", "R.rsqrt(x)", (positive(1000, 999),), lambda a: 1 / np.sqrt(a)),
        Entry("sigmoid", "R.sigmoid(x)", (FLAT,), lambda a: 1 / (1 + np.exp(-a))),
        Entry("erf", "R.erf(x)", (FLAT,)),
        Entry("clip", "R.clip(x, -1, 1)", (FLAT,), lambda a: np.clip(a, -1, 1)),
        Entry("logical_not", "R.logical_not(x)", (FLAT > 0,), np.logical_not),
        Entry("bitwise_not", "R.bitwise_not(x)", (integers(0, 99, 1000, 999),), np.invert),
        Entry("astype int32", 'R.astype(x, "int32")', (FLAT,), lambda a: a.astype("int32")),
        Entry("astype float16", 'R.astype(x, "float16")', (FLAT,), lambda a: a.astype("float16")),
        Entry("nn.relu", "R.nn.relu(x)", (FLAT,), lambda a: np.maximum(a, 0)),
        Entry("nn.gelu", "R.nn.gelu(x)", (FLAT,)),
        Entry("nn.silu", "R.nn.silu(x)", (FLAT,), lambda a: a / (1 + np.exp(-a))),
        Entry("nn.leakyrelu", "R.nn.leakyrelu(x)", (FLAT,), lambda a: np.where(a < 0, np.float32(0.01) * a, a)),
        Entry("nn.softplus", "R.nn.softplus(x)", (FLAT,), lambda a: np.logaddexp(np.float32(0), a)),
    ]
    binary = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "equal", "less", "greater_equal")
    entries += [Entry(op, f"R.{op}(x, y)", (FLAT, OTHER), getattr(np, op)) for op in binary]
    whole, by = integers(-999, 999, 1000, 999), integers(1, 99, 1000, 999)
    entries += [
        Entry("power", "R.power(x, y)", (positive(1000, 999), OTHER), np.power),
        Entry("floor_divide", "R.floor_divide(x, y)", (FLAT, OTHER), np.floor_divide),
        Entry("mod", "R.mod(x, y)", (FLAT, OTHER), np.mod),
        Entry("floor_divide int64", "R.floor_divide(x, y)", (whole, by), np.floor_divide),
        Entry("mod int64", "R.mod(x, y)", (whole, by), np.mod),
        Entry("add int8", "R.add(x, y)", (whole.astype("int8"), by.astype("int8")), np.add),
        Entry("add float64", "R.add(x, y)", (FLAT.astype("float64"), OTHER.astype("float64")), np.add),
        Entry("exp float64", "R.exp(x)", (FLAT.astype("float64"),), np.exp),
        Entry("add float16", "R.add(x, y)", (FLAT.astype("float16"), OTHER.astype("float16")), np.add),
        Entry("add a row", "R.add(x, y)", (FLAT, OTHER[0]), np.add),
        Entry("add a column", "R.add(x, y)", (FLAT, OTHER[:, :1].copy()), np.add),
        Entry("left_shift", "R.left_shift(x, y)", (whole, by % 8), np.left_shift),
        Entry("bitwise_and", "R.bitwise_and(x, y)", (whole, by), np.bitwise_and),
        Entry("logical_and", "R.logical_and(x, y)", (FLAT > 0, OTHER > 0), np.logical_and),
        Entry("atan2", "R.atan2(x, y)", (FLAT, OTHER), np.arctan2),
        Entry("log_add_exp", "R.log_add_exp(x, y)", (FLAT, OTHER), np.logaddexp),
        Entry("where", "R.where(x, y, z)", (FLAT > 0, FLAT, OTHER), np.where),
        Entry("ewise_fma", "R.ewise_fma(x, y, z)", (FLAT, OTHER, FLAT), lambda a, b, c: a * b + c),
    ]
    return entries


def reductions() -> list[Entry]:
    entries = []
    for op in ("sum", "max", "min", "mean", "prod", "argmax", "argmin"):
        f = getattr(np, op)
        entries += [
            Entry(f"{op} of rows", f"R.{op}(x, axis=1)", (FLAT,), lambda a, f=f: f(a, 1)),
            Entry(f"{op} of columns", f"R.{op}(x, axis=0)", (FLAT,), lambda a, f=f: f(a, 0)),
            Entry(f"{op} of all", f"R.{op}(x)", (FLAT,), f),
        ]
    for op, f in {"variance": np.var, "std": np.std}.items():
        entries += [Entry(op, f"R.{op}(x, axis=1)", (FLAT,), lambda a, f=f: f(a, 1))]
    eight = integers(-99, 99, 1000, 999, dtype="int8")
    entries += [
        Entry("variance of columns", "R.variance(x, axis=0)", (FLAT,), lambda a: np.var(a, 0)),
        Entry("sum int64", "R.sum(x, axis=1)", (integers(0, 9, 1000, 999),), lambda a: np.sum(a, 1)),
        Entry("max int8", "R.max(x, axis=1)", (eight,), lambda a: np.max(a, 1)),
        Entry("sum float64", "R.sum(x, axis=1)", (FLAT.astype("float64"),), lambda a: np.sum(a, 1)),
        Entry("cumsum", "R.cumsum(x, axis=1)", (FLAT,), lambda a: np.cumsum(a, 1)),
        Entry("cumsum of columns", "R.cumsum(x, axis=0)", (FLAT,), lambda a: np.cumsum(a, 0)),
        Entry("cumprod", "R.cumprod(x, axis=1)", (FLAT,), lambda a: np.cumprod(a, 1)),
        Entry("nn.softmax", "R.nn.softmax(x, axis=-1)", (ROWS,), softmax),
        Entry("nn.log_softmax", "R.nn.log_softmax(x, axis=-1)", (ROWS,), lambda a: np.log(softmax(a))),
        Entry("nn.layer_norm", "R.nn.layer_norm(x, y, z, axes=[-1])", (ROWS, ROWS[0], ROWS[1]), layer_norm),
        Entry("nn.rms_norm", "R.nn.rms_norm(x, y, axes=[-1])", (ROWS, ROWS[0]), rms_norm),
    ]
    return entries


def softmax(a: Array) -> Array:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(a: Array, scale: Array, shift: Array) -> Array:
    return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * scale + shift


def rms_norm(a: Array, scale: Array) -> Array:
    return a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * scale


def movement() -> list[Entry]:
    cube = normal(60, 128, 130)
    places, order = integers(0, 1000, 700), integers(0, 999, 1000, 999)
    return [
        Entry("permute_dims of 2", "R.permute_dims(x)", (FLAT,), lambda a: np.ascontiguousarray(a.T)),
        Entry(
            "permute_dims of 3",
            "R.permute_dims(x, axes=[1, 0, 2])",
            (cube,),
            lambda a: np.ascontiguousarray(a.transpose(1, 0, 2)),
        ),
        Entry("concat", "R.concat((x, y), axis=1)", (FLAT, OTHER), lambda a, b: np.concatenate([a, b], 1)),
        Entry("stack", "R.stack((x, y), axis=-1)", (FLAT, OTHER), lambda a, b: np.stack([a, b], -1)),
        Entry("split", "R.split(x, 2, axis=0)", (FLAT,), lambda a: [p.copy() for p in np.split(a, 2, 0)]),
        Entry("flip", "R.flip(x, axis=1)", (FLAT,), lambda a: a[:, ::-1].copy()),
        Entry("tile", "R.tile(x, (2, 3))", (SMALL,), lambda a: np.tile(a, (2, 3))),
        Entry("repeat", "R.repeat(x, 3, axis=1)", (SMALL,), lambda a: np.repeat(a, 3, 1)),
        Entry("broadcast_to", "R.broadcast_to(x, (1000, n999))", (OTHER[0],), lambda a: np.broadcast_to(a, (1000, 999)).copy()),
        Entry("strided_slice", "R.strided_slice(x, [1], [1], [900], [2])", (FLAT,), lambda a: a[:, 1:900:2].copy()),
        Entry("tril", "R.tril(x)", (FLAT,), np.tril),
        Entry("nn.pad", "R.nn.pad(x, [1, 2, 3, 4])", (FLAT,), lambda a: np.pad(a, [(1, 2), (3, 4)])),
        Entry("take rows", "R.take(x, y, axis=0)", (FLAT, places), lambda a, i: np.take(a, i, 0)),
        Entry("take columns", "R.take(x, y, axis=1)", (FLAT, places % 999), lambda a, i: np.take(a, i, 1)),
        Entry("gather_elements", "R.gather_elements(x, y, axis=1)", (FLAT, order), lambda a, i: np.take_along_axis(a, i, 1)),
        Entry("gather_nd", "R.gather_nd(x, y)", (FLAT, integers(0, 999, 100_000, 2)), lambda a, i: a[i[:, 0], i[:, 1]]),
        Entry("scatter_elements", "R.scatter_elements(x, y, z, axis=1)", (FLAT, order, OTHER), scatter_elements),
        Entry("scatter_nd", "R.scatter_nd(x, y, z)", (FLAT, integers(0, 999, 50_000, 2), normal(50_000)), scatter_nd),
        Entry("one_hot", "R.one_hot(x, R.prim_value(1), R.prim_value(0), depth=64)", (integers(0, 64, 9000),), one_hot),
        Entry("arange", "R.arange(R.prim_value(1000000))", (), lambda: np.arange(1_000_000)),
        Entry("zeros", 'R.zeros(R.shape([1000, 999]), "float32")', (), lambda: np.full((1000, 999), 0, "float32")),
    ]


def scatter_elements(a: Array, i: Array, u: Array) -> Array:
    out = a.copy()
    np.put_along_axis(out, i, u, 1)
    return out


def scatter_nd(a: Array, i: Array, u: Array) -> Array:
    out = a.copy()
    out[i[:, 0], i[:, 1]] = u
    return out


def one_hot(i: Array) -> Array:
    return (i[:, None] == np.arange(64)).astype("int64")


def ordering() -> list[Entry]:
    few = integers(0, 1000, 200_000)
    return [
        Entry("sort", "R.sort(x, axis=1)", (FLAT,), lambda a: np.sort(a, 1, kind="stable")),
        Entry("sort of columns", "R.sort(x, axis=0)", (FLAT,), lambda a: np.sort(a, 0, kind="stable")),
        Entry("sort of one row", "R.sort(x)", (normal(300_000),), lambda a: np.sort(a, kind="stable")),
        Entry("argsort", "R.argsort(x, axis=1)", (FLAT,), lambda a: np.argsort(a, 1, kind="stable")),
        Entry("topk", "R.topk(x, k=10, axis=1)", (FLAT,), lambda a: np.argpartition(-a, 10, 1)[:, :10]),
        Entry("median", "R.median(x, axis=1)", (FLAT,), lambda a: np.median(a, 1)),
        Entry("unique", "R.unique(x)", (few,), np.unique),
        Entry("nonzero", "R.nonzero(x)", (FLAT > 1,), lambda a: np.stack(np.nonzero(a))),
        Entry("bucketize", "R.bucketize(x, y)", (FLAT, np.sort(normal(300))), lambda a, b: np.searchsorted(b, a)),
    ]


def products() -> list[Entry]:
    a, b = normal(512, 500), normal(500, 511)
    batch, whole = normal(24, 128, 64), integers(0, 9, 200, 201, dtype="int32")
    return [
        Entry("matmul", "R.matmul(x, y)", (a, b), np.matmul),
        Entry("matmul batched", "R.matmul(x, y)", (batch, normal(24, 64, 128)), np.matmul),
        Entry("matmul a vector", "R.matmul(x, y)", (a, b[:, 0].copy()), np.matmul),
        Entry("matmul float64", "R.matmul(x, y)", (a.astype("f8"), b.astype("f8")), np.matmul),
        Entry("matmul int32", "R.matmul(x, y)", (whole, whole.T.copy()), np.matmul),
        Entry("einsum", 'R.einsum((x, y), subscripts="ij,jk->ik")', (a, b), lambda x, y: np.einsum("ij,jk->ik", x, y)),
        Entry("einsum outer", 'R.einsum((x, y), subscripts="i,j->ij")', (FLAT[0], OTHER[0]), np.multiply.outer),
        Entry("outer", "R.outer(x, y)", (FLAT[0], OTHER[0]), np.outer),
    ]


def conv2d_reference(a: Array, w: Array) -> Array:
    windows = sliding_window_view(np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)]), w.shape[2:], (2, 3))
    return np.ascontiguousarray(np.moveaxis(np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))), -1, 1))


def images() -> list[Entry]:
    image, weight = normal(1, 64, 56, 57), normal(64, 64, 3, 3)
    known = tuple((1, k) for k in range(4)) + ((0, 1),)
    deep = normal(64, 1, 3, 3)

    def pooled(f: Callable[..., Any]) -> Callable[[Array], Any]:
        return lambda a: f(sliding_window_view(a, (2, 2), (2, 3))[:, :, ::2, ::2], (4, 5))

    return [
        Entry("nn.conv2d 3x3", "R.nn.conv2d(x, y, padding=1)", (image, weight), conv2d_reference, known),
        Entry(
            "nn.conv2d 1x1",
            "R.nn.conv2d(x, y)",
            (image, normal(128, 64, 1, 1)),
            lambda a, w: np.matmul(w[:, :, 0, 0], a.reshape(1, 64, -1)),
            known,
        ),
        Entry("nn.conv2d depthwise", "R.nn.conv2d(x, y, padding=1, groups=64)", (image, deep), None, known),
        Entry(
            "nn.conv1d",
            "R.nn.conv1d(x, y, padding=1)",
            (normal(8, 64, 501), normal(64, 64, 3)),
            lambda a, w: np.einsum(
                "ncik,ock->noi", sliding_window_view(np.pad(a, [(0, 0), (0, 0), (1, 1)]), 3, 2), w, optimize=True
            ),
            ((0, 1), (1, 0), (1, 1), (1, 2)),
        ),
        Entry("nn.conv2d_transpose", "R.nn.conv2d_transpose(x, y)", (normal(1, 32, 28, 29), normal(32, 32, 3, 3)), None),
        Entry("nn.max_pool2d", "R.nn.max_pool2d(x, 2, strides=2)", (image,), pooled(np.max)),
        Entry("nn.avg_pool2d", "R.nn.avg_pool2d(x, 2, strides=2)", (image,), pooled(np.mean)),
        Entry("nn.adaptive_avg_pool2d", "R.nn.adaptive_avg_pool2d(x, 1)", (image,), lambda a: a.mean((2, 3), keepdims=True)),
        Entry("nn.batch_norm", "R.nn.batch_norm(x, y, y, y, z, axis=1, training=False)", (image, normal(64), positive(64)), None),
        Entry("image.resize2d", 'R.image.resize2d(x, (112, 114), method="linear")', (image,)),
        Entry(
            "image.resize2d nearest",
            'R.image.resize2d(x, (112, 114), method="nearest_neighbor", coordinate_transformation_mode="asymmetric", '
            'rounding_method="floor")',
            (image,),
            lambda a: a.repeat(2, 2).repeat(2, 3),
        ),
        Entry("image.resize2d cubic", 'R.image.resize2d(x, (112, 114), method="cubic")', (image,)),
        Entry("image.grid_sample", "R.image.grid_sample(x, y)", (image, np.tanh(normal(1, 2, 56, 57)))),
        Entry("nn.attention", "R.nn.attention(x, y, z)", tuple(normal(1, 128, 12, 64) for _ in range(3)), attention),
        Entry("signal.dft", "R.signal.dft(x)", (normal(16, 256, 1),), lambda a: np.fft.fft(a[..., 0], axis=1)),
    ]


def attention(q: Array, k: Array, v: Array) -> Array:
    q, k, v = (t.transpose(0, 2, 1, 3) for t in (q, k, v))
    return np.matmul(softmax(np.matmul(q, k.swapaxes(2, 3)) / math.sqrt(q.shape[-1])), v)


GROUPS = (elementwise, reductions, movement, ordering, products, images)


def measure(entry: Entry) -> tuple[float, float | None] | str:
    """Returns the seconds of a call in Pliant and in NumPy, or the compile error."""
    try:
        model: Any = pliant.compile(from_source(entry.script))
        model(*entry.inputs)
    except pliant.PliantError as error:
        return str(error).splitlines()[0]
    candidates: dict[str, Callable[[], object]] = {"pliant": lambda: model(*entry.inputs)}
    if entry.numpy is not None:
        numpy = entry.numpy
        candidates["numpy"] = lambda: numpy(*entry.inputs)
    times = interleaved(candidates, rounds=5, min_seconds=0.01)
    return times["pliant"], times.get("numpy")


def main(words: list[str] | None = None) -> None:
    """Prints the table of ratios and the worst ten."""
    require_release()
    warnings.simplefilter("ignore")
    ratios: dict[str, float] = {}
    print(f"{'operator':28} {'Pliant':>10} {'NumPy':>10} {'ratio':>7}")
    for group in GROUPS:
        for entry in group():
            if words and not any(word in entry.name for word in words):
                continue
            found = measure(entry)
            if isinstance(found, str):
                print(f"{entry.name:28} {found}", flush=True)
                continue
            ours, theirs = found
            line = f"{entry.name:28} {ours * 1e3:8.3f}ms"
            if theirs is not None:
                ratios[entry.name] = ours / theirs
                line += f" {theirs * 1e3:8.3f}ms {ours / theirs:7.2f}"
            print(line, flush=True)
    if ratios:
        worst = sorted(ratios, key=lambda name: -ratios[name])[:10]
        print(f"\ngeometric mean of {len(ratios)}: {geomean(list(ratios.values())):.2f}")
        print(f"more than 2: {sum(r > 2 for r in ratios.values())}")
        print("worst: " + ", ".join(f"{name} {ratios[name]:.1f}" for name in worst))


if __name__ == "__main__":
    main(sys.argv[1:])

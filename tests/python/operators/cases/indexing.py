"""Cases of operators that read and write elements at computed indices."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def inside(i: Array, size: int) -> bool:
    return i.size == 0 or bool(i.min() >= -size and i.max() < size)


def gathered(axis: int) -> Callable[..., Any]:
    def reference(a: Array, i: Array) -> Any:
        out = np.zeros(i.shape, a.dtype)
        for at in np.ndindex(*i.shape):
            if not -a.shape[axis] <= i[at] < a.shape[axis]:
                return Refusal(f"relax.gather_elements: index {i[at]} is out of range for axis {axis}")
            place = list(at)
            place[axis] = i[at]
            out[at] = a[tuple(place)]
        return out

    return reference


REDUCE: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": min,
    "max": max,
}


def scattered(axis: int, reduction: str) -> Callable[..., Any]:
    def reference(a: Array, i: Array, u: Array) -> Any:
        if not inside(i, a.shape[axis]):
            return Refusal("relax.scatter_elements: index ")
        out, counts = a.copy(), np.ones(a.shape, "int64")
        for at in np.ndindex(*i.shape):
            place = list(at)
            place[axis] = i[at]
            key = tuple(place)
            out[key] = REDUCE["add" if reduction == "mean" else reduction](out[key], u[at])
            counts[key] += 1
        return (out / counts).astype(a.dtype) if reduction == "mean" else out

    return reference


def scattered_nd(reduction: str) -> Callable[..., Any]:
    def reference(a: Array, i: Array, u: Array) -> Any:
        out = a.copy()
        for at in np.ndindex(*i.shape[:-1]):
            key = tuple(i[at])
            if not all(-d <= k < d for k, d in zip(key, a.shape, strict=False)):
                return Refusal("relax.scatter_nd: index ")
            if reduction == "update":
                out[key] = u[at]
            else:
                ufunc = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[reduction]
                out[key] = ufunc(out[key], u[at])
        return out

    return reference


def gathered_nd(a: Array, i: Array) -> Any:
    if not all(inside(i[..., k], a.shape[k]) for k in range(i.shape[-1])):
        return Refusal("relax.gather_nd: index ")
    return a[tuple(np.moveaxis(i, -1, 0))]


def gathered_nd_batch(a: Array, i: Array) -> Any:
    if not inside(i, a.shape[1]):
        return Refusal("relax.gather_nd: index ")
    return np.stack([a[b][tuple(np.moveaxis(i[b], -1, 0))] for b in range(len(a))]) if len(a) else np.zeros((0, i.shape[1], 3), a.dtype)


def indexed(a: Array, i: Array, j: Array) -> Any:
    good = inside(i, a.shape[0]) and inside(j, a.shape[1])
    return a[i, j] if good else Refusal("relax.index_tensor: index ")


def put(accumulate: bool) -> Callable[..., Any]:
    def reference(a: Array, i: Array, v: Array) -> Any:
        if not inside(i, len(a)):
            return Refusal("relax.index_put: index ")
        out = a.copy()
        if accumulate:
            np.add.at(out, i, v)
        else:
            for k, p in enumerate(i):
                out[p] = v[k]
        return out

    return reference


def sliced(start: int, end: int, step: int) -> Callable[..., Any]:
    def reference(a: Array, src: Array) -> Any:
        out = a.copy()
        part = out[start:end:step]
        if part.shape != src.shape:
            return Refusal("relax.slice_scatter: dim 0 of src", written="src must be of shape")
        part[...] = src
        return out

    return reference


def cached(circular: bool) -> Callable[..., Any]:
    def reference(a: Array, u: Array, starts: Array) -> Any:
        (size, count), out = (a.shape[1], u.shape[1]), a.copy()
        if count > size:
            return Refusal("relax.tensor_scatter: ", written="updates are longer than data")
        last = size - 1 if circular else size - count
        if count and starts.size and (starts.min() < 0 or starts.max() > last):
            return Refusal("relax.tensor_scatter: ")
        for b, start in enumerate(starts):
            for k in range(count):
                out[b, (start + k) % size] = u[b, k]
        return out

    return reference


def reversed_sequences(a: Array, n: Array) -> Any:
    if n.size and (n.min() < 0 or n.max() > a.shape[1]):
        return Refusal("relax.reverse_sequence: the length ")
    out = a.copy()
    for b, k in enumerate(n):
        out[b, :k] = a[b, :k][::-1]
    return out


def dynamic_slice(a: Array, begin: Array, end: Array, step: Array) -> Any:
    if (step == 0).any():
        return Refusal("the stride of dim")
    return a[tuple(slice(b, e, s) for b, e, s in zip(begin, end, step, strict=True))]


ELEMENTS = (x("n", "m"), index("i", "k", "m", low=-2, high=2))
SCATTER = (x("n", "m"), index("i", "k", "m", low=-2, high=2), y("k", "m"))
ND = (x("n", "m", 3), index("i", "k", 2, low=-2, high=2), y("k", 3))
SMALLER = (1, 2, 3, 7)
CASES: list[Case] = [
    Case("gather_elements", ELEMENTS, "R.gather_elements(x, i, axis=0)", gathered(0), runs=20),
    Case(
        "gather_elements_last",
        (x("n", 5), index("i", "n", "k", low=-5, high=5)),
        "R.gather_elements(x, i, axis=-1)",
        gathered(1),
    ),
    Case("gather_nd", (x("n", "m", 3), index("i", "k", 2, low=-2, high=2)), "R.gather_nd(x, i)", gathered_nd, runs=20),
    Case("gather_nd_whole", (x("n"), index("i", "k", "s", 1, low=-2, high=2)), "R.gather_nd(x, i)", gathered_nd),
    Case(
        "gather_nd_batch",
        (x("b", "n", 3), index("i", "b", "k", 1, low=-2, high=2)),
        "R.gather_nd(x, i, batch_dims=1)",
        gathered_nd_batch,
        sizes=(0, 1, 2, 3, 7),
    ),
    Case(
        "index_tensor",
        (x("n", "m", 3), index("i", "k", 1, low=-2, high=2), index("j", "s", low=-2, high=2)),
        "R.index_tensor(x, (i, j))",
        indexed,
        runs=20,
    ),
    Case(
        "bucketize",
        (x("n", "m"), f32("b", "k", draw=lambda rng, shape: np.sort(rng.standard_normal(shape)))),
        "R.bucketize(x, b)",
        lambda a, b: np.searchsorted(b, a),
    ),
    Case(
        "bucketize_right",
        (x("n", draw=special), f32("b", "k", draw=lambda rng, shape: np.sort(rng.integers(-2, 3, shape)))),
        "R.bucketize(x, b, out_int32=True, right=True)",
        lambda a, b: np.searchsorted(b, a, side="right").astype("int32"),
    ),
    *(
        Case(
            f"scatter_elements_{r}",
            SCATTER,
            f'R.scatter_elements(x, i, y, axis=0, reduction="{r}")',
            scattered(0, r),
            sizes=(0, 1, 2, 3, 7),
            runs=16,
        )
        for r in ("update", "add", "mul", "min", "max", "mean")
    ),
    *(
        Case(f"scatter_nd_{r}", ND, f'R.scatter_nd(x, i, y, reduction="{r}")', scattered_nd(r), runs=16)
        for r in ("update", "add", "mul", "min", "max")
    ),
    Case("index_put", (x("n", 3), index("i", "k", low=-2, high=2), y("k", 3)), "R.index_put(x, (i,), y)", put(False)),
    Case(
        "index_put_accumulate",
        (i64("x", "n"), index("i", "k", low=-2, high=2), i64("y", "k")),
        "R.index_put(x, (i,), y, accumulate=True)",
        put(True),
    ),
    Case(
        "slice_scatter",
        (x("n", "m"), y("k", "m")),
        "R.slice_scatter(x, y, R.prim_value(1), R.prim_value(6), R.prim_value(2), axis=0)",
        sliced(1, 6, 2),
        sizes=(0, 1, 2, 3, 8),
        runs=30,
    ),
    *(
        Case(
            f"tensor_scatter_{circular}",
            (x("n", "m", 2), y("n", "k", 2), index("i", "n", low=-1, high=4)),
            f"R.tensor_scatter(x, y, i, axis=1, circular={circular})",
            cached(circular),
            sizes=(0, 1, 2, 3, 7),
            runs=40,
        )
        for circular in (False, True)
    ),
    Case(
        "take_nan",
        (x(5), index("i", "s", low=-9, high=9)),
        'R.take(x, i, axis=0, mode="nan")',
        lambda a, i: np.where((i >= -5) & (i < 5), np.take(a, i, mode="wrap"), np.float32(np.nan)),
    ),
    Case(
        "reverse_sequence",
        (x("b", "s", 2), index("i", "b", low=0, high=4)),
        "R.reverse_sequence(x, i, seq_axis=1, batch_axis=0)",
        reversed_sequences,
        runs=20,
    ),
    Case(
        "dynamic_strided_slice",
        (
            x("n", "m"),
            index("i", 2, low=-5, high=5),
            index("j", 2, low=-5, high=9),
            index("k", 2, low=-2, high=4),
        ),
        "R.dynamic_strided_slice(x, i, j, k)",
        dynamic_slice,
        runs=40,
    ),
]

"""Cases of pooling, padding and operators that move pixels, compared with plain loops over windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases
from .convolution import double, pairs, spread


def windows(size: int, k: int, stride: int, pads: tuple[int, int], dilation: int, ceil: bool) -> list[list[int]] | None:
    """Returns the positions that each window covers, relative to the first element before padding. Positions beyond the trailing
    padding are omitted. `None` if the number of windows is negative.
    """
    room = size + sum(pads) - dilation * (k - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + pads[0]:
        count -= 1
    if count < 0:
        return None
    return [[p for j in range(k) if (p := i * stride + j * dilation - pads[0]) < size + pads[1]] for i in range(count)]


def lowest(dtype: Any) -> Any:
    """Returns the maximum of an empty window, the lowest value of the type. In small data, a window
    may cover only padding.
    """
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def pooled(a: Array, kind: str, size: Any, **given: Any) -> Array | Refusal:
    """Computes the pooling of data (N, C, ...) by loops over the windows."""
    n = a.ndim - 2
    sizes, strides = spread(size, n), spread(given.get("strides", 1), n)
    pads, dilation = pairs(given.get("padding", 0), n), spread(given.get("dilation", 1), n)
    ceil = given.get("ceil_mode", False)
    include = given.get("count_include_pad", n != 2)
    lists = [windows(a.shape[2 + k], sizes[k], strides[k], pads[k], dilation[k], ceil) for k in range(n)]
    if any(found is None for found in lists):
        return Refusal("negative", "is larger than a dim of")
    result = np.zeros((*a.shape[:2], *(len(found) for found in lists if found is not None)), a.dtype)
    for at in np.ndindex(*result.shape[2:]):
        places = [found[i] for found, i in zip(lists, at, strict=True) if found is not None]
        inside = [p for p in itertools.product(*places) if all(0 <= v < s for v, s in zip(p, a.shape[2:], strict=True))]
        values = np.array([a[(..., *p)] for p in inside]).reshape(len(inside), *a.shape[:2])
        if kind == "max":
            result[(..., *at)] = values.max(0, initial=lowest(a.dtype))
        else:
            count = math.prod(len(p) for p in places) if include else len(inside)
            result[(..., *at)] = values.sum(0) / count
    return result


def pool(kind: str, name: str, data: tuple[int | str, ...], size: Any, **given: Any) -> Case:
    n = len(data) - 2
    dtype = given.pop("dtype", "float32")
    words = "".join(f", {k}={v!r}" for k, v in given.items())
    expr = f"R.nn.{kind}_pool{n}d(x, pool_size={size!r}{words})"
    reference = double(lambda a: pooled(a, kind, size, **given))
    params = (Param("x", dtype, data),)
    return Case(f"{kind}_pool{n}d_{name}", params, expr, reference, (0, 1, 2, 3, 7, 8), runs=7)


def adaptive(a: Array, out: Sequence[int]) -> Array:
    result = np.zeros((*a.shape[:2], *out), a.dtype)
    for at in np.ndindex(*out):
        part = a
        for k, (i, m) in enumerate(zip(at, out, strict=True)):
            n = a.shape[2 + k]
            part = np.take(part, np.arange(i * n // m, -(-(i + 1) * n // m)), 2 + k)
        result[(..., *at)] = part.mean(tuple(range(2, a.ndim)))
    return result


def adaptive_case(name: str, data: tuple[int | str, ...], out: Any) -> Case:
    n = len(data) - 2
    expr = f"R.nn.adaptive_avg_pool{n}d(x{'' if out is None else f', {out!r}'})"
    reference = rounded(lambda a: adaptive(a, a.shape[2:] if out is None else spread(out, n)))
    return Case(f"adaptive_avg_pool{n}d_{name}", (x(*data),), expr, reference, (0, 1, 2, 3, 7, 8), runs=7)


def pools() -> list[Case]:
    cases = []
    image = ("n", 2, "h", "w")
    for kind in ("max", "avg"):
        cases += [
            pool(kind, "plain", ("n", 2, "w"), 2),
            pool(kind, "padded", ("n", 2, "w"), 3, strides=2, padding=[1, 2], ceil_mode=True),
            pool(kind, "plain", image, 2, strides=2),
            pool(kind, "padded", image, [3, 2], strides=[2, 1], padding=1),
            pool(kind, "asymmetric", image, 3, strides=2, padding=[0, 1, 2, 1]),
            pool(kind, "ceil", image, 3, strides=2, ceil_mode=True),
            pool(kind, "ceil_padded", image, 2, strides=3, padding=1, ceil_mode=True),
            pool(kind, "dilated", image, 2, dilation=[2, 3], padding=1, strides=2),
            pool(kind, "dilated_ceil", image, 3, dilation=2, padding=[1, 2], strides=2, ceil_mode=True),
            pool(kind, "float16", image, 3, padding=1, dtype="float16"),
            pool(kind, "plain", ("n", 1, "d", 3, "w"), [2, 1, 3], strides=[1, 2, 2], padding=[1, 0, 1]),
        ]
        for include in (False, True):
            for ceil in (False, True):
                given = {"strides": 2, "padding": 1, "ceil_mode": ceil, "count_include_pad": include}
                cases.append(pool(kind, f"include_{include}_ceil_{ceil}", image, 3, **given))
    cases += [
        pool("max", "int8", image, 2, padding=1, dtype="int8"),
        pool("max", "int64", image, 3, strides=2, dtype="int64"),
        Case(
            "max_pool2d_special",
            (x(1, 1, "h", "w", draw=special),),
            "R.nn.max_pool2d(x, 2, padding=1)",
            lambda a: pooled(a, "max", 2, padding=1),
            (0, 1, 3, 7),
        ),
        Case(
            "max_pool2d_channels_last",
            (x("n", "h", "w", 3),),
            'R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2], padding=[1, 1], layout="NHWC")',
            lambda a: pooled(a.transpose(0, 3, 1, 2), "max", 2, strides=2, padding=1).transpose(0, 2, 3, 1),
            SMALL,
        ),
        Case(
            "avg_pool2d_out_layout",
            (x("n", 3, "h", "w"),),
            'R.nn.avg_pool2d(x, pool_size=2, padding=1, out_layout="NHWC")',
            rounded(lambda a: pooled(a, "avg", 2, padding=1).transpose(0, 2, 3, 1)),
            SMALL,
        ),
        adaptive_case("none", ("n", 2, "w"), None),
        adaptive_case("global", ("n", 2, "w"), 1),
        adaptive_case("three", ("n", 2, "w"), 3),
        adaptive_case("global", ("n", "c", "h", "w"), (1, 1)),
        adaptive_case("parts", ("n", 2, "h", "w"), (2, 3)),
        adaptive_case("even", ("n", 2, 6, 9), (2, 3)),
        adaptive_case("empty", ("n", 2, "h", 9), (0, 3)),
        adaptive_case("parts", ("n", 1, "d", "h", 5), (2, 1, 2)),
        Case(
            "adaptive_avg_pool2d_channels_last",
            (x("n", "h", "w", 3),),
            'R.nn.adaptive_avg_pool2d(x, 2, layout="NHWC")',
            rounded(lambda a: adaptive(a.transpose(0, 3, 1, 2), (2, 2)).transpose(0, 2, 3, 1)),
            SMALL,
        ),
    ]
    return cases


# ---- padding and pixels ----

NUMPY_MODES = {"reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


def padded(a: Array, pairs: Sequence[tuple[int, int]], mode: str) -> Array | Refusal:
    for size, pair in zip(a.shape, pairs, strict=True):
        need = {"reflect": max(pair) + 1}.get(mode, 1) if max(pair) > 0 else 0
        if size < need:
            return Refusal(f"this pad_mode needs a size of at least {need}")
    kept = [np.arange(size)[max(0, -b) : size - max(0, -e)] for size, (b, e) in zip(a.shape, pairs, strict=True)]
    return np.pad(a[np.ix_(*kept)], [(max(b, 0), max(e, 0)) for b, e in pairs], NUMPY_MODES[mode])


def shuffled(a: Array, r: int) -> Array | Refusal:
    *lead, c, h, w = a.shape
    if c % (r * r):
        return Refusal("multiple of the square of upscale_factor")
    split = a.reshape(*lead, c // (r * r), r, r, h, w)
    k = len(lead)
    return split.transpose(*range(k), k, k + 3, k + 1, k + 4, k + 2).reshape(*lead, c // (r * r), h * r, w * r)


PADS: list[Case] = [
    Case("pad", (x("n", "m"),), "R.nn.pad(x, [1, 2, 0, 3])", lambda a: np.pad(a, [(1, 2), (0, 3)])),
    Case(
        "pad_value",
        (x("n", "m"),),
        "R.nn.pad(x, pad_width=(0, 2, 1, 0), pad_value=-2.5)",
        lambda a: np.pad(a, [(0, 2), (1, 0)], constant_values=-2.5),
    ),
    Case(
        "pad_int64",
        (i64("x", "n"),),
        'R.nn.pad(x, [2, 1], "constant", 7)',
        lambda a: np.pad(a, (2, 1), constant_values=7),
    ),
    Case(
        "pad_and_crop",
        (x("n", 8),),
        "R.nn.pad(x, [1, 1, -2, -3])",
        lambda a: np.pad(a[:, 2:-3], [(1, 1), (0, 0)]),
    ),
    *(
        Case(
            f"pad_{mode}",
            (x("n", "m", 3),),
            f'R.nn.pad(x, [2, 1, 0, 0, 1, 2], pad_mode="{mode}")',
            lambda a, mode=mode: padded(a, [(2, 1), (0, 0), (1, 2)], mode),
            runs=10,
        )
        for mode in NUMPY_MODES
    ),
    Case("pixel_shuffle", (x("n", 8, "h", "w"),), "R.nn.pixel_shuffle(x, 2)", lambda a: shuffled(a, 2), SMALL),
    Case(
        "pixel_shuffle_of_symbols",
        (x("c", 2, "w"),),
        "R.nn.pixel_shuffle(x, 3)",
        lambda a: shuffled(a, 3),
        (0, 9, 10, 18),
    ),
    Case("batch_flatten", (x("n", "m", 3),), "R.nn.batch_flatten(x)", lambda a: a.reshape(len(a), a.shape[1] * 3)),
]

CASES: list[Case] = [*pools(), *PADS]

image = x("n", 4, "h", "w")
REFUSED: list[Refused] = [
    *(
        Refused(f"{kind}_pool2d_{name}", params, f"R.nn.{kind}_pool2d(x, {more})", part)
        for kind in ("max", "avg")
        for name, params, more, part in (
            ("rank", (x("n", 4, "h"),), "2", "data must have 4 dims"),
            ("stride", (image,), "2, strides=0", "strides must be at least 1"),
            ("size", (image,), "0", "pool_size must be at least 1"),
            ("sizes", (image,), "[1, 2, 3]", "pool_size has 3 values, but 2 are needed"),
            ("padding", (image,), "2, padding=2", "must be smaller than the window"),
            ("window", (x(1, 1, 2, 2),), "[5, 5]", "is larger than a dim of 2"),
            ("layout", (image,), '2, layout="HWCX"', "must have the letters of"),
            ("dilation", (image,), "2, dilation=0", "dilation must be at least 1"),
        )
    ),
    Refused(
        "avg_pool_of_integers", (i64("x", "n", 4, "h", "w"),), "R.nn.avg_pool2d(x, 2)", "must be a tensor of floats"
    ),
    Refused("max_pool1d_rank", (image,), "R.nn.max_pool1d(x, 2)", "data must have 3 dims"),
    Refused("max_pool3d_rank", (image,), "R.nn.max_pool3d(x, 2)", "data must have 5 dims"),
    Refused("adaptive_rank", (x("n", 4),), "R.nn.adaptive_avg_pool2d(x, 1)", "data must have 4 dims"),
    Refused("adaptive_size", (image,), "R.nn.adaptive_avg_pool2d(x, -1)", "output_size must be at least 0"),
    Refused("adaptive_type", (i64("x", "n", 4, "w"),), "R.nn.adaptive_avg_pool1d(x, 1)", "must be a tensor of floats"),
    Refused("pad_width", (x("n", "m"),), "R.nn.pad(x, [1, 1])", "pad_width must have 4 values"),
    Refused("pad_odd", (x("n"),), "R.nn.pad(x, [1, 1, 1])", "two for each axis"),
    Refused("pad_mode", (x("n"),), 'R.nn.pad(x, [1, 1], "mirror")', "pad_mode must be one of"),
    Refused("pad_reflect", (x(3),), 'R.nn.pad(x, [3, 0], "reflect")', "is too small for padding of 3 before and 0 after it"),
    Refused("pad_circular", (x(0),), 'R.nn.pad(x, [0, 4], "circular")', "is too small for padding of 0 before and 4 after it"),
    Refused("pad_replicate", (x(0),), 'R.nn.pad(x, [0, 1], "replicate")', "is too small for padding"),
    Refused("pad_away", (x(3),), "R.nn.pad(x, [-2, -2])", "remove more elements from axis 0 than its size, 3"),
    Refused("shuffle_rank", (x(4, 4),), "R.nn.pixel_shuffle(x, 2)", "data must have at least 3 dims"),
    Refused("shuffle_channels", (x(6, 4, 4),), "R.nn.pixel_shuffle(x, 2)", "must be a multiple of the square"),
    Refused("shuffle_factor", (x(4, 4, 4),), "R.nn.pixel_shuffle(x, 0)", "upscale_factor must be at least 1"),
    Refused("batch_flatten_scalar", (x(),), "R.nn.batch_flatten(x)", "data must have at least 1 dim"),
]

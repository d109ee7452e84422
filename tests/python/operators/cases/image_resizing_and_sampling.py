"""Cases of resizing, compared with matrices of exact weights, and of sampling at the coordinates of grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases


def place(i: int, n: int, m: int, mode: str, roi: tuple[float, float]) -> Fraction:
    """Returns the coordinate in a dim of n elements that corresponds to element i of a resized dim
    of m elements.
    """
    half = Fraction(2 * i + 1, 2) * Fraction(n, m) - Fraction(1, 2)
    if mode == "align_corners":
        return Fraction(i * (n - 1), m - 1) if m > 1 else Fraction(0)
    if mode == "asymmetric":
        return Fraction(i * n, m)
    if mode == "tf_half_pixel_for_nn":
        return half + Fraction(1, 2)
    if mode == "pytorch_half_pixel" and m == 1:
        return Fraction(0)
    if mode == "tf_crop_and_resize":
        start, end = (Fraction(v) for v in roi)
        return (start + (end - start) * Fraction(i, m - 1) if m > 1 else (start + end) / 2) * (n - 1)
    return half


def scaled_place(i: int, n: int, m: int, mode: str, scale: float) -> Fraction:
    """Returns the input coordinate that corresponds to element `i` of the result, like `place`. Uses an explicit `scale`
    instead of the ratio of the sizes `m` (result) and `n` (input), as in ONNX Resize with scales."""
    exact = Fraction(scale)
    whole, centre = n * exact, Fraction(2 * i + 1, 2) / exact
    if mode == "align_corners":
        return i * (n - 1) / (whole - 1 if whole != 1 else 1)
    if mode == "asymmetric":
        return i / exact
    if mode == "tf_half_pixel_for_nn":
        return centre
    if mode == "pytorch_half_pixel" and m == 1:
        return Fraction(0)
    shift = Fraction(n, 2) * (1 - m / whole) if mode == "half_pixel_symmetric" else Fraction(0)
    return centre - Fraction(1, 2) + shift


def nearest(p: Fraction, rounding: str, mode: str) -> int:
    if rounding == "round" or (rounding == "" and mode == "align_corners"):
        return round(p)
    if rounding == "round_prefer_floor":
        return math.ceil(p - Fraction(1, 2))
    if rounding == "round_prefer_ceil":
        return math.floor(p + Fraction(1, 2))
    return math.ceil(p) if rounding == "ceil" else math.floor(p)


def cubic(d: float, alpha: float) -> float:
    d = abs(d)
    if d <= 1:
        return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return alpha * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def matrix(n: int, m: int, roi: tuple[float, float], scale: float | None = None, **given: Any) -> Array:
    """Returns a matrix (m, n) with the weight of each of n elements in each of m resized
    elements.
    """
    mode, method = given.get("coordinate_transformation_mode", "half_pixel"), given.get("method", "linear")
    out = np.zeros((m, n))
    for i in range(m):
        p = place(i, n, m, mode, roi) if scale is None else scaled_place(i, n, m, mode, scale)
        if method == "nearest_neighbor":
            out[i, min(max(nearest(p, given["rounding_method"], mode), 0), n - 1)] = 1
            continue
        first, t = math.floor(p), float(p - math.floor(p))
        around = [(0, 1 - t), (1, t)]
        if method == "cubic":
            around = [(j, cubic(t - j, given.get("cubic_alpha", -0.75))) for j in (-1, 0, 1, 2)]
        if given.get("cubic_exclude"):
            around = [(j, w) for j, w in around if 0 <= first + j < n]
            total = sum(w for _, w in around)
            around = [(j, w / total) for j, w in around]
        for j, w in around:
            out[i, min(max(first + j, 0), n - 1)] += w
    return out


def resized(a: Array, size: tuple[int, ...], **given: Any) -> Array | Refusal:
    """Resizes images (n, c, ...) with exact weights."""
    dims = a.shape[2:]
    if any(n == 0 and m > 0 for n, m in zip(dims, size, strict=True)):
        return Refusal("data has no elements")
    n = len(dims)
    roi = given.get("roi") or [0.0] * (2 * n)
    scales = given.get("scales") or [None] * n
    rest = {k: v for k, v in given.items() if k not in ("roi", "scales")}
    out = a.astype("f8")
    for k, (have, want) in enumerate(zip(dims, size, strict=True)):
        weights = matrix(have, want, (roi[k], roi[n + k]), scales[k], **rest)
        out = np.moveaxis(np.tensordot(out, weights, ([2 + k], [1])), -1, 2 + k)
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        for k, (have, want) in enumerate(zip(dims, size, strict=True)):
            places = [place(i, have, want, "tf_crop_and_resize", (roi[k], roi[n + k])) for i in range(want)]
            beyond = np.array([p < 0 or p > have - 1 for p in places], bool)
            out[(slice(None),) * (2 + k) + (beyond,)] = given.get("extrapolation_value", 0.0)
    return out.astype(a.dtype)


def resize(name: str, data: tuple[int | str, ...], size: str, want: Any, **given: Any) -> Case:
    words = "".join(f", {k}={v!r}" for k, v in given.items())
    expr = f"R.image.resize{len(data) - 2}d(x, {size}{words})"
    return Case(
        f"resize{len(data) - 2}d_{name}",
        (x(*data),),
        expr,
        lambda a: resized(a, want(a), **{"rounding_method": "round", **given}),
        sizes=(0, 1, 2, 3, 5, 8),
        runs=7,
        cancels=True,
        tolerance=3.0,
    )


MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resizes() -> list[Case]:
    image = ("n", 2, "h", "w")
    fixed = lambda a: (5, 7)  # noqa: E731
    cases = []
    for mode in (*MODES, "half_pixel_symmetric"):
        more = {"coordinate_transformation_mode": mode}
        cases += [
            resize(f"linear_{mode}", image, "(5, 7)", fixed, **more),
            resize(f"cubic_{mode}", image, "(5, 7)", fixed, method="cubic", **more),
        ]
        for rounding in ROUNDINGS:
            given = {"method": "nearest_neighbor", "rounding_method": rounding, **more}
            cases.append(resize(f"nearest_{rounding}_{mode}", image, "(5, 3)", lambda a: (5, 3), **given))
        scaled = lambda a: (int(a.shape[2] * 1.7), a.shape[3] // 2)  # noqa: E731
        size = "(h * 17 // 10, w // 2)"
        cases += [
            resize(f"scaled_{method}_{mode}", image, size, scaled, method=method, scales=[1.7, 0.5], **more)
            for method in ("linear", "cubic")
        ]
        given = {"method": "nearest_neighbor", "rounding_method": "floor", "scales": [4.0, 0.5], **more}
        quarter = lambda a: (a.shape[2] * 4, a.shape[3] // 2)  # noqa: E731
        cases.append(resize(f"scaled_nearest_{mode}", image, "(h * 4, w // 2)", quarter, **given))
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "roi": [0.25, -0.5, 0.75, 1.25]}
    return [
        *cases,
        resize("crop", image, "(4, 5)", lambda a: (4, 5), extrapolation_value=9.0, **crop),
        resize("crop_to_one", image, "(1, 5)", lambda a: (1, 5), **crop),
        resize("cubic_alpha", image, "(5, 7)", fixed, method="cubic", cubic_alpha=-0.5),
        resize("cubic_exclude", image, "(5, 7)", fixed, method="cubic", cubic_exclude=1),
        resize("of_symbols", image, "(h * 2, w * 3)", lambda a: (a.shape[2] * 2, a.shape[3] * 3)),
        resize("of_one_size", image, "(6,)", lambda a: (6, 6)),
        resize("to_nothing", image, "(0, 4)", lambda a: (0, 4)),
        resize("linear", ("n", 1, "d", 3, "w"), "(4, 2, 5)", lambda a: (4, 2, 5)),
        resize("cubic", (1, 2, "d", "h", 3), "(4, 2, 5)", lambda a: (4, 2, 5), method="cubic"),
        resize(
            "nearest",
            (1, 2, "d", "h", 3),
            "(4, 2, 5)",
            lambda a: (4, 2, 5),
            method="nearest_neighbor",
            rounding_method="floor",
            coordinate_transformation_mode="asymmetric",
        ),
        Case(
            "resize2d_channels_last",
            (x("n", "h", "w", 3),),
            'R.image.resize2d(x, (3, 4), layout="NHWC")',
            lambda a: (
                got
                if isinstance(got := resized(a.transpose(0, 3, 1, 2), (3, 4)), Refusal)
                else got.transpose(0, 2, 3, 1)
            ),
            SMALL,
            tolerance=3.0,
        ),
        Case(
            "resize2d_of_integers",
            (Param("x", "uint8", (1, 1, "h", "w"), between(0, 255)),),
            'R.image.resize2d(x, (3, 4), method="nearest_neighbor", out_dtype="float32")',
            lambda a: (
                got
                if isinstance(got := resized(a, (3, 4), method="nearest_neighbor", rounding_method="round"), Refusal)
                else got.astype("float32")
            ),
            SMALL,
        ),
    ]


# ---- grids ----


def reflected(p: float, n: int, align: bool) -> float:
    if n == 1:
        return 0.0
    low, span = (0.0, float(n - 1)) if align else (-0.5, float(n))
    d = abs(p - low)
    flips, rest = math.floor(d / span), math.fmod(d, span)
    return min(max((span - rest if flips % 2 else rest) + low, 0.0), n - 1.0)


def sample_1d(g: float, n: int, method: str, padding: str, align: bool) -> list[tuple[int, float]]:
    """Returns the pixels that contribute to a coordinate, with their weights."""
    p = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2

    def seen(v: float) -> float:
        if padding == "border":
            return min(max(v, 0.0), n - 1.0)
        return reflected(v, n, align) if padding == "reflection" else v

    if method == "bicubic":
        first = math.floor(p)
        found = [(seen(first + j), cubic(p - first - j, -0.75)) for j in (-1, 0, 1, 2)]
    elif method == "nearest":
        found = [(float(round(seen(p))), 1.0)]
    else:
        p = seen(p)
        first = math.floor(p)
        found = [(first, 1 - (p - first)), (first + 1, p - first)]
    return [(int(v), w) for v, w in found if 0 <= v <= n - 1]


def grid_sample(a: Array, grid: Array, method: str, padding: str, align: bool) -> Array:
    out = np.zeros((*a.shape[:2], *grid.shape[2:]))
    n = a.ndim - 2
    for at in np.ndindex(a.shape[0], *grid.shape[2:]):
        values = a[at[0]].astype("f8")
        for k in range(n):
            pixels = sample_1d(float(grid[(at[0], n - 1 - k, *at[1:])]), a.shape[2 + k], method, padding, align)
            nothing = np.zeros((values.shape[0], *values.shape[2:]))
            values = sum((values[:, i] * w for i, w in pixels), nothing)
        out[(at[0], slice(None), *at[1:])] = values
    return out.astype(a.dtype)


def normalized(grid: Array, a: Array, align: bool) -> Array:
    """Maps positions in pixels to coordinates for which the image ends at -1 and 1."""
    out = np.zeros(grid.shape)
    for c in range(a.ndim - 2):
        n = a.shape[a.ndim - 1 - c]
        position = grid[:, c].astype("f8")
        out[:, c] = position * 2 / max(n - 1, 1) - 1 if align else (position * 2 + 1) / max(n, 1) - 1
    return out


def pixels(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(-24, 56, shape) / 8


def around(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.random(shape) * 3.2 - 1.6


def grids() -> list[Case]:
    cases = []
    params = (x("n", 2, 4, 5), f32("g", "n", 2, "h", "w", draw=around))
    for method in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                given = f'method="{method}", padding_mode="{padding}", align_corners={align}'
                cases.append(
                    Case(
                        f"grid_sample_{method}_{padding}_{align}",
                        params,
                        f"R.image.grid_sample(x, g, {given})",
                        lambda a, g, m=method, p=padding, c=align: grid_sample(a, g, m, p, c),
                        sizes=(0, 1, 2, 3),
                        runs=4,
                        cancels=True,
                        tolerance=5.0,
                    )
                )
    pixel_params = (x("n", 2, 4, 5), f32("g", "n", 2, "h", "w", draw=pixels))
    for method, padding, align in (("bilinear", "zeros", False), ("bicubic", "border", False), ("bilinear", "reflection", True)):
        given = f'method="{method}", padding_mode="{padding}", align_corners={align}, pixel_coordinates=True'
        cases.append(
            Case(
                f"grid_sample_pixels_{method}_{padding}",
                pixel_params,
                f"R.image.grid_sample(x, g, {given})",
                lambda a, g, m=method, p=padding, c=align: grid_sample(a, normalized(g, a, c), m, p, c),
                sizes=(0, 1, 2, 3),
                runs=4,
                cancels=True,
                tolerance=5.0,
            )
        )
    cube = (x("n", 2, 3, 2, 4), f32("g", "n", 3, "d", 2, "w", draw=around))
    more = {"sizes": (0, 1, 2, 3), "runs": 4, "cancels": True, "tolerance": 5.0}
    plain = lambda a, g: grid_sample(a, g, "bilinear", "zeros", False)  # noqa: E731
    cases += [
        Case("grid_sample_3d", cube, 'R.image.grid_sample(x, g, layout="NCDHW")', plain, **more),
        Case("grid_sample_of_symbols", (x("n", 1, "v", "w"), params[1]), "R.image.grid_sample(x, g)", plain, **more),
        Case(
            "affine_grid",
            (x("n", 2, 3),),
            "R.image.affine_grid(x, (4, 5))",
            lambda a: affine_grid(a, (4, 5), True),
            cancels=True,
        ),
        Case(
            "affine_grid_centres",
            (x("n", 3, 4), y("d", "w")),
            "R.image.affine_grid(x, (d, 2, w), align_corners=False)",
            lambda a, b: affine_grid(a, (b.shape[0], 2, b.shape[1]), False),
            cancels=True,
        ),
        Case(
            "affine_grid_of_one",
            (x("n", 2, 3),),
            "R.image.affine_grid(x, (1,))",
            lambda a: affine_grid(a, (1, 1), True),
        ),
    ]
    return cases


def affine_grid(a: Array, size: tuple[int, ...], align: bool) -> Array:
    n = len(size)
    lines = []
    for m in size:
        i = np.arange(m)
        lines.append((2 * i / (m - 1) - 1 if m > 1 else 0.0 * i) if align else (2 * i + 1) / max(m, 1) - 1)
    mesh = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(size)])
    return np.einsum("bij,j...->bi...", a.astype("f8"), mesh.reshape(n + 1, *size)).astype(a.dtype)


def summed(
    size: tuple[int, ...], strides: Sequence[int], pads: Sequence[int], dilation: Sequence[int]
) -> Callable[[Array], Array]:
    """Sums patches at their positions in images (the reference of col2im)."""
    n = len(size)

    def reference(a: Array) -> Array:
        out = np.zeros((a.shape[0], *size), "f8")
        for at in np.ndindex(*a.shape[1:]):
            to = tuple(at[n + k] * strides[k] + at[k] * dilation[k] - pads[k] for k in range(n))
            if all(0 <= i < m for i, m in zip(to, size, strict=True)):
                out[(slice(None), *to)] += a[(slice(None), *at)]
        return out.astype(a.dtype)

    return reference


def patches() -> list[Case]:
    more = {"sizes": (0, 1, 2, 3, 7), "cancels": True}
    strided = "strides=[2, 1], padding=[1, 0, 0, 2], dilation=[1, 2]"
    return [
        Case("col2im", (x("n", 3, "v", 4, "w"),), "R.image.col2im(x, (5, 6))", summed((5, 6), [1, 1], [0, 0], [1, 1]), **more),
        Case(
            "col2im_strided",
            (x("n", "k", 2, "v", "w"),),
            f"R.image.col2im(x, (5, 6), {strided})",
            summed((5, 6), [2, 1], [1, 0], [1, 2]),
            **more,
        ),
        Case("col2im_1d", (x("n", "k", "w"),), "R.image.col2im(x, (9,), padding=2)", summed((9,), [1], [2], [1]), **more),
        Case(
            "col2im_of_symbols",
            (x("n", 2, 2, "v", "w"), y("h", "k")),
            "R.image.col2im(x, (h, k), strides=3)",
            lambda a, b: summed(b.shape, [3, 3], [0, 0], [1, 1])(a),
            **more,
        ),
        Case(
            "col2im_half",
            (Param("x", "float16", ("n", 3, 3, 4, 4), None),),
            "R.image.col2im(x, (6, 6))",
            summed((6, 6), [1, 1], [0, 0], [1, 1]),
            cancels=True,
        ),
    ]


CASES: list[Case] = [*resizes(), *grids(), *patches()]

image = x("n", 2, "h", "w")
grid = f32("g", "n", 2, 3, 3)
REFUSED: list[Refused] = [
    Refused("resize2d_rank", (x("n", 2, "h"),), "R.image.resize2d(x, (2, 2))", "data must have 4 dims"),
    Refused("resize3d_rank", (image,), "R.image.resize3d(x, (2, 2, 2))", "data must have 5 dims"),
    Refused("col2im_rank", (image,), "R.image.col2im(x, (2, 2))", "data must have 5 dims for images of 2 spatial dims"),
    Refused("col2im_strides", (image,), "R.image.col2im(x, (2,), strides=[1, 1])", "data must have 3 dims"),
    Refused("resize2d_size", (image,), "R.image.resize2d(x, (2, 2, 2))", "operand 'size' has 3 values, but must have 1 or 2"),
    Refused("resize2d_negative", (image,), "R.image.resize2d(x, (2, -2))", "the size -2 in size is negative"),
    Refused(
        "resize2d_empty", (x(1, 1, 0, 2),), "R.image.resize2d(x, (2, 2))", "data has no elements to resize along spatial dim 0"
    ),
    Refused("resize2d_scales", (image,), "R.image.resize2d(x, (2, 2), scales=[1.0])", "scales must be a list of 2 positive"),
    Refused("resize2d_no_scale", (image,), "R.image.resize2d(x, (2, 2), scales=[1.0, 0.0])", "scales must be a list of 2"),
    Refused(
        "resize2d_scaled_crop",
        (image,),
        'R.image.resize2d(x, (2, 2), coordinate_transformation_mode="tf_crop_and_resize", scales=[1.0, 1.0])',
        "scales cannot be set",
    ),
    Refused("resize2d_method", (image,), 'R.image.resize2d(x, (2, 2), method="area")', "method must be one of"),
    Refused(
        "resize2d_mode",
        (image,),
        'R.image.resize2d(x, (2, 2), coordinate_transformation_mode="half")',
        "coordinate_transformation_mode must be one of",
    ),
    Refused(
        "resize2d_rounding",
        (image,),
        'R.image.resize2d(x, (2, 2), rounding_method="up")',
        "rounding_method must be one of",
    ),
    Refused("resize2d_roi", (image,), "R.image.resize2d(x, (2, 2), roi=[0.0, 1.0])", "a list of 4 numbers"),
    Refused("resize2d_layout", (image,), 'R.image.resize2d(x, (2, 2), layout="CHW")', "must have the letters of"),
    Refused("grid_sample_rank", (x("n", 2), grid), "R.image.grid_sample(x, g)", "data must have 4 or 5 dims"),
    Refused("grid_sample_ranks", (x(1, 1, 2, 2, 2), grid), "R.image.grid_sample(x, g)", "data and grid must have the same rank"),
    Refused(
        "grid_sample_type", (image, i64("g", "n", 2, 3, 3)), "R.image.grid_sample(x, g)", "grid must be a tensor of"
    ),
    Refused(
        "grid_sample_grid", (image, f32("g", "n", 3, 3, 2)), "R.image.grid_sample(x, g)", "dim 1 of grid, the coordinates, has size 3"
    ),
    Refused(
        "grid_sample_batch", (x(1, 2, 3, 3), f32("g", 2, 2, 3, 3)), "R.image.grid_sample(x, g)", "data and grid must have the same batch size"
    ),
    Refused("grid_sample_method", (image, grid), 'R.image.grid_sample(x, g, method="linear")', "method must be one of"),
    Refused("affine_grid_rank", (x(2, 3),), "R.image.affine_grid(x, (2, 2))", "data must have 3 dims"),
    Refused("affine_grid_shape", (x("n", 2, 4),), "R.image.affine_grid(x, (2, 2))", "data must have the shape (batch, 2, 3)"),
    Refused("affine_grid_size", (x("n", 2, 3),), "R.image.affine_grid(x, (2, 2, 2, 2))", "operand 'size' has 4 values"),
]

"""Cases of convolutions and transposed convolutions, compared with sums over the positions of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases

Pads = Sequence[tuple[int, int]]


def spread(value: int | Sequence[int], n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


def pairs(padding: int | Sequence[int], n: int) -> list[tuple[int, int]]:
    """Returns the padding before and after each dim as pairs."""
    if isinstance(padding, int):
        return [(padding, padding)] * n
    return [(p, p) for p in padding] if len(padding) == n else list(zip(padding[:n], padding[n:], strict=True))


def convolved(
    a: Array, w: Array, strides: Sequence[int], pads: Pads, dilation: Sequence[int], groups: int
) -> Array | Refusal:
    """Convolves data (N, C, ...) with kernels (O, I, ...)."""
    n = a.ndim - 2
    padded = np.pad(a, [(0, 0), (0, 0), *pads])
    out = [(padded.shape[2 + k] - dilation[k] * (w.shape[2 + k] - 1) - 1) // strides[k] + 1 for k in range(n)]
    if min(out) < 0:
        return Refusal("negative", "is larger than a dim of")
    result = np.zeros((a.shape[0], w.shape[0], *out), np.result_type(a, w))
    outs, ins = w.shape[0] // groups, w.shape[1]
    for place in np.ndindex(*w.shape[2:]):
        seen = padded
        for k in range(n):
            seen = np.take(seen, place[k] * dilation[k] + np.arange(out[k]) * strides[k], 2 + k)
        for g in range(groups):
            part = np.einsum("nc...,oc->no...", seen[:, g * ins : (g + 1) * ins], w[(..., *place)][g * outs :][:outs])
            result[:, g * outs : (g + 1) * outs] += part
    return result


def transposed(
    a: Array,
    w: Array,
    strides: Sequence[int],
    pads: Pads,
    extra: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Array | Refusal:
    """Computes a transposed convolution of data (N, C, ...) with kernels (I, O, ...): each element
    adds a scaled kernel to the result.
    """
    n = a.ndim - 2
    full = [(a.shape[2 + k] - 1) * strides[k] + dilation[k] * (w.shape[2 + k] - 1) + 1 + extra[k] for k in range(n)]
    if any(f - before - after < 0 for f, (before, after) in zip(full, pads, strict=True)):
        return Refusal("negative", "is too large: the size of the result")
    outs, ins = w.shape[1], w.shape[0] // groups
    result = np.zeros((a.shape[0], outs * groups, *(max(f, 0) for f in full)), np.result_type(a, w))
    for place in np.ndindex(*w.shape[2:]):
        where = np.ix_(*(place[k] * dilation[k] + np.arange(a.shape[2 + k]) * strides[k] for k in range(n)))
        for g in range(groups):
            part = np.einsum("nc...,co->no...", a[:, g * ins : (g + 1) * ins], w[(..., *place)][g * ins :][:ins])
            result[(slice(None), slice(g * outs, (g + 1) * outs), *where)] += part
    inside = (slice(b, f - e) for f, (b, e) in zip(full, pads, strict=True))
    return result[(slice(None), slice(None), *inside)]


def settings(n: int, **given: Any) -> dict[str, Any]:
    return {
        "strides": spread(given.get("strides", 1), n),
        "pads": pairs(given.get("padding", 0), n),
        "dilation": spread(given.get("dilation", 1), n),
        "groups": given.get("groups", 1),
    }


def written(op: str, given: dict[str, Any]) -> str:
    return f"R.nn.{op}({', '.join(['x', 'weight', *(f'{k}={v!r}' for k, v in given.items())])})"


def double(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a NumPy reference function so that floats are computed in float64 and rounded to the type
    of the first input."""

    def run(*inputs: Array) -> Any:
        if not np.issubdtype(inputs[0].dtype, np.floating):
            return reference(*inputs)
        got = reference(*(a.astype("float64") for a in inputs))
        return got if isinstance(got, Refusal) else got.astype(inputs[0].dtype)

    return run


def conv(name: str, data: tuple[int | str, ...], kernel: tuple[int | str, ...], **given: Any) -> Case:
    n = len(data) - 2
    dtype = given.pop("dtype", "float32")
    reference = double(lambda a, w: convolved(a, w, **settings(n, **given)))
    params = (Param("x", dtype, data), Param("weight", dtype, kernel))
    expr = written(f"conv{n}d", given)
    return Case(f"conv{n}d_{name}", params, expr, reference, SMALL, runs=6, cancels=True)


def conv_transpose(name: str, data: tuple[int | str, ...], kernel: tuple[int | str, ...], **given: Any) -> Case:
    n = len(data) - 2
    extra = spread(given.get("output_padding", 0), n)
    reference = double(lambda a, w: transposed(a, w, extra=extra, **settings(n, **given)))
    params = (Param("x", "float32", data), Param("weight", "float32", kernel))
    expr = written(f"conv{n}d_transpose", given)
    return Case(f"conv{n}d_transpose_{name}", params, expr, reference, (0, 1, 2, 3, 5), runs=6, cancels=True)


def in_layout(case: Case, name: str, data: str, kernel: str, out: str | None = None) -> Case:
    """Returns the same case with other layouts of its operands and result."""
    n = len(data) - 2
    x_param, w_param = case.params
    plain, plain_kernel = "NC" + "DHW"[3 - n :], ("IO" if "transpose" in case.name else "OI") + "DHW"[3 - n :]
    moved = Param("x", x_param.dtype, tuple(x_param.dims[plain.index(c)] for c in data))
    turned = Param("weight", w_param.dtype, tuple(w_param.dims[plain_kernel.index(c)] for c in kernel))

    def reference(a: Array, w: Array) -> Any:
        got = case.reference(
            a.transpose([data.index(c) for c in plain]), w.transpose([kernel.index(c) for c in plain_kernel])
        )
        return got if isinstance(got, Refusal) else got.transpose([plain.index(c) for c in out or data])

    extra = f", data_layout={data!r}, kernel_layout={kernel!r}" + (f", out_layout={out!r}" if out else "")
    expr = case.expr[:-1] + extra + ")"
    return Case(f"{case.name}_{name}", (moved, turned), expr, reference, case.sizes, case.runs, cancels=True)


IMAGE = ("n", 4, "h", "w")
plain2d = conv("strided", IMAGE, (6, 4, 3, 3), strides=2, padding=1)
CASES: list[Case] = [
    conv("plain", ("n", "c", "w"), ("o", "c", 3)),
    conv("padded", ("n", 2, "w"), (3, 2, 3), strides=2, padding=[1, 2], dilation=2),
    conv("of_symbols", ("n", 2, "w"), ("o", 2, "k")),
    conv("grouped", ("n", 6, "w"), (4, 3, 2), groups=2),
    conv("plain", ("n", "c", "h", "w"), ("o", "c", 3, 3)),
    plain2d,
    conv("asymmetric", IMAGE, (2, 4, 2, 3), padding=[0, 1, 2, 3]),
    conv("two_numbers", IMAGE, (2, 4, 3, 2), strides=[1, 3], padding=[2, 1], dilation=[1, 2]),
    conv("one_by_one", IMAGE, (5, 4, 1, 1)),
    conv("one_by_one_strided", IMAGE, (5, 4, 1, 1), strides=3),
    conv("grouped", IMAGE, (6, 2, 3, 3), padding=1, groups=2),
    conv("depthwise", IMAGE, (8, 1, 3, 3), padding=1, groups=4),
    conv("float64", IMAGE, (2, 4, 2, 2), padding=1, dtype="float64"),
    conv("float16", ("n", 3, "h", "w"), (2, 3, 2, 2), padding=1, dtype="float16"),
    conv("int32", IMAGE, (2, 4, 2, 2), padding=1, strides=2, dtype="int32"),
    in_layout(plain2d, "channels_last", "NHWC", "HWIO"),
    in_layout(plain2d, "out_layout", "NHWC", "OHWI", "NCHW"),
    conv("plain", ("n", 2, "d", "h", 5), (3, 2, 2, 3, 3), padding=1),
    conv("strided", ("n", 4, "d", 4, "w"), (2, 2, 2, 2, 1), strides=[2, 1, 2], groups=2, dilation=[2, 1, 1]),
    in_layout(conv("last", (1, 2, "d", 3, "w"), (3, 2, 2, 2, 2), padding=1), "channels", "NDHWC", "DHWIO"),
    Case(
        "conv2d_int8",
        (Param("x", "int8", IMAGE), Param("weight", "int8", (2, 4, 3, 3))),
        'R.nn.conv2d(x, weight, padding=1, out_dtype="int32")',
        lambda a, w: convolved(a.astype("int32"), w.astype("int32"), **settings(2, padding=1)),
        SMALL,
        runs=4,
    ),
    Case(
        "conv2d_of_unequal_channels",
        (f32("x", 1, "c", 3, 3), f32("weight", 2, "i", 3, 3)),
        "R.nn.conv2d(x, weight)",
        double(lambda a, w: convolved(a, w, **settings(2)) if a.shape[1] == w.shape[1] else Refusal("i")),
        (1, 2, 3),
        runs=6,
        cancels=True,
    ),
    conv_transpose("plain", ("n", "c", "w"), ("c", "o", 3)),
    conv_transpose("padded", ("n", 2, "w"), (2, 3, 4), strides=3, padding=[1, 0], output_padding=1),
    conv_transpose("plain", IMAGE, (4, 2, 3, 3)),
    conv_transpose("strided", IMAGE, (4, 2, 3, 3), strides=2, padding=1, output_padding=1),
    conv_transpose("dilated", IMAGE, (4, 2, 2, 2), strides=[1, 2], dilation=[3, 2], padding=[0, 1, 2, 1]),
    conv_transpose("grouped", IMAGE, (4, 3, 2, 2), strides=2, groups=2),
    in_layout(conv_transpose("last", IMAGE, (4, 2, 3, 3), strides=2), "channels", "NHWC", "HWOI"),
    conv_transpose("plain", ("n", 2, "d", 3, "w"), (2, 3, 2, 2, 2), strides=[1, 2, 1], padding=1),
]

image, kernel = f32("x", "n", 4, "h", "w"), f32("weight", 6, 4, 3, 3)
CONV = "R.nn.conv2d(x, weight"
REFUSED: list[Refused] = [
    Refused("conv2d_rank", (f32("x", "n", 4, "h"), kernel), f"{CONV})", "data must have 4 dims (NCHW)"),
    Refused("conv2d_kernel_rank", (image, f32("weight", 6, 4, 3)), f"{CONV})", "weight must have 4 dims (OIHW)"),
    Refused(
        "conv2d_channels", (image, f32("weight", 6, 5, 3, 3)), f"{CONV})", "data has 4 channels, but weight reads 5"
    ),
    Refused("conv2d_groups", (image, f32("weight", 5, 2, 3, 3)), f"{CONV}, groups=2)", "must be a multiple of groups"),
    Refused("conv2d_no_groups", (image, kernel), f"{CONV}, groups=0)", "groups must be at least 1"),
    Refused(
        "conv2d_types", (image, Param("weight", "float64", (6, 4, 3, 3))), f"{CONV})", "data is float32, but weight"
    ),
    Refused("conv2d_stride", (image, kernel), f"{CONV}, strides=0)", "strides must be at least 1, but is 0"),
    Refused("conv2d_dilation", (image, kernel), f"{CONV}, dilation=[1, -1])", "dilation must be at least 1"),
    Refused("conv2d_padding", (image, kernel), f"{CONV}, padding=-1)", "padding must be at least 0, but is -1"),
    Refused("conv2d_paddings", (image, kernel), f"{CONV}, padding=[1, 1, 1])", "padding has 3 values"),
    Refused("conv2d_strides", (image, kernel), f"{CONV}, strides=[1, 1, 1])", "strides has 3 values, but 2 are needed"),
    Refused("conv2d_layout", (image, kernel), f'{CONV}, data_layout="NCHV")', "must have the letters of"),
    Refused("conv2d_out_layout", (image, kernel), f'{CONV}, out_layout="NC")', "must have the letters of"),
    Refused("conv2d_window", (f32("x", 1, 4, 1, 2), kernel), f"{CONV})", "is larger than a dim of 1"),
    Refused("conv2d_huge", (image, kernel), f"{CONV}, padding={2**40})", "must be at most 2147483648"),
    Refused(
        "conv1d_rank", (f32("x", 3, 3, 3, 3), f32("weight", 1, 3, 3)), "R.nn.conv1d(x, weight)", "data must have 3 dims"
    ),
    Refused("conv3d_rank", (image, f32("weight", 1, 3, 3)), "R.nn.conv3d(x, weight)", "data must have 5 dims"),
    *(
        Refused(f"{op}_{name}", params, f"R.nn.{op}(x, weight{more})", part)
        for op in ("conv2d_transpose",)
        for name, params, more, part in (
            ("rank", (f32("x", 3, 3), kernel), "", "data must have 4 dims"),
            ("channels", (image, kernel), "", "data has 4 channels, but weight reads 6"),
            ("groups", (image, f32("weight", 4, 4, 3, 3)), ", groups=3", "must be a multiple of groups"),
            ("stride", (image, f32("weight", 4, 4, 3, 3)), ", strides=0", "strides must be at least 1"),
            (
                "output_padding",
                (image, f32("weight", 4, 4, 3, 3)),
                ", output_padding=1",
                "the larger of stride and dilation",
            ),
            ("padding", (f32("x", 1, 4, 2, 2), f32("weight", 4, 4, 3, 3)), ", padding=9", "is too large: the size of the result"),
        )
    ),
]

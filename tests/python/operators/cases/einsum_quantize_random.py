"""Cases of einsums, quantization and random draws."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def einsum(text: str) -> Callable[..., Any]:
    return rounded(lambda *args: np.einsum(text, *args))


def sums(name: str, text: str, *params: Param) -> Case:
    operands = ", ".join(p.name for p in params)
    call = f'R.einsum(({operands},), subscripts="{text}")'
    return Case(f"einsum_{name}", params, call, einsum(text), sizes=(0, 1, 2, 3, 7), runs=10, cancels=True)


def quantized(dtype: str, axis: int | None) -> Callable[..., Any]:
    info = np.iinfo(dtype)

    def reference(a: Array, scale: Array, zero: Array) -> Array:
        shape = [1] * a.ndim
        if axis is not None:
            shape[axis] = -1
        steps = np.round(a / scale.reshape(shape if scale.ndim else ())) + zero.reshape(shape if zero.ndim else ())
        return np.clip(steps, info.min, info.max).astype(dtype)

    return reference


def dequantized(a: Array, scale: Array, zero: Array) -> Array:
    return ((a.astype("int64") - zero) * scale).astype("float32")


def multinomial(p: Array, u: Array, i: Array) -> Any:
    if i.size and (i.min() < 0 or i.max() >= len(p)):
        return Refusal("relax.multinomial_from_uniform: index ")
    out = np.zeros(u.shape, "int64")
    for k in range(len(u)):
        total, out[k, 0] = np.float32(0), p.shape[1] - 1
        for v in range(p.shape[1]):
            total += p[i[k, 0], v]
            if total > u[k, 0]:
                out[k, 0] = v
                break
    return out


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape) * 40


def steps(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draws powers of two, so that quotients are exact and ties occur."""
    return 2.0 ** rng.integers(-2, 2, shape)


def rational(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.random(shape)


SMALL_INTS = between(-9, 9)
CASES: list[Case] = [
    sums("product", "ij,jk->ik", x("n", "k"), y("k", "m")),
    sums("implicit", "ij,jk", x("n", "k"), y("k", "m")),
    sums("batch", "bij,bjk->bik", x("b", "n", 3), y("b", 3, "m")),
    sums("ellipsis", "...ij,...jk->...ik", x("b", 1, "n", 3), y(2, 3, "m")),
    sums("implicit_ellipsis", "...ij,...jk", x("b", "n", 3), y(3, "m")),
    sums("ellipsis_last", "i...->...", x("n", "m", 2)),
    sums("trace", "ii", x("n", "n")),
    sums("diagonal", "iij->ij", x("n", "n", "m")),
    sums("transpose", "ij->ji", x("n", "m")),
    sums("sum", "ij->", x("n", "m")),
    sums("outer", "i,j", x("n"), y("m")),
    sums("inner", "i,i", x("n"), y("n")),
    sums("chain", "ij,jk,kl->il", x("n", 4), y(4, "m"), f32("z", "m", 3)),
    sums("spaces", " b i, i -> b ", x("n", "m"), y("m")),
    sums("capital", "aB,Ba->B", x("n", "m"), y("m", "n")),
    *(
        Case(
            f"quantize_{dtype}",
            (x("n", "m", draw=spread), f32("s", draw=steps), Param("z", dtype, (), between(0, 5))),
            f'R.quantize(x, s, z, axis=0, out_dtype="{dtype}")',
            quantized(dtype, None),
        )
        for dtype in ("int8", "uint8", "int16", "uint16", "int32")
    ),
    Case(
        "quantize_axis",
        (x("n", "m", 2, draw=spread), f32("s", "m", draw=steps), Param("z", "int8", ("m",))),
        'R.quantize(x, s, z, axis=1, out_dtype="int8")',
        quantized("int8", 1),
    ),
    *(
        Case(
            f"dequantize_{dtype}",
            (Param("x", dtype, ("n", "m"), between(0, 100)), f32("s", draw=steps), Param("z", dtype, (), between(0, 9))),
            "R.dequantize(x, s, z)",
            dequantized,
        )
        for dtype in ("int8", "uint8", "int16", "int32")
    ),
    Case(
        "dequantize_axis",
        (Param("x", "int8", ("n", "m")), f32("s", "m", draw=positive), Param("z", "int8", ("m",))),
        "R.dequantize(x, s, z, axis=-1)",
        dequantized,
    ),
    Case(
        "multinomial_from_uniform",
        (f32("p", "n", 4, draw=rational), f32("u", "k", 1, draw=rational), index("i", "k", 1, low=0, high=2)),
        "R.multinomial_from_uniform(p, u, i)",
        multinomial,
        runs=16,
    ),
]

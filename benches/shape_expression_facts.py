"""Typical shape expressions, and facts about them that hold for all sizes.

Functions yield `(name, expression)` or `(name, left, relation, right)` over the symbols of a `Vocabulary`, which stands for Pliant's
analyzer or for SymPy. Sizes are integers >= 0; `h` and `w` are at least 32, `n1` at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Expr = Any


@dataclass(frozen=True)
class Vocabulary:
    """The symbols and functions with which shape expressions are built in one library (Pliant or
    SymPy).
    """

    n: Expr
    m: Expr
    k: Expr
    n1: Expr
    h: Expr
    w: Expr
    minimum: Callable[[Expr, Expr], Expr]
    maximum: Callable[[Expr, Expr], Expr]

    def ceildiv(self, a: Expr, b: int) -> Expr:
        """Returns the quotient rounded up."""
        return (a + (b - 1)) // b


KERNELS = [(3, 1, 1), (3, 2, 1), (1, 1, 0), (1, 2, 0), (5, 1, 2), (5, 2, 2), (7, 2, 3), (2, 2, 0)]


def conv(size: Expr, kernel: int, stride: int, pad: int) -> Expr:
    """Returns the output size of a convolution."""
    return (size + 2 * pad - kernel) // stride + 1


def expressions(v: Vocabulary) -> Iterator[tuple[str, Expr]]:
    """Yields typical shape expressions for simplification, with their names."""
    for kernel, stride, pad in KERNELS:
        one = conv(v.h, kernel, stride, pad)
        yield f"conv k{kernel} s{stride}", one
        yield f"conv area k{kernel} s{stride}", one * conv(v.w, kernel, stride, pad)
        yield f"conv twice k{kernel} s{stride}", conv(one, 3, 1, 1)
        yield f"conv, pool k{kernel} s{stride}", conv(one, 2, 2, 0)
        yield f"conv, stride again k{kernel} s{stride}", conv(one, kernel, stride, pad)
    for c in (2, 3, 4, 8, 16, 64):
        yield f"flatten and split by {c}", (v.n * c * v.m) // c
        yield f"tile by {c}", v.ceildiv(v.n, c) * c
        yield f"quotient and remainder of {c}", (v.n // c) * c + v.n % c
        yield f"rest of a split by {c}", v.n - v.n // c
        yield f"nested quotient of {c}", (v.n // c) // c
        yield f"padding to {c}", v.ceildiv(v.n, c) * c - v.n
        yield f"scaled quotient of {c}", (v.n * c + v.m * c * 2) // c
        yield f"scaled remainder of {c}", (v.n * c + 1) % c
        yield f"clamp to {c}", v.minimum(v.maximum(v.n, 0), v.maximum(v.n, c) + v.n)
        yield f"even part over {c}", 2 * (v.m // 2) + v.n * c - v.n * (c - 1)
    yield "product of sums", (v.n + 1) * (v.m + 2) - v.n * v.m - 2 * v.n - v.m
    yield "heads", (v.n * v.m * 12 * 32) // 384


Fact = tuple[str, Expr, str, Expr]


def _tile_facts(v: Vocabulary, c: int) -> Iterator[Fact]:
    up = v.ceildiv(v.n, c) * c
    yield f"tiles of {c} cover", v.n, "<=", up
    yield f"tiles of {c} waste less than one", up - v.n, "<", c
    yield f"whole tiles of {c} fit", (v.n // c) * c, "<=", v.n
    yield f"quotient and remainder of {c}", (v.n // c) * c + v.n % c, "==", v.n
    yield f"remainder of {c} is small", v.n % c, "<", c
    yield f"quotient of {c} is no larger", v.n // c, "<=", v.n
    yield f"quotient of {c} is no larger when rounded up", v.ceildiv(v.n, c), "<=", v.n
    yield f"rounded up by {c} is one more at most", v.ceildiv(v.n, c), "<=", v.n // c + 1
    yield f"nested quotient of {c}", (v.n // c) // 2, "==", v.n // (2 * c)
    yield f"multiple of {c} divides", (v.n * c) % c, "==", v.n * 0
    yield f"multiple of {c} plus one", (v.n * c + 1) // c, "==", v.n
    yield f"index {c} in its tile", (v.n // c) * c + v.n % c, "<=", v.n


def _conv_facts(v: Vocabulary, kernel: int, stride: int, pad: int) -> Iterator[Fact]:
    out = conv(v.h, kernel, stride, pad)
    name = f"conv k{kernel} s{stride} p{pad}"
    yield f"{name} has an output", v.n * 0 + 1, "<=", out
    yield f"{name} does not grow", out, "<=", v.h
    yield f"{name} reads inside", (out - 1) * stride + kernel, "<=", v.h + 2 * pad
    if stride == 1 and 2 * pad == kernel - 1:
        yield f"{name} keeps the size", out, "==", v.h
    yield f"{name} twice does not grow", conv(out, 3, 1, 1), "<=", v.h


def facts(v: Vocabulary) -> Iterator[Fact]:
    """Yields facts to prove as `(name, left, relation, right)`. Each is true for all sizes of the
    vocabulary.
    """
    for c in (2, 3, 4, 8, 16, 64):
        yield from _tile_facts(v, c)
    for kernel, stride, pad in KERNELS:
        yield from _conv_facts(v, kernel, stride, pad)
    yield "reshape order", v.n * (v.m * 4), "==", (v.n * v.m) * 4
    yield "reshape merges", v.n * v.m + v.n, "==", v.n * (v.m + 1)
    yield "split in two", v.n // 2 + (v.n - v.n // 2), "==", v.n
    yield "halves differ by one at most", v.n - v.n // 2, "<=", v.n // 2 + 1
    yield "minimum is no larger, left", v.minimum(v.n, v.m), "<=", v.n
    yield "minimum is no larger, right", v.minimum(v.n, v.m), "<=", v.m
    yield "maximum is no smaller, left", v.n, "<=", v.maximum(v.n, v.m)
    yield "maximum is no smaller, right", v.m, "<=", v.maximum(v.n, v.m)
    yield "minimum below maximum", v.minimum(v.n, v.m), "<=", v.maximum(v.n, v.m)
    yield "minimum and maximum share the sum", v.minimum(v.n, v.m) + v.maximum(v.n, v.m), "==", v.n + v.m
    yield "at least one", v.n * 0 + 1, "<=", v.maximum(v.n, 1)
    yield "a size is not negative", v.n * 0, "<=", v.n
    yield "a product of sizes is not negative", v.n * 0, "<=", v.n * v.m
    yield "concatenation is no smaller", v.n, "<=", v.n + v.m
    yield "even part", 2 * (v.m // 2), "<=", v.m
    yield "odd part", v.m - 2 * (v.m // 2), "<=", v.n * 0 + 1
    yield "a slice is inside", v.minimum(v.k, v.n), "<=", v.n + v.m
    yield "grow by a batch", v.n, "<=", v.n * v.n1
    yield "positive product", v.n * 0 + 1, "<=", v.n1 * v.n1
    yield "bytes of floats", v.n * 4 // 4, "==", v.n
    yield "attention width", (v.n * 12 * 32) // 12, "==", v.n * 32
    yield "padding to a block and back", (v.ceildiv(v.n, 8) * 8) // 8, "==", v.ceildiv(v.n, 8)
    yield "double then halve", (v.n * 2) // 2 + v.m, "==", v.m + v.n
    yield "telescoping", (v.n + v.m) * 2 - v.n - v.m, "==", v.m + v.n

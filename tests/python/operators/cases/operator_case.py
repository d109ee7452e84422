"""Defines the class of test cases, and how their inputs are drawn.

Every named dim is a symbol of the program, for which the test draws sizes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

SIZES = (0, 1, 2, 3, 7, 8, 17, 33)
"""The default sizes from which dims are drawn."""
SMALL = (0, 1, 2, 3, 7, 31)
"""The sizes for operands of three dims."""


@dataclass(frozen=True)
class Refusal:
    """The result of a NumPy reference function if the program must refuse the inputs. It contains a part
    of the error message.
    """

    part: str
    written: str | None = None
    """A part of the message if the sizes are known: in a program of constant sizes, and when interpreted."""

    @property
    def pattern(self) -> str:
        return "|".join(re.escape(part) for part in (self.part, self.written) if part is not None)


@dataclass(frozen=True)
class Param:
    """A tensor parameter of a case. A dim is a number or the name of a symbol."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]
    draw: Draw | None = None


@dataclass(frozen=True)
class Case:
    """A test of one operator with its operands. Its NumPy equivalent returns an array, several
    arrays or a refusal.
    """

    name: str
    params: tuple[Param, ...]
    expr: str
    reference: Callable[..., Any]
    sizes: tuple[int, ...] = SIZES
    runs: int = 8
    cancels: bool = False
    """Whether terms larger than the result cancel; its error is then relative to the largest result."""

    tolerance: float = 1.0
    """The factor on the allowed error, for results of several inexact steps."""

    constant: bool = True
    """Whether the program means the same with numbers for its symbols, as in the interpreter."""

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({d for p in self.params for d in p.dims if isinstance(d, str)}))

    @property
    def script(self) -> str:
        return script(self.params, self.expr, "".join(f"        {s} = T.int64()\n" for s in self.symbols))

    def static(self, sizes: dict[str, int]) -> str:
        """Returns the script of the case with its symbols replaced by the given sizes."""
        return script(self.params, self.expr, "", sizes)


@dataclass(frozen=True)
class Refused:
    """A call that is refused when it is created, with a part of the error message."""

    name: str
    params: tuple[Param, ...]
    expr: str
    part: str

    @property
    def script(self) -> str:
        symbols = sorted({s for p in self.params for d in p.dims for s in re.findall(r"[a-z]\w*", str(d))})
        return script(self.params, self.expr, "".join(f"        {s} = T.int64()\n" for s in symbols))


def script(params: tuple[Param, ...], expr: str, symbols: str, sizes: dict[str, int] | None = None) -> str:
    """Returns a module whose only function is one call. Symbols in `sizes` are replaced by
    numbers.
    """
    known = sizes or {}

    def shape(param: Param) -> str:
        return "".join(f"{known.get(d, d)!r}, " if isinstance(d, str) else f"{d}, " for d in param.dims)

    if known:
        expr = re.sub(rf"\b({'|'.join(known)})\b(?!=)", lambda found: str(known[found[1]]), expr)
    signature = ", ".join(f'{p.name}: R.Tensor(({shape(p)}), dtype="{p.dtype}")' for p in params)
    return (
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({signature}):\n{symbols}"
        f"        with R.dataflow():\n            gv = {expr}\n            R.output(gv)\n"
        "        return gv\n"
    )


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.abs(rng.standard_normal(shape)) * 2 + 0.1


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draws numbers between -0.9 and 0.9."""
    return rng.random(shape) * 1.8 - 0.9


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draws zeros, infinities and NaN mixed with ordinary numbers."""
    values = np.array([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan])
    return values[rng.integers(0, len(values), shape)]


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    values = rng.integers(-9, 10, shape)
    return np.where(values == 0, 3, values)


def between(low: int, high: int) -> Draw:
    """Returns a function that draws integers from ``low`` up to, but not including, ``high``."""
    return lambda rng, shape: rng.integers(low, high, shape)


def f32(name: str, *dims: int | str, draw: Draw | None = None) -> Param:
    return Param(name, "float32", dims, draw)


def i64(name: str, *dims: int | str, draw: Draw | None = None) -> Param:
    return Param(name, "int64", dims, draw)


def index(name: str, *dims: int | str, low: int, high: int) -> Param:
    return i64(name, *dims, draw=between(low, high))


def boolean(name: str, *dims: int | str) -> Param:
    return Param(name, "bool", dims)


def x(*dims: int | str, draw: Draw | None = None) -> Param:
    return f32("x", *dims, draw=draw)


def y(*dims: int | str, draw: Draw | None = None) -> Param:
    return f32("y", *dims, draw=draw)


def rounded(reference: Callable[..., Any]) -> Callable[..., Array]:
    """Wraps a NumPy reference function so that it computes in float64 and rounds to float32."""
    return lambda *args: np.asarray(
        reference(*(a.astype("float64") if a.dtype == "float32" else a for a in args))
    ).astype("float32")

"""What a case is, and how its inputs are drawn.

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


def index(name: str, *dims: int | str, low: int, high: int) -> Param:
    return i64(name, *dims, draw=between(low, high))


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

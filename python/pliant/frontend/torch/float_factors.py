"""Exact quotients for products of a size and a float, such as the size of a scaled image.

torch computes ``floor(1.7 * n)`` with doubles: for ``n = 10`` it is 17, although the double 1.7 is less than 1.7.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from pliant.error import UnsupportedError

CHECKED_SIZES = 2**16
"""The number of sizes for which a quotient is compared with doubles."""

DOUBLE_ROUNDINGS = {"FloorToInt": np.floor, "TruncToInt": np.trunc, "CeilToInt": np.ceil, "RoundToInt": np.rint}
"""Roundings of doubles, by sympy class."""


@lru_cache(maxsize=256)
def quotient_of(factor: float, rounding: str) -> tuple[int, int]:
    """The simplest quotient ``p / q`` for which rounding ``n * p / q`` equals the computation with doubles, for all checked sizes.

    Raises ``UnsupportedError`` if there is none with a small divisor.
    """
    sizes = np.arange(CHECKED_SIZES, dtype=np.int64)
    expected = DOUBLE_ROUNDINGS[rounding](sizes * factor).astype(np.int64)
    for digits in range(7):
        quotient = Fraction(factor).limit_denominator(10**digits)
        if np.array_equal(_rounded(sizes * quotient.numerator, quotient.denominator, rounding), expected):
            return quotient.numerator, quotient.denominator
    problem = f"a size times {factor} depends on the rounding of floats ({rounding})"
    raise UnsupportedError(f"{problem}: use a factor of few bits, such as 0.5")


def _rounded(numerator: np.ndarray, divisor: int, rounding: str) -> np.ndarray:
    down = numerator // divisor
    if rounding == "FloorToInt":
        return down
    up = -(-numerator // divisor)
    if rounding == "CeilToInt":
        return up
    if rounding == "TruncToInt":
        return np.where(numerator < 0, up, down)
    doubled = 2 * (numerator - down * divisor)
    return np.where((doubled > divisor) | ((doubled == divisor) & (down % 2 == 1)), down + 1, down)

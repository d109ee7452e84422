"""Ratios of paired measurements, with confidence intervals.

Each round gives a pair of values (old, new), measured alternately in two fresh processes. Drift of the machine and random
differences between processes therefore show as differences between the ratios of the rounds. The interval is Student's, for the
logarithms of these ratios. A table has many rows, and at 95 % each, one in twenty would be marked by chance; so the level is
divided by the number of rows (Bonferroni).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05
"""The probability that noise alone marks some row of a table."""

Pair = tuple[float, float]


@dataclass(frozen=True)
class Ratio:
    """The value of the old build divided by that of the new build, with a confidence interval. A ratio above 1 means that the new
    build is better."""

    value: float
    low: float
    high: float

    @property
    def worse(self) -> bool:
        """Whether the new build is significantly worse: the whole interval is below 1."""
        return self.high < 1

    @property
    def better(self) -> bool:
        """Whether the new build is significantly better: the whole interval is above 1."""
        return self.low > 1


def student_probability(t: float, degrees: int) -> float:
    """Returns the probability that a variable with Student's t-distribution is within ±t. Uses the
    finite series for integer degrees of freedom.
    """
    angle = math.atan(t / math.sqrt(degrees))
    odd, cosine = degrees % 2, math.cos(angle)
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(2 + odd, degrees + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def student_quantile(outside: float, degrees: int) -> float:
    """Returns the t for which a variable with Student's t-distribution is outside of ±t with
    probability `outside`.
    """
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - student_probability(middle, degrees) > outside else (low, middle)
    return high


def from_logs(logs: Sequence[float], rows: int) -> Ratio:
    """Returns the mean ratio over all rounds and its interval, corrected for a table of `rows`
    rows. A single round has no interval.
    """
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(mean), 0.0, math.inf)
    half_width = student_quantile(LEVEL / rows, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half_width), math.exp(min(mean + half_width, 700)))


def logs(pairs: Sequence[Pair]) -> list[float]:
    """Returns the logarithm of the ratio old/new for each round."""
    return [math.log(old / new) for old, new in pairs]


def geomean(values: Sequence[float]) -> float:
    """Returns the geometric mean of positive values."""
    return statistics.geometric_mean(values)

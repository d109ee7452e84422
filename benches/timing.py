"""Timing of benchmarks: candidates alternate within one run, and medians over many rounds are compared."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping

import pliant


def require_release() -> None:
    """Exits if Pliant is a debug build."""
    if pliant.build_info()["profile"] != "release":
        raise SystemExit("this is a debug build: run `make bench`, which builds for release")


def interleaved(
    candidates: Mapping[str, Callable[[], object]], rounds: int = 7, min_seconds: float = 0.02
) -> dict[str, float]:
    """Returns the median seconds per call of each candidate over several rounds, in which the
    candidates run in random order. In each round, a candidate runs once to warm up, then for at
    least `min_seconds`.
    """
    order = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name in order.sample(list(candidates), len(candidates)):
            run = candidates[name]
            run()
            calls, start = 0, time.perf_counter()
            while True:
                run()
                calls += 1
                elapsed = time.perf_counter() - start
                if elapsed >= min_seconds:
                    break
            times[name].append(elapsed / calls)
    return {name: statistics.median(values) for name, values in times.items()}


def geomean(values: list[float]) -> float:
    """Returns the geometric mean of the values."""
    return statistics.geometric_mean(values)

"""Learning rate schedules: functions from the number of the step, counted from 1, to the learning rate.

An optimizer accepts a schedule instead of a number. The schedule is a graph expression, so the compiled optimizer computes it in every
step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pliant.relax import op
from pliant._core.relax import relax_const

__all__ = ["Schedule", "constant", "cosine", "exponential", "linear_warmup", "piecewise"]

Schedule = Callable[[Any, str], Any]
"""A function ``(step, dtype)`` that returns the learning rate as an expression. ``step`` is a scalar of type ``dtype``."""


def constant(value: float) -> Schedule:
    """A constant learning rate."""
    return lambda step, dtype: relax_const(value, dtype)


def exponential(value: float, decay: float, steps: int = 1) -> Schedule:
    """``value * decay ** (step / steps)``."""

    def rate(step: Any, dtype: str) -> Any:
        exponent = op.multiply(step, relax_const(math.log(decay) / steps, dtype))
        return op.multiply(op.exp(exponent), relax_const(value, dtype))

    return rate


def cosine(value: float, steps: int, minimum: float = 0.0) -> Schedule:
    """Decays from ``value`` to ``minimum`` along half a cosine period of ``steps`` steps, and stays at ``minimum``."""

    def rate(step: Any, dtype: str) -> Any:
        position = op.minimum(step, relax_const(float(steps), dtype))
        angle = op.multiply(position, relax_const(math.pi / steps, dtype))
        share = op.multiply(op.add(op.cos(angle), relax_const(1.0, dtype)), relax_const(0.5 * (value - minimum), dtype))
        return op.add(share, relax_const(minimum, dtype))

    return rate


def linear_warmup(schedule: Schedule | float, steps: int) -> Schedule:
    """Multiplies a schedule by ``step / steps`` in the first ``steps`` steps."""
    inner = constant(schedule) if isinstance(schedule, int | float) else schedule

    def rate(step: Any, dtype: str) -> Any:
        share = op.minimum(op.multiply(step, relax_const(1.0 / steps, dtype)), relax_const(1.0, dtype))
        return op.multiply(share, inner(step, dtype))

    return rate


def piecewise(values: list[float], boundaries: list[int]) -> Schedule:
    """``values[k]`` up to and including step ``boundaries[k]``, and the last value after the last boundary.

    Raises ``ValueError`` unless there is one value more than boundaries.
    """
    if len(values) != len(boundaries) + 1:
        raise ValueError(f"piecewise: {len(boundaries)} boundaries need {len(boundaries) + 1} values, but {len(values)} were given")

    def rate(step: Any, dtype: str) -> Any:
        result: Any = relax_const(values[-1], dtype)
        for value, boundary in reversed(list(zip(values, boundaries))):
            before = op.less_equal(step, relax_const(float(boundary), dtype))
            result = op.where(before, relax_const(value, dtype), result)
        return result

    return rate

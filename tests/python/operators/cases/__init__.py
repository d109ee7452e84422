"""The operators and what NumPy makes of the same inputs: one file of cases for each group of operators."""

from __future__ import annotations

from . import (
    attention,
    conv,
    create,
    dynamic,
    elementwise,
    image,
    linear_algebra,
    manipulate,
    nn,
    norm,
    pool,
    statistical,
)
from .base import Array, Case, Param, Refusal, Refused

__all__ = ["CASES", "REFUSED", "Array", "Case", "Param", "Refusal", "Refused"]

GROUPS = (
    elementwise,
    manipulate,
    create,
    statistical,
    linear_algebra,
    nn,
    norm,
    attention,
    conv,
    pool,
    image,
    dynamic,
)

CASES: list[Case] = [case for group in GROUPS for case in group.CASES]
REFUSED: list[Refused] = [case for group in GROUPS for case in getattr(group, "REFUSED", [])]

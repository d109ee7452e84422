"""The operators with their NumPy equivalents: one file of cases for each group of operators."""

from __future__ import annotations

from . import (
    attention,
    conv,
    create,
    dynamic,
    elementwise,
    image,
    indexing,
    linear_algebra,
    manipulate,
    nn,
    norm,
    ordering,
    pool,
    products,
    rearrange,
    recurrent,
    statistical,
    vision,
)
from .base import Array, Case, Param, Refusal, Refused

__all__ = ["CASES", "REFUSED", "Array", "Case", "Param", "Refusal", "Refused"]

GROUPS = (
    elementwise,
    manipulate,
    rearrange,
    indexing,
    create,
    statistical,
    ordering,
    linear_algebra,
    products,
    nn,
    norm,
    attention,
    conv,
    pool,
    image,
    recurrent,
    vision,
    dynamic,
)

CASES: list[Case] = [case for group in GROUPS for case in group.CASES]
REFUSED: list[Refused] = [case for group in GROUPS for case in getattr(group, "REFUSED", [])]

"""The operators with their NumPy equivalents: one file of cases for each group of operators."""

from __future__ import annotations

from . import (
    attention,
    conv,
    create,
    dynamic_shapes,
    einsum_quantize_random,
    elementwise,
    image,
    indexing,
    linear_algebra,
    manipulate,
    nn,
    norm,
    ordering,
    pool,
    rearrange,
    recurrent,
    statistical,
    vision,
)
from .case import Array, Case, Param, Refusal, Refused

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
    einsum_quantize_random,
    nn,
    norm,
    attention,
    conv,
    pool,
    image,
    recurrent,
    vision,
    dynamic_shapes,
)

CASES: list[Case] = [case for group in GROUPS for case in group.CASES]
REFUSED: list[Refused] = [case for group in GROUPS for case in getattr(group, "REFUSED", [])]

"""The operators and what NumPy makes of the same inputs: one file of cases for each group of operators."""

from __future__ import annotations

from . import create, dynamic, elementwise, linear_algebra, manipulate, nn, statistical
from .base import Array, Case, Param, Refusal

__all__ = ["CASES", "Array", "Case", "Param", "Refusal"]

GROUPS = (elementwise, manipulate, create, statistical, linear_algebra, nn, dynamic)

CASES: list[Case] = [case for group in GROUPS for case in group.CASES]

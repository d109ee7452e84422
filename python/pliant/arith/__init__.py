"""Symbolic integers: simplifies expressions and proves facts about them.

>>> ana = Analyzer()
>>> n = tir.SizeVar("n")
>>> ana.can_prove((n * 4) // 4 == n)
True

A variable may have any integer value unless it is a ``SizeVar`` (not negative), is bound to a range
or expression, or is constrained by a ``constraint_scope``. "Not proved" does not mean "false":
every proof is correct, but not every true fact can be proved.
"""

from __future__ import annotations

from pliant._core import Analyzer, ConstIntBound, ModularSet

__all__ = ["Analyzer", "ConstIntBound", "ModularSet"]

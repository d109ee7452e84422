"""Symbolic integers: simplify expressions and prove facts about them.

>>> ana = Analyzer()
>>> n = tir.SizeVar("n")
>>> ana.can_prove((n * 4) // 4 == n)
True

A variable is any integer, unless it is a ``SizeVar`` (not negative), bound to a range, or inside a
``constraint_scope``. "Not proved" is not "false": the prover is never wrong, but it may not know.
"""

from __future__ import annotations

from pliant._core import Analyzer, ConstIntBound, ModularSet

__all__ = ["Analyzer", "ConstIntBound", "ModularSet"]

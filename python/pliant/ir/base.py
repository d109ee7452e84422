"""Structural equality, under the module's name that code written for TVM imports from."""

from __future__ import annotations

from pliant.ir import assert_structural_equal, structural_equal, structural_hash

__all__ = ["assert_structural_equal", "structural_equal", "structural_hash"]

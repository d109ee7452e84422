"""Structural equality, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant.ir import assert_structural_equal, structural_equal, structural_hash

__all__ = ["assert_structural_equal", "structural_equal", "structural_hash"]

"""Operators of the family 'random'."""

from __future__ import annotations

from pliant.frontend.torch.ops.unary import Converter

TABLE: dict[str, Converter] = {}
"""The converters of this family."""

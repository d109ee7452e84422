"""Models of other frameworks as modules."""

from __future__ import annotations

from pliant.frontend import onnx

__all__ = ["onnx"]

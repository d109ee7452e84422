"""Importers of models from other frameworks."""

from __future__ import annotations

from pliant.frontend import onnx
from pliant.frontend._detached_params import detach_params

__all__ = ["detach_params", "onnx"]

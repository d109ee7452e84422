"""The importers under TVM's names: ``relax.frontend.onnx.from_onnx`` is
``pliant.frontend.onnx.from_onnx``."""

from __future__ import annotations

from pliant.frontend import detach_params
from pliant.relax.frontend import onnx

__all__ = ["detach_params", "onnx"]

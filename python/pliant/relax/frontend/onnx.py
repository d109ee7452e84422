"""The names of ``pliant.frontend.onnx``, under TVM's module name."""

from __future__ import annotations

from pliant.frontend.onnx import Finding, Limits, Report, check, from_onnx, operators

__all__ = ["Finding", "Limits", "Report", "check", "from_onnx", "operators"]

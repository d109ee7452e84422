"""The version of ONNX Runtime whose interface this package has."""

from __future__ import annotations

API_VERSION = "1.32.0"
"""The version that ``onnxruntime.__version__`` states, because applications compare it."""

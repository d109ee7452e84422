"""``onnxruntime.capi._pybind_state``: the names of ``onnxruntime_pybind11_state``."""

from __future__ import annotations

from pliant.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403

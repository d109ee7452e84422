"""The importers under TVM's names: ``relax.frontend.onnx.from_onnx`` is
``pliant.frontend.onnx.from_onnx``. The importer for torch is imported at its first use, since it needs torch."""

from __future__ import annotations

import importlib
from typing import Any

from pliant.frontend import detach_params
from pliant.relax.frontend import onnx

__all__ = ["detach_params", "onnx", "torch"]


def __getattr__(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("pliant.relax.frontend.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Importers of models from other frameworks. The importer for torch is imported at its first use, since it needs torch."""

from __future__ import annotations

import importlib
from typing import Any

from pliant.frontend import onnx
from pliant.frontend._detached_params import detach_params

__all__ = ["detach_params", "onnx", "torch"]


def __getattr__(name: str) -> Any:
    if name == "torch":
        return importlib.import_module("pliant.frontend.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

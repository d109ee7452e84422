"""The front ends under TVM's names: ``relax.frontend.onnx.from_onnx`` is ``pliant.frontend.onnx.from_onnx``. ``nn`` defines models as
Python classes, and ``torch`` imports models of PyTorch. Both are imported on first use; ``torch`` needs PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant.frontend import detach_params
from pliant.relax.frontend import onnx

if TYPE_CHECKING:
    from pliant.relax.frontend import nn, torch

__all__ = ["detach_params", "nn", "onnx", "torch"]


def __getattr__(name: str) -> Any:
    if name in ("nn", "torch"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

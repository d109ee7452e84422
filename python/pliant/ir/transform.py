"""The names of :mod:`pliant.transform`, under the module name used by code written for TVM."""

from __future__ import annotations

from typing import Any

from pliant import transform
from pliant.transform import Pass, PassContext, PassInfo, Sequential, module_pass

__all__ = ["Pass", "PassContext", "PassInfo", "Sequential", "module_pass"]


def __getattr__(name: str) -> Any:
    return getattr(transform, name)

"""The loop passes by name, and the decorators for user-defined passes."""

from __future__ import annotations

from typing import Any

from pliant import transform
from pliant.transform import PassContext, Sequential, prim_func_pass

__all__ = ["PassContext", "Sequential", "prim_func_pass"]


def __getattr__(name: str) -> Any:
    return getattr(transform, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(transform)})

"""The classes of attributes of operators. In Pliant, the attributes of all calls are :class:`pliant.ir.Attrs`."""

from __future__ import annotations

from typing import Any

from pliant.ir.attrs import Attrs

__all__ = ["Attrs"]


def __getattr__(name: str) -> Any:
    if name.endswith("Attrs"):
        return Attrs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

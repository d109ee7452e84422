"""Graph functions: frames, bindings and all operators of ``R``."""

from __future__ import annotations

from typing import Any

from pliant.script.ir_builder.relax import frame, ir
from pliant.script.ir_builder.relax.ir import *  # noqa: F403
from pliant.script.ir_builder.relax.ir import __all__ as _names

__all__ = ["frame", "ir", *_names]


def __getattr__(name: str) -> Any:
    return getattr(ir, name)

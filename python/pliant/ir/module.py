"""Modules, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant._core import IRModule

__all__ = ["IRModule"]

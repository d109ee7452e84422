"""Modules, under the module's name that code written for TVM imports from."""

from __future__ import annotations

from pliant._core import IRModule

__all__ = ["IRModule"]

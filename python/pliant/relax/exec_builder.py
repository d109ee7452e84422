"""The builder of executables, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant.relax.vm import ExecBuilder

__all__ = ["ExecBuilder"]

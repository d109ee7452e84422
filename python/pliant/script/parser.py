"""The script languages, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant.script import from_source, ir, ir_module, parse, relax, tir

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]

"""The languages of the script, under the module's name that code written for TVM imports from."""

from __future__ import annotations

from pliant.script import from_source, ir, ir_module, parse, relax, tir

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]

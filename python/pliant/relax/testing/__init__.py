"""Helpers for tests and examples, with the names of ``tvm.relax.testing``."""

from __future__ import annotations

from pliant.relax.testing import nn, runtime_builtin, transform, vm

__all__ = ["nn", "runtime_builtin", "transform", "vm"]

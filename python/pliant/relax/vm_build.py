"""Functions to build executables, under the module name used by code written for TVM."""

from __future__ import annotations

from pliant._core import Executable
from pliant.relax.vm import build

VMExecutable = Executable

__all__ = ["Executable", "VMExecutable", "build"]

"""Building executables, under the module's name that code written for TVM imports from."""

from __future__ import annotations

from pliant._core import Executable
from pliant.relax.vm import build

VMExecutable = Executable

__all__ = ["Executable", "VMExecutable", "build"]

"""Backends: patterns with names, code generators, and the library's products."""

from __future__ import annotations

from pliant.relax.backend import gemm
from pliant.relax.backend.pattern_registry import (
    get_codegens,
    get_pattern,
    get_patterns_with_prefix,
    register_codegen,
    register_patterns,
)

__all__ = [
    "gemm",
    "get_codegens",
    "get_pattern",
    "get_patterns_with_prefix",
    "register_codegen",
    "register_patterns",
]

"""Backends: named patterns, code generators, offload rules, and the built-in backend ``gemm``."""

from __future__ import annotations

from pliant.relax.backend import gemm
from pliant.relax.backend._offload_rules import (
    OffloadRule,
    offload_rules,
    register_offload_rule,
    remove_offload_rule,
)
from pliant.relax.backend.pattern_registry import (
    get_codegens,
    get_pattern,
    get_patterns_with_prefix,
    register_codegen,
    register_patterns,
)

__all__ = [
    "OffloadRule",
    "gemm",
    "get_codegens",
    "get_pattern",
    "get_patterns_with_prefix",
    "offload_rules",
    "register_codegen",
    "register_offload_rule",
    "register_patterns",
    "remove_offload_rule",
]

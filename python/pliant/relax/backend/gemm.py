"""The backend ``gemm``: matrix products by the library, bias and activation in its epilogue."""

from __future__ import annotations

from pliant import transform
from pliant._core import IRModule
from pliant.relax.backend.pattern_registry import get_patterns_with_prefix


def partition_for_gemm(mod: IRModule, annotate_codegen: bool = True) -> IRModule:
    """Finds the products that the library takes, and makes functions of them; without ``annotate_codegen``, composite
    ones only."""
    patterns = get_patterns_with_prefix("gemm.")
    return transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=annotate_codegen)(mod)


def offload_gemm(mod: IRModule) -> IRModule:
    """Hands the products of a module to the library: :func:`partition_for_gemm`, then ``RunCodegen``."""
    return transform.RunCodegen()(partition_for_gemm(mod))

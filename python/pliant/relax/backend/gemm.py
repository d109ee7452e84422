"""The backend ``gemm``: matrix products in library kernels, with bias and activation in the
epilogue."""

from __future__ import annotations

from pliant import transform
from pliant._core import IRModule
from pliant.relax.backend.pattern_registry import get_patterns_with_prefix


def partition_for_gemm(mod: IRModule, annotate_codegen: bool = True) -> IRModule:
    """Moves each matrix product that the library supports, with its epilogue, to a composite
    function. With ``annotate_codegen``, each composite function is wrapped in a function with the
    attribute ``Codegen``, which ``RunCodegen`` compiles."""
    patterns = get_patterns_with_prefix("gemm.")
    return transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=annotate_codegen)(mod)


def offload_gemm(mod: IRModule) -> IRModule:
    """Offloads the matrix products of a module to the library: :func:`partition_for_gemm`, then
    ``RunCodegen``."""
    return transform.RunCodegen()(partition_for_gemm(mod))

"""The passes on the graph, by name: ``relax.transform.LegalizeOps()(mod)``."""

from __future__ import annotations

from typing import Any

from pliant import _core, transform
from pliant._core import IRModule
from pliant.transform import Pass, PassContext, Sequential, function_pass, module_pass
from pliant.transform import PassInfo as _PassInfo

__all__ = ["Pass", "PassContext", "Sequential", "function_pass", "get_pipeline", "module_pass"]


class _Pipeline(Pass):
    def __init__(self, name: str) -> None:
        self._name = name
        self.info = _PassInfo(name)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return _core.run_pipeline(self._name, mod, ctx.settings())


def get_pipeline(name: str = "zero") -> Pass:
    """The pipeline of that name: ``zero`` (graph level only), ``minimum`` (lowering only), ``default`` (both)."""
    return _Pipeline(name)


def __getattr__(name: str) -> Any:
    return getattr(transform, name)


def __dir__() -> list[str]:
    return dir(transform)

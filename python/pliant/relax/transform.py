"""The graph passes by name, such as ``relax.transform.LegalizeOps()(mod)``, and the decorators for
user-defined passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pliant import _core, transform
from pliant._core import IRModule
from pliant.relax._older_passes import *  # noqa: F403
from pliant.relax._older_passes import __all__ as _older_names
from pliant.relax.pipeline import get_pipeline
from pliant.transform import FunctionPass, ModulePass, Pass, PassContext, Sequential, function_pass, module_pass
from pliant.transform._pass_classes import Kind

__all__ = [
    "DataflowBlockPass",
    "FunctionPass",
    "LegalizeOps",
    "Pass",
    "PassContext",
    "Sequential",
    "UpdateParamType",
    "dataflowblock_pass",
    "function_pass",
    "get_pipeline",
    "module_pass",
    *_older_names,
]
__all__ += ["FusionPattern", "PatternCheckContext", *(name for name in dir(transform) if name[0].isupper())]


class DataflowBlockPass(ModulePass):
    """A pass over each dataflow block. :func:`dataflowblock_pass` creates such passes."""


def _on_blocks(transform: Callable[..., Any], name: str, mod: IRModule, ctx: PassContext) -> IRModule:
    from pliant.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Blocks(PyExprMutator):
        def visit_dataflow_block_(self, block: Any) -> Any:
            new = transform(block, mod, ctx)
            if not isinstance(new, _core.relax.DataflowBlock):
                raise TypeError(f"pass '{name}' returned {type(new).__name__} for a block, not a relax.DataflowBlock")
            return new

    result = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, _core.relax.Function):
            new = Blocks(mod).visit_expr(func)
            if new is not func:
                result.update_func(var, new)
    return result


_BLOCK = Kind("dataflowblock_pass", "transform_dataflowblock", ("block", "mod", "ctx"), DataflowBlockPass, _on_blocks)


def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[Any] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass from a function ``(block, mod, ctx) -> block`` over dataflow blocks, or from a
    class with ``transform_dataflowblock(self, block, mod, ctx)``. The output variables of the block
    are preserved. The other arguments are those of :func:`module_pass`."""
    return _BLOCK.decorate(pass_func, opt_level, name, required, traceable)


def LegalizeOps(
    customize_legalize_map: Mapping[str, Callable[..., Any]] | None = None,
    skip_ops: Sequence[str] | None = None,
    enable_warning: bool = False,
) -> Pass:
    """Creates the pass that lowers operators to calls of loop functions.

    ``customize_legalize_map`` maps names of operators to functions that lower their calls instead.
    ``f(bb, call)`` returns the expression that replaces the call. It can be built with
    ``bb.call_te``, ``bb.emit_te`` or other operators, which are then lowered too. If ``f`` returns
    the call unchanged, the library lowers it. Operators in ``skip_ops`` are not lowered.
    ``enable_warning`` is ignored.

    Raises ``ValueError`` for names that are not operators, and ``TypeError`` if ``skip_ops`` is not
    a list of names.
    """
    if isinstance(skip_ops, str) or not isinstance(skip_ops, Sequence | set | frozenset | None):
        raise TypeError(f"LegalizeOps: skip_ops must be a list of operator names, got {type(skip_ops).__name__}")
    library: Pass = transform.LegalizeOps(skip_ops=list(skip_ops or ()), enable_warning=enable_warning)
    if not customize_legalize_map:
        return library
    from pliant.ir import Op
    from pliant.relax._legalize_map import legalize_by_map

    for name in customize_legalize_map:
        Op.get(name)
    rules = dict(customize_legalize_map)

    @module_pass(opt_level=0, name="LegalizeOps")
    def legalize(mod: IRModule, ctx: PassContext) -> IRModule:
        return library(legalize_by_map(mod, rules, set(skip_ops or ())))

    return legalize


def UpdateParamType(type_func: Callable[[Any], Any]) -> Pass:
    """The same pass as ``UpdateParamStructInfo``, under its name in later versions of TVM."""
    result: Pass = transform.UpdateParamStructInfo(type_func)
    return result


def __getattr__(name: str) -> Any:
    if name in ("FusionPattern", "PatternCheckContext"):
        from pliant.relax.backend import pattern_registry

        return getattr(pattern_registry, name)
    return getattr(transform, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(transform)})

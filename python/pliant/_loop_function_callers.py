"""Adds graph functions that call loop functions to modules that contain only loop functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule, PrimFunc

if TYPE_CHECKING:
    from pliant._core.relax import GlobalVar, Var

_relax = _core.relax


def with_callers(mod: IRModule) -> IRModule:
    """If ``mod`` contains only loop functions, returns a module that also has a graph function for each public loop function. The
    graph function has the name and the parameters of the loop function, including the outputs, and passes its parameters to the
    loop function. Any other module is returned unchanged."""
    functions = mod.functions_items()
    if not functions or any(isinstance(func, _relax.Function) for _, func in functions):
        return mod
    from pliant.relax.block_builder import BlockBuilder

    taken = {var.name_hint for var, _ in functions}
    loops: dict[Any, PrimFunc] = {}
    callers: list[tuple[str, GlobalVar, PrimFunc]] = []
    for var, func in functions:
        name = var.name_hint
        inner = _unique_name(f"{name}_loops", taken)
        loops[inner] = func.without_attr("global_symbol")
        if not func.is_private:
            callers.append((name, _relax.GlobalVar(inner), func))
    builder = BlockBuilder(IRModule(loops, mod.attrs))
    for name, loop, func in callers:
        params = _params(func)
        with builder.function(name, params, pure=False):
            builder.emit(_relax.Call(loop, params))
            builder.emit_func_output(_relax.Tuple([]))
    return builder.get()


def _unique_name(name: str, taken: set[str]) -> str:
    """Returns an unused name derived from ``name``, and adds it to ``taken``."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _params(func: PrimFunc) -> list[Var]:
    """Creates graph variables with the types of a loop function's parameters."""
    buffers = {var._node_id: buffer for var, buffer in func.buffer_map.items()}
    params: list[Var] = []
    for var in func.params:
        buffer = buffers.get(var._node_id)
        if buffer is None:
            params.append(_relax.Var(var.name, _relax.PrimStructInfo(var.dtype)))
        else:
            params.append(_relax.Var(buffer.name, _relax.TensorStructInfo(buffer.shape, buffer.dtype)))
    return params


__all__ = ["with_callers"]

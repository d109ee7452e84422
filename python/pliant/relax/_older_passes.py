"""Passes of TVM that have other names or parameters in newer versions, and the passes of its first tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pliant import _core
from pliant._core import IRModule
from pliant.transform import Pass, PassContext, module_pass

__all__ = ["EwiseFuseFMA", "EwiseRewriteFMA", "FuseFMA", "RemoveUnusedFunctions", "RewriteFMA", "VMShapeLower"]

_relax = _core.relax


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:
    """Creates the pass that removes the functions that no entry function uses, directly or through other functions. The default
    entry function is ``main``. A module without entry functions is unchanged."""

    @module_pass(opt_level=0, name="RemoveUnusedFunctions")
    def remove(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {var.name_hint: func for var, func in mod.functions_items()}
        names = list(entry_functions) if entry_functions is not None else ["main"]
        todo = [name for name in names if name in functions]
        if not todo:
            return mod
        reached: dict[str, None] = {}
        while todo:
            name = todo.pop()
            if name in reached or name not in functions:
                continue
            reached[name] = None
            if isinstance(functions[name], _relax.Function):
                todo += [var.name_hint for var in _relax.find_vars(functions[name], "global")]
        for name in functions:
            if name not in reached:
                del mod[name]
        return mod

    return remove


def VMShapeLower(*, emit_err_ctx: bool = True) -> Pass:
    """Creates the pass that lowers symbolic sizes to slots of the shape heap. Errors always name the value and its source line;
    ``emit_err_ctx`` is accepted for compatibility with TVM and ignored."""
    from pliant import transform

    result: Pass = transform.VMShapeLower()
    return result


def _rewrite_multiply_add(mod: IRModule, replacement: Callable[[list[Any]], Any]) -> None:
    """Replaces ``add(lv, z)`` in dataflow blocks of a module by a new expression of ``x``, ``y`` and ``z`` if ``lv`` is bound to
    ``multiply(x, y)`` of the same type. The binding of ``lv`` stays."""
    from pliant.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Rewriter(PyExprMutator):
        """Replaces the additions."""

        def visit_call_(self, op: Any) -> Any:
            """Replaces a call if it is such an addition."""
            call = self.visit_expr_post_order(op)
            if call.op != _relax.get_op("add") or not self.builder_.current_block_is_dataflow():
                return call
            product = self.lookup_binding(call.args[0])
            if not isinstance(product, _relax.Call) or product.op != _relax.get_op("multiply"):
                return call
            operands = [*product.args, call.args[1]]
            if any(arg.struct_info != operands[0].struct_info for arg in operands):
                return call
            return replacement(operands)

    for var, func in mod.functions_items():
        if isinstance(func, _relax.Function):
            mod.update_func(var, Rewriter(mod).visit_expr(func))


def RewriteFMA() -> Pass:
    """Creates the pass that replaces ``add(multiply(x, y), z)`` by ``ewise_fma(x, y, z)`` where the types are equal."""

    @module_pass(opt_level=2, name="RewriteFMA")
    def rewrite(mod: IRModule, ctx: PassContext) -> IRModule:
        _rewrite_multiply_add(mod, lambda operands: _relax.get_op("ewise_fma")(*operands))
        return mod

    return rewrite


def FuseFMA() -> Pass:
    """Creates the pass that replaces ``add(multiply(x, y), z)`` by a call of the new function ``ewise_fma_fused`` where the types
    are equal."""
    from pliant.relax import BlockBuilder

    @module_pass(opt_level=2, name="FuseFMA")
    def fuse(mod: IRModule, ctx: PassContext) -> IRModule:
        names: dict[str, Any] = {}

        def call_fused(operands: list[Any]) -> Any:
            builder = BlockBuilder()
            params = [_relax.Var(name, arg.struct_info) for name, arg in zip("xyz", operands, strict=True)]
            with builder.function("ewise_fma_fused", params):
                builder.emit_func_output(builder.emit(_relax.get_op("ewise_fma")(*params)))
            names["ewise_fma_fused"] = builder.get()["ewise_fma_fused"]
            return _relax.Call(_relax.GlobalVar("ewise_fma_fused"), operands)

        _rewrite_multiply_add(mod, call_fused)
        mod.update(names)
        return mod

    return fuse


EwiseRewriteFMA = RewriteFMA
EwiseFuseFMA = FuseFMA

"""The frames of graph functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import _core
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.expr_functor import PyExprMutator, mutator
from pliant.script.ir_builder.base import IRBuilder, IRBuilderFrame
from pliant.script.ir_builder.ir import IRModuleFrame

__all__ = ["BlockFrame", "ElseFrame", "FunctionFrame", "IfFrame", "SeqFrame", "ThenFrame"]

_relax = _core.relax


class SeqFrame(IRBuilderFrame):
    """A sequence of blocks of bindings with a result: the body of a function or a branch."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.bindings: list[Any] = []
        self.output: Any = None

    def close_block(self) -> None:
        """Ends the current block of bindings."""
        if self.bindings:
            self.blocks.append(_relax.BindingBlock(self.bindings))
            self.bindings = []

    def sequence(self, result: Any) -> Any:
        """Returns the finished sequence."""
        self.close_block()
        return _relax.SeqExpr(self.blocks, result)


class FunctionFrame(SeqFrame):
    """A graph function under construction."""

    def __init__(self, is_pure: bool | None, is_private: bool | None) -> None:
        super().__init__()
        self.is_pure = is_pure
        self.is_private = bool(is_private)
        self.name: str | None = None
        self.params: list[Any] = []
        self.attrs: dict[str, Any] = {}
        self.ret_struct_info: Any = None
        # The variables that are visible only in their dataflow blocks.
        self.local: list[Any] = []

    def finish(self) -> None:
        """Adds the function to the module, or makes it the result of the builder."""
        if self.output is None:
            raise ValueError(f"the function '{self.name or 'main'}' has no result (help: call R.func_ret_value)")
        builder = IRBuilder.current()
        body = self.sequence(self.output)
        func = _relax.Function(self.params, body, self.ret_struct_info, self.is_pure, None, private=self.is_private)
        func = _named(func, builder.names, self.local)
        if self.attrs:
            func = func.with_attrs(self.attrs)
        module = builder.find_optional(IRModuleFrame)
        if module is None:
            builder.result = func
        elif self.name is None:
            raise ValueError("a function of a module needs a name (help: call R.func_name)")
        else:
            module.functions[self.name] = func


class BlockFrame(IRBuilderFrame):
    """A dataflow block under construction."""

    def __init__(self) -> None:
        self.bindings: list[Any] = []
        self.output_vars: Sequence[Any] = ()

    def finish(self) -> None:
        """Adds the block to the function."""
        builder = IRBuilder.current()
        sequence = builder.find(SeqFrame, "a dataflow block")
        sequence.close_block()
        if not self.bindings:
            return
        outputs = list(self.output_vars)
        bound = [binding.var for binding in self.bindings]
        function = builder.find(FunctionFrame, "a dataflow block")
        function.local += [var for var in bound if not any(var.same_as(output) for output in outputs)]
        sequence.blocks.append(_relax.DataflowBlock(self.bindings))


class ThenFrame(SeqFrame):
    """The branch of a conditional that runs if the condition is true."""

    def finish(self) -> None:
        """Adds the branch to the conditional."""
        IRBuilder.current().find(IfFrame, "a branch").branches[type(self)] = _branch(self)


class ElseFrame(ThenFrame):
    """The branch of a conditional that runs if the condition is false."""


class IfFrame(IRBuilderFrame):
    """A conditional under construction. ``var`` is its result after the ``with`` statement."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition
        self.branches: dict[type, Any] = {}
        self.var: Any = None
        self.var_name = ""

    def finish(self) -> None:
        """Emits the conditional."""
        if set(self.branches) != {ThenFrame, ElseFrame}:
            raise ValueError("a conditional needs both branches: R.Then() and R.Else()")
        yes, no = self.branches[ThenFrame], self.branches[ElseFrame]
        self.var = emit_value(_relax.If(self.condition, yes, no), _common_type(yes, no))


def _branch(frame: SeqFrame) -> Any:
    if not frame.bindings and not frame.blocks:
        raise ValueError("a branch needs at least one binding")
    last = (frame.bindings or frame.blocks[-1].bindings)[-1]
    return frame.sequence(last.var)


def _common_type(yes: Any, no: Any) -> Any:
    from pliant.relax.analysis import struct_info_lca

    return struct_info_lca(yes.body.struct_info, no.body.struct_info)


def emit_value(value: Any, info: Any = None) -> Any:
    """Binds an expression to a new variable in the innermost block, and returns the variable. The type is inferred."""
    if info is None:
        info = value.struct_info_ or BlockBuilder().normalize(value).struct_info
    var = _relax.Var("gv", info)
    emit_binding(_relax.VarBinding(var, value))
    return var


def emit_binding(binding: Any) -> None:
    """Adds a binding to the innermost block."""
    builder = IRBuilder.current()
    frame = next((f for f in reversed(builder.frames) if isinstance(f, BlockFrame | SeqFrame)), None)
    if frame is None:
        raise ValueError("a binding needs an open function (help: write this inside `with R.function():`)")
    frame.bindings.append(binding)


def _named(func: Any, names: dict[Any, str], local: list[Any]) -> Any:
    """Renames variables, and makes variables local to their dataflow blocks."""

    def definition(var: Any) -> Any:
        name = next((text for key, text in names.items() if isinstance(key, _relax.Var) and key.same_as(var)), var.name_hint)
        hidden = any(var.same_as(other) for other in local)
        if name == var.name_hint and not hidden:
            return var
        return (_relax.DataflowVar if hidden else _relax.Var)(name, var.struct_info)

    @mutator
    class Renamer(PyExprMutator):
        """Replaces variables at their definitions."""

        def visit_var_def_(self, var: Any) -> Any:
            """Returns the new variable."""
            return definition(var)

    return Renamer().visit_expr(func)

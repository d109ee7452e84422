"""``DataflowBlockRewrite``: changes a dataflow block inside a function binding by binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax.expr_functor import PyExprMutator, PyExprVisitor

if TYPE_CHECKING:
    from pliant._core import IRModule
    from pliant._core.relax import Binding, BindingBlock, DataflowBlock, Expr, Function, Var

_relax = _core.relax


class _Reads(PyExprVisitor):
    """The variables that an expression reads."""

    def __init__(self) -> None:
        self.vars: dict[Var, None] = {}

    def visit_var_(self, op: Var) -> None:
        self.vars[op] = None

    def visit_dataflow_var_(self, op: Any) -> None:
        self.vars[op] = None


def _reads(expr: Expr) -> dict[Var, None]:
    visitor = _Reads()
    visitor.visit_expr(expr)
    return visitor.vars


class _Replace(PyExprMutator):
    """Replaces the bindings of one block, and uses of variables everywhere after it."""

    def __init__(self, block: DataflowBlock, bindings: list[Binding], replaced: dict[Var, Var]) -> None:
        super().__init__()
        self._block = block
        self._bindings = bindings
        self._remap.update(replaced)
        self.found: BindingBlock | None = None

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        if not block.same_as(self._block):
            return super().visit_dataflow_block_(block)
        self.builder_._begin_dataflow_block()
        for binding in self._bindings:
            self.visit_binding(binding)
        self.found = self.builder_._end_block()
        return self.found


class DataflowBlockRewrite:
    """Edits a dataflow block of a function.

    >>> rewrite = DataflowBlockRewrite(func.body.blocks[0], func)
    >>> rewrite.add(relax.op.add(x, x), "y", is_dfvar=True)
    >>> rewrite.mutated_root_fn()
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if not isinstance(dfb, _relax.DataflowBlock):
            raise TypeError(f"expected a DataflowBlock, got {type(dfb).__name__}")
        self._root = root_fn
        self._dfb = dfb
        self._bindings: list[Binding] = list(dfb.bindings)
        self._replaced: dict[Var, Var] = {}
        self._changed = False

    def _resolve(self, var: Var) -> Var:
        while var in self._replaced:
            var = self._replaced[var]
        return var

    def _reads(self, binding: Binding) -> list[Var]:
        return [self._resolve(v) for v in _reads(binding.value)]

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Lets every use of ``old_var`` read ``new_var``. The binding of ``old_var`` stays until it is removed."""
        if not self._resolve(new_var).same_as(old_var):
            self._replaced[old_var] = new_var
            self._changed = True

    def add_binding(self, binding: Binding) -> None:
        """Adds a binding right after those that it reads."""
        if any(b.var.same_as(binding.var) for b in self._bindings):
            raise ValueError(f"{binding.var.name_hint} is bound already in the block")
        used = set(self._reads(binding))
        at = 0
        for i, other in enumerate(self._bindings):
            if other.var in used:
                at = i + 1
        self._bindings.insert(at, binding)
        self._changed = True

    def add(self, expr: Any, name: str | None = None, is_dfvar: bool = False) -> None:
        """Adds a binding, or an expression under a variable that is seen after the block unless ``is_dfvar``."""
        if isinstance(expr, _relax.Binding):
            self.add_binding(expr)
            return
        taken = {b.var.name_hint for b in self._bindings}
        if name is None:
            stem, count = ("lv" if is_dfvar else "gv"), 0
            name = stem
            while name in taken:
                count += 1
                name = f"{stem}{count}"
        cls = _relax.DataflowVar if is_dfvar else _relax.Var
        self.add_binding(_relax.VarBinding(cls(name), expr))

    def _uses(self) -> dict[Var, int]:
        counts: dict[Var, int] = {}
        for binding in self._bindings:
            for var in self._reads(binding):
                counts[var] = counts.get(var, 0) + 1
        return counts

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Removes the binding of a variable that nothing reads.

        Raises ``ValueError`` when the variable is read, is seen outside the block, or is not bound in it (unless
        ``allow_undef``)."""
        for i, binding in enumerate(self._bindings):
            if binding.var.same_as(var):
                if self._uses().get(var, 0):
                    raise ValueError(f"{var.name_hint} is still used: it cannot be removed")
                if not isinstance(binding.var, _relax.DataflowVar) and var not in self._replaced:
                    raise ValueError(f"{var.name_hint} is an output of the block: it cannot be removed")
                del self._bindings[i]
                self._changed = True
                return
        if not allow_undef:
            raise ValueError(f"{var.name_hint} is not bound in the block")

    def remove_all_unused(self) -> None:
        """Removes every binding of a dataflow variable that nothing reads."""
        counts = self._uses()
        kept: list[Binding] = []
        for binding in reversed(self._bindings):
            gone = isinstance(binding.var, _relax.DataflowVar) or binding.var in self._replaced
            if gone and not counts.get(binding.var, 0):
                for var in self._reads(binding):
                    counts[var] -= 1
                self._changed = True
            else:
                kept.append(binding)
        self._bindings = kept[::-1]

    def _mutated(self) -> tuple[Function, BindingBlock]:
        if not self._changed:
            return self._root, self._dfb
        mutator = _Replace(self._dfb, self._bindings, {old: self._resolve(old) for old in self._replaced})
        root = mutator.visit_expr(self._root)
        if mutator.found is None:
            raise ValueError("the block is not one of the function's")
        return root, mutator.found

    def mutated_dfb(self) -> BindingBlock:
        """The block as it is now."""
        return self._mutated()[1]

    def mutated_root_fn(self) -> Function:
        """The function with the block as it is now."""
        return self._mutated()[0]

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """A module in which the function is replaced by the one with the block as it is now."""
        result = irmodule.clone()
        for var, func in irmodule.functions_items():
            if isinstance(func, _relax.Function) and func.same_as(self._root):
                result.update_func(var, self.mutated_root_fn())
                return result
        raise ValueError("the function is not one of the module's")


__all__ = ["DataflowBlockRewrite"]

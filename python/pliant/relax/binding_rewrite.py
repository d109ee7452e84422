"""``DataflowBlockRewrite``: edits a dataflow block of a function binding by binding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.error import ArgumentValueError
from pliant.relax._ordered_int_list import Order
from pliant.relax.expr_functor import PyExprMutator

if TYPE_CHECKING:
    from pliant._core import IRModule
    from pliant._core.relax import Binding, BindingBlock, DataflowBlock, Function, Var

_relax = _core.relax


class _Replace(PyExprMutator):
    """Replaces the bindings of one block, and the uses of replaced variables in the block and after
    it."""

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


def _defines_same(block: BindingBlock, other: BindingBlock) -> bool:
    """Whether two blocks bind the same variables in the same order."""
    mine, others = block.bindings, other.bindings
    return len(mine) == len(others) and all(a.var.same_as(b.var) for a, b in zip(mine, others, strict=True))


def _uses_outside(body: Any, block: DataflowBlock) -> set[Var]:
    """Returns the variables that a function uses outside of one of its blocks."""
    if not isinstance(body, _relax.SeqExpr) or not any(part.same_as(block) for part in body.blocks):
        # The block is in a branch or a local function.
        return set(_relax.find_vars(body, "used"))
    found: set[Var] = {body.body} if isinstance(body.body, _relax.Var) else set(_relax.find_vars(body.body, "used"))
    for part in body.blocks:
        if not part.same_as(block):
            found.update(var for binding in part.bindings for var in _relax.find_vars(binding.value, "used"))
    return found


class DataflowBlockRewrite:
    """Edits a dataflow block of a function.

    >>> rewrite = DataflowBlockRewrite(func.body.blocks[0], func)
    >>> rewrite.add(relax.op.add(x, x), "y", is_dfvar=True)
    >>> rewrite.mutated_root_fn()

    Raises ``TypeError`` if ``dfb`` is not a dataflow block.
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if not isinstance(dfb, _relax.DataflowBlock):
            raise TypeError(f"DataflowBlockRewrite: dfb must be a DataflowBlock, got {type(dfb).__name__}")
        self._root = root_fn
        self._dfb = dfb
        self._bindings: dict[int, Binding] = dict(enumerate(dfb.bindings))
        self._order = Order(self._bindings)
        # The id of the binding of each variable in the block, and the number of variables with each
        # name.
        self._numbers: dict[Var, int] = {b.var: number for number, b in self._bindings.items()}
        self._names: dict[str, int] = {}
        for var in self._numbers:
            self._names[var.name_hint] = self._names.get(var.name_hint, 0) + 1
        # The lowest suffix for each stem that may yield a free name.
        self._free: dict[str, int] = {}
        self._next = len(self._bindings)
        # The number of bindings that use each variable, computed on first use.
        self._counts: dict[Var, int] | None = None
        self._replaced: dict[Var, Var] = {}
        self._changed = False
        # The variables that the function uses outside of the block, computed on first use.
        self._outside: set[Var] | None = None
        # The function and the block after the last change.
        self._result: tuple[Function, BindingBlock] | None = None

    def _resolve(self, var: Var) -> Var:
        path = []
        while var in self._replaced:
            path.append(var)
            var = self._replaced[var]
        for old in path[:-1]:
            self._replaced[old] = var
        return var

    def _note_change(self) -> None:
        self._changed = True
        self._result = None

    def _reads(self, binding: Binding) -> list[Var]:
        return [self._resolve(var) for var in _relax.find_vars(binding.value, "used")]

    def _uses(self) -> dict[Var, int]:
        if self._counts is None:
            self._counts = {}
            for binding in self._bindings.values():
                self._count(binding, 1)
        return self._counts

    def _count(self, binding: Binding, step: int) -> None:
        counts = self._counts
        if counts is not None:
            for var in self._reads(binding):
                counts[var] = counts.get(var, 0) + step

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Replaces every use of ``old_var`` by ``new_var``. The binding of ``old_var`` stays until
        it is removed."""
        new = self._resolve(new_var)
        if new.same_as(old_var):
            return
        self._replaced[old_var] = new_var
        self._note_change()
        if self._counts:
            self._counts[new] = self._counts.get(new, 0) + self._counts.pop(old_var, 0)

    def add_binding(self, binding: Binding) -> None:
        """Inserts a binding directly after the last binding whose variable it uses, or after the first binding of the block if
        it uses none.

        Raises ``ValueError`` if its variable is already bound in the block.
        """
        var = binding.var
        if var in self._numbers:
            raise ArgumentValueError(f"variable '{var.name_hint}' is already bound in the dataflow block")
        read = [self._numbers[v] for v in self._reads(binding) if v in self._numbers]
        number, self._next = self._next, self._next + 1
        first = next(iter(self._order), None)
        self._order.insert_after(max(read, key=self._order.position, default=first), number)
        self._bindings[number] = binding
        self._numbers[var] = number
        self._names[var.name_hint] = self._names.get(var.name_hint, 0) + 1
        self._count(binding, 1)
        self._note_change()

    def add(self, expr: Any, name: str | None = None, is_dfvar: bool = False) -> None:
        """Adds a binding, or binds an expression to a new variable. The default name of the
        variable is unique. The variable is visible after the block unless ``is_dfvar`` is set."""
        if isinstance(expr, _relax.Binding):
            self.add_binding(expr)
            return
        cls = _relax.DataflowVar if is_dfvar else _relax.Var
        name = self._free_name("lv" if is_dfvar else "gv") if name is None else name
        self.add_binding(_relax.VarBinding(cls(name), expr))

    def _free_name(self, stem: str) -> str:
        count = self._free.get(stem, 0)
        while (name := f"{stem}{count or ''}") in self._names:
            count += 1
        self._free[stem] = count
        return name

    def _is_local(self, var: Var) -> bool:
        """Whether a variable is not used outside of the block."""
        if isinstance(var, _relax.DataflowVar) or var in self._replaced:
            return True
        if self._outside is None:
            self._outside = _uses_outside(self._root.body, self._dfb)
        return var not in self._outside

    def _drop(self, number: int) -> None:
        binding = self._bindings.pop(number)
        name = binding.var.name_hint
        self._order.remove(number)
        del self._numbers[binding.var]
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name]
            self._free.clear()
        self._count(binding, -1)
        self._note_change()

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Removes the binding of an unused variable.

        Raises ``ValueError`` if the variable is used in the block or outside of it, or if it is not bound in the block (unless
        ``allow_undef`` is set).
        """
        number = self._numbers.get(var)
        if number is None:
            if not allow_undef:
                raise ArgumentValueError(f"variable '{var.name_hint}' is not bound in the dataflow block")
            return
        if self._uses().get(var, 0):
            raise ArgumentValueError(f"variable '{var.name_hint}' cannot be removed, because other bindings use it")
        if not self._is_local(self._bindings[number].var):
            raise ArgumentValueError(
                f"variable '{var.name_hint}' cannot be removed, because it is an output of the dataflow block that is used after the block"
            )
        self._drop(number)

    def remove_all_unused(self) -> None:
        """Removes the bindings of all unused variables, including those of outputs of the block that nothing after it uses."""
        counts = self._uses()
        for number in reversed(list(self._order)):
            var = self._bindings[number].var
            if self._is_local(var) and not counts.get(var, 0):
                self._drop(number)

    def _mutated(self) -> tuple[Function, BindingBlock]:
        if not self._changed:
            return self._root, self._dfb
        if self._result is not None:
            return self._result
        bindings = [self._bindings[number] for number in self._order]
        mutator = _Replace(self._dfb, bindings, {old: self._resolve(old) for old in list(self._replaced)})
        root = mutator.visit_expr(self._root)
        if mutator.found is None:
            raise ArgumentValueError("DataflowBlockRewrite: the block does not belong to the function")
        found = mutator.found
        same = [block for block in root.body.blocks if _defines_same(block, found)]
        self._result = root, same[0] if same else found
        return self._result

    def mutated_dfb(self) -> BindingBlock:
        """Returns the current block. Raises ``ValueError`` if the block does not belong to the
        function."""
        return self._mutated()[1]

    def mutated_root_fn(self) -> Function:
        """Returns the function with the current block. Raises ``ValueError`` if the block does not
        belong to the function."""
        return self._mutated()[0]

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """Returns a copy of a module in which the function contains the current block. Raises
        ``ValueError`` if the function does not belong to the module."""
        result = irmodule.clone()
        for var, func in irmodule.functions_items():
            if isinstance(func, _relax.Function) and func.same_as(self._root):
                result.update_func(var, self.mutated_root_fn())
                return result
        raise ArgumentValueError("DataflowBlockRewrite: the function that contains the block does not belong to the module")


__all__ = ["DataflowBlockRewrite"]

"""Visitors and mutators over the graph level.

>>> @mutator
... class ReplaceAdd(PyExprMutator):
...     def visit_call_(self, call):
...         call = self.visit_expr_post_order(call)
...         if call.op == relax.op.add:
...             return relax.op.multiply(call.args[0], call.args[1])
...         return call
>>> new = ReplaceAdd(mod).visit_expr(mod["main"])    # the very same function when nothing changed

Each kind of expression has a method whose name ends in an underscore; overriding one changes what is done with that kind,
and ``super()`` or ``visit_expr_post_order`` does what is done by default. Bindings are visited in a loop: the depth of
Python's stack follows the nesting of branches and functions, never the number of bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pliant import _core
from pliant.relax.block_builder import BlockBuilder

if TYPE_CHECKING:
    from pliant._core import IRModule
    from pliant._core.relax import (
        Binding,
        BindingBlock,
        Call,
        Constant,
        DataflowBlock,
        DataflowVar,
        DataTypeImm,
        Expr,
        ExternFunc,
        Function,
        GlobalVar,
        If,
        MatchCast,
        OpFunction,
        PrimValue,
        SeqExpr,
        ShapeExpr,
        StringImm,
        StructInfo,
        Tuple,
        TupleGetItem,
        Var,
        VarBinding,
    )

_relax = _core.relax
_Class = TypeVar("_Class", bound=type)

_METHODS: dict[type, str] = {
    _relax.Call: "visit_call_",
    _relax.Constant: "visit_constant_",
    _relax.DataTypeImm: "visit_data_type_imm_",
    _relax.DataflowVar: "visit_dataflow_var_",
    _relax.ExternFunc: "visit_extern_func_",
    _relax.Function: "visit_function_",
    _relax.GlobalVar: "visit_global_var_",
    _relax.If: "visit_if_",
    _relax.OpFunction: "visit_op_",
    _relax.PrimValue: "visit_prim_value_",
    _relax.SeqExpr: "visit_seq_expr_",
    _relax.ShapeExpr: "visit_shape_expr_",
    _relax.StringImm: "visit_string_imm_",
    _relax.Tuple: "visit_tuple_",
    _relax.TupleGetItem: "visit_tuple_getitem_",
    _relax.Var: "visit_var_",
}


def _method_of(expr: Any) -> str:
    name = _METHODS.get(type(expr))
    if name is not None:
        return name
    for cls in type(expr).__mro__:
        if cls in _METHODS:
            return _METHODS[cls]
    raise TypeError(f"{type(expr).__name__} is no expression of the graph level")


class ExprFunctor:
    """Calls the method of an expression's kind. What none overrides raises ``NotImplementedError``."""

    def visit_expr(self, expr: Any) -> Any:
        """Visits an expression of whatever kind."""
        return getattr(self, _method_of(expr))(expr)

    def _missing(self, method: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no {method}")

    def visit_constant_(self, op: Constant) -> Any:
        return self._missing("visit_constant_")

    def visit_tuple_(self, op: Tuple) -> Any:
        return self._missing("visit_tuple_")

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        return self._missing("visit_dataflow_var_")

    def visit_var_(self, op: Var) -> Any:
        return self._missing("visit_var_")

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        return self._missing("visit_shape_expr_")

    def visit_extern_func_(self, op: ExternFunc) -> Any:
        return self._missing("visit_extern_func_")

    def visit_global_var_(self, op: GlobalVar) -> Any:
        return self._missing("visit_global_var_")

    def visit_function_(self, op: Function) -> Any:
        return self._missing("visit_function_")

    def visit_call_(self, op: Call) -> Any:
        return self._missing("visit_call_")

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        return self._missing("visit_seq_expr_")

    def visit_if_(self, op: If) -> Any:
        return self._missing("visit_if_")

    def visit_op_(self, op: OpFunction) -> Any:
        return self._missing("visit_op_")

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        return self._missing("visit_tuple_getitem_")

    def visit_prim_value_(self, op: PrimValue) -> Any:
        return self._missing("visit_prim_value_")

    def visit_string_imm_(self, op: StringImm) -> Any:
        return self._missing("visit_string_imm_")

    def visit_data_type_imm_(self, op: DataTypeImm) -> Any:
        return self._missing("visit_data_type_imm_")

    def visit_binding(self, binding: Binding) -> None:
        """Visits a binding of either kind."""
        if isinstance(binding, _relax.MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self._missing("visit_var_binding_")

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._missing("visit_match_cast_")

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visits a block of either kind."""
        if isinstance(block, _relax.DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        return self._missing("visit_binding_block_")

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        return self._missing("visit_dataflow_block_")

    def visit_var_def(self, var: Var) -> Any:
        """Visits the definition of a variable of either kind."""
        if isinstance(var, _relax.DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Any:
        return self._missing("visit_var_def_")

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        return self._missing("visit_dataflow_var_def_")


# What a class overrides to be shown the sizes inside types.
_TYPE_METHODS = ("visit_shape_expr_", "visit_prim_expr", "visit_struct_info", "visit_expr_dep_struct_info_field")


def _looks_at_types(cls: type, base: type) -> bool:
    return any(getattr(cls, name) is not getattr(base, name) for name in _TYPE_METHODS)


class PyExprVisitor(ExprFunctor):
    """Visits everything inside an expression, in the order of the text, and returns nothing.

    The shapes inside types are visited when the class overrides ``visit_shape_expr_`` or one of the methods for types.
    """

    _types = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._types = _looks_at_types(cls, PyExprVisitor)

    def visit_expr(self, expr: Any) -> None:
        """Visits an expression of whatever kind."""
        getattr(self, _method_of(expr))(expr)

    def visit_span(self, span: Any) -> None:
        """Visits a place in the source."""

    def visit_prim_expr(self, expr: Any) -> None:
        """Visits a size or a scalar."""

    def visit_struct_info(self, struct_info: StructInfo) -> None:
        """Visits a type."""
        self.visit_expr_dep_struct_info_field(struct_info)

    def visit_expr_dep_struct_info_field(self, struct_info: Any) -> None:
        """Visits the shapes and sizes inside a type."""
        if isinstance(struct_info, _relax.TensorStructInfo):
            if struct_info.shape is not None:
                self.visit_expr(struct_info.shape)
        elif isinstance(struct_info, _relax.ShapeStructInfo):
            for value in struct_info.values or ():
                self.visit_prim_expr(value)
        elif isinstance(struct_info, _relax.PrimStructInfo):
            if struct_info.value is not None:
                self.visit_prim_expr(struct_info.value)
        elif isinstance(struct_info, _relax.TupleStructInfo):
            for field in struct_info.fields:
                self.visit_expr_dep_struct_info_field(field)

    def visit_constant_(self, op: Constant) -> None:
        pass

    def visit_tuple_(self, op: Tuple) -> None:
        for field in op.fields:
            self.visit_expr(field)

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        pass

    def visit_var_(self, op: Var) -> None:
        pass

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        for value in op.values:
            self.visit_prim_expr(value)

    def visit_extern_func_(self, op: ExternFunc) -> None:
        pass

    def visit_global_var_(self, op: GlobalVar) -> None:
        pass

    def visit_function_(self, op: Function) -> None:
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_call_(self, op: Call) -> None:
        self.visit_expr(op.op)
        if self._types:
            for info in op.sinfo_args:
                self.visit_expr_dep_struct_info_field(info)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_if_(self, op: If) -> None:
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_op_(self, op: OpFunction) -> None:
        pass

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        self.visit_expr(op.tuple_value)

    def visit_prim_value_(self, op: PrimValue) -> None:
        if self._types:
            self.visit_prim_expr(op.value)

    def visit_string_imm_(self, op: StringImm) -> None:
        pass

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        pass

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self.visit_expr(binding.value)
        if self._types:
            self.visit_expr_dep_struct_info_field(binding.struct_info)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> None:
        if self._types and var.struct_info_ is not None:
            self.visit_expr_dep_struct_info_field(var.struct_info_)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        if self._types and var.struct_info_ is not None:
            self.visit_expr_dep_struct_info_field(var.struct_info_)


class PyExprMutator(ExprFunctor):
    """Rewrites a function binding by binding. ``builder_`` stands where the visit stands: what a method emits comes before
    the binding that is being visited. What did not change is returned as the very same object.
    """

    builder_: BlockBuilder

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remap: dict[Var, Expr] = {}
        self._depth = 0
        # The variable of the local function that is visited next.
        self._own: Var | None = None
        # What the definitions of local functions that see each other became, before they are visited.
        self._declared: dict[Var, Any] = {}

    def __getattr__(self, name: str) -> Any:
        # A class whose __init__ does not call this one's has a builder of its own all the same.
        if name in ("builder_", "_remap", "_depth", "_own", "_declared"):
            PyExprMutator.__init__(self)
            return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # ---- expressions ----

    def visit_expr(self, expr: Any) -> Any:
        """Visits an expression of whatever kind; a whole function is rewritten in a scope of its own."""
        if isinstance(expr, _relax.Function) and (self._depth == 0 or expr._is_whole):
            if not expr._is_whole and _relax.find_vars(expr, "free"):
                # A local function that captures something has no meaning of its own.
                return self._on_its_own(expr, self.visit_function_)
            return self._visit_whole(expr)
        if self._depth == 0 and isinstance(expr, _relax.SeqExpr):
            return self._on_its_own(expr, self.visit_seq_expr_)
        return getattr(self, _method_of(expr))(expr)

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visits a block of either kind; one that is given by itself is rewritten in a scope of its own."""
        visit = super().visit_binding_block
        return visit(block) if self._depth else self._on_its_own(block, visit)

    def _on_its_own(self, part: Any, visit: Callable[[Any], Any]) -> Any:
        self.builder_._enter_rewrite(part)
        self._depth += 1
        try:
            return visit(part)
        finally:
            self._depth -= 1
            self.builder_._exit_rewrite()

    def _visit_whole(self, func: Function) -> Any:
        func = func._finished()
        self.builder_._enter_rewrite(func)
        self._depth += 1
        try:
            new = self.visit_function_(func)
            return new._finished(self.builder_) if isinstance(new, _relax.Function) else new
        finally:
            self._depth -= 1
            self.builder_._exit_rewrite()

    def visit_expr_post_order(self, expr: Any) -> Any:
        """Visits what is inside an expression and returns the expression made of the results: what the methods do by
        default."""
        return getattr(PyExprMutator, _method_of(expr))(self, expr)

    def visit_with_new_scope(self, expr: Any, params: Sequence[Var] | None = None) -> Any:
        """Visits an expression so that what is emitted meanwhile comes into a sequence of its own. ``params`` may say whose
        body it is; nothing depends on it."""
        if isinstance(expr, _relax.SeqExpr):
            return self.visit_expr(expr)
        self.builder_._begin_binding_block()
        body = self.builder_.normalize(self.visit_expr(expr))
        block = self.builder_._end_block()
        return _relax.SeqExpr([block], body) if block.bindings else body

    def visit_constant_(self, op: Constant) -> Any:
        return op

    def visit_tuple_(self, op: Tuple) -> Any:
        old = op.fields
        new = [self.visit_expr(field) for field in old]
        return op if _unchanged(old, new) else _relax.Tuple(new)

    def visit_var_(self, op: Var) -> Any:
        return self._remap.get(op, op) if self._remap else op

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        return self._remap.get(op, op) if self._remap else op

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        old = op.values
        new = [self.visit_prim_expr(value) for value in old]
        return op if all(a is b for a, b in zip(old, new, strict=True)) else _relax.ShapeExpr(new)

    def visit_prim_expr(self, expr: Any) -> Any:
        """Visits a size or a scalar."""
        return expr

    def visit_extern_func_(self, op: ExternFunc) -> Any:
        return op

    def visit_global_var_(self, op: GlobalVar) -> Any:
        return op

    def visit_function_(self, op: Function) -> Any:
        own, self._own = self._own, None
        params = op.params
        new_params = [self._param(param) for param in params]
        if own is not None and own not in self._remap and not _unchanged(params, new_params):
            # What the function calls itself by has its type from here on.
            infos = [param.struct_info for param in new_params]
            info = _relax.FuncStructInfo(infos, op.ret_struct_info, op.is_pure)
            self._remap[own] = type(own)(own.name_hint, info)
        body = op.body
        new_body = self.visit_with_new_scope(body)
        if _same(body, new_body) and _unchanged(params, new_params):
            return op
        return op._rebuilt(new_params, new_body)

    def _param(self, param: Var) -> Any:
        new = self._definition(param)
        if not _same(param, new):
            self.set_var_remap(param, new)
        return new

    def visit_call_(self, op: Call) -> Any:
        callee, args = op.op, op.args
        new_callee = self.visit_expr(callee)
        new_args = [self.visit_expr(arg) for arg in args]
        if _same(callee, new_callee) and _unchanged(args, new_args):
            return op
        return op._rebuilt(new_callee, new_args)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        blocks: list[BindingBlock] = []
        changed = False
        for block in op.blocks:
            new = self.visit_binding_block(block)
            changed = changed or not _same(block, new)
            if new is block or new.bindings:
                blocks.append(new)
        body = op.body
        self.builder_._begin_binding_block()
        new_body = self.builder_.normalize(self.visit_expr(body))
        rest = self.builder_._end_block()
        if rest.bindings:
            blocks.append(rest)
            changed = True
        if not changed and _same(body, new_body):
            return op
        return _relax.SeqExpr(blocks, new_body)

    def visit_if_(self, op: If) -> Any:
        cond, yes, no = op.cond, op.true_branch, op.false_branch
        new = (self.visit_expr(cond), self.visit_with_new_scope(yes), self.visit_with_new_scope(no))
        return op if _unchanged((cond, yes, no), new) else _relax.If(*new)

    def visit_op_(self, op: OpFunction) -> Any:
        return op

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        old = op.tuple_value
        new = self.visit_expr(old)
        return op if _same(old, new) else _relax.TupleGetItem(new, op.index)

    def visit_prim_value_(self, op: PrimValue) -> Any:
        return op

    def visit_string_imm_(self, op: StringImm) -> Any:
        return op

    def visit_data_type_imm_(self, op: DataTypeImm) -> Any:
        return op

    # ---- bindings ----

    def visit_var_binding_(self, binding: VarBinding) -> None:
        old = binding.value
        self._own = binding.var if isinstance(old, _relax.Function) else None
        new = self.visit_expr(old)
        self._own = None
        self.reemit_binding(binding, new, old)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        old = binding.value
        self.reemit_binding(binding, self.visit_expr(old), old)

    def reemit_binding(self, binding: Binding, new_value: Any, old_value: Any = None) -> None:
        """Emits a binding with another value. Where the type of the value differs, what follows reads another variable."""
        old_value = binding.value if old_value is None else old_value
        var = binding.var
        new_var = self._definition(var)
        if isinstance(new_value, _relax.Function) and not _same(old_value, new_value):
            named = self._remap.get(var) if new_var is var else None
            new_var, new_value = self._own_calls(named if isinstance(named, _relax.Var) else new_var, new_value)
        if new_var is var and _same(old_value, new_value):
            self.builder_.emit_normalized(binding)
            return
        bound = self.builder_._rebind(binding, new_var, new_value)
        if not bound.same_as(var):
            self.set_var_remap(var, bound)

    def _own_calls(self, var: Var, func: Function) -> tuple[Var, Function]:
        """A local function that calls itself, with the calls following its type; and the variable that has the type."""
        # The type of the result may follow from that of the calls, so it is looked at again.
        for _ in range(3):
            info = func.struct_info
            if var.struct_info_ == info or var not in _relax.find_vars(func, "free"):
                break
            new_var = type(var)(var.name_hint, info)
            follow = PyExprMutator()
            follow.builder_, follow._depth, follow._remap = self.builder_, self._depth, {var: new_var}
            var, func = new_var, follow.visit_expr(func)
        return var, func

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        self.builder_._begin_binding_block()
        self._visit_bindings(block)
        return self.builder_._end_block(block)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        self.builder_._begin_dataflow_block()
        self._visit_bindings(block)
        return self.builder_._end_block(block)

    def _visit_bindings(self, block: BindingBlock) -> None:
        bindings = block.bindings
        done = 0
        for start, end in block._function_runs():
            for binding in bindings[done:start]:
                self.visit_binding(binding)
            self._visit_group(bindings[start:end])
            done = end
        for binding in bindings[done:]:
            self.visit_binding(binding)

    # ---- local functions that see each other ----

    def _visit_group(self, members: list[Binding]) -> None:
        """Visits local functions that follow each other: what an earlier one calls a later one by has to be what the later
        one is bound to in the end, whose type is known only then."""
        first = {member.var: self._declare(member) for member in members}
        if self.builder_.current_block_is_dataflow():
            self.builder_._begin_dataflow_block()
        else:
            self.builder_._begin_binding_block()
        for member in members:
            self.visit_binding(member)
        emitted = self.builder_._end_block().bindings
        names = {read: self._remap.get(var, var) for var, read in first.items()}
        stale = {read: now for read, now in names.items() if not _same(read, now)}
        values = [binding.value for binding in emitted]
        final: list[Any] = [binding.var for binding in emitted]
        # A type of a result may follow from that of the calls, so it is looked at again.
        for _ in range(3):
            if not stale:
                break
            follow = PyExprMutator()
            follow.builder_, follow._depth, follow._remap = self.builder_, self._depth, stale
            values = [follow.visit_expr(value) for value in values]
            stale = {}
            for i, value in enumerate(values):
                info = value.struct_info if isinstance(value, _relax.Function) else None
                if info is not None and final[i].struct_info_ != info:
                    stale[final[i]] = type(final[i])(final[i].name_hint, info)
                    final[i] = stale[final[i]]
        for binding, var, value in zip(emitted, final, values, strict=True):
            if _same(binding.var, var) and _same(binding.value, value):
                self.builder_.emit_normalized(binding)
                continue
            bound = self.builder_._rebind(binding, var, value)
            for old in (*first, binding.var):
                if not bound.same_as(old) and _same(self._remap.get(old, old), binding.var):
                    self.set_var_remap(old, bound)

    def _declare(self, member: Binding) -> Any:
        """Defines a local function's parameters and variable before any function of its group is visited; what the
        others call it by meanwhile."""
        var = member.var
        func: Any = member.value
        params = func.params
        news = [self.visit_var_def(param) for param in params]
        self._declared.update(zip(params, news, strict=True))
        new = self.visit_var_def(var)
        if not _unchanged(params, news):
            infos = [param.struct_info for param in news]
            info = _relax.FuncStructInfo(infos, func.ret_struct_info, func.is_pure)
            if new.struct_info_ != info:
                new = type(new)(new.name_hint, info)
        self._declared[var] = new
        if not _same(var, new):
            self.set_var_remap(var, new)
        return new

    def _definition(self, var: Var) -> Any:
        """What the definition of a variable becomes."""
        if self._declared and var in self._declared:
            return self._declared.pop(var)
        return self.visit_var_def(var)

    def visit_var_def_(self, var: Var) -> Any:
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        return var

    # ---- variables ----

    def set_var_remap(self, vid: Var, var: Expr) -> None:
        """Lets ``var`` stand for every later use of ``vid``: a variable, or its ``vid``."""
        self._remap[vid] = var

    def get_var_remap(self, vid: Var) -> Expr:
        """What stands for a variable.

        Raises ``KeyError`` when nothing does."""
        return self._remap[vid]

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value that a variable was bound to in what was emitted so far."""
        return self.builder_.lookup_binding(var)

    def with_struct_info(self, var: Var, struct_info: StructInfo) -> Var:
        """The variable itself if its type is that, else one of the same name with that type."""
        if var.struct_info_ is not None and var.struct_info_ == struct_info:
            return var
        return type(var)(var.name_hint, struct_info)

    def visit_span(self, span: Any) -> Any:
        """Visits a place in the source."""
        return span


def _same(old: Any, new: Any) -> bool:
    return old is new or bool(old.same_as(new))


def _unchanged(old: Sequence[Any], new: Sequence[Any]) -> bool:
    for a, b in zip(old, new, strict=True):
        if a is not b and not a.same_as(b):
            return False
    return True


ExprVisitor = PyExprVisitor
ExprMutator = PyExprMutator
ExprMutatorBase = PyExprMutator


def visitor(cls: _Class) -> _Class:
    """Marks a subclass of ``PyExprVisitor`` (code written for TVM needs the mark)."""
    if not issubclass(cls, PyExprVisitor):
        raise TypeError(f"@visitor marks a subclass of PyExprVisitor, which {cls.__name__} is not")
    return cls


def mutator(cls: _Class) -> _Class:
    """Marks a subclass of ``PyExprMutator`` (code written for TVM needs the mark)."""
    if not issubclass(cls, PyExprMutator):
        raise TypeError(f"@mutator marks a subclass of PyExprMutator, which {cls.__name__} is not")
    return cls


__all__ = [
    "ExprFunctor",
    "ExprMutator",
    "ExprMutatorBase",
    "ExprVisitor",
    "PyExprMutator",
    "PyExprVisitor",
    "mutator",
    "visitor",
]

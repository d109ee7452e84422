"""``PyExprMutator``, which rewrites graph functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pliant import _core
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.expr_functor._functor import ExprFunctor, method_of

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


class PyExprMutator(ExprFunctor):
    """Rewrites a function binding by binding. Methods return the new expression. Parts that do not
    change are returned as the same objects.

    While a binding is visited, ``builder_`` emits bindings before it.
    """

    builder_: BlockBuilder

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remap: dict[Var, Expr] = {}
        self._depth = 0
        # The variable of the local function that is visited next.
        self._own: Var | None = None
        # The new definitions of local functions in a group that can refer to each other, before
        # they are visited.
        self._declared: dict[Var, Any] = {}

    def __getattr__(self, name: str) -> Any:
        # A subclass whose __init__ does not call this one also gets a builder.
        if name in ("builder_", "_remap", "_depth", "_own", "_declared"):
            PyExprMutator.__init__(self)
            return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    # ---- expressions ----

    def visit_expr(self, expr: Any) -> Any:
        """Visits an expression of any kind. A function of the module, and a function or sequence
        that is passed to the mutator directly, is rewritten in a separate scope."""
        if isinstance(expr, _relax.Function) and (self._depth == 0 or expr._is_whole):
            if not expr._is_whole and _relax.find_vars(expr, "free"):
                # A local function that captures variables cannot be separated from its function.
                return self._in_separate_scope(expr, self.visit_function_)
            return self._visit_function(expr)
        if self._depth == 0 and isinstance(expr, _relax.SeqExpr):
            return self._in_separate_scope(expr, self.visit_seq_expr_)
        return getattr(self, method_of(expr))(expr)

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visits a block of any kind. A block that is passed to the mutator directly is rewritten
        in a separate scope."""
        visit = super().visit_binding_block
        return visit(block) if self._depth else self._in_separate_scope(block, visit)

    def _in_separate_scope(self, part: Any, visit: Callable[[Any], Any]) -> Any:
        self.builder_._enter_rewrite(part)
        self._depth += 1
        try:
            return visit(part)
        finally:
            self._depth -= 1
            self.builder_._exit_rewrite()

    def _visit_function(self, func: Function) -> Any:
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
        """Visits the parts of an expression and rebuilds the expression from the results. This is
        the default handling of the methods."""
        return getattr(PyExprMutator, method_of(expr))(self, expr)

    def visit_with_new_scope(self, expr: Any, params: Sequence[Var] | None = None) -> Any:
        """Visits an expression in a new scope. Returns a sequence of the bindings that the visit emits and of the result.
        ``params`` is ignored."""
        if isinstance(expr, _relax.SeqExpr):
            return self.visit_expr(expr)
        self.builder_._begin_binding_block()
        body = self.builder_.normalize(self.visit_expr(expr))
        block = self.builder_._end_block()
        return _relax.SeqExpr([block], body) if block.bindings else body

    def visit_constant_(self, op: Constant) -> Any:
        """Returns the constant unchanged."""
        return op

    def visit_tuple_(self, op: Tuple) -> Any:
        """Rebuilds a tuple from its visited fields."""
        old = op.fields
        new = [self.visit_expr(field) for field in old]
        return op if _unchanged(old, new) else _relax.Tuple(new)

    def visit_var_(self, op: Var) -> Any:
        """Returns the replacement of a variable, or the variable itself."""
        return self._remap.get(op, op) if self._remap else op

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        """Returns the replacement of a dataflow variable, or the variable itself."""
        return self._remap.get(op, op) if self._remap else op

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        """Rebuilds a shape from its visited sizes."""
        old = op.values
        new = [self.visit_prim_expr(value) for value in old]
        return op if all(a is b for a, b in zip(old, new, strict=True)) else _relax.ShapeExpr(new)

    def visit_prim_expr(self, expr: Any) -> Any:
        """Visits a size or a scalar. Returns it unchanged by default."""
        return expr

    def visit_extern_func_(self, op: ExternFunc) -> Any:
        """Returns the reference to a packed function unchanged."""
        return op

    def visit_global_var_(self, op: GlobalVar) -> Any:
        """Returns the reference to a function of the module unchanged."""
        return op

    def visit_function_(self, op: Function) -> Any:
        """Rebuilds a function from its visited parameters and body."""
        own, self._own = self._own, None
        params = op.params
        new_params = [self._param(param) for param in params]
        if own is not None and own not in self._remap and not _unchanged(params, new_params):
            # From here on, recursive calls refer to a variable with the new type.
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
        """Rebuilds a call from its visited callee and arguments."""
        callee, args = op.op, op.args
        new_callee = self.visit_expr(callee)
        new_args = [self.visit_expr(arg) for arg in args]
        if _same(callee, new_callee) and _unchanged(args, new_args):
            return op
        return op._rebuilt(new_callee, new_args)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        """Rebuilds a sequence from its visited blocks and result. Blocks that became empty are
        removed."""
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
        """Rebuilds a conditional from its visited condition and branches."""
        cond, yes, no = op.cond, op.true_branch, op.false_branch
        new = (self.visit_expr(cond), self.visit_with_new_scope(yes), self.visit_with_new_scope(no))
        return op if _unchanged((cond, yes, no), new) else _relax.If(*new)

    def visit_op_(self, op: OpFunction) -> Any:
        """Returns the operator unchanged."""
        return op

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        """Rebuilds an access to a field from the visited tuple."""
        old = op.tuple_value
        new = self.visit_expr(old)
        return op if _same(old, new) else _relax.TupleGetItem(new, op.index)

    def visit_prim_value_(self, op: PrimValue) -> Any:
        """Returns the scalar unchanged."""
        return op

    def visit_string_imm_(self, op: StringImm) -> Any:
        """Returns the string unchanged."""
        return op

    def visit_data_type_imm_(self, op: DataTypeImm) -> Any:
        """Returns the data type unchanged."""
        return op

    # ---- bindings ----

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Emits a binding of a variable to its visited value."""
        old = binding.value
        self._own = binding.var if isinstance(old, _relax.Function) else None
        new = self.visit_expr(old)
        self._own = None
        self.reemit_binding(binding, new, old)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Emits a ``match_cast`` of its visited value."""
        old = binding.value
        self.reemit_binding(binding, self.visit_expr(old), old)

    def reemit_binding(self, binding: Binding, new_value: Any, old_value: Any = None) -> None:
        """Emits a binding with a new value. If the type of the value differs from that of the variable, emits a new variable, to
        which later uses refer."""
        old_value = binding.value if old_value is None else old_value
        var = binding.var
        new_var = self._definition(var)
        if isinstance(new_value, _relax.Function) and not _same(old_value, new_value):
            named = self._remap.get(var) if new_var is var else None
            new_var, new_value = self._retype_recursive_calls(named if isinstance(named, _relax.Var) else new_var, new_value)
        if new_var is var and _same(old_value, new_value):
            self.builder_.emit_normalized(binding)
            return
        bound = self.builder_._rebind(binding, new_var, new_value)
        if not bound.same_as(var):
            self.set_var_remap(var, bound)

    def _retype_recursive_calls(self, var: Var, func: Function) -> tuple[Var, Function]:
        """Rewrites the recursive calls in a local function whose type has changed. Returns a variable with the new type, and the
        function."""
        # The result type may depend on the type of the recursive calls, so the adaptation is
        # repeated.
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
        """Rebuilds a block from its visited bindings."""
        self.builder_._begin_binding_block()
        self._visit_bindings(block)
        return self.builder_._end_block(block)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        """Rebuilds a dataflow block from its visited bindings."""
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

    # ---- mutually recursive local functions ----

    def _visit_group(self, members: list[Binding]) -> None:
        """Visits consecutive local functions. An earlier function may call a later one, whose
        variable and type are final only after the later one has been visited. Such calls are
        adapted afterwards."""
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
        # The result types may depend on the types of the calls, so the adaptation is repeated.
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
        """Defines the parameters and the variable of a local function before it and the local functions next to it are
        visited. Returns the variable by which these functions refer to the function until it has been visited."""
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
        """Returns the variable that replaces the variable ``var`` at its definition."""
        if self._declared and var in self._declared:
            return self._declared.pop(var)
        return self.visit_var_def(var)

    def visit_var_def_(self, var: Var) -> Any:
        """Returns the variable that replaces a defined variable. By default, this is the variable itself."""
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        """Returns the variable that replaces a defined dataflow variable. By default, this is the variable itself."""
        return var

    # ---- variables ----

    def set_var_remap(self, vid: Var, var: Expr) -> None:
        """Replaces every later use of the variable ``vid`` by ``var``."""
        self._remap[vid] = var

    def get_var_remap(self, vid: Var) -> Expr:
        """Returns the replacement of a variable.

        Raises ``KeyError`` if there is none.
        """
        return self._remap[vid]

    def lookup_binding(self, var: Var) -> Expr | None:
        """Returns the value that an emitted binding binds to a variable, or ``None``."""
        return self.builder_.lookup_binding(var)

    def with_struct_info(self, var: Var, struct_info: StructInfo) -> Var:
        """Returns the variable itself if it has this type, otherwise a new variable with the same
        name and this type."""
        if var.struct_info_ is not None and var.struct_info_ == struct_info:
            return var
        return type(var)(var.name_hint, struct_info)

    def visit_span(self, span: Any) -> Any:
        """Returns a source location unchanged."""
        return span


def _same(old: Any, new: Any) -> bool:
    return old is new or bool(old.same_as(new))


def _unchanged(old: Sequence[Any], new: Sequence[Any]) -> bool:
    for a, b in zip(old, new, strict=True):
        if a is not b and not a.same_as(b):
            return False
    return True


ExprMutator = PyExprMutator
ExprMutatorBase = PyExprMutator


def mutator(cls: _Class) -> _Class:
    """Marks a subclass of ``PyExprMutator``. Code written for TVM uses this decorator.

    Raises ``TypeError`` for other classes.
    """
    if not issubclass(cls, PyExprMutator):
        raise TypeError(f"@mutator requires a subclass of PyExprMutator, but {cls.__name__} is not one")
    # TVM's decorators return a wrapper, whose `_cls` is the decorated class.
    cls._cls = cls  # type: ignore[attr-defined]
    return cls

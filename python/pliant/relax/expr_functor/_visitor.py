"""``PyExprVisitor``, which visits the parts of graph functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pliant import _core
from pliant.relax.expr_functor._functor import ExprFunctor, method_of

if TYPE_CHECKING:
    from pliant._core.relax import (
        BindingBlock,
        Call,
        Constant,
        DataflowBlock,
        DataflowVar,
        DataTypeImm,
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

# The methods that a class overrides in order to visit the sizes inside types.
_TYPE_METHODS = ("visit_shape_expr_", "visit_prim_expr", "visit_struct_info", "visit_expr_dep_struct_info_field")


def visits_types(cls: type, base: type) -> bool:
    """Whether a class overrides a method that visits the sizes inside types."""
    return any(getattr(cls, name) is not getattr(base, name) for name in _TYPE_METHODS)


class PyExprVisitor(ExprFunctor):
    """Visits everything inside an expression in textual order. Methods return nothing.

    The shapes inside types are visited only if the class overrides ``visit_shape_expr_`` or one of
    the methods for types.
    """

    _types = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._types = visits_types(cls, PyExprVisitor)

    def visit_expr(self, expr: Any) -> None:
        """Visits an expression of any kind."""
        getattr(self, method_of(expr))(expr)

    def visit_span(self, span: Any) -> None:
        """Does nothing, because expressions have no source locations."""

    def visit_prim_expr(self, expr: Any) -> None:
        """Visits a size or a scalar. Does nothing by default."""

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
        """Visits a constant, which has no parts."""

    def visit_tuple_(self, op: Tuple) -> None:
        """Visits the fields of a tuple."""
        for field in op.fields:
            self.visit_expr(field)

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        """Visits a use of a dataflow variable, which has no parts."""

    def visit_var_(self, op: Var) -> None:
        """Visits a use of a variable, which has no parts."""

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        """Visits the sizes of a shape."""
        for value in op.values:
            self.visit_prim_expr(value)

    def visit_extern_func_(self, op: ExternFunc) -> None:
        """Visits a reference to a packed function, which has no parts."""

    def visit_global_var_(self, op: GlobalVar) -> None:
        """Visits a reference to a function of the module, which has no parts."""

    def visit_function_(self, op: Function) -> None:
        """Visits the parameters of a function, then its body."""
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_call_(self, op: Call) -> None:
        """Visits the callee, the explicit types and the arguments of a call."""
        self.visit_expr(op.op)
        if self._types:
            for info in op.sinfo_args:
                self.visit_expr_dep_struct_info_field(info)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        """Visits the blocks of a sequence, then its result."""
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_if_(self, op: If) -> None:
        """Visits the condition of a conditional, then both branches."""
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_op_(self, op: OpFunction) -> None:
        """Visits an operator, which has no parts."""

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        """Visits the tuple from which a field is read."""
        self.visit_expr(op.tuple_value)

    def visit_prim_value_(self, op: PrimValue) -> None:
        """Visits the value of a scalar, if the class overrides a method that visits the sizes inside types."""
        if self._types:
            self.visit_prim_expr(op.value)

    def visit_string_imm_(self, op: StringImm) -> None:
        """Visits a string, which has no parts."""

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        """Visits a data type, which has no parts."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Visits the value of a binding, then the bound variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Visits the value of a ``match_cast``, then the type and the variable."""
        self.visit_expr(binding.value)
        if self._types:
            self.visit_expr_dep_struct_info_field(binding.struct_info)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        """Visits the bindings of a block in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        """Visits the bindings of a dataflow block in order."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> None:
        """Visits the type of a variable at its definition, if the class overrides a method that visits the sizes inside types."""
        if self._types and var.struct_info_ is not None:
            self.visit_expr_dep_struct_info_field(var.struct_info_)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        """Visits the type of a dataflow variable at its definition, if the class overrides a method that visits the sizes
        inside types."""
        if self._types and var.struct_info_ is not None:
            self.visit_expr_dep_struct_info_field(var.struct_info_)


ExprVisitor = PyExprVisitor


def visitor(cls: _Class) -> _Class:
    """Marks a subclass of ``PyExprVisitor``. Code written for TVM uses this decorator.

    Raises ``TypeError`` for other classes.
    """
    if not issubclass(cls, PyExprVisitor):
        raise TypeError(f"@visitor requires a subclass of PyExprVisitor, but {cls.__name__} is not one")
    # TVM's decorators return a wrapper, whose `_cls` is the decorated class.
    cls._cls = cls  # type: ignore[attr-defined]
    return cls

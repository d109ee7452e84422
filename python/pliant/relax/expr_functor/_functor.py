"""Dispatches an expression to the method for its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core.relax import (
        Binding,
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
        Tuple,
        TupleGetItem,
        Var,
        VarBinding,
    )

_relax = _core.relax

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


def method_of(expr: Any) -> str:
    """Returns the name of the method that visits an expression.

    Raises ``TypeError`` for an object that is not an expression of the graph level.
    """
    name = _METHODS.get(type(expr))
    if name is not None:
        return name
    for cls in type(expr).__mro__:
        if cls in _METHODS:
            return _METHODS[cls]
    raise TypeError(f"a graph-level expression is required here, got {type(expr).__name__}")


class ExprFunctor:
    """Dispatches an expression to the method for its kind. A method that is not overridden raises
    ``NotImplementedError``."""

    def visit_expr(self, expr: Any) -> Any:
        """Visits an expression of any kind."""
        return getattr(self, method_of(expr))(expr)

    def _missing(self, method: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define the method {method}, which this expression needs")

    def visit_constant_(self, op: Constant) -> Any:
        """Visits a constant."""
        return self._missing("visit_constant_")

    def visit_tuple_(self, op: Tuple) -> Any:
        """Visits a tuple."""
        return self._missing("visit_tuple_")

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        """Visits a use of a dataflow variable."""
        return self._missing("visit_dataflow_var_")

    def visit_var_(self, op: Var) -> Any:
        """Visits a use of a variable."""
        return self._missing("visit_var_")

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        """Visits a shape."""
        return self._missing("visit_shape_expr_")

    def visit_extern_func_(self, op: ExternFunc) -> Any:
        """Visits a reference to a packed function."""
        return self._missing("visit_extern_func_")

    def visit_global_var_(self, op: GlobalVar) -> Any:
        """Visits a reference to a function of the module."""
        return self._missing("visit_global_var_")

    def visit_function_(self, op: Function) -> Any:
        """Visits a function."""
        return self._missing("visit_function_")

    def visit_call_(self, op: Call) -> Any:
        """Visits a call."""
        return self._missing("visit_call_")

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        """Visits a sequence of blocks."""
        return self._missing("visit_seq_expr_")

    def visit_if_(self, op: If) -> Any:
        """Visits a conditional."""
        return self._missing("visit_if_")

    def visit_op_(self, op: OpFunction) -> Any:
        """Visits an operator."""
        return self._missing("visit_op_")

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        """Visits an access to a field of a tuple."""
        return self._missing("visit_tuple_getitem_")

    def visit_prim_value_(self, op: PrimValue) -> Any:
        """Visits a scalar."""
        return self._missing("visit_prim_value_")

    def visit_string_imm_(self, op: StringImm) -> Any:
        """Visits a string."""
        return self._missing("visit_string_imm_")

    def visit_data_type_imm_(self, op: DataTypeImm) -> Any:
        """Visits a data type."""
        return self._missing("visit_data_type_imm_")

    def visit_binding(self, binding: Binding) -> None:
        """Visits a binding of any kind."""
        if isinstance(binding, _relax.MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Visits a binding of a variable to a value."""
        self._missing("visit_var_binding_")

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Visits a ``match_cast`` binding."""
        self._missing("visit_match_cast_")

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visits a block of any kind."""
        if isinstance(block, _relax.DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        """Visits a block that is not a dataflow block."""
        return self._missing("visit_binding_block_")

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        """Visits a dataflow block."""
        return self._missing("visit_dataflow_block_")

    def visit_var_def(self, var: Var) -> Any:
        """Visits the definition of a variable of any kind."""
        if isinstance(var, _relax.DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Any:
        """Visits the definition of a variable."""
        return self._missing("visit_var_def_")

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        """Visits the definition of a dataflow variable."""
        return self._missing("visit_dataflow_var_def_")

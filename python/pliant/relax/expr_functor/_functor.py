"""Dispatch to the method for the kind of an expression."""

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
    """The name of the method that visits an expression."""
    name = _METHODS.get(type(expr))
    if name is not None:
        return name
    for cls in type(expr).__mro__:
        if cls in _METHODS:
            return _METHODS[cls]
    raise TypeError(f"{type(expr).__name__} is not a graph-level expression")


class ExprFunctor:
    """Dispatches to the method for the kind of an expression. A method that is not overridden
    raises ``NotImplementedError``."""

    def visit_expr(self, expr: Any) -> Any:
        """Visits an expression of any kind."""
        return getattr(self, method_of(expr))(expr)

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
        """Visits a binding of any kind."""
        if isinstance(binding, _relax.MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self._missing("visit_var_binding_")

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._missing("visit_match_cast_")

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visits a block of any kind."""
        if isinstance(block, _relax.DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        return self._missing("visit_binding_block_")

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        return self._missing("visit_dataflow_block_")

    def visit_var_def(self, var: Var) -> Any:
        """Visits the definition of a variable of any kind."""
        if isinstance(var, _relax.DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Any:
        return self._missing("visit_var_def_")

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        return self._missing("visit_dataflow_var_def_")

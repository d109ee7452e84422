"""Functions that create patterns. A pattern is equal only to itself. A pattern that occurs twice in
another pattern must match the same value both times.

All functions raise ``ValueError`` for a pattern that can never match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pliant import _core
from pliant.relax.dpl._pattern_base import DFPattern, PatternSeq
from pliant.relax.dpl.kinds import (
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DataflowVarPattern,
    ExprPattern,
    ExternFuncPattern,
    FunctionPattern,
    GlobalVarPattern,
    NotPattern,
    OrPattern,
    PrimArrPattern,
    SameShapeConstraint,
    ShapePattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)


def wildcard() -> DFPattern:
    """Matches any expression."""
    return WildcardPattern()


def _op(name: str) -> Any:
    # This call raises the error for an unknown operator.
    _core.relax.PatternNode.op(name)
    return _core.relax.OpFunction.get(name)


def is_op(op_name: str) -> DFPattern:
    """Matches an operator, for use as the callee: ``is_op("relax.add")(wildcard(), wildcard())``.

    Raises ``ValueError`` for an unknown operator.
    """
    return ExprPattern(_op(op_name))


def is_var(name: str = "") -> DFPattern:
    """Matches a variable. A name that is not empty restricts the match to this name."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DFPattern:
    """Matches a variable that is local to a dataflow block. A name that is not empty restricts the
    match to this name."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> DFPattern:
    """Matches a function of the module. A name that is not empty restricts the match to this
    name."""
    return GlobalVarPattern(name)


def is_const() -> DFPattern:
    """Matches any tensor constant."""
    return ConstantPattern()


def is_expr(expr: Any) -> DFPattern:
    """Matches exactly this constant, number, string, data type or function name.

    Raises ``TypeError`` for other expressions.
    """
    return ExprPattern(expr)


def is_shape(shape: Sequence[Any]) -> DFPattern:
    """Matches a shape value with these sizes. A size variable matches any size; all its occurrences
    in a match must have the same size."""
    return PrimArrPattern(shape)


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> DFPattern:
    """Matches a tuple whose fields match ``fields``, in any order if ``unordered`` is set."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> DFPattern:
    """Matches an access to a field of a tuple that matches ``tuple_value``. An ``index`` restricts
    the match to this field."""
    return TupleGetItemPattern(tuple_value, index)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DFPattern:
    """Matches a value with this data type. ``pattern`` is a further restriction."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> DFPattern:
    """Matches a value with this shape. ``pattern`` is a further restriction."""
    return (pattern or wildcard()).has_shape(shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> DFPattern:
    """Matches a call with these attributes. ``pattern`` is a further restriction."""
    return (pattern or wildcard()).has_attr(attrs)


def _is_call(op: str, func: DFPattern, args: Sequence[DFPattern] | DFPattern | None) -> DFPattern:
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else is_tuple(args)
    return is_op(op)(func, operands, varg_default_wildcard=True)


def is_call_tir(
    func_name: str, args: Sequence[DFPattern] | DFPattern | None = None, tir_vars: DFPattern | None = None
) -> DFPattern:
    """Matches ``R.call_tir(func_name, args)``. Without ``args``, the arguments may be anything. ``tir_vars`` matches the sizes
    that are passed as additional arguments."""
    if tir_vars is None:
        return _is_call("relax.call_tir", is_gv(func_name), args)
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else is_tuple(args)
    return is_op("relax.call_tir")(is_gv(func_name), operands, tir_vars)


def is_call_dps_packed(func_name: str, args: Sequence[DFPattern] | DFPattern | None = None) -> DFPattern:
    """Matches ``R.call_dps_packed(func_name, args)``. Without ``args``, the arguments may be
    anything."""
    return _is_call("relax.call_dps_packed", ExternFuncPattern(func_name), args)


def is_call_tir_extern(func_name: str, args: Sequence[DFPattern] | DFPattern | None = None) -> DFPattern:
    """Matches ``R.call_tir(func_name, args)`` of a function that the module does not contain, and ``R.call_dps_packed``.
    Without ``args``, the arguments may be anything."""
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else is_tuple(args)
    callee = is_op("relax.call_tir") | is_op("relax.call_dps_packed")
    return callee(ExternFuncPattern(func_name), operands, varg_default_wildcard=True)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> DFPattern:
    """Matches ``R.call_packed(func_name, *args)``. Without ``args``, the arguments may be
    anything."""
    func = ExternFuncPattern(func_name)
    return func(varg_default_wildcard=True) if args is None else func(*args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None, allow_reshape: bool = False
) -> DFPattern:
    """Matches ``op(lhs, rhs)``, followed by the addition of a bias if ``with_bias`` is set, and by the operator ``activation``
    unless it is ``None``. With ``allow_reshape``, the bias may be reshaped."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        bias = wildcard()
        operand = is_op("relax.reshape")(bias, wildcard()) | bias if allow_reshape else bias
        out = is_op("relax.add")(out, operand)
    return is_op(activation)(out) if activation else out


TypePattern = StructInfoPattern


__all__ = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DataTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "FunctionPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternSeq",
    "PrimArrPattern",
    "SameShapeConstraint",
    "ShapePattern",
    "StructInfoPattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "UnorderedTuplePattern",
    "VarPattern",
    "WildcardPattern",
    "has_attr",
    "has_dtype",
    "has_shape",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
    "is_call_tir_extern",
    "is_const",
    "is_dfv",
    "is_expr",
    "is_gv",
    "is_op",
    "is_shape",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "make_fused_bias_activation_pattern",
    "wildcard",
]

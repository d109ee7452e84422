"""The dataflow pattern language: what a piece of a graph looks like, finding it, and putting something else there."""

from __future__ import annotations

from pliant.relax.dpl.context import PatternContext
from pliant.relax.dpl.pattern import (
    DFPattern,
    PatternSeq,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    wildcard,
)
from pliant.relax.dpl.rewrite import (
    ExprPatternRewriter,
    PatternMatchingRewriter,
    rewrite_bindings,
    rewrite_call,
)

__all__ = [
    "DFPattern",
    "ExprPatternRewriter",
    "PatternContext",
    "PatternMatchingRewriter",
    "PatternSeq",
    "has_attr",
    "has_dtype",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
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
    "rewrite_bindings",
    "rewrite_call",
    "wildcard",
]

"""Scalar expressions and loop functions.

A :class:`PrimExpr` is a size, an index or an element. Python's operators build new ones (``//`` and ``%`` round
towards minus infinity, as on Python's ints), and the functions of this module build the rest.
"""

from __future__ import annotations

from pliant._core import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    PrimFunc,
    ProducerLoad,
    Range,
    Reduce,
    Select,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from pliant.tir import op
from pliant.tir.op import *  # noqa: F403
from pliant.tir.op import __all__ as _op_names

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "Call",
    "Cast",
    "Div",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "IntImm",
    "IterVar",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PrimExpr",
    "PrimFunc",
    "ProducerLoad",
    "Range",
    "Reduce",
    "Select",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
    "op",
    "var",
    *_op_names,
]


def var(name: str, dtype: str = "int64") -> Var:
    """A new variable, as the older programs make it. Sizes and indices are int64."""
    return Var(name, dtype)

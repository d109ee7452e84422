"""Scalar expressions and loop functions (TIR).

A :class:`PrimExpr` is a size, an index or an element. Python operators on it create new
expressions. ``//`` and ``%`` round towards minus infinity, as for Python's ints. The functions of
this module create all other expressions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant._core import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
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
    Ramp,
    Range,
    Reduce,
    Select,
    SizeVar,
    StringImm,
    Sub,
    Var,
)
from pliant.error import ScheduleError
from pliant.tir import analysis, functor, ir_builder, op, schedule, stmt_functor
from pliant.tir.functor import PyStmtExprMutator, PyStmtExprVisitor
from pliant.tir.index_map import IndexMap
from pliant.tir.op import *  # noqa: F403
from pliant.tir.op import __all__ as _op_names
from pliant.tir.op import Let, max, min
from pliant.tir.schedule import BlockRV, LoopRV, Schedule, TensorIntrin, Trace
from pliant.tir.stmt import (
    Allocate,
    AssertStmt,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    decl_buffer,
)

BufferLoad = ProducerLoad
SBlock = Block
SBlockRealize = BlockRealize

if TYPE_CHECKING:
    from pliant.tir import transform

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "Allocate",
    "And",
    "AssertStmt",
    "Block",
    "BlockRV",
    "BlockRealize",
    "Broadcast",
    "Buffer",
    "BufferLoad",
    "BufferRegion",
    "BufferStore",
    "Call",
    "Cast",
    "Div",
    "Evaluate",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMap",
    "IntImm",
    "IterVar",
    "Let",
    "LetStmt",
    "LoopRV",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PrimExpr",
    "PrimFunc",
    "ProducerLoad",
    "PyStmtExprMutator",
    "PyStmtExprVisitor",
    "Ramp",
    "Range",
    "Reduce",
    "SBlock",
    "SBlockRealize",
    "Schedule",
    "ScheduleError",
    "Select",
    "SeqStmt",
    "SizeVar",
    "Stmt",
    "StringImm",
    "Sub",
    "TensorIntrin",
    "Trace",
    "Var",
    "While",
    "analysis",
    "decl_buffer",
    "functor",
    "ir_builder",
    "op",
    "schedule",
    "stmt_functor",
    "stmt_list",
    "stmt_seq",
    "transform",
    "var",
    "max",
    "min",
    *_op_names,
]


def __getattr__(name: str) -> Any:
    if name == "transform":
        return import_module("pliant.tir.transform")
    if name in ("comm_reducer", "sum"):
        return getattr(import_module("pliant.te"), name)
    raise AttributeError(f"module 'pliant.tir' has no attribute {name!r}")


def stmt_seq(*args: Any) -> Stmt:
    """Creates a sequence of statements. Expressions become ``Evaluate`` statements, and a single statement is returned as it
    is."""
    parts = [Evaluate(part) if isinstance(part, PrimExpr) else part for part in args]
    return parts[0] if len(parts) == 1 else SeqStmt(parts)


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """Returns the statements of a sequence, or a list of the statement itself."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


def var(name: str, dtype: str = "int64") -> Var:
    """Creates a variable, under its name in older versions of TVM. Sizes and indices are int64."""
    return Var(name, dtype)

"""Tests the visitors, mutators, analyses and index maps of loop functions with TVM's names."""

from __future__ import annotations

from typing import Any

import pytest

from pliant import tir
from pliant.script import tir as T
from pliant.tir.functor import mutator, visitor


@T.prim_func
def scaled(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("scaled"):
            vi = T.axis.spatial(8, i)
            b[vi] = a[vi] * T.float32(2) + T.float32(1)


def test_visitor() -> None:
    @visitor
    class Count(tir.PyStmtExprVisitor):
        def __init__(self) -> None:
            self.found: list[str] = []

        def visit_for_(self, op: Any) -> None:
            self.found.append("For")
            super().visit_for_(op)

        def visit_buffer_load_(self, op: Any) -> None:
            self.found.append("BufferLoad")

        def visit_float_imm_(self, op: Any) -> None:
            self.found.append("FloatImm")

    count = Count()
    count.visit_stmt(scaled)
    assert count.found == ["For", "BufferLoad", "FloatImm", "FloatImm"]


def test_mutator() -> None:
    @mutator
    class Double(tir.PyStmtExprMutator):
        def visit_float_imm_(self, op: Any) -> Any:
            return tir.FloatImm("float32", op.value * 2)

    new = Double().visit_stmt(scaled)
    assert "T.float32(4.0) + T.float32(2.0)" in new.script()
    assert tir.PyStmtExprMutator().visit_stmt(scaled) is scaled
    with pytest.raises(TypeError, match="requires a subclass of PyStmtExprMutator"):
        mutator(int)


def test_undefined_variables() -> None:
    i, n = tir.Var("i", "int64"), tir.Var("n", "int64")
    loop = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.Evaluate(i + n))
    assert [var.name for var in tir.analysis.undefined_vars(loop)] == ["n"]
    assert tir.analysis.undefined_vars(loop, [n]) == []
    assert [var.name for var in tir.analysis.undefined_vars(i + n)] == ["i", "n"]
    assert tir.analysis.expr_deep_equal(i + n, i + n) and not tir.analysis.expr_deep_equal(i + n, n + i)
    assert tir.analysis.verify_well_formed(scaled)


def test_index_maps() -> None:
    blocked = tir.IndexMap.from_func(lambda n, c: (n, c // 4, c % 4))
    assert [int(size) for size in blocked.map_shape([2, 16])] == [2, 4, 4]
    i = tir.Var("i", "int64")
    assert str(blocked(i, i + 1)[1]) == "(i + 1) // 4"
    assert len(tir.IndexMap.from_func(lambda *i: i[::-1], 3).final_indices) == 3
    with pytest.raises(ValueError, match="ndim is required"):
        tir.IndexMap.from_func(lambda *i: i)
    with pytest.raises(ValueError, match="takes 2 indices"):
        blocked(i)


def test_sequences_of_statements() -> None:
    one = tir.Evaluate(tir.const(1, "int32"))
    assert tir.stmt_seq(one) is one
    assert len(tir.stmt_list(tir.stmt_seq(one, tir.const(2, "int32")))) == 2

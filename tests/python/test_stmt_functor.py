"""Tests visiting, rewriting and rebuilding the statements of loop functions in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import tir
from pliant.ir import structural_equal
from pliant.script import ir as I
from pliant.script import tir as T
from pliant.tir import stmt_functor


@T.prim_func
def scale(a: T.handle, b: T.handle) -> None:
    n = T.int64()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)


def names(nodes: list[Any]) -> list[str]:
    return [type(n).__name__ for n in nodes]


def test_walking_a_body() -> None:
    outer = scale.body
    assert isinstance(outer, tir.For) and outer.kind == tir.ForKind.SERIAL and outer.loop_var.name == "i"
    inner = outer.body
    assert isinstance(inner, tir.For) and int(inner.extent) == 4
    realize = inner.body
    assert isinstance(realize, tir.BlockRealize) and realize.block.name_hint == "scale"
    assert realize.iter_values[0].same_as(outer.loop_var)
    store = realize.block.body
    assert isinstance(store, tir.BufferStore) and store.buffer.name == "B" and store.buffer.dtype == "float32"
    assert isinstance(store.value, tir.Add) and isinstance(store.value.a, tir.Mul)
    load = store.value.a.a
    assert isinstance(load, tir.BufferLoad) and load.buffer.name == "A" and load.buffer != store.buffer
    assert load.indices[0].same_as(store.indices[0])
    assert scale.body is outer
    first, second = scale.params
    assert scale.buffer_map[first] == load.buffer and scale.buffer_map[second] == store.buffer


def test_statement_visits() -> None:
    seen: list[Any] = []
    stmt_functor.post_order_visit(scale.body, seen.append)
    kinds = names(seen)
    assert kinds[-1] == "For" and kinds.count("For") == 2 and kinds.count("ProducerLoad") == 1
    assert kinds.index("ProducerLoad") < kinds.index("Mul") < kinds.index("BufferStore") < kinds.index("Block")
    top: list[Any] = []

    def enter(node: Any) -> bool:
        top.append(node)
        return not isinstance(node, tir.BlockRealize)

    stmt_functor.pre_order_visit(scale.body, enter)
    assert names(top)[0] == "For" and names(top)[-1] == "BlockRealize"


def run(func: tir.PrimFunc, x: np.ndarray) -> np.ndarray:
    from pliant import relax

    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    info = relax.TensorStructInfo((n, 4), "float32")
    v = relax.Var("x", info)
    gv = bb.add_func(func, "scale")
    with bb.function("main", [v]):
        out = bb.emit(relax.call_tir(gv, [v], info))
        bb.emit_func_output(out)
    return np.asarray(pliant.compile(bb.get())(x))


@pytest.mark.parametrize("size", [0, 1, 3])
def test_transformed_functions_run(size: int) -> None:
    def to_subtraction(node: Any) -> Any:
        return node.a - node.b if isinstance(node, tir.Add) else None

    changed = stmt_functor.ir_transform(scale, None, to_subtraction, ["tir.Add"])
    assert isinstance(changed, tir.PrimFunc) and " - " in changed.script()
    x = np.arange(size * 4, dtype="float32").reshape(size, 4)
    np.testing.assert_array_equal(run(scale, x), 2 * x + 1)
    np.testing.assert_array_equal(run(changed, x), 2 * x - 1)


def test_loops_are_rewritten() -> None:
    def parallel(node: Any) -> Any:
        if node.loop_var.name == "i":
            return tir.For(node.loop_var, node.min, node.extent, tir.ForKind.PARALLEL, node.body)
        return None

    changed = stmt_functor.ir_transform(scale, None, parallel, ["tir.For"])
    assert "T.parallel" in changed.script()
    stopped = stmt_functor.ir_transform(scale.body, lambda node: node, lambda node: None, ["tir.For"])
    assert stopped is scale.body


def test_identity_transforms_return_the_same_object() -> None:
    assert stmt_functor.ir_transform(scale, None, lambda node: None) is scale
    assert stmt_functor.ir_transform(scale.body, None, lambda node: None) is scale.body
    assert structural_equal(scale.with_body(scale.body), scale)


def test_substitution() -> None:
    n = tir.Var("n", "int64")
    inner = scale.body.body
    changed = stmt_functor.substitute(inner, {scale.body.loop_var: n + 1})
    assert str(changed.body.iter_values[0]) == "n + T.int64(1)" or "n + 1" in str(changed.body.iter_values[0])
    assert stmt_functor.substitute(inner, {}) is inner
    x = tir.Var("x", "int64")
    assert str(stmt_functor.substitute(x * 2, {x: n})) == str(n * 2)


def test_building_a_body() -> None:
    param, out = scale.params
    a, b = scale.buffer_map[param], scale.buffer_map[out]
    i, j = tir.Var("i", "int64"), tir.Var("j", "int64")
    rows = a.shape[0]
    store = tir.BufferStore(b, a[i, j] * tir.const(3.0, "float32"), [i, j])
    body = tir.For(i, 0, rows, tir.ForKind.SERIAL, tir.For(j, 0, 4, tir.ForKind.SERIAL, tir.SeqStmt([store])))
    func = scale.with_body(body)
    x = np.arange(8, dtype="float32").reshape(2, 4)
    np.testing.assert_array_equal(run(func, x), 3 * x)
    with pytest.raises(TypeError, match="a statement of a .* is required"):
        scale.with_body(3)
    stray = tir.BufferStore(b, a[i, j], [i, j])
    with pytest.raises(ValueError, match="is not well-formed"):
        scale.with_body(stray)


def test_all_statements_round_trip() -> None:
    @I.ir_module
    class Mod:
        @T.prim_func
        def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")) -> None:
            T.func_attr({"tir.noalias": True})
            for k in T.serial(8, annotations={"note": 1}):
                if k < 4:
                    B[k] = A[k]
                else:
                    B[k] = T.exp(A[k])
            for i in range(2):
                with T.block("sum"):
                    vi = T.axis.spatial(2, i)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    T.where(i < 1)
                    B[vi] = T.Select(A[vi] > T.float32(0), A[vi], T.float32(0))

    func = Mod["f"]
    assert structural_equal(func.with_body(func.body), func)
    seen: list[Any] = []
    stmt_functor.post_order_visit(func, seen.append)
    assert "IfThenElse" in names(seen) and "SeqStmt" in names(seen) and "Select" in names(seen)

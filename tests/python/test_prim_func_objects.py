"""Tests loop functions as objects: parameters, buffers that keep their identity, functions built from parts."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.script import ir as I
from pliant.script import tir as T

STRING_TYPE = "float16"
BLOCK_NAME = "half"


@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.handle, b: T.handle, s: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("b"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.Cast("float32", s)


def test_parameters_are_variables() -> None:
    f = Module["f"]
    assert [p.name for p in f.params] == ["a", "b", "s"]
    assert f.params[2].dtype == "int64"
    assert f.buffer_map[f.params[0]].name == "A"
    for three in ({f.params[2]: tir.IntImm("int64", 3)}, lambda v: 3 if v.name == "s" else None):
        assert "T.Cast(\"float32\", 3)" in f.with_body(tir.stmt_functor.substitute(f.body, three)).script()


def test_variables_and_buffers_keep_identity() -> None:
    f = Module["f"]
    changed = f.with_attr("done", True).with_body(f.body)
    assert changed.attrs["done"] and changed.without_attr("done").with_body(f.body).script() == f.script()
    assert Module["f"].with_body(Module["f"].body).script() == f.script()
    again = changed.with_body(changed.body).with_body(f.body)
    assert again.buffer_map[again.params[1]] == f.buffer_map[f.params[1]]
    mod = pliant.IRModule({"f": changed})
    assert mod["f"].params[0].same_as(changed.params[0])


def test_building_functions_from_parts() -> None:
    f = Module["f"]
    body = tir.stmt_functor.substitute(f.body, {f.params[2]: tir.IntImm("int64", 3)})
    made = tir.PrimFunc(f.params[:2], body, buffer_map=f.buffer_map, attrs={"global_symbol": "f"})
    run = relax.VirtualMachine(relax.build(pliant.IRModule({"f": made})), pliant.cpu())["f"]
    out = pliant.nd.array(np.zeros(4, "float32"))
    run(pliant.nd.array(np.ones(4, "float32")), out)
    np.testing.assert_array_equal(out.numpy(), np.full(4, 4.0))
    with pytest.raises(ValueError, match="'a' occurs twice"):
        tir.PrimFunc([f.params[0]] * 2, body, buffer_map={})
    with pytest.raises(ValueError, match="the buffer_map of the PrimFunc contains 'b', which is not a parameter"):
        tir.PrimFunc(f.params[:1], body, buffer_map=f.buffer_map)
    with pytest.raises(TypeError, match="a variable must be a tir.Var, not 1"):
        tir.PrimFunc([1], body)
    with pytest.raises(TypeError, match="a statement of a PrimFunc is required here, but the object is of class int"):
        tir.PrimFunc([], 3)


def test_types_and_names_come_from_python() -> None:
    @T.prim_func
    def half(a: T.Buffer((4,), "float32"), o: T.Buffer((4,), STRING_TYPE)):
        for i in range(4):
            with T.block(BLOCK_NAME):
                vi = T.axis.spatial(4, i)
                o[vi] = T.cast(a[vi], STRING_TYPE) + a[vi].astype(STRING_TYPE) + T.Cast(STRING_TYPE, a[vi])

    text = half.script()
    assert text.count('T.Cast("float16", a[vi])') == 3 and 'T.block("half")' in text

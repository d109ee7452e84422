"""Tests the classes of loop functions as users of TVM call them in passes: functions are built from parts, without a
script."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
import pliant as tvm
from pliant import relax, tir
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Twice:
    @T.prim_func
    def twice(var_a: T.handle, var_b: T.handle):
        n = T.int64()
        A = T.match_buffer(var_a, (n,), "float32")
        B = T.match_buffer(var_b, (n,), "float32")
        with T.block("root"):
            T.reads()
            T.writes()
            W = T.alloc_buffer((n,), A.dtype)
            for i in range(n):
                with T.block("w"):
                    v = T.axis.spatial(n, i)
                    W[v] = A[v] * T.cast(2, A.dtype)
            for i in range(n):
                with T.block("b"):
                    v = T.axis.spatial(n, i)
                    B[v] = W[v] + T.cast(T.float64(1), B[v].dtype)


def run(func: tir.PrimFunc, *arrays: np.ndarray) -> list[np.ndarray]:
    module = pliant.IRModule({"f": func.with_attr("global_symbol", "f")})
    tensors = [pliant.nd.array(a) for a in arrays]
    relax.VirtualMachine(relax.build(module), pliant.cpu())["f"](*tensors)
    return [t.numpy() for t in tensors]


def lifted(func: tir.PrimFunc) -> tuple[tir.PrimFunc, list[relax.TensorStructInfo]]:
    """Moves buffers that the root block allocates to the parameters, like passes that lift
    workspaces out of loop functions.
    """
    params, buffer_map = list(func.params), dict(func.buffer_map)
    at = len(params)
    while params[at - 1].dtype != "handle":
        at -= 1
    root, kept, infos = func.body.block, [], []
    for buffer in root.alloc_buffers:
        if buffer.scope() == "global":
            param = tir.Var("var_" + buffer.name, "handle")
            params.insert(at, param)
            at += 1
            buffer_map[param] = buffer
            infos.append(relax.TensorStructInfo(buffer.shape, buffer.dtype))
        else:
            kept.append(buffer)
    block = tir.Block(
        iter_vars=[],
        reads=[],
        writes=[],
        name_hint="root",
        body=root.body,
        alloc_buffers=kept,
        annotations=root.annotations,
    )
    body = tir.BlockRealize(iter_values=[], predicate=True, block=block)
    made = tir.PrimFunc(
        params=params, body=body, ret_type=func.ret_type, buffer_map=buffer_map, attrs=func.attrs
    )
    return made, infos


def test_workspaces_become_parameters() -> None:
    func, infos = lifted(Twice["twice"])
    assert [p.dtype for p in func.params] == ["handle"] * 3
    assert [str(info) for info in infos] == ['R.Tensor((n,), dtype="float32")']
    x, out, space = np.arange(4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32")
    _, out, space = run(func, x, out, space)
    np.testing.assert_array_equal(out, 2 * x + 1)
    np.testing.assert_array_equal(space, 2 * x)


def elementwise() -> tuple[tir.PrimFunc, tir.Var, tir.Var]:
    n = tir.SizeVar("n", "int64")
    a, b = tir.Var("a", "handle"), tir.Var("b", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    A, B = tir.decl_buffer((n,), "float32", "A"), tir.decl_buffer((n,), "float32", "B")
    i = tir.Var("i", tvm.ir.PrimType("int64"))
    negative = tir.LT(A.vload([i]), tir.FloatImm("float32", 0))
    exp = tir.Call("float32", "tir.exp", [tir.BufferLoad(A, [i])])
    value = tir.Select(tir.Not(negative), exp, tir.Mul(A[i], tir.FloatImm("float32", 2)))
    body = tir.For(i, tir.IntImm("int64", 0), n, tir.ForKind.SERIAL, B.vstore([i], value))
    return tir.PrimFunc([a, b], body, buffer_map={a: A, b: B}), a, b


def test_functions_from_new_parts() -> None:
    func, a, b = elementwise()
    assert func.params[0].same_as(a) and func.params[1].same_as(b)
    x = np.array([-1, 0, 1], "float32")
    _, out = run(func, x, np.zeros(3, "float32"))
    np.testing.assert_allclose(out, [-2, 1, np.e], rtol=1e-6)


def test_copied_functions_share_nothing() -> None:
    func, *_ = elementwise()
    new = tir.stmt_functor.renew_defs(func)
    assert not new.params[0].same_as(func.params[0])
    assert new.buffer_map[new.params[0]] != func.buffer_map[func.params[0]]
    assert tvm.ir.structural_equal(new, func)


def test_a_buffer_is_replaced_in_a_body() -> None:
    func, a, b = elementwise()
    old = func.buffer_map[a]
    new = tir.decl_buffer(old.shape, "float32", "C")

    def load(node: object) -> object:
        if isinstance(node, tir.BufferLoad) and node.buffer.same_as(old):
            return tir.BufferLoad(new, node.indices)
        return None

    body = tir.stmt_functor.ir_transform(func.body, None, load, ["tir.BufferLoad"])
    made = tir.PrimFunc([a, b], body, buffer_map={a: new, b: func.buffer_map[b]})
    assert [made.buffer_map[p].name for p in made.params] == ["C", "B"]
    _, out = run(made, np.array([-1, 0], "float32"), np.zeros(2, "float32"))
    np.testing.assert_array_equal(out, [-2, 1])


def test_constructors_fold_nothing() -> None:
    i = tir.Var("i", "int64")
    assert str(tir.Add(1, 2)) == "1 + 2"
    assert isinstance(tir.Sub(i, i), tir.Sub) and str(tir.Sub(i, i).a) == "i"
    assert isinstance(tir.And(True, False), tir.And)
    assert tir.Let(i, tir.IntImm("int64", 3), i * i).value == 9
    call = tir.Call("float32", "exp", [tir.FloatImm("float32", 1)])
    assert call.op.name == "tir.exp" and call.op.same_as(tir.op.Op.get("tir.exp"))
    axis = tir.IterVar((0, 4), "v", tir.IterVar.CommReduce)
    assert (axis.iter_type, axis.dom.extent.value, axis.var.name) == (2, 4, "v")
    assert isinstance(Twice["twice"].body.block.body.seq[0].body.block.iter_vars[0], tir.IterVar)


def test_invalid_parts_are_reported() -> None:
    func, a, b = elementwise()
    A, B = func.buffer_map[a], func.buffer_map[b]
    i, one = tir.Var("i", "int64"), tir.FloatImm("float32", 1)
    with pytest.raises(TypeError, match="has type float32, but the argument dtype is int8"):
        tir.Call("int8", "exp", [one])
    with pytest.raises(ValueError, match="there is no tir intrinsic 'nope'"):
        tir.Call("float32", "tir.nope", [])
    with pytest.raises(ZeroDivisionError):
        tir.FloorDiv(i, 0)
    with pytest.raises(IndexError, match="A has 1 dims, but is read with 2 indices"):
        tir.BufferLoad(A, [i, i])
    with pytest.raises(TypeError, match="must be a tir.Buffer"):
        tir.BufferLoad(3, [i])
    with pytest.raises(TypeError, match="'A' has elements of type float32, not float16"):
        A.vload([i], "float16")
    with pytest.raises(ValueError, match="the iter_type of an IterVar must be .*, not 7"):
        tir.IterVar((0, 4), i, 7)
    with pytest.raises(ValueError, match="handle parameter 'c' is not matched with a buffer"):
        tir.PrimFunc([a, b, tir.Var("c", "handle")], func.body, buffer_map=func.buffer_map)
    address = tir.For(i, 0, 4, tir.ForKind.SERIAL, B.vstore([i], tir.Cast("float32", a)))
    with pytest.raises(ValueError, match="handle 'a' is not a value; use its buffer 'A'"):
        tir.PrimFunc([a, b], address, buffer_map=func.buffer_map)
    handle = tir.Var("h", "handle")
    with pytest.raises(ValueError, match="'h' is a handle, which cannot be a loop variable or an axis"):
        tir.PrimFunc([a, b], tir.For(handle, 0, 4, 0, tir.Evaluate(one)), buffer_map=func.buffer_map)
    with pytest.raises(ValueError, match="the iter_type of an IterVar must be .*, not -1"):
        tir.IterVar((0, 4), i, -1)
    part = tir.Block([], [], [], "part", func.body, match_buffers=[object()])
    with pytest.raises(pliant.error.UnsupportedError, match="match_buffers of a block is not supported"):
        tir.PrimFunc([a, b], tir.BlockRealize([], True, part), buffer_map=func.buffer_map)


def test_small_tvm_compatibilities() -> None:
    @T.prim_func
    def unstated(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                v = T.axis.spatial(4, i)
                A[v] = A[v] + T.float32(1)

    block = unstated.body.body.block
    assert len(block.reads) == 0 and len(block.writes) == 0
    assert unstated.with_body(unstated.body).script() == unstated.script()
    i = tir.Var("i", "int32")
    buffer = tir.decl_buffer((4,), "float32", "A", scope="global")
    handle = tir.Var("a", "handle")
    value = tir.call_intrin("float32", "tir.exp", tir.FloatImm("float32", 0))
    loop = tir.For(i, 0, 4, tir.ForKind.SERIAL, buffer.vstore([tir.Cast("int64", i)], value))
    (out,) = run(tir.PrimFunc([handle], loop, buffer_map={handle: buffer}), np.zeros(4, "float32"))
    np.testing.assert_array_equal(out, np.ones(4))
    with pytest.raises(ValueError, match="scope must be '' or 'global'"):
        tir.decl_buffer((4,), scope="shared")
    with pytest.raises(ValueError, match="int32 cannot represent"):
        tir.PrimFunc([handle], tir.For(i, 0, 2**40, 0, loop.body), buffer_map={handle: buffer})


def test_constants_of_passes_equal_those_of_scripts() -> None:
    @I.ir_module
    class Scaled:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            return R.argmax(R.multiply(R.clip(x, 0.1, 0.7), R.const(0.1, "float32")))

    made = relax.transform.LegalizeOps()(Scaled)
    tvm.ir.assert_structural_equal(made, pliant.script.from_source(made.script(show_meta=True)))

"""Tests programs as TVM users write them: only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pliant as tvm
import pliant.testing
import pytest
from pliant import relax, te, tir, topi
from pliant.ir import assert_structural_equal
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def run(mod, *args, func="main"):
    """Builds a module and runs it as most tests of TVM do."""
    ex = tvm.relax.build(mod, tvm.target.Target("llvm"))
    vm = relax.VirtualMachine(ex, tvm.cpu())
    return vm[func](*[tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in args])


# ---- scripts ----


def test_call_tir_in_a_module() -> None:
    @tvm.script.ir_module
    class Module:
        @T.prim_func
        def tir_matmul(x: T.handle, y: T.handle, z: T.handle) -> None:
            T.func_attr({"global_symbol": "tir_matmul", "tir.noalias": True})
            m = T.int64()
            n = T.int64()
            k = T.int64()
            A = T.match_buffer(x, (m, n))
            B = T.match_buffer(y, (n, k))
            C = T.match_buffer(z, (m, k))
            for i, j, kk in T.grid(m, k, n):
                with T.block("matmul"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, kk])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

        @R.function
        def main(x: R.Tensor(("m", "n"), "float32"), w: R.Tensor(("n", "k"), "float32")) -> R.Tensor:
            m, n, k = T.int64(), T.int64(), T.int64()
            cls = Module
            with R.dataflow():
                gv0 = R.call_tir(cls.tir_matmul, (x, w), R.Tensor((m, k), dtype="float32"))
                R.output(gv0)
            return gv0

    mod = Module
    assert isinstance(mod, tvm.IRModule)
    assert relax.analysis.well_formed(mod)
    assert isinstance(mod["tir_matmul"], tvm.tir.PrimFunc)
    assert isinstance(mod["main"], relax.Function)
    x = np.random.rand(3, 4).astype("float32")
    w = np.random.rand(4, 5).astype("float32")
    res = run(mod, x, w)
    tvm.testing.assert_allclose(res.numpy(), x @ w, rtol=1e-5, atol=1e-6)
    tvm.ir.assert_structural_equal(tvm.script.from_source(mod.script()), mod)


def test_packed_functions_match_cast_and_tuples() -> None:
    @tvm.register_func("test.coming.identity", override=True)
    def identity(a):
        return a

    @tvm.register_global_func("test.coming.add_one", override=True)
    def add_one(a, b):
        b.copyfrom(a.numpy() + 1)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(ndim=2, dtype="float32")) -> R.Object:
            n, m = T.int64(), T.int64()
            y = R.call_packed("test.coming.identity", x, sinfo_args=(R.Tensor(ndim=2, dtype="float32"),))
            z = R.match_cast(y, R.Tensor((n, m), "float32"))
            w = R.call_dps_packed("test.coming.add_one", (z,), out_sinfo=R.Tensor((n, m), dtype="float32"))
            s = R.shape_of(w)
            t = (w, s)
            return t

    x = np.arange(6, dtype="float32").reshape(2, 3)
    ex = relax.build(Module, "llvm")
    vm = relax.VirtualMachine(ex, tvm.cpu(0))
    out = vm["main"](tvm.runtime.tensor(x))
    np.testing.assert_equal(out[0].numpy(), x + 1)
    assert list(out[1]) == [2, 3]
    assert tvm.get_global_func("test.coming.identity") is not None
    assert tvm.get_global_func("test.coming.no_such_function", allow_missing=True) is None
    with pytest.raises(ValueError):
        tvm.get_global_func("test.coming.no_such_function")


def test_if_closures_and_recursion() -> None:
    @I.ir_module
    class Module:
        @R.function
        def choose(cond: R.Tensor((), "bool"), x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            if cond:
                w = R.add(x, x)
                y = R.multiply(w, w)
            else:
                w = R.multiply(x, x)
                y = R.add(w, w)
            return y

        @R.function
        def closures(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            @R.function
            def outer_func(c1: R.Tensor((2, 3), "float32")) -> R.Callable(
                (R.Tensor((2, 3), "float32"),), R.Tensor((2, 3), "float32")
            ):
                @R.function
                def inner_func(x1: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    s: R.Tensor((2, 3), "float32") = R.add(x1, c1)
                    return s

                return inner_func

            in_call = outer_func(x)
            res: R.Tensor((2, 3), "float32") = in_call(y)
            return res

        @R.function
        def recursion(n: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            cond = R.equal(n, R.const(1.0))
            if cond:
                res = R.const(1.0)
            else:
                gv = R.subtract(n, R.const(1.0))
                tmp = Module.recursion(gv)
                res = R.add(tmp, tmp)
            return res

    ex = tvm.compile(Module, target="llvm")
    vm = relax.VirtualMachine(ex, tvm.cpu())
    two = tvm.nd.array(np.array([2.0], "float32"))
    assert vm["choose"](tvm.nd.array(np.array(True)), two).numpy()[0] == 16
    assert vm["choose"](tvm.nd.array(np.array(False)), two).numpy()[0] == 8
    x, y = np.ones((2, 3), "float32"), np.full((2, 3), 2, "float32")
    np.testing.assert_equal(vm["closures"](tvm.nd.array(x), tvm.nd.array(y)).numpy(), x + y)
    assert vm["recursion"](tvm.nd.array(np.array(5.0, "float32"))).numpy() == 16
    # The VM's other calling interface.
    vm.set_input("choose", np.array(True), two)
    vm.invoke_stateful("choose")
    assert vm.get_outputs("choose").numpy()[0] == 16


# ---- the builder ----


def test_block_builder() -> None:
    m = tir.Var("m", "int64")
    n = tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor([m, n], "float16"))
    y = relax.Var("y", R.Tensor([n], "float16"))
    bb = relax.BlockBuilder()

    with bb.function("func", [x, y]):
        with bb.dataflow() as df:
            lv0 = bb.emit(relax.op.add(x, y))
            assert lv0.name_hint == "lv"
            assert_structural_equal(lv0.struct_info, relax.TensorStructInfo([m, n], "float16"))
            lv1 = bb.emit(relax.op.multiply(lv0, y))
            assert lv1.name_hint == "lv1"
            gv0 = bb.emit_output(lv1)
            assert gv0.name_hint == "gv"
        bb.emit_func_output(gv0)
    assert df is not None

    func = bb.finalize()["func"]
    assert func.params[0] == x
    assert func.params[1] == y
    assert func.body.body == gv0
    assert_structural_equal(func.ret_struct_info, relax.TensorStructInfo([m, n], "float16"))
    assert len(func.body.blocks) == 1
    assert len(func.body.blocks[0].bindings) == 3 or len(func.body.blocks[0].bindings) == 2
    assert isinstance(func.body.blocks[0], relax.DataflowBlock)


def test_emit_te() -> None:
    bb = relax.BlockBuilder()
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, m], "float32"))
    y = relax.Var("y", relax.TensorStructInfo([n, m], "float32"))
    z = relax.Var("z", relax.TensorStructInfo([n, m], "float32"))

    def te_func(args, args_dict, msg):
        A, B = args
        C = args_dict["C"]
        D = te.compute((128, 128), lambda i, j: A[i, j] + B[i, j])
        E = te.compute((128, 128), lambda i, j: D[i, j] - C[i, j])
        assert msg == "hello"
        return E

    with bb.function("rx_func", [x, y, z]):
        xx = bb.match_cast(x, relax.TensorStructInfo([128, 128], "float32"))
        yy = bb.match_cast(y, relax.TensorStructInfo([128, 128], "float32"))
        zz = bb.match_cast(z, relax.TensorStructInfo([128, 128], "float32"))
        out = bb.emit_te(te_func, [xx, yy], {"C": zz}, msg="hello")
        bb.emit_func_output(out)

    mod = bb.get()
    rx_func = mod["rx_func"]
    call_node = rx_func.body.blocks[0].bindings[-1].value
    assert call_node.op == tvm.ir.Op.get("relax.call_tir")
    assert isinstance(call_node.args[0], relax.GlobalVar)
    assert call_node.args[0].name_hint == "te_func"
    assert list(call_node.args[1]) == [xx, yy, zz]
    assert isinstance(mod["te_func"], tir.PrimFunc)
    a = np.random.rand(128, 128).astype("float32")
    tvm.testing.assert_allclose(run(mod, a, a, a, func="rx_func").numpy(), a, rtol=1e-6, atol=1e-6)


def test_topi_network() -> None:
    n = te.var("n", dtype="int64")
    data = relax.Var("data", relax.TensorStructInfo((n, 16), "float32"))
    weight = relax.Var("weight", R.Tensor((8, 16), "float32"))
    bias = relax.Var("bias", R.Tensor((8,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", params=[data, weight, bias], attrs={"num_input": 1}):
        with bb.dataflow():
            lv0 = bb.emit_te(topi.nn.dense, data, weight)
            lv1 = bb.emit_te(topi.add, lv0, bias)
            lv2 = bb.emit_te(topi.nn.relu, lv1)
            gv = bb.emit_output(bb.call_te(topi.nn.softmax, lv2, axis=-1))
        bb.emit_func_output(gv)
    mod = bb.get()
    assert mod["main"].attrs["num_input"] == 1
    d, w, b = (np.random.rand(*s).astype("float32") for s in ((5, 16), (8, 16), (8,)))
    e = np.exp(np.maximum(d @ w.T + b, 0))
    expected = e / e.sum(-1, keepdims=True)
    tvm.testing.assert_allclose(run(mod, d, w, b).numpy(), expected, rtol=1e-5, atol=1e-6)


# ---- analyses, loop functions, arithmetic ----


def test_analyses() -> None:
    @R.function
    def func(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor:
        with R.dataflow():
            lv = R.add(x, x)
            lv1 = R.multiply(lv, x)
            dead = R.exp(lv1)
            gv = R.sum(lv1, axis=[1])
            R.output(gv)
        return gv

    assert [v.name for v in relax.analysis.defined_symbolic_vars(func)] == ["n", "m"]
    assert relax.analysis.free_symbolic_vars(func) == []
    assert [v.name_hint for v in relax.analysis.bound_vars(func)][:2] == ["x", "y"]
    assert relax.analysis.free_vars(func) == []
    assert [v.name_hint for v in relax.analysis.free_vars(func.body)] == ["x"]
    bindings = relax.analysis.name_to_binding(func)
    assert list(bindings) == ["lv", "lv1", "dead", "gv"]
    block = func.body.blocks[0]
    lv = bindings["lv"][0].var
    assert [v.name_hint for v in relax.analysis.udchain(block)[lv]] == ["lv1"]
    assert relax.analysis.get_var2val(func)[lv].op == tvm.ir.Op.get("relax.add")
    smaller = relax.analysis.remove_all_unused(func)
    assert [b.var.name_hint for b in smaller.body.blocks[0].bindings] == ["lv", "lv1", "gv"]
    n = tir.Var("n", "int64")
    a = relax.TensorStructInfo((n, 4), "float32")
    b = relax.TensorStructInfo((n, 8), "float32")
    assert_structural_equal(relax.analysis.struct_info_lca(a, b), relax.TensorStructInfo(dtype="float32", ndim=2))
    assert relax.analysis.struct_info_base_check(a, a) == relax.analysis.BaseCheckResult.PASS
    assert relax.analysis.get_static_type(a) is not None
    assert not relax.analysis.contains_impure_call(func)


def test_loop_functions_and_tensor_expressions() -> None:
    n = te.var("n", "int64")
    A = te.placeholder((n, 8), name="A", dtype="float32")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    func = te.create_prim_func([A, B])
    assert isinstance(func, tir.PrimFunc)

    loads = []

    def fvisit(node):
        if isinstance(node, tir.BufferLoad):
            loads.append(node.buffer.name)

    tir.stmt_functor.post_order_visit(func.body, fvisit)
    assert sorted(set(loads)) == ["A", "B"]

    def double(op):
        if isinstance(op, tir.BufferLoad) and op.buffer.name == "A":
            return op * tir.FloatImm("float32", 2.0)
        return None

    new_body = tir.stmt_functor.ir_transform(func.body, None, double, ["tir.BufferLoad"])
    doubled = func.with_body(new_body).with_attr("global_symbol", "main")
    mod = tvm.IRModule({"main": doubled})
    lib = tvm.build(mod, target="llvm")
    a = np.random.rand(3, 8).astype("float32")
    out = tvm.nd.array(np.zeros(3, "float32"))
    lib["main"](tvm.nd.array(a), out)
    tvm.testing.assert_allclose(out.numpy(), 2 * a.sum(1), rtol=1e-5, atol=1e-5)


def test_arithmetic() -> None:
    analyzer = tvm.arith.Analyzer()
    x, y = tir.Var("x", "int64"), te.var("y", "int64")
    tvm.ir.assert_structural_equal(analyzer.simplify(x + y - x), y)
    analyzer.bind(x, tvm.ir.Range(0, 16))
    assert analyzer.can_prove(x < 16)
    assert analyzer.can_prove_equal(tvm.tir.floordiv(x, 16), 0)
    bound = analyzer.const_int_bound(x * 2 + 1)
    assert (bound.min_value, bound.max_value) == (1, 31)
    r = tvm.ir.Range.from_min_extent(3, 5)
    assert int(r.min) == 3 and int(r.extent) == 5
    with analyzer.constraint_scope(x % 4 == 0):
        assert analyzer.can_prove(tir.floormod(x, 4) == 0)
    assert tir.IntImm("int64", 3).value == 3
    assert tir.const(1, "int32").dtype == "int32"
    assert tvm.tir.all(x < 3, y < 3).dtype == "bool"


def test_constants_and_types() -> None:
    c = relax.const(np.random.rand(2, 3).astype("float32"))
    assert isinstance(c, relax.Constant)
    assert c.struct_info.dtype == "float32" and [int(d) for d in c.struct_info.shape] == [2, 3]
    assert c.data.numpy().shape == (2, 3)
    assert relax.const(1).struct_info.dtype == "int32"
    assert relax.const(1.0).struct_info.dtype == "float32"
    assert relax.const([1, 2], "int64").struct_info.ndim == 1
    tup = relax.Tuple([c, relax.PrimValue(3)])
    assert len(tup) == 2 and tup[0] == c and len(tup.fields) == 2
    shape = relax.ShapeExpr([1, 2, tir.IntImm("int64", 3)])
    assert [int(v) for v in shape] == [1, 2, 3] and len(shape) == 3
    assert isinstance(shape.struct_info, relax.ShapeStructInfo) and shape.struct_info.ndim == 3
    s = relax.TupleStructInfo([relax.ObjectStructInfo(), relax.PrimStructInfo("int64")])
    assert len(s.fields) == 2
    f = relax.FuncStructInfo([relax.TensorStructInfo(ndim=2, dtype="float32")], relax.ObjectStructInfo())
    assert f.ret == relax.ObjectStructInfo() and len(f.params) == 1
    opaque = relax.FuncStructInfo.opaque_func()
    assert opaque.params is None
    gv = tvm.ir.GlobalVar("main")
    assert gv.name_hint == "main"
    extern = relax.extern("my.func")
    assert isinstance(extern, relax.ExternFunc) and extern.global_symbol == "my.func"
    assert relax.StringImm("a").value == "a" and relax.DataTypeImm("float32").value == "float32"


if __name__ == "__main__":
    tvm.testing.main()

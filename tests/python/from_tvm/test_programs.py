"""Tests builders, operators, loop functions, virtual machines and analyses as users of TVM write them; only the import
differs."""

from __future__ import annotations

import numpy as np
import pliant as tvm
import pytest
from pliant import IRModule, relax, te, tir, topi
from pliant import relax as rx
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def test_a_model_of_helper_functions() -> None:
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")

    def linear(x, name: str, inp: int, out: int):
        w = relax.Var(f"{name}_weight", relax.TensorStructInfo((out, inp), "float32"))
        b = relax.Var(f"{name}_bias", relax.TensorStructInfo((out,), "float32"))
        params.extend([w, b])
        y = bb.emit(relax.op.matmul(x, bb.emit(relax.op.permute_dims(w))))
        return bb.emit(relax.op.add(y, b))

    x = relax.Var("x", relax.TensorStructInfo((n, 12), "float32"))
    params: list = []
    with bb.function("main"):
        with bb.dataflow():
            h = bb.emit(relax.op.nn.relu(linear(x, "fc1", 12, 7)))
            h = linear(h, "fc2", 7, 3)
            out = bb.emit_output(relax.op.nn.log_softmax(h, axis=-1))
        bb.emit_func_output(out, params=[x, *params])
    mod = bb.finalize()
    assert [p.name_hint for p in mod["main"].params] == ["x", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert relax.analysis.well_formed(mod)
    rng = np.random.default_rng(0)
    shapes = [tuple(int(d) for d in p.struct_info.shape) for p in params]
    data = rng.standard_normal((4, 12)).astype("float32")
    weights = [rng.standard_normal(s).astype("float32") for s in shapes]
    vm = rx.VirtualMachine(rx.build(mod, "llvm"), tvm.cpu())
    got = vm["main"](tvm.nd.array(data), *[tvm.nd.array(w) for w in weights]).numpy()
    w1, b1, w2, b2 = weights
    z = np.maximum(data @ w1.T + b1, 0) @ w2.T + b2
    want = z - z.max(-1, keepdims=True)
    want -= np.log(np.exp(want).sum(-1, keepdims=True))
    tvm.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_te_from_the_builder_with_attributes_and_several_outputs() -> None:
    bb = rx.BlockBuilder()
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = rx.Var("x", R.Tensor((n, m), "float32"))
    y = rx.Var("y", R.Tensor((n, m), "float32"))

    def te_func(a, b, scale):
        s = te.compute((n, m), lambda i, j: a[i, j] + b[i, j] * scale, name="s")
        d = te.compute((n, m), lambda i, j: a[i, j] - b[i, j], name="d")
        return [s, d]

    with bb.function("main", [x, y]):
        out = bb.emit_te(te_func, x, y, 2.0, primfunc_name_hint="sum_and_difference")
        first = bb.emit(rx.TupleGetItem(out, 0))
        second = bb.emit(rx.TupleGetItem(out, 1))
        bb.emit_func_output(bb.emit(rx.Tuple([second, first])))
    mod = bb.get()
    assert isinstance(mod["sum_and_difference"], tir.PrimFunc)
    a, b = np.random.rand(2, 3).astype("float32"), np.random.rand(2, 3).astype("float32")
    vm = rx.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    d, s = vm["main"](a, b)
    tvm.testing.assert_allclose(d.numpy(), a - b, rtol=1e-6)
    tvm.testing.assert_allclose(s.numpy(), a + 2 * b, rtol=1e-6)


def test_topi_over_placeholders() -> None:
    A = te.placeholder((te.var("n", "int64"), 5), name="A")
    B = topi.nn.softmax(topi.multiply(topi.sum(topi.transpose(A), axis=0, keepdims=True), topi.full((1, 1), "float32", 0.5)))
    func = te.create_prim_func([A, B]).with_attr("global_symbol", "main")
    lib = tvm.build(IRModule({"main": func}), target="llvm")
    a = np.random.rand(4, 5).astype("float32")
    out = tvm.nd.empty((1, 4), "float32", device=tvm.cpu(0))
    lib["main"](tvm.nd.array(a), out)
    s = a.sum(1)[None] * 0.5
    e = np.exp(s - s.max())
    tvm.testing.assert_allclose(out.numpy(), e / e.sum(), rtol=1e-5, atol=1e-6)


def test_operators_from_python() -> None:
    x = rx.Var("x", R.Tensor((2, 3, 4), "float32"))
    i = rx.Var("i", R.Tensor((5,), "int64"))
    n = tir.Var("n", "int64")
    bb = rx.BlockBuilder()
    cases = [
        (rx.op.reshape(x, (6, -1)), (6, 4)),
        (rx.op.permute_dims(x, [2, 0, 1]), (4, 2, 3)),
        (rx.op.expand_dims(x, axis=[0, 2]), (1, 2, 1, 3, 4)),
        (rx.op.squeeze(rx.op.sum(x, axis=1, keepdims=True), axis=[1]), (2, 4)),
        (rx.op.concat([x, x], axis=-1), (2, 3, 8)),
        (rx.op.take(x, i, axis=1), (2, 5, 4)),
        (rx.op.strided_slice(x, axes=[0, 2], begin=[0, 1], end=[1, 4]), (1, 3, 3)),
        (rx.op.broadcast_to(x, (7, 2, 3, 4)), (7, 2, 3, 4)),
        (rx.op.full((n, 2), rx.const(1.0, "float32"), "float32"), (n, 2)),
        (rx.op.astype(x, "float16"), (2, 3, 4)),
        (rx.op.where(rx.op.greater(x, rx.const(0.0)), x, rx.op.zeros_like(x)), (2, 3, 4)),
    ]
    for call, shape in cases:
        assert call.op.name.startswith("relax."), call
        made = bb.normalize(call)
        tvm.ir.assert_structural_equal(list(made.struct_info.shape), [tir.IntImm("int64", d) if isinstance(d, int) else d for d in shape])
    split = bb.normalize(rx.op.split(x, 3, axis=1))
    assert isinstance(split.struct_info, rx.TupleStructInfo) and len(split.struct_info.fields) == 3
    assert (x + x).op == rx.op.add and (-x).op.name == "relax.negative" and (x @ rx.op.permute_dims(x, [0, 2, 1])).op.name == "relax.matmul"


def test_virtual_machine_and_its_call_variants(tmp_path) -> None:
    @I.ir_module
    class Mod:
        @R.function
        def scale(x: R.Tensor(("n",), "float32"), s: R.Tensor((), "float32")) -> R.Tensor(("n",), "float32"):
            return R.multiply(x, s)

        @R.function
        def pair(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Shape(["n"])):
            n = T.int64()
            y = R.add(x, x)
            return (y, R.shape([n]))

    ex = tvm.compile(Mod, tvm.target.Target("llvm"))
    vm = rx.VirtualMachine(ex, tvm.cpu(), profile=False)
    x = tvm.nd.array(np.array([1, 2, 3], dtype="float32"))
    two = tvm.runtime.tensor(np.float32(2.0))
    vm.save_function("scale", "scale_saved", x, two)
    tvm.testing.assert_allclose(vm["scale_saved"]().numpy(), [2, 4, 6])
    vm.set_input("pair", x)
    vm.invoke_stateful("pair")
    got = vm.get_outputs("pair")
    assert list(got[1]) == [3]
    tvm.testing.assert_allclose(got[0].numpy(), [2, 4, 6])
    timing = vm.time_evaluator("scale", tvm.cpu(), number=2, repeat=3)(x, two)
    assert len(timing.results) == 3 and timing.mean > 0
    with pytest.raises(ValueError, match="(?i)n|shape|dim"):
        vm["scale"](tvm.nd.array(np.zeros((2, 2), "float32")), two)
    path = tmp_path / "lib.so"
    ex.export_library(str(path))
    again = rx.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    tvm.testing.assert_allclose(again["scale"](x, two).numpy(), [2, 4, 6])


def test_stmt_functor() -> None:
    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.serial(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.exp(A[vi]) + T.float32(1)

    nodes: list = []
    tir.stmt_functor.post_order_visit(func.body, nodes.append)
    for kind in (tir.BufferLoad, tir.BufferStore, tir.For, tir.FloatImm):
        assert any(isinstance(node, kind) for node in nodes), kind

    def preorder(node):
        return None

    def postorder(node):
        if isinstance(node, tir.FloatImm) and node.value == 1.0:
            return tir.FloatImm("float32", 3.0)
        return None

    body = tir.stmt_functor.ir_transform(func.body, preorder, postorder, ["tir.FloatImm"])
    new = func.with_body(body)
    assert "T.float32(3" in new.script() or "T.float32(3.0)" in new.script()
    x = tir.Var("x", "int32")
    e = tir.stmt_functor.substitute(x * 2 + 1, {x: tir.IntImm("int32", 4)})
    assert int(tvm.arith.Analyzer().simplify(e)) == 9
    lib = tvm.build(IRModule({"main": new.with_attr("global_symbol", "main")}), target="llvm")
    a, out = tvm.nd.array(np.zeros(16, "float32")), tvm.nd.empty((16,), "float32")
    lib["main"](a, out)
    tvm.testing.assert_allclose(out.numpy(), np.full(16, 4.0))


def test_a_pass_over_loop_functions() -> None:
    @tvm.tir.transform.prim_func_pass(opt_level=0, name="DoubleConstants")
    def double(func, mod, ctx):
        def post(node):
            return tir.FloatImm(node.dtype, node.value * 2) if isinstance(node, tir.FloatImm) else None

        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, post, ["tir.FloatImm"]))

    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def add_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = A[vi] + T.float32(1)

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Mod
            y = R.call_tir(cls.add_one, (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

    vm = rx.VirtualMachine(tvm.compile(double(Mod), "llvm"), tvm.cpu())
    tvm.testing.assert_allclose(vm["main"](np.zeros(4, "float32")).numpy(), np.full(4, 2.0))


def test_analyses_of_types_and_variables() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    assert relax.analysis.struct_info_lca(
        rx.ShapeStructInfo([n, 2]), rx.ShapeStructInfo([n, 3])
    ) == rx.ShapeStructInfo(ndim=2)
    info = rx.TensorStructInfo((n, m), "float32")
    erased = relax.analysis.erase_to_well_defined(info, {n: n})
    tvm.ir.assert_structural_equal(erased, rx.TensorStructInfo(dtype="float32", ndim=2))
    assert [v.name for v in relax.analysis.tir_vars_in_struct_info(info)] == ["n", "m"]
    assert [v.name for v in relax.analysis.definable_tir_vars_in_struct_info(rx.ShapeStructInfo([n + 1, m]))] == ["m"]
    assert relax.analysis.struct_info_base_check(rx.ObjectStructInfo(), info) == relax.analysis.BaseCheckResult.PASS
    assert relax.analysis.struct_info_base_check(info, rx.ObjectStructInfo()) != relax.analysis.BaseCheckResult.PASS
    callee = rx.FuncStructInfo([info], rx.TensorStructInfo((m, n), "float32"))
    call = rx.Call(rx.Var("f", callee), [rx.Var("x", rx.TensorStructInfo((3, 4), "float32"))])
    ret = relax.analysis.derive_call_ret_struct_info(callee, call, rx.BlockBuilder())
    tvm.ir.assert_structural_equal(ret, rx.TensorStructInfo((4, 3), "float32"))


def test_analyses_of_modules() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def even(n: R.Tensor((), "int32")) -> R.Tensor((), "bool"):
            zero = R.equal(n, R.const(0, "int32"))
            if zero:
                r = R.const(True, "bool")
            else:
                less = R.subtract(n, R.const(1, "int32"))
                r = Mod.odd(less)
            return r

        @R.function
        def odd(n: R.Tensor((), "int32")) -> R.Tensor((), "bool"):
            zero = R.equal(n, R.const(0, "int32"))
            if zero:
                r = R.const(False, "bool")
            else:
                less = R.subtract(n, R.const(1, "int32"))
                r = Mod.even(less)
            return r

        @R.function(pure=False)
        def prints(n: R.Tensor((), "int32")) -> R.Tuple:
            _ = R.print(n, format="{}")
            return R.tuple()

    groups = relax.analysis.detect_recursion(Mod)
    assert sorted(gv.name_hint for gv in groups[0]) == ["even", "odd"]
    assert relax.analysis.contains_impure_call(Mod["prints"])
    assert not relax.analysis.contains_impure_call(Mod["even"])
    assert [gv.name_hint for gv in relax.analysis.all_global_vars(Mod["even"])] == ["odd"]
    assert relax.analysis.well_formed(Mod)
    assert {gv.name_hint for gv in Mod.functions} == {"even", "odd", "prints"}
    vm = rx.VirtualMachine(tvm.compile(Mod, "llvm"), tvm.cpu())
    assert bool(vm["even"](np.array(6, "int32")).numpy()) and not bool(vm["even"](np.array(7, "int32")).numpy())


def test_exec_builder() -> None:
    @tvm.register_func("test.from_tvm.add_scalar", override=True)
    def add_scalar(a, b):
        return a + b

    ib = rx.ExecBuilder()
    with ib.function("func0", num_inputs=2):
        ib.emit_call("test.from_tvm.add_scalar", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("test.from_tvm.add_scalar", args=[ib.r(2), ib.imm(5)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    ex = ib.get()
    assert "test.from_tvm.add_scalar" in ex.as_text()
    assert rx.VirtualMachine(ex, tvm.cpu())["func0"](1, 2) == 8


def test_virtual_machine_instruments() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.exp(x)
                z = R.add(y, y)
                R.output(z)
            return z

    vm = rx.VirtualMachine(rx.build(Mod, "llvm"), tvm.cpu())
    seen = []

    def instrument(func, func_symbol, before_run, ret_value, *args):
        if before_run:
            seen.append(func_symbol)
        return rx.VMInstrumentReturnKind.NO_OP

    vm.set_instrument(instrument)
    out = vm["main"](tvm.nd.array(np.zeros(3, "float32")))
    tvm.testing.assert_allclose(out.numpy(), [2, 2, 2])
    assert seen


def test_modules_are_edited() -> None:
    @R.function
    def f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    mod = IRModule({"f": f})
    mod["g"] = f.with_attr("global_symbol", "g")
    assert set(gv.name_hint for gv in mod.get_global_vars()) == {"f", "g"}
    other = IRModule()
    other.update(mod)
    gv = other.get_global_var("g")
    del other[gv]
    assert gv not in other and "f" in other
    assert mod.functions_items()[0][0].name_hint == "f"
    assert other.with_attrs({"a": 1, "b": "two"}).attrs["b"] == "two"
    assert relax.utils.copy_with_new_vars(f).params[0] != f.params[0]
    tvm.ir.assert_structural_equal(relax.utils.copy_with_new_vars(f), f)
    params = [*f.params]
    assert isinstance(f.struct_info, rx.FuncStructInfo) and f.struct_info.params[0] == params[0].struct_info
    assert f.script().startswith("# from") or "def" in f.script()
    assert isinstance(f.body, rx.SeqExpr) and isinstance(f.body.blocks[0].bindings[0], rx.VarBinding)


def test_dtypes_strings_and_shapes_as_values() -> None:
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
            n, m = T.int64(), T.int64()
            y = R.call_packed("test.from_tvm.describe", x, R.str("rows"), R.shape([n, m * 2]), R.dtype("float16"), R.prim_value(n), sinfo_args=(R.Object,))
            return y

    @tvm.register_func("test.from_tvm.describe", override=True)
    def describe(x, text, shape, dtype, n):
        return f"{x.shape} {text} {tuple(shape)} {dtype} {n}"

    vm = rx.VirtualMachine(tvm.compile(Mod, "llvm"), tvm.cpu())
    assert vm["main"](np.zeros((2, 3), "float32")) == "(2, 3) rows (2, 6) float16 2"


if __name__ == "__main__":
    tvm.testing.main()

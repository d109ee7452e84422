"""Programs as TVM users write them: only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pytest

import pliant as tvm
import pliant.testing
from pliant import relax, te, tir, topi
from pliant.ir import assert_structural_equal
from pliant.ir.transform import PassContext
from pliant.relax import PyExprMutator, PyExprVisitor
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


# ---- passes ----


def test_function_passes() -> None:
    @tvm.script.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((16,), "float32"), y: R.Tensor((16,), "float32")) -> R.Tensor((16,), "float32"):
            return R.add(x, y)

    @relax.transform.function_pass(opt_level=1)
    def pass_func(func, mod, ctx):
        assert isinstance(ctx, tvm.transform.PassContext)
        return func.with_attr("seen", 1)

    assert isinstance(pass_func, relax.transform.FunctionPass)
    assert pass_func.info.name == "pass_func" and pass_func.info.opt_level == 1
    assert pass_func(Before)["main"].attrs["seen"] == 1

    @relax.transform.function_pass(opt_level=1)
    class ReplaceFunc:
        def __init__(self, new_func):
            self.new_func = new_func

        def transform_function(self, func, mod, ctx):
            return self.new_func

    @R.function(private=True)
    def replacement(x: R.Tensor((16,), "float32"), y: R.Tensor((16,), "float32")) -> R.Tensor((16,), "float32"):
        return R.subtract(x, y)

    After = ReplaceFunc(replacement)(Before)
    assert_structural_equal(After["main"], replacement)
    assert After["main"].same_as(replacement)

    @tvm.transform.module_pass(opt_level=0, name="AddFunc")
    class AddFunc:
        def transform_module(self, mod, ctx):
            mod = mod.clone()
            mod[tvm.ir.GlobalVar("other")] = replacement.with_attr("global_symbol", "other")
            mod.update_func(mod.get_global_var("main"), replacement)
            return mod.with_attr("done", True)

    out = AddFunc()(Before)
    assert {gv.name_hint for gv in out.get_global_vars()} == {"main", "other"}
    assert out.attrs["done"] and out.get_attr("done") and Before.get_attr("done") is None


def test_dataflow_block_passes() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
            with R.dataflow():
                lv0 = R.multiply(x, R.const(2.0))
                gv0 = R.add(lv0, R.const(1.0))
                R.output(gv0)
            return gv0

    @relax.expr_functor.mutator
    class Rewriter(relax.PyExprMutator):
        def visit_call_(self, call):
            call = super().visit_call_(call)
            if call.op.same_as(tvm.ir.Op.get("relax.multiply")):
                return relax.op.add(call.args[0], call.args[0])
            return call

    @relax.transform.dataflowblock_pass(opt_level=2, name="MultiplyToAdd")
    def my_pass(block, mod, ctx):
        return Rewriter(mod).visit_binding_block(block)

    @relax.transform.dataflowblock_pass(opt_level=2)
    class MyPass:
        def transform_dataflowblock(self, block, mod, ctx):
            return Rewriter(mod).visit_binding_block(block)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("m", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
            with R.dataflow():
                lv0 = R.add(x, x)
                gv0 = R.add(lv0, R.const(1.0))
                R.output(gv0)
            return gv0

    for one in (my_pass, MyPass()):
        tvm.ir.assert_structural_equal(one(Module), Expected)


def test_relu_becomes_gelu() -> None:
    @relax.expr_functor.mutator
    class ReluToGelu(PyExprMutator):
        def __init__(self, mod: tvm.IRModule) -> None:
            super().__init__(mod)
            self.relu_op = tvm.ir.Op.get("relax.nn.relu")
            self.count = 0

        def transform(self) -> tvm.IRModule:
            for global_var, func in self.builder_.get().functions.items():
                if not isinstance(func, relax.Function):
                    continue
                updated_func = self.visit_expr(func)
                updated_func = relax.analysis.remove_all_unused(updated_func)
                self.builder_.update_func(global_var, updated_func)
            return self.builder_.get()

        def visit_call_(self, call: relax.Call) -> relax.Expr:
            if call.op != self.relu_op:
                return super().visit_call_(call)
            self.count += 1
            arg = self.visit_expr(call.args[0])
            return relax.op.nn.gelu(arg)

    @tvm.transform.module_pass(opt_level=0, name="ReluToGelu")
    class ReluToGeluPass:
        def transform_module(self, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
            return ReluToGelu(mod).transform()

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                lv = R.nn.relu(x)
                lv1 = R.add(lv, x)
                gv = R.nn.relu(lv1)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                lv = R.nn.gelu(x)
                lv1 = R.add(lv, x)
                gv = R.nn.gelu(lv1)
                R.output(gv)
            return gv

    After = ReluToGeluPass()(Before)
    tvm.ir.assert_structural_equal(After, Expected)
    assert relax.analysis.well_formed(After)


def test_adding_zero_is_removed() -> None:
    @relax.expr_functor.mutator
    class RemoveAddZero(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            if call.op.name == "relax.add":
                for a, b in (call.args, reversed(call.args)):
                    value = self.lookup_binding(a) if isinstance(a, relax.Var) else a
                    if isinstance(value, relax.Constant) and not np.any(value.data.numpy()):
                        if tvm.ir.structural_equal(b.struct_info, call.struct_info):
                            return b
            return call

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            with R.dataflow():
                zero = R.const(0.0, "float32")
                a = R.add(x, zero)
                b = R.add(R.const(0, "float32"), a)
                c = R.multiply(b, a)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            with R.dataflow():
                c = R.multiply(x, x)
                R.output(c)
            return c

    mod = Before.clone()
    mod["main"] = RemoveAddZero(mod).visit_expr(mod["main"])
    mod = relax.transform.CanonicalizeBindings()(mod)
    mod = relax.transform.DeadCodeElimination(["main"])(mod)
    tvm.ir.assert_structural_equal(mod, Expected)


def test_a_matmul_with_bias_goes_to_a_library() -> None:
    @tvm.register_func("test.coming.matmul_bias", override=True)
    def matmul_bias(x, w, b, out):
        out.copyfrom(x.numpy() @ w.numpy() + b.numpy())

    @relax.expr_functor.mutator
    class ToLibrary(PyExprMutator):
        def visit_call_(self, call):
            call = super().visit_call_(call)
            if call.op != tvm.ir.Op.get("relax.add") or not isinstance(call.args[0], relax.Var):
                return call
            producer = self.lookup_binding(call.args[0])
            if not isinstance(producer, relax.Call) or producer.op.name != "relax.matmul":
                return call
            return relax.call_dps_packed(
                "test.coming.matmul_bias", [*producer.args, call.args[1]], out_sinfo=call.struct_info
            )

    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")
        ) -> R.Tensor(("n", 8), "float32"):
            n = T.int64()
            with R.dataflow():
                lv = R.matmul(x, w)
                gv = R.add(lv, b)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")
        ) -> R.Tensor(("n", 8), "float32"):
            n = T.int64()
            with R.dataflow():
                gv = R.call_dps_packed("test.coming.matmul_bias", (x, w, b), out_sinfo=R.Tensor((n, 8), "float32"))
                R.output(gv)
            return gv

    seq = tvm.transform.Sequential(
        [
            tvm.transform.module_pass(
                lambda mod, ctx: tvm.IRModule({"main": ToLibrary(mod).visit_expr(mod["main"])}), opt_level=0
            ),
            relax.transform.DeadCodeElimination(),
        ]
    )
    After = seq(Before)
    tvm.ir.assert_structural_equal(After, Expected)
    x, w, b = (np.random.rand(*s).astype("float32") for s in ((3, 4), (4, 8), (8,)))
    tvm.testing.assert_allclose(run(After, x, w, b).numpy(), x @ w + b, rtol=1e-5, atol=1e-6)


def test_visitor_collects_statistics() -> None:
    @relax.expr_functor.visitor
    class Stats(PyExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.ops: dict[str, int] = {}
            self.params = 0
            self.constants = 0
            self.flops = 0

        def visit_function_(self, func: relax.Function) -> None:
            self.params += len(func.params)
            super().visit_function_(func)

        def visit_constant_(self, op: relax.Constant) -> None:
            self.constants += op.data.numpy().size

        def visit_call_(self, call: relax.Call) -> None:
            if isinstance(call.op, tvm.ir.Op):
                self.ops[call.op.name] = self.ops.get(call.op.name, 0) + 1
            if call.op.name == "relax.matmul":
                m, k = call.args[0].struct_info.shape
                n = call.args[1].struct_info.shape[1]
                self.flops += int(2 * m * k * n)
            super().visit_call_(call)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor((2, 8), "float32"):
            with R.dataflow():
                lv = R.matmul(x, w)
                lv1 = R.add(lv, R.const(np.ones((8,), "float32")))
                gv = R.nn.relu(lv1)
                R.output(gv)
            return gv

    stats = Stats()
    for _, func in Module.functions.items():
        if isinstance(func, relax.Function):
            stats.visit_expr(func)
    assert stats.ops == {"relax.matmul": 1, "relax.add": 1, "relax.nn.relu": 1}
    assert (stats.params, stats.constants, stats.flops) == (2, 8, 128)


def test_sequences_of_tvm_passes() -> None:
    @tvm.script.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 32), "float32"), b: R.Tensor((32,), "float32")
        ) -> R.Tensor(("n", 32), "float32"):
            with R.dataflow():
                two: R.Tensor((), "float32") = R.add(R.const(1.0), R.const(1.0))
                lv0 = R.matmul(x, w)
                lv1 = R.add(lv0, b)
                lv2 = R.multiply(lv1, two)
                unused = R.exp(lv2)
                gv = R.nn.relu(lv2)
                R.output(gv)
            return gv

    w = np.random.rand(16, 32).astype("float32")
    b = np.random.rand(32).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        mod = relax.transform.BindParams("main", {"w": w, "b": tvm.nd.array(b)})(Module)
        seq = tvm.transform.Sequential(
            [
                relax.transform.LegalizeOps(),
                relax.transform.FoldConstant(),
                relax.transform.AnnotateTIROpPattern(),
                relax.transform.FuseOps(fuse_opt_level=2),
                relax.transform.FuseTIR(),
                relax.transform.DeadCodeElimination(),
                relax.transform.ToNonDataflow(),
                relax.transform.RemovePurityChecking(),
                relax.transform.CallTIRRewrite(),
                relax.transform.StaticPlanBlockMemory(),
            ]
        )
        mod = seq(mod)
    assert len(mod["main"].params) == 1
    ex = relax.build(mod, target="llvm")
    vm = relax.VirtualMachine(ex, tvm.cpu())
    for n in (0, 1, 5):
        x = np.random.rand(n, 16).astype("float32")
        res = vm["main"](tvm.nd.array(x)).numpy()
        tvm.testing.assert_allclose(res, np.maximum((x @ w + b) * 2, 0), rtol=1e-5, atol=1e-5)


def test_pass_contexts_and_instruments() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            gv = R.add(x, x)
            return gv

    @tvm.instrument.pass_instrument
    class Counter:
        def __init__(self):
            self.seen = []
            self.entered = self.left = False

        def enter_pass_ctx(self):
            self.entered = True

        def exit_pass_ctx(self):
            self.left = True

        def run_before_pass(self, mod, info):
            self.seen.append(info.name)

        def run_after_pass(self, mod, info):
            assert isinstance(mod, tvm.IRModule)

    @tvm.ir.instrument.pass_instrument
    class Skipper:
        def should_run(self, mod, info):
            return info.name != "ToNonDataflow"

    counter = Counter()
    timing = tvm.instrument.PassTimingInstrument()
    with tvm.transform.PassContext(opt_level=3, instruments=[counter, Skipper(), timing]):
        mod = relax.transform.Normalize()(Module)
        mod = relax.transform.ToNonDataflow()(mod)
        profiles = timing.render()
    assert "Normalize" in profiles
    assert counter.seen == ["Normalize"] and counter.entered and counter.left
    with PassContext(opt_level=2, disabled_pass=["LegalizeOps"]):
        assert "R.add" in tvm.transform.Sequential([relax.transform.LegalizeOps()])(mod).script()
    assert PassContext.current().opt_level == 2


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

"""Tests passes as TVM users write and call them: only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pliant as tvm
import pliant.testing
from pliant import relax
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

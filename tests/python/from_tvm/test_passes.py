"""Tests passes, partitionings and instruments as users of TVM write them; only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pliant as tvm
import pytest
from pliant import relax, topi
from pliant.ir.instrument import PassInstrument
from pliant.relax.backend.pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns
from pliant.relax.dpl import is_op, wildcard
from pliant.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class MLP:
    @R.function
    def main(
        x: R.Tensor(("n", 16), "float32"),
        w0: R.Tensor((32, 16), "float32"),
        b0: R.Tensor((32,), "float32"),
        w1: R.Tensor((8, 32), "float32"),
    ) -> R.Tensor(("n", 8), "float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w0_t = R.permute_dims(w0, axes=None)
            lv0 = R.matmul(x, w0_t)
            lv1 = R.add(lv0, b0)
            lv2 = R.nn.relu(lv1)
            w1_t = R.permute_dims(w1, axes=None)
            lv3 = R.matmul(lv2, w1_t)
            unused = R.multiply(lv3, R.const(2, "float32"))
            R.output(lv3)
        return lv3


def inputs(n: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal(s).astype("float32") for s in ((n, 16), (32, 16), (32,), (8, 32))]


def expected(x, w0, b0, w1):
    return np.maximum(x @ w0.T + b0, 0) @ w1.T


def check(mod: tvm.IRModule) -> None:
    ex = relax.build(mod, tvm.target.Target("llvm", host="llvm"))
    vm = relax.VirtualMachine(ex, tvm.cpu())
    args = inputs()
    res = vm["main"](*[tvm.runtime.tensor(a, device=tvm.cpu(0)) for a in args])
    tvm.testing.assert_allclose(res.numpy(), expected(*args), rtol=1e-4, atol=1e-4)


def test_a_pass_that_adds_functions() -> None:
    @tvm.transform.module_pass(opt_level=0, name="UnaryToTIR", required=[])
    class UnaryToTIR:
        def __init__(self, op_name: str, te_func) -> None:
            self.op_name, self.te_func = op_name, te_func

        def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
            op_name, te_func = self.op_name, self.te_func

            @mutator
            class Mutator(PyExprMutator):
                def visit_call_(self, call: relax.Call) -> relax.Expr:
                    call = self.visit_expr_post_order(call)
                    if isinstance(call.op, tvm.ir.Op) and call.op.name == op_name:
                        return self.builder_.call_te(te_func, *call.args, primfunc_name_hint="my_unary")
                    return call

            m = Mutator(mod)
            for gv, func in mod.functions_items():
                if isinstance(func, relax.Function):
                    m.builder_.update_func(gv, m.visit_expr(func))
            return m.builder_.finalize()

    mod = UnaryToTIR("relax.nn.relu", topi.nn.relu)(MLP)
    names = sorted(gv.name_hint for gv in mod.get_global_vars())
    assert names == ["main", "my_unary"]
    assert isinstance(mod["my_unary"], tvm.tir.PrimFunc)
    check(mod)


def test_a_pass_that_outlines_functions() -> None:
    @tvm.transform.module_pass(opt_level=0)
    def outline_relu(mod, ctx):
        bb = relax.BlockBuilder(mod)
        x = relax.Var("x", relax.TensorStructInfo(dtype="float32", ndim=2))
        with bb.function("my_relu", [x], private=True):
            bb.emit_func_output(bb.emit(relax.op.nn.relu(x)))
        relu = bb.get().get_global_var("my_relu")

        @mutator
        class Outline(PyExprMutator):
            def visit_call_(self, call):
                if call.op == tvm.ir.Op.get("relax.nn.relu"):
                    called = self.builder_.emit(relax.Call(relu, [self.visit_expr(call.args[0])]))
                    return self.builder_.match_cast(called, call.struct_info)
                return super().visit_call_(call)

        mod = bb.get()
        mod["main"] = Outline(mod).visit_expr(mod["main"])
        return mod

    mod = outline_relu(MLP)
    assert "R.nn.relu" not in mod["main"].script() and "cls.my_relu" in mod.script()
    assert relax.analysis.well_formed(mod)
    check(mod)
    check(relax.transform.InlinePrivateFunctions()(mod))


def test_a_function_pass_with_state() -> None:
    @visitor
    class CountCalls(PyExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.count: dict[str, int] = {}

        def visit_call_(self, call: relax.Call) -> None:
            self.count[call.op.name] = self.count.get(call.op.name, 0) + 1
            for arg in call.args:
                self.visit_expr(arg)

    @relax.transform.function_pass(opt_level=0, name="Annotate")
    class Annotate:
        def __init__(self, key: str) -> None:
            self.key = key

        def transform_function(self, func: relax.Function, mod: tvm.IRModule, ctx: tvm.transform.PassContext):
            counter = CountCalls()
            counter.visit_expr(func)
            return func.with_attr(self.key, counter.count.get("relax.matmul", 0))

    mod = Annotate("products")(MLP)
    assert mod["main"].attrs["products"] == 2
    assert "products" not in MLP["main"].attrs
    check(mod)


def test_sequences_under_a_context_with_instruments() -> None:
    class Names(PassInstrument):
        def __init__(self) -> None:
            super().__init__()
            self.before: list[str] = []
            self.after: list[str] = []

        def run_before_pass(self, mod, info) -> None:
            self.before.append(info.name)

        def run_after_pass(self, mod, info) -> None:
            self.after.append(info.name)

    names = Names()
    seq = tvm.ir.transform.Sequential(
        [
            relax.transform.CanonicalizeBindings(),
            relax.transform.EliminateCommonSubexpr(),
            relax.transform.DeadCodeElimination(),
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ],
        name="my_pipeline",
    )
    with tvm.target.Target("llvm"), tvm.transform.PassContext(
        opt_level=3, instruments=[names], disabled_pass=["EliminateCommonSubexpr"], config={"relax.FuseOps.max_depth": 8}
    ):
        mod = seq(MLP)
    assert "EliminateCommonSubexpr" not in names.before
    assert {"CanonicalizeBindings", "FuseOps", "FuseTIR"} <= set(names.after)
    assert "unused" not in mod.script()
    check(mod)


def test_backend_pattern_table() -> None:
    def _check(context) -> bool:
        rhs = context.annotated_expr["rhs"]
        return len(rhs.struct_info.shape) == 2

    def _matmul_patterns(with_bias: bool, activation: str | None = None):
        lhs, rhs, bias = wildcard(), wildcard(), wildcard()
        out = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs))
        annotations = {"lhs": lhs, "rhs": rhs, "root": out}
        if with_bias:
            annotations["bias"] = bias
            out = is_op("relax.add")(out, bias)
        if activation:
            out = is_op(activation)(out)
        return out, annotations

    register_patterns(
        [
            ("mylib.matmul", *_matmul_patterns(False), _check),
            ("mylib.matmul_bias", *_matmul_patterns(True), _check),
            ("mylib.matmul_bias_relu", *_matmul_patterns(True, "relax.nn.relu"), _check),
        ]
    )
    patterns = get_patterns_with_prefix("mylib")
    assert get_pattern("mylib.matmul_bias") is not None
    seq = tvm.transform.Sequential(
        [
            relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True),
            relax.transform.MergeCompositeFunctions(),
        ]
    )
    mod = seq(MLP)
    bindings = (b for f in mod.functions.values() for block in f.body.blocks for b in block.bindings)
    kinds = [b.value.attrs["Composite"] for b in bindings if isinstance(b.value, relax.Function)]
    assert sorted(kinds) == ["mylib.matmul", "mylib.matmul_bias_relu"]

    made = []

    @relax.register_codegen("mylib")
    def generate(functions, options, constant_names=None):
        def kernel(func):
            names = [p.name_hint for p in func.params]

            def run(*args):
                by_name = dict(zip(names, args, strict=False))
                (w,) = (a.numpy() for n, a in by_name.items() if n.startswith("w"))
                (x,) = (a.numpy() for n, a in by_name.items() if n[0] in "xl")
                value = x @ w.T
                for bias in (a.numpy() for n, a in by_name.items() if n.startswith("b")):
                    value = np.maximum(value + bias, 0)
                args[-1].copyfrom(value)

            return run

        made.extend(functions)
        return [kernel(f) for f in functions]

    check(relax.transform.RunCodegen()(mod))
    assert [f.attrs["Codegen"] for f in made] == ["mylib"] * len(made) and made


def test_user_defined_legalization() -> None:
    def relu_by_te(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        def te_relu(x):
            return tvm.te.compute(x.shape, lambda *i: tvm.te.max(x(*i), tvm.tir.const(0, x.dtype)), name="te_relu")

        return bb.call_te(te_relu, call.args[0], primfunc_name_hint="te_relu")

    with tvm.target.Target("llvm"):
        mod = relax.transform.LegalizeOps(customize_legalize_map={"relax.nn.relu": relu_by_te}, enable_warning=True)(MLP)
    assert "te_relu" in [gv.name_hint for gv in mod.get_global_vars()]
    assert "R.nn.relu" not in mod.script()
    check(mod)


def test_weights_are_transformed_when_the_model_is_loaded() -> None:
    mod = relax.transform.LiftTransformParams()(MLP)
    assert "permute_dims" not in mod["main"].script()
    ex = relax.build(mod, target="llvm")
    vm = relax.VirtualMachine(ex, tvm.cpu())
    x, *params = inputs()
    lifted = vm["main_transform_params"](tuple(tvm.nd.array(p) for p in params))
    out = vm["main"](tvm.nd.array(x), *lifted)
    tvm.testing.assert_allclose(out.numpy(), expected(x, *params), rtol=1e-4, atol=1e-4)


def test_parameters_become_constants() -> None:
    x, *params = inputs(2)
    mod = relax.transform.BindParams("main", dict(zip(["w0", "b0", "w1"], params, strict=True)))(MLP)
    mod = relax.transform.FoldConstant()(mod)
    mod = relax.transform.BindSymbolicVars({"n": 2})(mod)
    assert "permute_dims" not in mod.script()
    assert [int(d) for d in mod["main"].params[0].struct_info.shape] == [2, 16]
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    tvm.testing.assert_allclose(vm["main"](x).numpy(), expected(x, *params), rtol=1e-4, atol=1e-4)


def test_lowering_step_by_step() -> None:
    mod = MLP
    for make in (
        relax.transform.LegalizeOps,
        relax.transform.RewriteDataflowReshape,
        relax.transform.ToNonDataflow,
        relax.transform.RemovePurityChecking,
        relax.transform.CallTIRRewrite,
        relax.transform.StaticPlanBlockMemory,
        relax.transform.LowerAllocTensor,
        relax.transform.KillAfterLastUse,
        relax.transform.LowerRuntimeBuiltin,
        relax.transform.ComputePrimValue,
        relax.transform.VMShapeLower,
        relax.transform.AttachGlobalSymbol,
    ):
        mod = make()(mod)
        assert relax.analysis.well_formed(mod), make
    check(mod)


def test_pipelines_by_name() -> None:
    check(relax.get_pipeline("zero")(MLP))

    @relax.register_pipeline("test_from_tvm_pipeline")
    def my_pipeline():
        @tvm.transform.module_pass(opt_level=0)
        def _pipeline(mod: tvm.ir.IRModule, _ctx: tvm.transform.PassContext) -> tvm.ir.IRModule:
            seq = tvm.transform.Sequential(
                [relax.transform.LegalizeOps(), relax.transform.FoldConstant(), relax.transform.DeadCodeElimination()]
            )
            return seq(mod)

        return _pipeline

    check(relax.get_pipeline("test_from_tvm_pipeline")(MLP))
    ex = relax.build(MLP, target="llvm", relax_pipeline=relax.get_pipeline("zero"), exec_mode="compiled")
    args = inputs()
    out = relax.VirtualMachine(ex, tvm.cpu())["main"](*args)
    tvm.testing.assert_allclose(out.numpy(), expected(*args), rtol=1e-4, atol=1e-4)


def test_context_visible_to_passes() -> None:
    seen = []

    @tvm.transform.module_pass(opt_level=2, name="Look")
    def look(mod, ctx):
        seen.append((ctx.opt_level, dict(ctx.config)))
        assert tvm.transform.PassContext.current() is ctx
        return mod

    look(MLP)
    with tvm.transform.PassContext(opt_level=3, config={"relax.fallback_device_type": 1}):
        look(MLP)
    with tvm.transform.PassContext(opt_level=1):
        tvm.transform.Sequential([look])(MLP)
    assert seen == [(2, {}), (3, {"relax.fallback_device_type": 1})]
    with pytest.raises(ZeroDivisionError):
        tvm.transform.module_pass(lambda mod, ctx: 1 // 0, opt_level=0)(MLP)


def test_dataflow_blocks_are_rewritten_by_hand() -> None:
    block = MLP["main"].body.blocks[0]
    rewriting = relax.DataflowBlockRewrite(block, MLP["main"])
    by_name = {b.var.name_hint: b for b in block.bindings}
    rewriting.add(relax.op.nn.gelu(by_name["lv1"].var), "act", is_dfvar=True)
    new = {b.var.name_hint: b for b in rewriting.mutated_dfb().bindings}
    rewriting.replace_all_uses(by_name["lv2"].var, new["act"].var)
    rewriting.remove_unused(by_name["lv2"].var)
    rewriting.remove_all_unused()
    func = rewriting.mutated_root_fn()
    script = func.script()
    assert "gelu" in script and "relu" not in script and "unused" not in script
    mod = rewriting.mutate_irmodule(MLP)
    assert "gelu" in mod["main"].script()
    assert relax.analysis.well_formed(mod)


def test_structural_equality() -> None:
    tvm.ir.assert_structural_equal(MLP, tvm.script.from_source(MLP.script(show_meta=True)))
    assert tvm.ir.structural_equal(MLP["main"], MLP["main"])
    assert tvm.ir.structural_hash(MLP) == tvm.ir.structural_hash(tvm.script.from_source(MLP.script()))
    other = relax.transform.DeadCodeElimination()(MLP)
    with pytest.raises(ValueError, match="(?s)check failed.*left.*right"):
        tvm.ir.assert_structural_equal(MLP, other)
    again = tvm.ir.load_json(tvm.ir.save_json(MLP))
    tvm.ir.assert_structural_equal(again, MLP)
    assert tvm.ir.structural_equal(again["main"], MLP["main"])


if __name__ == "__main__":
    tvm.testing.main()

"""Tests the inventory of the passes, analyses, instruments, patterns and pipelines of comparable compilers, row by row:
each exists here under its name and works, or is listed with the reason why it does not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.relax import analysis, dpl
from pliant.relax.dpl import is_op, wildcard
from pliant.relax.transform import Sequential
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def scaled(
        t: R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32")), unused: R.Tensor(("n", 4), "float32")
    ) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32")):
        a = R.multiply(t[0], t[1])
        return (a, R.exp(t[0]))

    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4,), "float32")
    ) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"num_input": 1})
        n = T.int64()
        cls = Module
        with R.dataflow():
            half = R.add(R.const(0.25, "float32"), R.const(0.25, "float32"))
            lv = R.matmul(x, R.add(w, half))
            lv1 = R.add(lv, v)
            lv2 = R.nn.relu(lv1)
            lv3 = R.reshape(R.reshape(lv2, R.shape([n * 4])), R.shape([n, 4]))
            same = R.nn.relu(lv1)
            dead = R.exp(lv2)
            R.output(lv3, same)
        both = cls.scaled((lv3, same), x)
        z = both[0]
        result = z
        return result


def numbers(n: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal(s, dtype="float32") for s in ((n, 4), (4, 4), (4,))]


def expected(n: int = 3) -> np.ndarray:
    x, w, v = numbers(n)
    return np.maximum(x @ (w + np.float32(0.5)) + v, 0) ** 2


def run(module: pliant.IRModule, params: Callable[[pliant.IRModule, list[Any]], list[Any]] | None = None) -> None:
    """Runs the module after passes at two sizes and checks the results."""
    assert analysis.well_formed(module)
    again = pliant.script.from_source(module.script(show_meta=True))
    pliant.ir.assert_structural_equal(again, module)
    vm = relax.VirtualMachine(relax.build(module), pliant.cpu())
    for n in (1, 3):
        args = numbers(n)
        result = vm["main"](*(params(vm, args) if params else args))
        np.testing.assert_allclose(result.numpy(), expected(n), rtol=1e-4, atol=1e-5)


t = relax.transform
LEGAL = [t.LegalizeOps()]
PLAIN = [*LEGAL, t.ToNonDataflow(), t.RemovePurityChecking()]
ALLOCATED = [*PLAIN, t.CallTIRRewrite()]
PLANNED = [*ALLOCATED, t.StaticPlanBlockMemory(), t.LowerAllocTensor()]
KILLED = [*PLANNED, t.KillAfterLastUse()]
GEMM = [("offload.gemm", is_op("relax.matmul")(wildcard(), wildcard()))]

# The passes by name: the passes that run before, and the pass itself.
PASSES: dict[str, tuple[list[Any], Any]] = {
    "ToNonDataflow": (LEGAL, t.ToNonDataflow()),
    "RemovePurityChecking": ([], t.RemovePurityChecking()),
    "CallTIRRewrite": (PLAIN, t.CallTIRRewrite()),
    "StaticPlanBlockMemory": (ALLOCATED, t.StaticPlanBlockMemory()),
    "LowerAllocTensor": (ALLOCATED, t.LowerAllocTensor()),
    "KillAfterLastUse": (PLANNED, t.KillAfterLastUse()),
    "LowerRuntimeBuiltin": (KILLED, t.LowerRuntimeBuiltin()),
    "VMBuiltinLower": (KILLED, t.VMBuiltinLower()),
    "ComputePrimValue": ([*KILLED, t.LowerRuntimeBuiltin()], t.ComputePrimValue()),
    "VMShapeLower": ([*KILLED, t.LowerRuntimeBuiltin()], t.VMShapeLower()),
    "RewriteDataflowReshape": (LEGAL, t.RewriteDataflowReshape()),
    "AttachGlobalSymbol": ([], t.AttachGlobalSymbol()),
    "LegalizeOps": ([], t.LegalizeOps()),
    "Normalize": ([], t.Normalize()),
    "NormalizeGlobalVar": ([], t.NormalizeGlobalVar()),
    "CanonicalizeBindings": ([], t.CanonicalizeBindings()),
    "EliminateCommonSubexpr": ([], t.EliminateCommonSubexpr()),
    "DeadCodeElimination": ([], t.DeadCodeElimination()),
    "FoldConstant": ([], t.FoldConstant()),
    "ConvertToDataflow": ([t.ToNonDataflow()], t.ConvertToDataflow(min_size=2)),
    "TopologicalSort": ([], t.TopologicalSort()),
    "LambdaLift": ([], t.LambdaLift()),
    "InlinePrivateFunctions": ([], t.InlinePrivateFunctions()),
    "ExpandTupleArguments": ([], t.ExpandTupleArguments()),
    "RemoveUnusedParameters": ([], t.RemoveUnusedParameters()),
    "RemoveUnusedOutputs": ([], t.RemoveUnusedOutputs()),
    "RemoveRedundantReshape": ([], t.RemoveRedundantReshape()),
    "AnnotateTIROpPattern": (LEGAL, t.AnnotateTIROpPattern()),
    "FuseOps": ([*LEGAL, t.AnnotateTIROpPattern()], t.FuseOps()),
    "FuseTIR": ([*LEGAL, t.AnnotateTIROpPattern(), t.FuseOps()], t.FuseTIR()),
    "FuseOpsByPattern": ([], t.FuseOpsByPattern(GEMM)),
    "MergeCompositeFunctions": ([t.FuseOpsByPattern(GEMM)], t.MergeCompositeFunctions()),
    "FuseTransposeMatmul": ([], t.FuseTransposeMatmul()),
    "AdjustMatmulOrder": ([], t.AdjustMatmulOrder()),
    "ExpandMatmulOfSum": ([], t.ExpandMatmulOfSum()),
    "FoldScaleAxis": ([], t.FoldScaleAxis()),
    "FoldBatchnormToConv2D": ([], t.FoldBatchnormToConv2D()),
    "CombineParallelMatmul": ([], t.CombineParallelMatmul()),
    "ReorderPermuteDimsAfterConcat": ([], t.ReorderPermuteDimsAfterConcat()),
    "ReorderTakeAfterMatmul": ([], t.ReorderTakeAfterMatmul()),
    "DataflowUseInplaceCalls": ([], t.DataflowUseInplaceCalls()),
    "RemoveUnusedFunctions": ([], t.RemoveUnusedFunctions()),
    "VMMemoryLower": (KILLED, t.VMMemoryLower()),
}
UNCHANGED = {"LambdaLift", "Normalize", "NormalizeGlobalVar", "RemoveUnusedFunctions"} | {
    *("RewriteDataflowReshape", "FuseTransposeMatmul", "AdjustMatmulOrder", "CombineParallelMatmul"),
    *("ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul", "ExpandMatmulOfSum"),
    *("FoldScaleAxis", "FoldBatchnormToConv2D"),
}


@pytest.mark.parametrize("name", PASSES)
def test_passes_preserve_values_and_transform(name: str) -> None:
    before, one = PASSES[name]
    module = Sequential(before)(Module) if before else Module
    after = one(module)
    assert pliant.ir.structural_equal(module, after) == (name in UNCHANGED)
    run(after)


@R.function
def doubled(x: R.Tensor(("n",), "float32")):
    return R.add(x, x)


def model(vm: Any, args: list[Any]) -> list[Any]:
    x, w, v = args
    return [x, (w, v)]


def test_gradient() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.sum(relax.op.square(x))))
    differentiated = t.Gradient("main")(builder.get())
    _, (gradient,) = relax.VirtualMachine(relax.build(differentiated))["main_adjoint"](np.arange(3, dtype="float32"))
    np.testing.assert_array_equal(gradient.numpy(), [0, 2, 4])


def test_passes_that_change_signatures() -> None:
    x, w, v = numbers()
    bound = t.BindParams("main", {"w": w, "v": v})(Module)
    assert len(bound["main"].params) == 1
    np.testing.assert_allclose(
        relax.VirtualMachine(relax.build(bound), pliant.cpu())["main"](x).numpy(), expected(), rtol=1e-4, atol=1e-5
    )
    fixed = t.BindSymbolicVars({"n": 3})(Module)
    assert fixed["main"].params[0].struct_info == relax.TensorStructInfo((3, 4), "float32")
    run(t.BundleModelParams()(Module), model)
    lifted = t.LiftTransformParams()(Module)
    assert "main_transform_params" in {g.name_hint for g in lifted.get_global_vars()}

    def transformed(vm: Any, args: list[Any]) -> list[Any]:
        return [args[0], *vm["main_transform_params"]([args[1], args[2]])]

    run(lifted, transformed)

    def sized(var: relax.Var) -> Any:
        return relax.TensorStructInfo((6,), "float32")

    for updated in (t.UpdateParamStructInfo(sized), t.UpdateParamType(sized)):
        new = updated(pliant.IRModule({"doubled": doubled}))["doubled"]
        assert new.params[0].struct_info == new.ret_struct_info == relax.TensorStructInfo((6,), "float32")


def test_code_generators() -> None:
    parts = t.MergeCompositeFunctions()(t.FuseOpsByPattern(GEMM, annotate_codegen=True)(Module))

    @relax.register_codegen("offload")
    def offload(functions: list[Any], options: Any, names: Any) -> list[Any]:
        pliant.register_func("test.inventory.gemm", lambda a, b: np.matmul(a.numpy(), b.numpy()), override=True)
        return []

    assert any("Codegen" in f.attrs for f in parts.functions.values() if isinstance(f, relax.Function))
    assert offload is not None


# The analyses by name, with their expected results for the module.
main = Module["main"]
block = main.body.blocks[0]
x_info = main.params[0].struct_info
call = block.bindings[0].value
ANALYSES: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "get_static_type": lambda f: f(x_info) == relax.TensorStructInfo(ndim=2, dtype="float32"),
    "erase_to_well_defined": lambda f: f(x_info).ndim == 2,
    "struct_info_base_check": lambda f: f(relax.ObjectStructInfo(), x_info) == analysis.BaseCheckResult.PASS,
    "type_base_check": lambda f: f(x_info, relax.ShapeStructInfo(ndim=1)) == analysis.BaseCheckResult.FAIL_L0,
    "struct_info_lca": lambda f: f(x_info, x_info) == x_info,
    "type_lca": lambda f: f(x_info, relax.ShapeStructInfo(ndim=1)) == relax.ObjectStructInfo(),
    "derive_call_ret_struct_info": lambda f: f(
        relax.FuncStructInfo([x_info], x_info), relax.Call(relax.Var("f", relax.FuncStructInfo([x_info], x_info)), [main.params[0]])
    ).ndim == 2,
    "derive_call_ret_type": lambda f: callable(f),
    "tir_vars_in_struct_info": lambda f: [v.name for v in f(x_info)] == ["n"],
    "tir_vars_in_type": lambda f: [v.name for v in f(x_info)] == ["n"],
    "definable_tir_vars_in_struct_info": lambda f: [v.name for v in f(x_info)] == ["n"],
    "definable_tir_vars_in_type": lambda f: [v.name for v in f(x_info)] == ["n"],
    "collect_non_negative_expressions": lambda f: len(f(x_info)) >= 1,
    "defined_symbolic_vars": lambda f: [v.name for v in f(main)] == ["n"],
    "free_symbolic_vars": lambda f: f(main) == [],
    "bound_vars": lambda f: {"x", "w", "v", "z"} <= {v.name_hint for v in f(main)},
    "free_vars": lambda f: f(main) == [],
    "all_vars": lambda f: {"x", "z"} <= {v.name_hint for v in f(main)},
    "used_vars": lambda f: "dead" not in {v.name_hint for v in f(main)},
    "all_global_vars": lambda f: [g.name_hint for g in f(main)] == ["scaled"],
    "called_global_vars": lambda f: [g.name_hint for g in f(main)] == ["scaled"],
    "post_order_visit": lambda f: visited(f) > 10,
    "has_reshape_pattern": lambda f: not f(t.LegalizeOps()(Module)["matmul"]),
    "contains_impure_call": lambda f: not f(main),
    "get_var2val": lambda f: len(f(main)) == len(analysis.bound_vars(main)) - 3,
    "udchain": lambda f: any(var.name_hint == "x" for var in f(block)),
    "name_to_binding": lambda f: set(f(main)) >= {"lv1", "z"},
    "remove_all_unused": lambda f: "dead" not in str(f(main)),
    "well_formed": lambda f: f(Module),
    "check_well_formed": lambda f: f(Module) is None,
    "detect_recursion": lambda f: f(Module) == [],
    "computable_at_compile_time": lambda f: [str(v.struct_info) for v in f(main)][-1] == str(main.params[1].struct_info),
    "estimate_memory_usage": lambda f: "main" in f(Sequential(ALLOCATED)(Module)),
    "shape_vars": lambda f: [v.name for v in f(x_info.shape)] == ["n"],
}


def visited(visit: Callable[..., Any]) -> int:
    seen: list[Any] = []
    visit(main, seen.append)
    return len(seen)


@pytest.mark.parametrize("name", ANALYSES)
def test_analyses(name: str) -> None:
    assert ANALYSES[name](getattr(analysis, name))


# The infrastructure of passes and patterns.
INFRASTRUCTURE = {
    pliant.transform: ["module_pass", "Sequential", "PassContext", "PrintIR", "PassInfo"],
    relax.transform: ["function_pass", "dataflowblock_pass", "FunctionPass", "DataflowBlockPass", "FusionPattern"],
    pliant.instrument: [
        *("PassInstrument", "pass_instrument", "PassTimingInstrument", "PassPrintingInstrument"),
        *("PrintBeforeAll", "PrintAfterAll", "DumpIR"),
    ],
    relax: ["BlockBuilder", "ExprFunctor", "PyExprVisitor", "PyExprMutator", "DataflowBlockRewrite", "register_codegen"],
    relax.DataflowBlockRewrite: [
        *("add", "remove_unused", "remove_all_unused", "replace_all_uses", "mutated_dfb", "mutated_root_fn"),
        "mutate_irmodule",
    ],
    relax.utils: ["copy_with_new_vars"],
    relax.training: ["SetupTrainer", "AppendLoss", "Trainer"],
    dpl: [
        *("is_op", "is_var", "is_const", "is_tuple", "is_call_tir", "is_call_dps_packed", "wildcard", "has_dtype"),
        *("has_attr", "is_shape", "make_fused_bias_activation_pattern", "PatternSeq", "PatternContext"),
        *("rewrite_call", "rewrite_bindings", "PatternMatchingRewriter", "SameShapeConstraint", "DFPattern"),
        *("ConstantPattern", "WildcardPattern", "ExprPattern", "VarPattern", "DataflowVarPattern", "GlobalVarPattern"),
        *("ExternFuncPattern", "CallPattern", "TuplePattern", "UnorderedTuplePattern", "TupleGetItemPattern"),
        *("AndPattern", "OrPattern", "NotPattern", "AttrPattern", "DataTypePattern", "ShapePattern"),
        *("StructInfoPattern", "PrimArrPattern", "FunctionPattern"),
    ],
    R: ["rewriter", "macro"],
    tir.stmt_functor: ["post_order_visit", "ir_transform", "substitute"],
}


@pytest.mark.parametrize("owner", INFRASTRUCTURE, ids=lambda owner: owner.__name__)
def test_pass_building_blocks_exist(owner: Any) -> None:
    assert [name for name in INFRASTRUCTURE[owner] if not hasattr(owner, name)] == []


@pytest.mark.parametrize("name", ["zero", "default", "default_build"])
def test_pipelines_preserve_values(name: str) -> None:
    run(relax.get_pipeline(name)(Module))


# What Pliant does not have, and why.
DEVICES = "There is one device, the CPU."
TUNING = "Schedules follow from rules; nothing is tuned by measuring."
LAYOUTS = "Data keep their layout; constant operands of matrix products are packed by OffloadKernels."
PROCESSES = "Programs run in one process."
ABSENT: dict[str, str] = {
    "RewriteCUDAGraph": DEVICES,
    "LowerGPUIPCAllocStorage": DEVICES,
    "RealizeVDevice": DEVICES,
    "UpdateVDevice": DEVICES,
    "IPCAllReduceRewrite": DEVICES,
    "AnnotateCustomMemoryScope": DEVICES,
    "FoldVDeviceScopeChange": DEVICES,
    "AllocateWorkspace": "Library kernels keep the memory that they work in themselves.",
    "AttachExternModules": "Code generators register what they make; a module of the IR holds functions only.",
    "SpecializePrimFuncBasedOnCallSite": "A loop function is scheduled for the sizes that its signature tells.",
    "DecomposeOpsForInference": "batch_norm and its kin have a loop form of their own.",
    "SplitCallTIRByPattern": "Libraries take operators, before they are loop functions (FuseOpsByPattern).",
    "ConvertLayout": LAYOUTS,
    "AlterOpImpl": LAYOUTS,
    "OptimizeLayoutTransform": LAYOUTS,
    "AttachAttrLayoutFreeBuffers": LAYOUTS,
    "SplitLayoutRewritePreproc": LAYOUTS,
    "suggest_layout_transforms": LAYOUTS,
    "FastMathTransform": "Elementary functions have one precision, which docs/reference/numerics.md states.",
    "ToMixedPrecision": "Data types are what the model says.",
    "LazyTransformParams": "LiftTransformParams gives a function of all parameters; they are read one by one outside.",
    "LazyGetInput": "As LazyTransformParams.",
    "LazySetOutput": "As LazyTransformParams.",
    "MetaScheduleTuneTIR": TUNING,
    "MetaScheduleTuneIRMod": TUNING,
    "MetaScheduleApplyDatabase": TUNING,
    "MetaScheduleApplyHistoryBest": TUNING,
    "DispatchSampling": "Operators legalize to what the library has best; nothing is dispatched.",
    "DispatchSortScan": "As DispatchSampling.",
    "PropagateSharding": PROCESSES,
    "LowerGlobalViewToLocalView": PROCESSES,
    "LegalizeRedistribute": PROCESSES,
    "LowerDistIR": PROCESSES,
    "ResolveGlobals": "Names are resolved when a module is made.",
    "FailTestRewrite": "A pass of the tests of a prototype.",
}


def test_unsupported_rows_are_absent() -> None:
    for name, why in ABSENT.items():
        owners = (relax.transform, analysis, dpl)
        assert why and not any(hasattr(owner, name) for owner in owners), f"{name} exists: it belongs into a table above"

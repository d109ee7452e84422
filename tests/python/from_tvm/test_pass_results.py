"""Tests that passes return the modules that TVM's tests of passes and patterns expect."""

from __future__ import annotations

import numpy as np
import pytest

import pliant as tvm
from pliant import relax
from pliant.relax.dpl import is_const, is_op, is_tuple, is_tuple_get_item, is_var, rewrite_call, wildcard
from pliant.relax.expr_functor import PyExprMutator, mutator
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

assert_structural_equal = tvm.ir.assert_structural_equal


def test_canonicalize_bindings_folds_match_cast() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("m", "n"), "float32")):
            m, n = T.int64(), T.int64()
            with R.dataflow():
                y = R.match_cast(x, R.Tensor((m, n), "float32"))
                w = y
                q = R.add(w, y)
                z = R.add(q, w)
                R.output(q, z)
            return R.add(q, z)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("m", "n"), "float32")):
            with R.dataflow():
                q = R.add(x, x)
                z = R.add(q, x)
                R.output(q, z)
            return R.add(q, z)

    assert_structural_equal(relax.transform.CanonicalizeBindings()(Before), Expected)


def test_eliminate_common_subexpr_with_tuples() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            with R.dataflow():
                lv0 = R.add(x, y)
                lv1 = R.add(x, y)
                gv = R.multiply(lv0, lv1)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            with R.dataflow():
                lv0 = R.add(x, y)
                gv = R.multiply(lv0, lv0)
                R.output(gv)
            return gv

    assert_structural_equal(relax.transform.EliminateCommonSubexpr()(Before), Expected)


def test_dead_code_elimination_keeps_reachable_functions() -> None:
    @I.ir_module
    class Module:
        @R.function(private=True)
        def unused(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.exp(x)

        @R.function(private=True)
        def used(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.sin(x)

        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            cls = Module
            with R.dataflow():
                a = cls.used(x)
                b = R.cos(a)
                c = R.tan(b)
                R.output(a, c)
            return a

    after = relax.transform.DeadCodeElimination()(Module)
    assert [g.name_hint for g in after.get_global_vars()] == ["used", "main"]
    assert [b.var.name_hint for b in after["main"].body.blocks[0].bindings] == ["a"]
    kept = relax.transform.DeadCodeElimination(["unused", "main"])(Module)
    assert "unused" in {g.name_hint for g in kept.get_global_vars()}


def test_lambda_lift_of_a_closure() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")
        ) -> R.Tensor((2, 3), "float32"):
            @R.function
            def outer_func(c1: R.Tensor((2, 3), "float32")):
                @R.function
                def inner_func(x1: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    s: R.Tensor((2, 3), "float32") = R.add(x1, c1)
                    return s

                return inner_func

            in_call = outer_func(x)
            res = in_call(y)
            return res

    after = relax.transform.LambdaLift()(Before)
    assert len(after.get_global_vars()) == 3
    assert not any(isinstance(b.value, relax.Function) for f in after.functions.values() for s in f.body.blocks for b in s.bindings)
    x, y = np.ones((2, 3), "float32"), np.full((2, 3), 2, "float32")
    vm = relax.VirtualMachine(relax.build(after), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](x, y).numpy(), x + y)


def test_fold_constant_through_call_tir() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def addone(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")) -> None:
            for i, j in T.grid(16, 16):
                with T.block("addone"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)

        @R.function
        def before(c0: R.Tensor((16, 16), "float32")):
            cls = Module
            lv0 = R.call_tir(cls.addone, (c0,), out_sinfo=R.Tensor((16, 16), "float32"))
            return lv0

    c0 = np.arange(256, dtype="float32").reshape(16, 16)
    bound = relax.transform.BindParams("before", {"c0": tvm.nd.array(c0)})(Module)
    folded = relax.transform.FoldConstant()(bound)
    result = folded["before"].body.body
    constant = relax.analysis.get_var2val(folded["before"])[result] if isinstance(result, relax.Var) else result
    assert isinstance(constant, relax.Constant)
    np.testing.assert_array_equal(constant.data.numpy(), c0 + 1)


def test_inline_private_functions_into_a_dataflow_block() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Before
            with R.dataflow():
                C = cls.subroutine(A, B)
                D = cls.subroutine(C, B)
                R.output(D)
            return D

        @R.function(private=True)
        def subroutine(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                C = R.add(A, B)
                R.output(C)
            return C

    @I.ir_module
    class Expected:
        @R.function
        def main(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                C = R.add(A, B)
                D = R.add(C, B)
                R.output(D)
            return D

    after = tvm.transform.Sequential(
        [relax.transform.InlinePrivateFunctions(), relax.transform.CanonicalizeBindings()]
    )(Before)
    assert_structural_equal(after, Expected)


def test_remove_unused_outputs_and_parameters() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((16,), "int32"), y: R.Tensor((16,), "int32")) -> R.Tensor((16,), "int32"):
            cls = Before
            out = cls.func(x, y)
            return out[0]

        @R.function(private=True)
        def func(
            x: R.Tensor((16,), "int32"), y: R.Tensor((16,), "int32")
        ) -> R.Tuple(R.Tensor((16,), "int32"), R.Tensor((16,), "int32")):
            A = R.add(x, x)
            B = R.multiply(y, y)
            return (A, B)

    after = tvm.transform.Sequential(
        [
            relax.transform.RemoveUnusedOutputs(),
            relax.transform.DeadCodeElimination(),
            relax.transform.RemoveUnusedParameters(),
        ]
    )(Before)
    assert [p.name_hint for p in after["func"].params] == ["x"]
    assert after["func"].ret_struct_info == relax.TensorStructInfo((16,), "int32")
    vm = relax.VirtualMachine(relax.build(after), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](np.arange(16, dtype="int32"), np.ones(16, "int32")).numpy(), np.arange(16) * 2)


def test_simplify_consecutive_multiplies_by_a_pattern() -> None:
    @R.function(private=True)
    def before(x: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            a = R.multiply(x, R.const(2.0, "float32"))
            b = R.multiply(a, R.const(3.0, "float32"))
            c = R.multiply(R.const(5.0, "float32"), b)
            R.output(c)
        return c

    x, c1, c2 = wildcard(), is_const(), is_const()
    inner = is_op("relax.multiply")(x, c1)
    pattern = is_op("relax.multiply")(inner, c2) | is_op("relax.multiply")(c2, inner)

    def rewriter(expr: relax.Expr, matches: dict) -> relax.Expr:
        product = matches[c1].data.numpy() * matches[c2].data.numpy()
        return relax.op.multiply(matches[x], relax.const(product, "float32"))

    after = rewrite_call(pattern, rewriter, before)

    @R.function(private=True)
    def expected(x: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            c = R.multiply(x, R.const(30.0, "float32"))
            R.output(c)
        return c

    assert_structural_equal(after, expected)


def test_split_and_concat_are_undone() -> None:
    @R.function(private=True)
    def before(x: R.Tensor((10, 10), "float32")) -> R.Tensor((10, 10), "float32"):
        R.func_attr({"level": 1})
        with R.dataflow():
            parts = R.split(x, indices_or_sections=2, axis=0)
            left = parts[0]
            right = parts[1]
            out = R.concat((left, right), axis=0)
            R.output(out)
        return out

    source = wildcard()
    split = is_op("relax.split")(source)
    pattern = is_op("relax.concat")(is_tuple([is_tuple_get_item(split, 0), is_tuple_get_item(split, 1)]))

    def rewriter(expr: relax.Call, matches: dict) -> relax.Expr:
        values = relax.analysis.get_var2val(before)
        return matches[source] if values[matches[split]].attrs["axis"] == expr.attrs["axis"] else expr

    after = rewrite_call(pattern, rewriter, before)
    names = [e.op.name for e in calls(after)]
    assert "relax.concat" not in names and after.attrs["level"] == 1
    with pytest.raises(ValueError, match="can never match"):
        rewrite_call(is_op("relax.concat")(wildcard(), wildcard(), wildcard()), rewriter, before)


def calls(func: relax.Function) -> list[relax.Call]:
    found: list[relax.Call] = []
    relax.analysis.post_order_visit(func, lambda e: found.append(e) if isinstance(e, relax.Call) else None)
    return found


def test_a_mutator_that_emits_and_looks_up_bindings() -> None:
    @mutator
    class RemoveDoubleNegation(PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            if call.op == tvm.ir.Op.get("relax.negative"):
                inner = self.lookup_binding(call.args[0]) if isinstance(call.args[0], relax.Var) else None
                if isinstance(inner, relax.Call) and inner.op == call.op:
                    return inner.args[0]
            if call.op == tvm.ir.Op.get("relax.square"):
                twice = self.builder_.emit(relax.op.multiply(call.args[0], call.args[0]), "squared")
                return twice
            return call

    @tvm.transform.module_pass(opt_level=0, name="RemoveDoubleNegation")
    class Pass:
        def transform_module(self, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
            rewriting = RemoveDoubleNegation(mod)
            for gvar, func in mod.functions_items():
                if isinstance(func, relax.Function):
                    rewriting.builder_.update_func(gvar, rewriting.visit_expr(func))
            return rewriting.builder_.get()

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            with R.dataflow():
                a = R.negative(x)
                b = R.negative(a)
                c = R.square(b)
                R.output(c)
            return c

    after = relax.transform.DeadCodeElimination()(Pass()(Module))
    assert [c.op.name for c in calls(after["main"])] == ["relax.multiply"]
    vm = relax.VirtualMachine(relax.build(after), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](np.arange(4, dtype="float32")).numpy(), np.arange(4) ** 2)


def test_fused_functions_carry_their_attributes() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((16, 16), "float32"), w: R.Tensor((16, 16), "float32")) -> R.Tensor((16, 16), "float32"):
            with R.dataflow():
                lv = R.matmul(x, w)
                lv1 = R.nn.relu(lv)
                gv = R.matmul(lv1, w)
                R.output(gv)
            return gv

    product = is_op("relax.matmul")(wildcard(), is_var("w"))
    patterns = [("lib.matmul_relu", is_op("relax.nn.relu")(product)), ("lib.matmul", product)]
    after = relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)(Module)
    composites = sorted(
        str(inner.value.attrs["Composite"])
        for f in after.functions.values()
        if isinstance(f, relax.Function)
        for inner in (b for s in f.body.blocks for b in s.bindings)
        if isinstance(inner.value, relax.Function)
    )
    codegens = [f.attrs["Codegen"] for f in after.functions.values() if "Codegen" in f.attrs]
    assert codegens == ["lib", "lib"] and composites == ["lib.matmul", "lib.matmul_relu"]


def test_lowering_twice_changes_nothing() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 2), "float32"):
            n = T.int64()
            with R.dataflow():
                y = R.reshape(x, R.shape([n * 2, 2]))
                z = R.strided_slice(y, axes=[0], begin=[0], end=[n])
                R.output(z)
            return z

    once = relax.get_pipeline("default")(Module)
    twice = relax.get_pipeline("default")(once)
    assert_structural_equal(relax.get_pipeline("default")(twice), twice)
    x = np.arange(8, dtype="float32").reshape(2, 4)
    for module in (Module, once, twice):
        vm = relax.VirtualMachine(relax.build(module), tvm.cpu())
        np.testing.assert_array_equal(vm["main"](x).numpy(), x.reshape(4, 2)[:2])

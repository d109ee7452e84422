"""Tests visitors and mutators on the graph level, and the classes that they visit."""

from __future__ import annotations

import time

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.ir import assert_structural_equal
from pliant.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from pliant.script import from_source
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            lv = R.add(x, x)
            lv1 = R.multiply(lv, x)
            gv = R.add(lv1, lv)
            R.output(gv)
        if c:
            y = R.add(gv, gv)
        else:
            y = R.exp(gv)
        return y

    @R.function
    def other(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        y = R.negative(x)
        return y


@mutator
class AddToMultiply(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if call.op == relax.op.add:
            return relax.op.multiply(call.args[0], call.args[1])
        return call


def test_walking_a_function_by_node_classes() -> None:
    func = Module["main"]
    assert isinstance(func, relax.Function) and isinstance(func, relax.Expr)
    x, c = func.params
    assert isinstance(func.body, relax.SeqExpr)
    block, rest = func.body.blocks
    assert isinstance(block, relax.DataflowBlock) and not isinstance(rest, relax.DataflowBlock)
    lv, lv1, gv = (b.var for b in block.bindings)
    assert isinstance(lv, relax.DataflowVar) and not isinstance(gv, relax.DataflowVar)
    call = block.bindings[1].value
    assert isinstance(call, relax.Call) and call.op == relax.op.multiply and call.op.name == "relax.multiply"
    assert list(call.args) == [lv, x] and call.args[0].same_as(lv) and hash(call.args[0]) == hash(lv)
    assert isinstance(block.bindings[0], relax.VarBinding)
    choice = rest.bindings[0].value
    assert isinstance(choice, relax.If) and choice.cond == c
    assert choice.true_branch.blocks[0].bindings[0].value.args[0] == gv
    assert isinstance(choice.false_branch.body, relax.Var)
    assert func.body.body == rest.bindings[0].var


def test_nodes_have_stable_identity() -> None:
    assert Module["main"] == Module["main"] and hash(Module["main"]) == hash(Module["main"])
    assert Module["main"].params[0] == Module["main"].params[0]
    func = Module["main"]
    again = pliant.IRModule({"f": func})["f"]
    assert again.same_as(func) and again.params[0].same_as(func.params[0])
    assert Module["main"] != Module["other"] and func.params[0] != func.params[1]


def test_building_functions_from_nodes() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    y = relax.DataflowVar("y")
    z = relax.Var("z")
    block = relax.DataflowBlock(
        [relax.VarBinding(y, relax.op.add(x, x)), relax.VarBinding(z, relax.op.exp(y))]
    )
    func = relax.Function([x], relax.SeqExpr([block], z), attrs={"note": "mine"})
    assert func.params[0] == x and func.struct_info.ret == x.struct_info
    mod = pliant.IRModule({"main": func})
    assert mod["main"].params[0] == x and mod["main"].body.blocks[0].bindings[1].var == z
    assert mod["main"].attrs["note"] == "mine"

    @R.function
    def expected(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"note": "mine"})
        with R.dataflow():
            y = R.add(x, x)
            z = R.exp(y)
            R.output(z)
        return z

    bare = expected.without_attr("global_symbol")
    assert_structural_equal(mod["main"], bare)
    value = np.arange(8, dtype="float32").reshape(2, 4)
    out = pliant.compile(mod)(value)
    np.testing.assert_allclose(np.asarray(out), np.exp(value + value), rtol=1e-6)


def test_building_branches_and_local_functions_from_nodes() -> None:
    info = relax.TensorStructInfo((3,), "float32")
    x, cond = relax.Var("x", info), relax.Var("c", relax.TensorStructInfo((), "bool"))
    a, b, out = relax.Var("a"), relax.Var("b"), relax.Var("out")
    yes = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(a, relax.op.add(x, x))])], a)
    no = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(b, relax.op.exp(x))])], b)
    block = relax.BindingBlock([relax.VarBinding(out, relax.If(cond, yes, no))])
    func = relax.Function([x, cond], relax.SeqExpr([block], out))
    mod = pliant.IRModule({"main": func})
    assert relax.analysis.well_formed(mod)
    value = np.arange(3, dtype="float32")
    model = pliant.compile(mod)
    np.testing.assert_allclose(np.asarray(model(value, np.array(True))), value + value)
    np.testing.assert_allclose(np.asarray(model(value, np.array(False))), np.exp(value), rtol=1e-6)

    p, q, f, r = relax.Var("p", info), relax.Var("q"), relax.Var("f"), relax.Var("r")
    inner = relax.Function(
        [p], relax.SeqExpr([relax.BindingBlock([relax.VarBinding(q, relax.op.add(p, x))])], q), info
    )
    outer = relax.BindingBlock([relax.VarBinding(f, inner), relax.VarBinding(r, relax.Call(f, [x]))])
    func = relax.Function([x], relax.SeqExpr([outer], r))
    assert func.ret_struct_info == info and relax.analysis.well_formed(pliant.IRModule({"main": func}))


def test_nodes_of_one_function_build_another() -> None:
    func = Module["main"]
    head = relax.Function(func.params[:1], relax.SeqExpr(func.body.blocks[:1], func.body.blocks[0].bindings[2].var))
    assert head.params[0] == func.params[0]
    mod = pliant.IRModule({"main": head})
    assert relax.analysis.well_formed(mod)
    with pytest.raises(ValueError, match="c is neither a parameter"):
        pliant.IRModule({"main": relax.Function(func.params[:1], func.body)})
    with pytest.raises(ValueError, match="no struct info"):
        pliant.IRModule({"main": relax.Function([relax.Var("x")], relax.Tuple([]))})


def test_visitors_visit_in_order() -> None:
    @visitor
    class Names(PyExprVisitor):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def visit_call_(self, call: relax.Call) -> None:
            super().visit_call_(call)
            self.seen.append(call.op.name)

        def visit_var_def_(self, var: relax.Var) -> None:
            self.seen.append(var.name_hint)

        def visit_shape_expr_(self, op: relax.ShapeExpr) -> None:
            self.seen.append("shape")

    names = Names()
    names.visit_expr(Module["main"])
    assert names.seen[:3] == ["x", "c", "relax.add"]
    assert [s for s in names.seen if s.startswith("relax")] == [
        "relax.add", "relax.multiply", "relax.add", "relax.add", "relax.exp",
    ]  # fmt: skip


def test_mutators_return_the_same_object_if_nothing_changes() -> None:
    func = Module["other"]
    assert AddToMultiply(Module).visit_expr(func) is func
    assert PyExprMutator().visit_expr(Module["main"]).same_as(Module["main"])


def test_mutators_replace_calls() -> None:
    old = Module["main"]
    mut = AddToMultiply(Module)
    new = mut.visit_expr(old)
    assert not new.same_as(old) and new.params[0].same_as(old.params[0])

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            lv = R.multiply(x, x)
            lv1 = R.multiply(lv, x)
            gv = R.multiply(lv1, lv)
            R.output(gv)
        if c:
            y = R.multiply(gv, gv)
        else:
            y = R.exp(gv)
        return y

    assert_structural_equal(new, main)
    gv = Module.get_global_var("main")
    mut.builder_.update_func(gv, new)
    result = mut.builder_.get()
    assert_structural_equal(result["main"], main)
    assert result["other"].same_as(Module["other"])
    del old
    assert result["main"].params[0].same_as(Module["main"].params[0])
    assert "R.multiply" in result.script() and relax.analysis.well_formed(result)


def test_mutators_emit_bindings_and_change_types() -> None:
    @mutator
    class Halves(PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            if call.op == relax.op.add:
                a = self.builder_.emit(relax.op.astype(call.args[0], "float16"))
                assert a.struct_info.dtype == "float16"
                b = self.builder_.emit(relax.op.astype(call.args[1], "float16"))
                return relax.op.add(a, b)
            if call.op == relax.op.multiply:
                return relax.op.multiply(*(relax.op.astype(a, "float32") for a in call.args))
            return call

    @R.function
    def f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.multiply(lv, lv)
            R.output(gv)
        return gv

    new = Halves().visit_expr(f)
    mod = pliant.IRModule({"main": new})
    assert relax.analysis.well_formed(mod)
    kinds = [b.value.op.name for b in new.body.blocks[0].bindings]
    assert kinds == ["relax.astype", "relax.astype", "relax.add", "relax.astype", "relax.astype", "relax.multiply"]
    value = np.arange(3, dtype="float32")
    np.testing.assert_allclose(np.asarray(pliant.compile(mod)(value)), (2 * value) ** 2)


def test_mutators_remove_and_rename_bindings() -> None:
    @mutator
    class DropExp(PyExprMutator):
        def visit_var_binding_(self, binding: relax.VarBinding) -> None:
            value = binding.value
            if isinstance(value, relax.Call) and value.op.name == "relax.exp":
                self.set_var_remap(binding.var.vid, self.visit_expr(value.args[0]))
                return
            super().visit_var_binding_(binding)

    @R.function
    def f(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            lv = R.exp(x)
            lv1 = R.exp(lv)
            gv = R.add(lv1, lv)
            R.output(gv)
        return gv

    new = DropExp().visit_expr(f)
    (binding,) = new.body.blocks[0].bindings
    assert list(binding.value.args) == [new.params[0], new.params[0]]

    @R.function
    def only(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = R.exp(x)
        return y

    new = DropExp().visit_expr(only)
    assert new.body.blocks == [] and new.body.body == new.params[0]


def test_mutators_look_up_bindings() -> None:
    @mutator
    class Fuse(PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            if call.op == relax.op.add:
                value = self.lookup_binding(call.args[0])
                if isinstance(value, relax.Call) and value.op == relax.op.multiply:
                    return relax.op.subtract(value.args[0], call.args[1])
            return call

    new = Fuse().visit_expr(Module["main"])
    lv, lv1, gv = new.body.blocks[0].bindings
    assert gv.value.op == relax.op.subtract and gv.value.args[0] == lv.var


def test_mutators_rewrite_blocks_and_functions() -> None:
    @mutator
    class Plain(PyExprMutator):
        def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.BindingBlock:
            self.builder_._begin_binding_block()
            for binding in block.bindings:
                var = relax.Var(binding.var.name_hint, binding.var.struct_info)
                bound = self.builder_.emit(self.visit_expr(binding.value), binding.var.name_hint)
                assert bound.struct_info == var.struct_info
                self.set_var_remap(binding.var.vid, bound)
            return self.builder_._end_block()

        def visit_function_(self, func: relax.Function) -> relax.Function:
            body = self.visit_expr(func.body)
            return relax.Function(func.params, body, func.ret_struct_info, func.is_pure, {"plain": True})

    new = Plain().visit_expr(Module["main"])
    assert new.attrs == {"plain": True}
    assert not any(isinstance(b, relax.DataflowBlock) for b in new.body.blocks)
    assert relax.analysis.well_formed(pliant.IRModule({"main": new}))


def test_mutators_emit_tensor_expressions() -> None:
    from pliant import topi

    @mutator
    class ByHand(PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            if call.op == relax.op.negative:
                return self.builder_.call_te(topi.negative, call.args[0])
            return call

    mut = ByHand(Module)
    gv = Module.get_global_var("other")
    mut.builder_.update_func(gv, mut.visit_expr(Module["other"]))
    mod = mut.builder_.finalize()
    assert mod["other"].body.blocks[0].bindings[0].value.op.name == "relax.call_tir"
    assert len(mod) == 3 and relax.analysis.well_formed(mod)
    assert len(Module) == 2


def test_an_error_leaves_the_builder_usable() -> None:
    @mutator
    class Fails(PyExprMutator):
        fail = True

        def visit_call_(self, call: relax.Call) -> relax.Expr:
            if self.fail:
                raise RuntimeError("mine")
            return self.visit_expr_post_order(call)

    mut = Fails(Module)
    with pytest.raises(RuntimeError, match="mine"):
        mut.visit_expr(Module["main"])
    mut.fail = False
    assert mut.visit_expr(Module["main"]).same_as(Module["main"])


def chain(length: int) -> pliant.IRModule:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]), bb.dataflow():
        lv = x
        for i in range(length):
            lv = bb.emit(relax.op.add(lv, x) if i % 2 else relax.op.exp(lv))
        bb.emit_func_output(bb.emit_output(lv))
    return bb.get()


@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_long_chains(length: int) -> None:
    mod = chain(length)
    start = time.perf_counter()
    new = AddToMultiply(mod).visit_expr(mod["main"])
    changed = time.perf_counter() - start
    start = time.perf_counter()
    same = PyExprMutator(mod).visit_expr(mod["main"])
    unchanged = time.perf_counter() - start
    assert same.same_as(mod["main"])
    ops = [b.value.op.name for b in new.body.blocks[0].bindings if isinstance(b.value, relax.Call)]
    assert ops == ["relax.multiply" if i % 2 else "relax.exp" for i in range(length)]
    # One second in an optimized build.
    limit = 1.0 if pliant.build_info()["profile"] == "release" else 10.0
    assert changed < limit and unchanged < limit


def test_functors_reject_unknown_nodes() -> None:
    with pytest.raises(NotImplementedError, match="visit_var_"):
        relax.ExprFunctor().visit_expr(relax.Var("x"))
    with pytest.raises(TypeError, match="a graph-level expression is required"):
        PyExprVisitor().visit_expr(3)
    with pytest.raises(TypeError, match="PyExprMutator"):
        mutator(int)


LOCAL = """
@R.function
def main(x: R.Tensor((3,), "float32"), k: R.Tensor((), "int64")) -> R.Tensor((3,), "float32"):
    c = R.add(x, x)
    @R.function
    def even(a: R.Tensor((3,), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((3,), "float32"):
        if R.equal(n, R.const(0, "int64")):
            r = R.add(a, c)
        else:
            r = odd(a, R.subtract(n, R.const(1, "int64")))
        return r
    @R.function
    def odd(a: R.Tensor((3,), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((3,), "float32"):
        if R.equal(n, R.const(0, "int64")):
            r = a
        else:
            r = even(a, R.subtract(n, R.const(1, "int64")))
        return r
    return even(x, k)
"""


@pytest.mark.parametrize("change", [False, True])
def test_attributes_of_local_functions(change: bool) -> None:
    @mutator
    class Marked(PyExprMutator):
        def visit_function_(self, f: relax.Function) -> relax.Function:
            return super().visit_function_(f).with_attr("mark", f.params[0].name_hint)

        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            if change and call.op == relax.op.add:
                return relax.op.multiply(call.args[0], call.args[1])
            return call

    module = pliant.IRModule({"main": from_source(LOCAL)})
    new = Marked(module).visit_expr(module["main"])
    assert new.attrs["mark"] == "x"
    local = [b.value for block in new.body.blocks for b in block.bindings if isinstance(b.value, relax.Function)]
    assert [f.attrs.mark for f in local] == [f.params[0].name_hint for f in local]
    text = new.script()
    assert text.count("R.func_attr") == 3
    assert_structural_equal(from_source(text), new)
    x = np.array([1, 2, 3], "float32")
    for k in (0, 1):
        got = pliant.testing.interpret(pliant.IRModule({"main": new}), x, np.array(k))
        want = x * x * x if change and k == 0 else x + 2 * x if k == 0 else x
        np.testing.assert_allclose(got.numpy(), want)


def test_visiting_a_function_body_with_parameters() -> None:
    seen = []

    @mutator
    class Scoped(PyExprMutator):
        def visit_function_(self, f: relax.Function) -> relax.Function:
            seen.append(len(f.params))
            body = self.visit_with_new_scope(f.body, f.params)
            assert_structural_equal(self.visit_with_new_scope(f.body, params=f.params), body, map_free_vars=True)
            return f

    module = pliant.IRModule({"main": from_source(LOCAL)})
    Scoped(module).visit_expr(module["main"])
    assert seen[0] == 2


def test_invalid_node_arguments_are_reported() -> None:
    @R.function
    def func(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            t = (R.exp(x), x)
            c = t[0]
            R.output(c)
        return c

    @relax.expr_functor.mutator
    class Numbers(relax.PyExprMutator):
        def visit_dataflow_var_(self, var: relax.DataflowVar) -> Any:
            return 3

    with pytest.raises(TypeError):
        Numbers().visit_expr(func)

"""Tests modules of functions that call each other, functions that refer to their modules, local functions and loops under
mutators, and vectors in lowered loop functions."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from pliant.script import ir as I
from pliant.script import relax as R

INFO = relax.TensorStructInfo((3,), "float32")


@mutator
class AddToMultiply(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        return relax.op.multiply(*call.args) if call.op == relax.op.add else call


def one_call(callee: str, ret: relax.StructInfo | None = None) -> tuple[relax.Var, relax.Function]:
    x, y = relax.Var("x", INFO), relax.Var("y")
    body = relax.BindingBlock([relax.VarBinding(y, relax.Call(relax.GlobalVar(callee), [x]))])
    return x, relax.Function([x], relax.SeqExpr([body], y), ret)


def test_functions_keep_their_module_alive() -> None:
    x, f = one_call("g", INFO)
    _, g = one_call("f", INFO)
    mod = pliant.IRModule({"f": f, "g": g})
    copy, noted = mod.clone(), mod.with_attr("a", 1)
    del f, g
    gc.collect()
    assert mod["f"].params[0] == x and copy["f"].params[0] == x and noted["f"].params[0] == x
    del mod, noted
    assert copy["f"].params[0] == x

    mod = pliant.IRModule()
    x, f = one_call("f", INFO)
    mod["f"] = f
    del f
    gc.collect()
    assert mod["f"].params[0] == x


def test_expressions_keep_their_builder_alive() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            y = R.add(x, x)
            return y

    old = Module["main"]
    x = old.params[0]
    rewriter = AddToMultiply(Module)
    rewriter.builder_.update_func(Module.get_global_var("main"), rewriter.visit_expr(old))
    gc.collect()
    assert rewriter.builder_.get()["main"].params[0] == x
    made = rewriter.builder_.get()
    del rewriter, old
    gc.collect()
    assert made["main"].params[0] == x and "multiply" in made.script()

    bb = relax.BlockBuilder()
    with bb.function("f", [a := relax.Var("a", INFO)]):
        bb.emit_func_output(bb.emit(relax.op.add(a, a)))
    mod = bb.get()
    del bb
    gc.collect()
    assert mod["f"].params[0] == a


def test_functions_in_a_dict_call_each_other_in_any_order() -> None:
    x, last = relax.Var("x", INFO), relax.Var("y")
    leaf = relax.Function(
        [x], relax.SeqExpr([relax.BindingBlock([relax.VarBinding(last, relax.op.add(x, x))])], last)
    )
    # The callers declare no result types: each has the type of its callee, which is defined later.
    mod = pliant.IRModule({"a": one_call("b")[1], "b": one_call("c")[1], "c": leaf})
    assert [v.name_hint for v in mod.get_global_vars()] == ["a", "b", "c"]
    assert all(func.ret_struct_info == INFO for func in mod.values())
    assert relax.analysis.well_formed(mod)
    value = np.arange(3, dtype="float32")
    np.testing.assert_equal(np.asarray(relax.VirtualMachine(relax.build(mod))["a"](value)), value + value)
    # Functions that call each other declare their result types.
    mod = pliant.IRModule({"f": one_call("g", INFO)[1], "g": one_call("f")[1]})
    assert mod["g"].ret_struct_info == INFO
    assert len(pliant.IRModule({})) == 0 and len(pliant.IRModule({"c": leaf})) == 1


def test_thousands_of_functions() -> None:
    x = relax.Var("x", INFO)
    functions = {f"f{i}": one_call(f"f{i + 1}")[1] for i in range(3000)}
    mod = pliant.IRModule({**functions, "f3000": relax.Function([x], x)})
    assert mod["f0"].ret_struct_info == INFO


# ---- local functions, loops and choices under visitors and mutators ----


@I.ir_module
class Language:
    @R.function
    def main(x: R.Tensor((3,), "float32"), n: R.Tensor((), "int32")) -> R.Tensor((3,), "float32"):
        @R.function
        def twice(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            b = R.add(a, x)
            return b

        @R.function
        def go_on(i: R.Tensor((), "int32"), v: R.Tensor((3,), "float32")) -> R.Tensor((), "bool"):
            c = R.less(i, n)
            return c

        @R.function
        def step(i: R.Tensor((), "int32"), v: R.Tensor((3,), "float32")) -> R.Tuple(
            R.Tensor((), "int32"), R.Tensor((3,), "float32")
        ):
            j = R.add(i, R.const(1, "int32"))
            w = twice(v)
            return (j, w)

        end = R.while_loop(go_on, step, R.const(0, "int32"), x)
        last = end[1]
        if R.less(n, R.const(2, "int32")):
            out = R.add(last, x)
        else:
            out = R.exp(last)
        return out


def test_visitors_enter_functions_loops_and_branches() -> None:
    @visitor
    class Names(PyExprVisitor):
        def __init__(self) -> None:
            self.ops: list[str] = []
            self.functions = 0

        def visit_function_(self, func: relax.Function) -> None:
            self.functions += 1
            super().visit_function_(func)

        def visit_op_(self, op: pliant.ir.Op) -> None:
            self.ops.append(op.name.removeprefix("relax."))

    names = Names()
    names.visit_expr(Language["main"])
    assert names.functions == 4
    assert names.ops == ["add", "less", "add", "while_loop", "less", "add", "exp"]


def test_mutators_rewrite_inside_functions_loops_and_branches() -> None:
    assert PyExprMutator().visit_expr(Language["main"]).same_as(Language["main"])

    @mutator
    class AddToSubtract(PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            if call.op == relax.op.add and call.struct_info.dtype == "float32":
                return relax.op.subtract(*call.args)
            return call

    new = AddToSubtract(Language).visit_expr(Language["main"])
    mod = pliant.IRModule({"main": new})
    assert relax.analysis.well_formed(mod)
    assert mod.script().count("R.subtract") == 2 and mod.script().count("R.add") == 1
    x = np.arange(3, dtype="float32")
    run = relax.VirtualMachine(relax.build(mod))["main"]
    np.testing.assert_allclose(np.asarray(run(x, np.array(0, "int32"))), 0 * x)
    np.testing.assert_allclose(np.asarray(run(x, np.array(1, "int32"))), -x)
    np.testing.assert_allclose(np.asarray(run(x, np.array(3, "int32"))), np.exp(-2 * x), rtol=1e-6)


@mutator
class ToHalf(PyExprMutator):
    """A mutator that changes parameters and results of local functions to float16."""

    inside = False

    def visit_var_def_(self, var: relax.Var) -> relax.Var:
        if self.inside and isinstance(var.struct_info, relax.TensorStructInfo) and var.struct_info.dtype == "float32":
            return self.with_struct_info(var, relax.TensorStructInfo(var.struct_info.shape, "float16"))
        return var

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        outer, self.inside = self.inside, self._depth_of_functions > 0
        self._depth_of_functions += 1
        try:
            return super().visit_function_(func)
        finally:
            self._depth_of_functions -= 1
            self.inside = outer

    _depth_of_functions = 0


def test_recursive_calls_follow_a_changed_type() -> None:
    @R.function
    def f(x: R.Tensor((3,), "float32"), n: R.Tensor((), "int32")) -> R.Tensor((3,), "float32"):
        @R.function
        def down(i: R.Tensor((), "int32"), v: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            if R.equal(i, R.const(0, "int32")):
                out = R.astype(v, "float32")
            else:
                out = down(R.subtract(i, R.const(1, "int32")), R.add(v, v))
            return out

        r = down(n, x)
        return r

    @mutator
    class Half(ToHalf):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = super().visit_call_(call)
            if not self.inside and isinstance(call.op, relax.Var) and call.op.name_hint.startswith("down"):
                arg = self.builder_.emit(relax.op.astype(call.args[1], "float16"))
                return relax.Call(call.op, [call.args[0], arg])
            return call

    new = Half().visit_expr(f)
    mod = pliant.IRModule({"main": new})
    assert relax.analysis.well_formed(mod), mod.script()
    local = next(b.value for b in new.body.blocks[0].bindings if isinstance(b.value, relax.Function))
    assert local.params[1].struct_info.dtype == "float16" and local.ret_struct_info.dtype == "float32"
    x = np.arange(3, dtype="float32")
    np.testing.assert_allclose(np.asarray(pliant.compile(mod)(x, np.array(3, "int32"))), 8 * x)


def test_rewriting_single_sequences_and_blocks() -> None:
    func = Language["main"]
    seq = func.body
    assert PyExprMutator().visit_expr(seq).same_as(seq)
    assert PyExprMutator().visit_binding_block(seq.blocks[0]).same_as(seq.blocks[0])
    new = AddToMultiply().visit_expr(seq)
    made = relax.Function(func.params, new, func.ret_struct_info)
    assert "R.multiply" in made.script() and relax.analysis.well_formed(pliant.IRModule({"main": made}))


# ---- lowered loop functions ----


def test_walking_and_rebuilding_lowered_loop_functions() -> None:
    n = te.var("n", "int64")
    a = te.placeholder((n, 8), "float32", "A")
    b = te.compute((n, 8), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")
    mod = pliant.IRModule({"main": te.create_prim_func([a, b])})
    names = ["DefaultSchedule", "LowerInitBlock", "ConvertBlocksToLoops", "FlattenBuffer", "Simplify", "VectorizeLoop"]
    lowered = pliant.transform.Sequential([getattr(tir.transform, name)() for name in names])(mod)
    func = lowered["main"]
    kinds: dict[str, int] = {}
    tir.stmt_functor.post_order_visit(
        func.body, lambda node: kinds.__setitem__(type(node).__name__, kinds.get(type(node).__name__, 0) + 1)
    )
    assert kinds.get("Ramp") and kinds.get("Broadcast"), (kinds, func.script())

    def look(node: tir.PrimExpr) -> None:
        if isinstance(node, tir.Ramp):
            assert node.lanes >= 2 and int(node.stride) == 1 and node.base.dtype == "int64"
        if isinstance(node, tir.Broadcast):
            assert node.lanes >= 2 and node.value.dtype == node.dtype.split("x")[0]

    tir.stmt_functor.post_order_visit(func.body, look)

    def tripled(node: tir.PrimExpr) -> tir.PrimExpr | None:
        if isinstance(node, tir.FloatImm) and node.value == 2.0:
            return tir.FloatImm("float32", 3.0)
        return None

    again = func.with_body(tir.stmt_functor.ir_transform(func.body, None, tripled))
    assert "3" in again.script() and len(again.script().splitlines()) == len(func.script().splitlines())


def test_vector_expressions() -> None:
    ramp = tir.Ramp(tir.Var("i", "int64"), 1, 4)
    assert (ramp.dtype, ramp.lanes, int(ramp.stride), str(ramp)) == ("int64x4", 4, 1, "T.Ramp(i, 1, 4)")
    broadcast = tir.Broadcast(tir.const(1.5, "float32"), 8)
    assert (broadcast.dtype, broadcast.lanes, float(broadcast.value)) == ("float32x8", 8, 1.5)
    for lanes in (0, 1):
        with pytest.raises(ValueError, match="two or more lanes"):
            tir.Broadcast(1, lanes)
    with pytest.raises(ValueError, match="two or more lanes"):
        tir.Ramp(ramp, 1, 2)
    with pytest.raises(pliant.PliantError, match="holds a vector"):
        te.create_prim_func([te.compute((4,), lambda i: tir.Broadcast(i, 4))])


def test_reshape_patterns() -> None:
    n = te.var("n", "int64")
    a = te.placeholder((n, 8), "float32", "A")
    flat = te.compute((n * 8,), lambda i: a[i // 8, i % 8], name="flat")
    twice = te.compute((n * 8,), lambda i: a[i // 8, i % 8] * 2.0, name="twice")
    assert relax.analysis.has_reshape_pattern(te.create_prim_func([a, flat]))
    assert not relax.analysis.has_reshape_pattern(te.create_prim_func([a, twice]))


def test_call_tir_arguments() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))

    def doubled(a: te.Tensor) -> te.Tensor:
        return te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="doubled")

    func, inputs, infos, sizes = relax.utils.gen_call_tir_inputs(doubled, x)
    assert isinstance(func, tir.PrimFunc) and list(inputs) == [x] and infos == [x.struct_info] and sizes is None
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        gv = bb.add_func(func, "doubled")
        out = bb.emit(relax.call_tir(gv, inputs, infos[0]))
        bb.emit_func_output(out)
    value = np.ones((2, 4), "float32")
    np.testing.assert_equal(np.asarray(pliant.compile(bb.get())(value)), 2 * value)

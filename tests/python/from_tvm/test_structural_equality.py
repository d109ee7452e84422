"""Tests structural equality, instruments and further functions of TVM's interface as users of TVM write them; only the import at
the top differs."""

from __future__ import annotations

import numpy as np
import pytest

import pliant as tvm
from pliant import relax, tir
from pliant.ir import assert_structural_equal, structural_equal, structural_hash
from pliant.script import from_source
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@T.prim_func(private=True)
def scale(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            b[vi] = a[vi] * T.float32(2)


@T.prim_func(private=True)
def scale_by_three(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            b[vi] = a[vi] * T.float32(3)


def test_free_variables_of_scalars() -> None:
    a, b = tir.Var("a", "int64"), tir.Var("b", "int64")
    assert not structural_equal(a, b) and structural_equal(a, b, map_free_vars=True)
    assert structural_equal(a + 1, b + 1, map_free_vars=True) and not structural_equal(a + 1, b + 1)
    assert not structural_equal(a + 1, b + 2, map_free_vars=True)
    assert not structural_equal(a + b, a + a, map_free_vars=True)
    assert not structural_equal([a, a], [a, b], map_free_vars=True)
    assert not structural_equal(a, tir.Var("b", "int32"), map_free_vars=True)
    assert_structural_equal({"x": a + 1}, {"x": a + 1})
    with pytest.raises(ValueError, match="x: the values differ: a \\+ 1 on the left"):
        assert_structural_equal({"x": a + 1}, {"x": a + 2})
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    left, right = R.Tensor((n, n), "float32"), R.Tensor((m, m), "float32")
    assert not structural_equal(left, right) and structural_equal(left, right, map_free_vars=True)
    assert not structural_equal(left, R.Tensor((m, n), "float32"), map_free_vars=True)
    assert structural_hash(left) == structural_hash(R.Tensor((n, n), "float32"))


def test_statements() -> None:
    assert_structural_equal(scale.body, scale.body)
    assert not structural_equal(scale.body, scale_by_three.body, map_free_vars=True)
    copy = tir.stmt_functor.ir_transform(scale.body, None, lambda node: None)
    assert_structural_equal(scale.body, copy)
    assert structural_hash(scale.body) == structural_hash(copy)
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    one = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(i + 1))
    two = tir.For(j, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(j + 1))
    other = tir.For(j, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(j + 2))
    assert_structural_equal(one, two)
    assert structural_hash(one) == structural_hash(two)
    with pytest.raises(ValueError, match="For.body: Evaluate.value"):
        assert_structural_equal(one, other)


def test_calls_and_types_have_hashes() -> None:
    x = relax.Var("x", R.Tensor((4,), "float32"))
    assert structural_hash(relax.op.exp(x)) == structural_hash(relax.op.exp(x))
    assert structural_hash({"a": R.Tensor((4,))}) == structural_hash({"a": R.Tensor((4,))})


def test_invalid_functions_are_not_well_formed() -> None:
    x, u = (relax.Var(name, R.Tensor((4,), "float32")) for name in "xu")
    block = relax.BindingBlock([relax.VarBinding(u, relax.op.exp(x))])
    assert relax.analysis.well_formed(relax.Function([x], relax.SeqExpr([block], u)))
    assert not relax.analysis.well_formed(relax.Function([x], u))
    assert not relax.analysis.well_formed(relax.Function([x, x], x))
    twice = relax.BindingBlock([relax.VarBinding(u, relax.op.exp(x)), relax.VarBinding(u, relax.op.sin(x))])
    assert not relax.analysis.well_formed(relax.Function([x], relax.SeqExpr([twice], u)))
    with pytest.raises(ValueError, match="already defined"):
        tvm.IRModule({"main": relax.Function([x, x], x)})
    y = relax.Var("y", R.Tensor((4,), "float32"))
    early = relax.BindingBlock([relax.VarBinding(y, relax.op.exp(u)), relax.VarBinding(u, relax.op.exp(x))])
    with pytest.raises(ValueError, match="before its use"):
        tvm.IRModule({"main": relax.Function([x], relax.SeqExpr([early], y))})


@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")):
        cls = Module
        with R.dataflow():
            y = R.add(cls.helper(x), w)
            R.output(y)
        return y


def test_names_of_modules_and_functions() -> None:
    renamed = Module.replace_global_vars({"helper": "other", Module.get_global_var("main"): relax.GlobalVar("entry")})
    assert [v.name_hint for v in renamed.get_global_vars()] == ["other", "entry"]
    assert "cls.other(x)" in renamed.script()
    assert_structural_equal(renamed, from_source(renamed.script()))
    with pytest.raises(tvm.CompileError, match="the renaming would give two functions of the module the name 'main'"):
        Module.replace_global_vars({"helper": "main"})
    with pytest.raises(KeyError, match="the module has no function 'nobody'"):
        Module.replace_global_vars({"nobody": "main"})
    assert isinstance(Module["main"], tvm.ir.BaseFunc) and isinstance(scale, tvm.ir.BaseFunc)
    assert "relax.add" in tvm.ir.Op.list_op_names()


def test_functions_with_parameters_and_sizes_bound() -> None:
    func = Module["helper"].bind_symbolic_vars({"n": 4})
    assert func.params[0].struct_info.shape[0] == 4 and func.private

    @R.function
    def scaled(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):
        return R.multiply(x, w)

    bound = scaled.bind_params({"w": np.array([2, 3], "float32")})
    assert len(bound.params) == 1
    vm = relax.VirtualMachine(relax.build(tvm.IRModule({"main": bound})), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(2, "float32")).numpy(), [2, 3])


def test_constructors_accept_spans() -> None:
    block = Module["main"].body.blocks[0]
    again = relax.DataflowBlock(block.bindings, block.span)
    assert_structural_equal(again, block)
    first = block.bindings[0]
    binding = relax.VarBinding(first.var, first.value, first.span)
    assert binding.same_as(first)
    call = relax.Call(tvm.ir.Op.get("relax.exp"), [Module["main"].params[0]], None, None, first.value.span)
    assert relax.Function([Module["main"].params[0]], call, None, True, None, call.span) is not None


def test_sizes_of_shapes() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    assert relax.analysis.shape_vars(relax.ShapeExpr([n + m, n])) == [n, m]
    assert relax.analysis.shape_vars(n * 2) == [n]


def test_print_ir(capsys: pytest.CaptureFixture[str]) -> None:
    out = tvm.transform.Sequential([tvm.transform.PrintIR("before"), relax.transform.LegalizeOps()])(Module)
    text = capsys.readouterr().out
    assert text.startswith("# PrintIR(before)") and "R.add" in text and "call_tir" in out.script()
    assert tvm.ir.transform.PrintIR is tvm.transform.PrintIR


def test_instruments_of_the_outermost_context() -> None:
    events = []

    @tvm.instrument.pass_instrument
    class Count:
        def enter_pass_ctx(self):
            events.append("enter")

        def exit_pass_ctx(self):
            events.append("exit")

        def run_before_pass(self, mod, info):
            events.append(info.name)

    ctx = tvm.transform.PassContext.current()
    ctx.override_instruments([Count()])
    relax.transform.LegalizeOps()(Module)
    ctx.override_instruments([])
    relax.transform.LegalizeOps()(Module)
    assert events == ["enter", "LegalizeOps", "exit"]


def test_invalid_instruments() -> None:
    with pytest.raises(TypeError, match="3 is not an instrument"):
        tvm.transform.PassContext(instruments=[3])
    with pytest.raises(TypeError, match="did you mean run_before_pass"):

        @tvm.ir.instrument.pass_instrument
        class Misspelt:
            def run_befor_pass(self, mod, info):
                pass

            def run_after_pass(self, mod, info):
                pass


@pytest.mark.parametrize("name", ["BindParams", "BindSymbolicVars", "UpdateParamStructInfo"])
def test_pass_table_contains_passes_with_parameters(name: str) -> None:
    assert name in dict(tvm.transform.list_passes())
    with pytest.raises(ValueError, match="parameters"):
        tvm.transform.get_pass(name)


def test_several_outputs_round_trip() -> None:
    @I.ir_module
    class Split:
        @R.function
        def main(x: R.Tensor((2, 4), "float32")):
            t = R.split(x, 2, axis=1)
            return R.add(t[0], t[1])

    zero = tvm.transform.Sequential(
        [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps()]
    )
    for change in (relax.transform.LegalizeOps(), zero, tvm.transform.Sequential([zero, relax.transform.FuseTIR()])):
        after = change(Split)
        assert_structural_equal(after, from_source(after.script(show_meta=True)))


def test_captured_values_of_local_functions_stay_alive() -> None:
    @I.ir_module
    class Captures:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.exp(x)

            @R.function
            def g(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return R.add(a, y)

            z = R.multiply(y, y)
            return g(z)

    vm = relax.VirtualMachine(relax.build(relax.transform.KillAfterLastUse()(Captures)), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](np.zeros(4, "float32")).numpy(), np.full(4, 2.0))


def test_size_sums_before_their_symbols() -> None:
    for total in ("n + m", "m + n", "m * 2 + n"):

        @R.function
        def func(
            a: R.Tensor((total,), "float32"), p: R.Tensor(("n",), "float32"), q: R.Tensor(("m",), "float32")
        ):
            return (a, p, q)

        @R.function
        def scalar(a: R.Tensor((total,), "float32"), k: R.Prim(value="n"), q: R.Tensor(("m",), "float32")):
            return (a, k, q)

        assert_structural_equal(scalar, from_source(scalar.script()))
        again = from_source(func.script())
        assert_structural_equal(func, again)
        other = from_source(func.script().replace('q: R.Tensor(("m",)', 'q: R.Tensor(("n",)'))
        assert not structural_equal(func, other)

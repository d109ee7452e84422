"""Tests `relax.analysis`, `DataflowBlockRewrite`, `relax.utils` and structural equality."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.ir import assert_structural_equal, structural_equal, structural_hash
from pliant.relax import analysis
from pliant.relax.analysis import BaseCheckResult
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.testing import assert_allclose


def tensor(*dims: object, dtype: str = "float32") -> relax.TensorStructInfo:
    return relax.TensorStructInfo(dims, dtype)


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor:
        cls = Module
        with R.dataflow():
            lv = R.add(w, w)
            dead = R.exp(x)
            dead2 = R.exp(dead)
            lv1 = R.add(x, x)
            gv = R.multiply(lv1, lv1)
            R.output(gv)
        y = R.match_cast(gv, R.Tensor(("k", "m"), "float32"))
        z = cls.f(y)
        return z

    @R.function
    def f(x: R.Tensor) -> R.Tensor:
        cls = Module
        y = cls.g(x)
        return y

    @R.function
    def g(x: R.Tensor) -> R.Tensor:
        cls = Module
        y = cls.f(x)
        return y


def names(items: list) -> list[str]:
    return [v.name_hint for v in items]


def test_variables() -> None:
    main = Module["main"]
    lv, dead, dead2, lv1, gv = (b.var for b in main.body.blocks[0].bindings)
    assert names(analysis.bound_vars(main)) == ["x", "w", "lv", "dead", "dead2", "lv1", "gv", "y", "z"]
    assert names(analysis.used_vars(main)) == ["w", "x", "dead", "lv1", "gv", "y", "z"]
    assert len(analysis.all_vars(main)) == 9 and analysis.free_vars(main) == []
    assert analysis.free_vars(main.body) == [main.params[1], main.params[0]]
    a, b = relax.Var("a", tensor(4)), relax.Var("b", tensor(4))
    assert analysis.free_vars(relax.op.add(a, relax.op.add(b, a))) == [a, b]
    assert names(analysis.all_global_vars(main)) == ["f"] == names(analysis.called_global_vars(main))
    seen: list = []
    analysis.post_order_visit(relax.op.add(a, relax.op.exp(b)), seen.append)
    assert [type(e).__name__ for e in seen] == ["Var", "Var", "OpFunction", "Call", "OpFunction", "Call"]


def test_bindings() -> None:
    main = Module["main"]
    block = main.body.blocks[0]
    lv, dead, dead2, lv1, gv = (b.var for b in block.bindings)
    values = analysis.get_var2val(main)
    assert values[gv].op == relax.op.multiply and len(values) == 7
    chain = analysis.udchain(block)
    assert chain[lv1] == [gv] and chain[dead] == [dead2] and chain[gv] == [] and chain[main.params[0]] == [dead, lv1]
    found = analysis.name_to_binding(main)
    assert [b.var for b in found["lv1"]] == [lv1]
    cleaned = analysis.remove_all_unused(main)
    assert names([b.var for b in cleaned.body.blocks[0].bindings]) == ["lv1", "gv"]
    assert analysis.remove_all_unused(cleaned).same_as(cleaned)
    assert analysis.computable_at_compile_time(main.with_attr("num_input", 1)) == [main.params[1], lv]


def test_symbolic_variables() -> None:
    main = Module["main"]
    assert [str(v) for v in analysis.defined_symbolic_vars(main)] == ["n", "m", "k"]
    assert analysis.free_symbolic_vars(main) == []
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    info = tensor(n, n * 2 + m, 3)
    assert analysis.tir_vars_in_struct_info(info) == [n, m]
    assert analysis.definable_tir_vars_in_struct_info(info) == [n]
    assert [str(e) for e in analysis.collect_non_negative_expressions(info)][0] == "n"
    assert len(analysis.collect_non_negative_expressions(info)) == 2
    assert analysis.erase_to_well_defined(info, {n: n}) == relax.TensorStructInfo(ndim=3, dtype="float32")
    assert analysis.erase_to_well_defined(info, {n: n, m: tir.IntImm("int64", 1)}).shape is not None
    assert analysis.erase_to_well_defined(tensor(n, 3), {n: m + 1}) == tensor(m + 1, 3)


def test_types() -> None:
    n = tir.Var("n", "int64")
    unknown = relax.TensorStructInfo(ndim=2, dtype="float32")
    assert analysis.get_static_type(tensor(n, 4)) == unknown
    assert analysis.struct_info_lca(tensor(n, 4), tensor(n, 4)) == tensor(n, 4)
    assert analysis.type_lca(tensor(n, 4), tensor(n, 5)) == unknown
    assert analysis.struct_info_lca(tensor(n), relax.ShapeStructInfo([n])) == relax.ObjectStructInfo()
    check = analysis.struct_info_base_check
    assert check(unknown, tensor(n, 4)) == BaseCheckResult.PASS
    assert check(tensor(n, 4), unknown) == BaseCheckResult.FAIL_L2
    assert check(tensor(n, 4), relax.ObjectStructInfo()) == BaseCheckResult.FAIL_L1
    assert check(tensor(4), tensor(5)) == BaseCheckResult.FAIL_L0
    m = tir.Var("m", "int64")
    signature = relax.FuncStructInfo([tensor(n)], tensor(n + 1))
    call = relax.Call(relax.Var("f", signature), [relax.Var("x", tensor(m))])
    assert str(analysis.derive_call_ret_struct_info(signature, call)) == str(tensor(m + 1))
    with pytest.raises(TypeError, match="must be the struct info of a function"):
        analysis.derive_call_ret_struct_info(tensor(n), call)


def test_effects() -> None:
    assert not analysis.contains_impure_call(Module["main"])
    x = relax.Var("x", tensor(3))
    impure = relax.Call(relax.ExternFunc("my.func"), [x], sinfo_args=[tensor(3)])
    assert analysis.contains_impure_call(impure)
    assert analysis.contains_impure_call(relax.Call(relax.GlobalVar("f"), [x]))
    assert not analysis.contains_impure_call(relax.Call(relax.GlobalVar("f"), [x]), relax.GlobalVar("f"))


def test_modules() -> None:
    assert analysis.well_formed(Module) and analysis.well_formed(Module["main"])
    analysis.check_well_formed(Module)
    assert [names(group) for group in analysis.detect_recursion(Module)] == [["f", "g"]]
    broken = pliant.IRModule({"main": Module["main"]})
    assert not analysis.well_formed(broken)
    with pytest.raises(ValueError, match="PL0210"):
        analysis.check_well_formed(broken)


def test_memory_estimate() -> None:
    @R.function
    def main(x: R.Tensor((256, 4), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor:
        a = R.exp(x)
        b = R.exp(y)
        c = R.exp(a)
        return c

    mod = pliant.IRModule({"main": main})
    steps = [relax.transform.LegalizeOps(), relax.transform.CallTIRRewrite()]
    report = analysis.estimate_memory_usage(relax.transform.Sequential(steps)(mod))
    assert "Function main" in report and "2 constant-size" in report and "1 with sizes known" in report


@R.function
def edited(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    with R.dataflow():
        lv = R.add(x, x)
        lv1 = R.exp(lv)
        gv = R.add(lv1, lv)
        R.output(gv)
    return gv


def test_dataflow_block_edits() -> None:
    block = edited.body.blocks[0]
    lv, lv1, _ = (b.var for b in block.bindings)
    rewrite = relax.DataflowBlockRewrite(block, edited)
    assert rewrite.mutated_root_fn() is edited
    rewrite.add(relax.op.multiply(edited.params[0], edited.params[0]), "square", is_dfvar=True)
    square = next(b.var for b in rewrite._bindings.values() if b.var.name_hint == "square")
    rewrite.replace_all_uses(lv, square)
    with pytest.raises(ValueError, match="because other bindings use it"):
        rewrite.remove_unused(square)
    rewrite.remove_unused(lv)
    new = rewrite.mutated_root_fn()

    @R.function
    def edited_by_hand(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            square = R.multiply(x, x)
            lv1 = R.exp(square)
            gv = R.add(lv1, square)
            R.output(gv)
        return gv

    assert_structural_equal(new.without_attr("global_symbol"), edited_by_hand.without_attr("global_symbol"))
    assert names([b.var for b in rewrite.mutated_dfb().bindings]) == ["square", "lv1", "gv"]
    mod = pliant.IRModule({"main": edited})
    changed = rewrite.mutate_irmodule(mod)
    assert changed["main"].same_as(changed["main"]) and not changed["main"].same_as(edited)
    with pytest.raises(ValueError, match="not bound"):
        rewrite.remove_unused(relax.Var("nothing"))
    rewrite.remove_unused(relax.Var("nothing"), allow_undef=True)


def test_unused_bindings_of_a_block_are_removed() -> None:
    block = Module["main"].body.blocks[0]
    rewrite = relax.DataflowBlockRewrite(block, Module["main"])
    rewrite.remove_all_unused()
    assert names([b.var for b in rewrite.mutated_dfb().bindings]) == ["lv1", "gv"]


def test_copied_functions_have_fresh_variables() -> None:
    copy = relax.utils.copy_with_new_vars(edited)
    assert structural_equal(copy, edited) and copy.params[0] != edited.params[0]
    assert copy.params[0].struct_info != edited.params[0].struct_info


def test_structural_equality_of_expressions() -> None:
    a, b = relax.Var("a", tensor(4)), relax.Var("b", tensor(4))
    assert structural_equal(relax.op.add(a, a), relax.op.add(a, a))
    assert not structural_equal(relax.op.add(a, a), relax.op.add(b, b))
    assert structural_equal(relax.op.add(a, a), relax.op.add(b, b), map_free_vars=True)
    assert not structural_equal(relax.op.add(a, b), relax.op.add(b, b), map_free_vars=True)
    assert structural_equal(tensor(4), tensor(4)) and not structural_equal(tensor(4), tensor(5))
    assert structural_hash(edited) == structural_hash(relax.utils.copy_with_new_vars(edited))


def test_first_structural_difference_is_reported() -> None:
    @R.function
    def other(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            lv = R.add(x, x)
            lv1 = R.tanh(lv)
            gv = R.add(lv1, lv)
            R.output(gv)
        return gv

    with pytest.raises(ValueError) as error:
        assert_structural_equal(edited.without_attr("global_symbol"), other.without_attr("global_symbol"))
    text = str(error.value)
    assert "binding of 'lv1'" in text and "R.exp(lv)" in text and "R.tanh(lv)" in text and "left (line" in text


def test_assert_allclose() -> None:
    assert_allclose(np.ones(3), [1.0, 1.0, 1.0])
    with pytest.raises(AssertionError):
        assert_allclose(np.ones(3), np.ones((3, 1)))
    with pytest.raises(AssertionError):
        assert_allclose(np.ones(3), np.zeros(3))

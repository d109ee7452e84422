"""Tests rewriters and pattern classes as users of TVM write them; only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pytest

import pliant as tvm
from pliant import relax
from pliant.relax.dpl import *  # noqa: F403
from pliant.relax.dpl import is_call_dps_packed, is_op, is_var, wildcard
from pliant.script import from_source
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def run(mod: tvm.IRModule, *args: np.ndarray) -> list[np.ndarray]:
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    out = vm["main"](*args)
    return [x.numpy() for x in out] if isinstance(out, list | tuple) else [out.numpy()]


def parses_back(mod: tvm.IRModule) -> None:
    tvm.ir.assert_structural_equal(mod, from_source(mod.script(show_meta=True)))


@R.rewriter
class Helped:
    @R.function
    def pattern(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        return R.add(A, B)

    @R.function
    def replacement(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        cls = Helped
        return cls.subroutine_add(A, B)

    @R.function(private=True)
    def subroutine_add(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")) -> R.Tensor([16], "float32"):
        cls = Helped
        return R.call_tir(cls.kernel, (A, B), out_sinfo=R.Tensor([16], "float32"))

    @T.prim_func(private=True)
    def kernel(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32")):
        for i in range(16):
            c[i] = a[i] + b[i]


def test_subroutines_are_added_with_replacements() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
            z = R.add(x, y)
            return R.add(z, y)

    assert isinstance(Helped, tvm.transform.Pass) and Helped.info.name == "Helped"
    after = Helped(Before)
    assert [v.name_hint for v in after.get_global_vars()] == ["main", "subroutine_add", "kernel"]
    parses_back(after)
    x, y = np.arange(16, dtype="float32"), np.ones(16, "float32")
    np.testing.assert_array_equal(run(after, x, y)[0], x + 2)
    # A second application changes nothing, and the rewriter can be part of a sequence of passes.
    tvm.ir.assert_structural_equal(Helped(after), after)
    seq = tvm.transform.Sequential([Helped, relax.transform.InlinePrivateFunctions()])
    np.testing.assert_array_equal(run(seq(Before), x, y)[0], x + 2)
    with pytest.raises(ValueError, match="calls 'subroutine_add'.*rewrite the module"):
        Helped(Before["main"])
    assert Helped(after["main"]) is not None


def test_subroutines_are_renamed_on_conflict() -> None:
    @I.ir_module
    class Before:
        @R.function(private=True)
        def subroutine_add(x: R.Tensor([16], "float32")) -> R.Tensor([16], "float32"):
            return R.exp(x)

        @R.function
        def main(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
            cls = Before
            z = cls.subroutine_add(x)
            return R.add(z, y)

    after = Helped(Before)
    assert "subroutine_add_1" in after and "kernel" in after
    parses_back(after)
    x, y = np.zeros(16, "float32"), np.ones(16, "float32")
    np.testing.assert_array_equal(run(after, x, y)[0], np.full(16, 2.0))


@R.rewriter
class Qkv:
    @R.function
    def pattern(qkv: R.Tensor([12], "float32")):
        q = R.strided_slice(qkv, [0], [0], [4], assume_inbound=False)
        k = R.strided_slice(qkv, [0], [4], [8], assume_inbound=False)
        v = R.strided_slice(qkv, [0], [8], [12], assume_inbound=False)
        return (q, k, v)

    @R.function
    def replacement(qkv: R.Tensor([12], "float32")):
        qkv_tuple = R.split(qkv, [4, 8], axis=0)
        return qkv_tuple


BODY = """q = R.strided_slice(x, [0], [0], [4], assume_inbound=False)
k = R.strided_slice(x, [0], [4], [8], assume_inbound=False)
q_embed = R.exp(q)
k_embed = R.sin(k)
v = R.strided_slice(x, [0], [8], [12], assume_inbound=False)
sum = R.add(R.add(q_embed, k_embed), v)"""


@pytest.mark.parametrize("dataflow", [False, True])
def test_tuples_without_make_tuple(dataflow: bool) -> None:
    lines = BODY.splitlines()
    if dataflow:
        lines = ["with R.dataflow():", *("    " + line for line in lines), "    R.output(sum)"]
    before = from_source(
        "from pliant.script import ir as I, relax as R\n@I.ir_module\nclass Module:\n    @R.function\n"
        "    def main(x: R.Tensor([12], 'float32')):\n"
        + "".join(f"        {line}\n" for line in [*lines, "return sum"])
    )
    after = Qkv(before)
    text = after.script()
    assert text.count("R.split") == 1 and "strided_slice" not in text, text
    parses_back(after)
    x = np.arange(12, dtype="float32")
    expected = np.exp(x[:4]) + np.sin(x[4:8]) + x[8:]
    np.testing.assert_allclose(run(after, x)[0], expected, rtol=1e-5)


def test_tuples_of_different_values_do_not_match() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor([12], "float32"), y: R.Tensor([12], "float32")):
            q = R.strided_slice(x, [0], [0], [4], assume_inbound=False)
            k = R.strided_slice(x, [0], [4], [8], assume_inbound=False)
            v = R.strided_slice(y, [0], [8], [12], assume_inbound=False)
            return R.add(R.add(q, k), v)

    assert Qkv(Before)["main"].same_as(Before["main"])


def test_tuples_with_dependent_fields_are_kept() -> None:
    @R.rewriter
    class Pair:
        @R.function
        def pattern(a: R.Tensor([4], "float32"), b: R.Tensor([4], "float32")):
            return (R.exp(a), R.sin(b))

        @R.function
        def replacement(a: R.Tensor([4], "float32"), b: R.Tensor([4], "float32")):
            s = R.add(a, b)
            return (s, s)

    @I.ir_module
    class Chain:
        @R.function
        def main(x: R.Tensor([4], "float32")):
            y = R.exp(x)
            return R.sin(y)

    assert Pair(Chain)["main"].same_as(Chain["main"])


def test_in_place_updates_are_not_crossed() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def inc(w: T.Buffer((3,), "float32")):
            for i in range(3):
                w[i] = w[i] + T.float32(1)

        @R.function(pure=False)
        def main(w: R.Tensor((3,), "float32")):
            cls = Module
            a = R.exp(w)
            w1 = R.call_tir_inplace(
                cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32")
            )
            b = R.sqrt(a)
            return (b, w1)

    @R.rewriter
    class Halve:
        @R.function
        def pattern(A: R.Tensor([3], "float32")):
            return R.sqrt(R.exp(A))

        @R.function
        def replacement(A: R.Tensor([3], "float32")):
            return R.exp(R.multiply(A, R.const(0.5, "float32")))

    fuse = relax.transform.FuseOpsByPattern([("z.s", is_op("relax.sqrt")(is_op("relax.exp")(wildcard())))])
    for change in (Halve, tvm.transform.Sequential([relax.transform.ConvertToDataflow(), fuse])):
        np.testing.assert_array_equal(run(change(Module), np.zeros(3, "float32"))[0], np.ones(3))


def test_replacement_type_must_match_the_pattern() -> None:
    def module(a: str, result: str) -> tvm.IRModule:
        return from_source(
            "from pliant.script import ir as I, relax as R\n@I.ir_module\nclass Module:\n"
            "    @R.function\n    def pattern(A: R.Tensor([16], 'float32')):\n        return R.exp(A)\n"
            f"    @R.function\n    def replacement(A: {a}):\n        return {result}\n"
        )

    make = PatternMatchingRewriter.from_module  # noqa: F405
    with pytest.raises(ValueError, match=r"parameter 'A' has type R.Tensor\(\(17,\).* in the function `replacement`"):
        make(module("R.Tensor([17], 'float32')", "R.exp(A)"))
    with pytest.raises(ValueError, match="the result has type .*int32.* in the function `replacement`"):
        make(module("R.Tensor([16], 'float32')", "R.astype(A, 'int32')"))
    make(module("R.Tensor([16], 'float32')", "R.sin(A)"))


def test_two_cbr_with_dup() -> None:
    @tvm.script.ir_module
    class CBRx2:
        @R.function
        def main(
            x: R.Tensor((32, 32), "float32"),
            w0: R.Tensor((1, 1), "float32"),
            bias0: R.Tensor((32, 32), "float32"),
            w1: R.Tensor((1, 1), "float32"),
            bias1: R.Tensor((32, 32), "float32"),
        ) -> R.Tensor:
            with R.dataflow():
                lv0 = R.call_dps_packed("conv1x1", (x, w0), R.Tensor((32, 32), dtype="float32"))
                lv1 = R.call_dps_packed("bias_add", (lv0, bias0), R.Tensor((32, 32), dtype="float32"))
                lv2 = R.call_dps_packed("my_relu", (lv1), R.Tensor((32, 32), dtype="float32"))
                lv3 = R.call_dps_packed("conv1x1", (x, w1), R.Tensor((32, 32), dtype="float32"))
                lv4 = R.call_dps_packed("bias_add", (lv3, bias1), R.Tensor((32, 32), dtype="float32"))
                lv5 = R.call_dps_packed("my_relu", (lv4), R.Tensor((32, 32), dtype="float32"))
                lv6 = R.call_dps_packed("concat", (lv2, lv5), R.Tensor((32, 64), dtype="float32"))
                R.output(lv6)
            return lv6

    dfb = CBRx2["main"].body.blocks[0]
    with PatternContext() as ctx:  # noqa: F405
        cbr0 = is_call_dps_packed("conv1x1") >> is_call_dps_packed("bias_add") >> is_call_dps_packed("my_relu")
        cbr1 = cbr0.dup()
        assert cbr0.patterns[0] != cbr1.patterns[0]
        is_var("x").fork_to(cbr0, cbr1)
        matched = ctx.match_dfb(dfb)
        assert matched is not None
        chains = sorted([matched[chain[j]].name_hint for j in range(3)] for chain in (cbr0, cbr1))
        assert chains == [["lv0", "lv1", "lv2"], ["lv3", "lv4", "lv5"]]


def test_patterns_have_classes_and_fields() -> None:
    x = is_var("x")
    assert isinstance(x, VarPattern) and x.name == "x"  # noqa: F405
    assert isinstance(wildcard(), WildcardPattern)  # noqa: F405
    add = is_op("relax.add")(x, wildcard())
    assert isinstance(add, CallPattern) and add.args[0] == x  # noqa: F405
    assert isinstance(add.op, ExprPattern) and add.op.op.name == "relax.add"  # noqa: F405
    either = add | x
    assert isinstance(either, OrPattern) and either.left == add  # noqa: F405
    assert isinstance(add & x.has_dtype("float32"), AndPattern)  # noqa: F405
    assert isinstance(x.has_shape([2]), ShapePattern) and x.has_shape([2]).shape == [2]  # noqa: F405
    pair = is_tuple([x, wildcard()])  # noqa: F405
    assert isinstance(pair, TuplePattern) and pair.fields[0] == x  # noqa: F405
    assert isinstance(pair[1], TupleGetItemPattern) and pair[1].index == 1  # noqa: F405
    call = CallPattern(ExprPattern(tvm.ir.Op.get("relax.add")), [wildcard()], varg_default_wildcard=True)  # noqa: F405
    a = relax.Var("a", R.Tensor((2,), "float32"))
    assert call.match(relax.op.add(a, a)) and not call.match(relax.op.exp(a))
    copy = add.dup()
    assert isinstance(copy, CallPattern) and copy != add and copy.args[0] != x  # noqa: F405
    assert copy.args[0].name == "x"
    # The keys of a match are the user's own pattern objects.
    found = add.extract_matched_expr(relax.op.add(relax.Var("x", R.Tensor((2,), "float32")), a))
    assert found is not None and any(key is add for key in found)


def test_attributes_of_functions() -> None:
    func = relax.Function([], relax.const(1.0), attrs={"Composite": "abc"})
    assert wildcard().has_attr({"Composite": "abc"}).match(func)
    assert not wildcard().has_attr({"Composite": "abd"}).match(func)
    assert not wildcard().has_attr({"Codegen": "abc"}).match(func)


def test_attributes_of_the_wrong_kind_never_match() -> None:
    with pytest.raises(ValueError, match="the attribute 'keepdims' of relax.sum is a number"):
        is_op("relax.sum")(wildcard()).has_attr({"keepdims": "yes"})


def test_identity_replacement_of_variables() -> None:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    with PatternContext() as ctx:  # noqa: F405
        exp = is_op("relax.exp")(wildcard())
    same = rewrite_bindings(ctx, lambda m, _: {m[exp]: m[exp]}, main)  # noqa: F405
    tvm.ir.assert_structural_equal(same, main)
    with pytest.raises(ValueError, match="depend on itself"):
        rewrite_bindings(ctx, lambda m, _: {m[exp]: relax.op.sin(m[exp])}, main)  # noqa: F405
    with pytest.raises(TypeError, match="must return a dict from variables to expressions, got 3"):
        rewrite_bindings(ctx, lambda m, _: 3, main)  # noqa: F405


def test_replacements_use_types_of_their_context() -> None:
    @R.rewriter
    class Loose:
        @R.function
        def pattern(A: R.Tensor(ndim=2, dtype="float32")):
            return R.exp(A)

        @R.function
        def replacement(A: R.Tensor(ndim=2, dtype="float32")):
            return R.sin(R.negative(A))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32")):
            return R.exp(x)

    after = Loose(Module)
    parses_back(after)
    assert "match_cast" not in after.script()
    x = np.ones((3, 2), "float32")
    np.testing.assert_allclose(run(after, x)[0], np.sin(-x), rtol=1e-6)


def test_rewriting_a_long_block_with_a_context() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(1000):
                y = bb.emit(relax.op.cos(bb.emit(relax.op.sin(y))))
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    with PatternContext() as ctx:  # noqa: F405
        sin = is_op("relax.sin")(wildcard())
        cos = is_op("relax.cos")(sin)
        sin >> cos
    seen = []

    def rewriter(matchings, bindings):
        seen.append(matchings[cos])
        return {matchings[cos]: relax.op.nn.relu(bindings[matchings[sin]].args[0])}

    func = rewrite_bindings(ctx, rewriter, bb.get()["main"])  # noqa: F405
    assert len(seen) == 1000
    text = func.script()
    assert text.count("R.nn.relu") == 1000 and "R.cos" not in text and "R.sin" not in text

"""Tests the dataflow pattern language as TVM users write it."""

import textwrap

import numpy as np
import pliant as tvm
import pytest
from pliant import relax, tir
from pliant.relax.dpl import (
    DFPattern,
    PatternContext,
    PatternMatchingRewriter,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@R.function
def two_adds(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(a, y)
        c = R.add(b, R.const(1.0, "float32"))
        R.output(c)
    return c


def value(func, i):
    return func.body.blocks[0].bindings[i].value


def var2val(func):
    return {b.var: b.value for block in func.body.blocks for b in block.bindings}


def test_expressions_match():
    x = relax.Var("x", R.Tensor((4,), "float32"))
    y = relax.Var("y", R.Tensor((4,), "float32"))
    add = is_op("relax.add")
    assert add(is_var("x"), is_var("y")).match(R.add(x, y))
    assert add(is_var("y"), is_var("x")).match(R.add(x, y)), "a sum's operands swap"
    assert not is_op("relax.subtract")(is_var("y"), is_var("x")).match(R.subtract(x, y))
    assert is_op("relax.exp")(add(wildcard(), wildcard())).match(R.exp(R.add(x, y)))
    assert wildcard().match(x) and is_var().match(x) and not is_var("z").match(x)
    assert is_const().match(relax.const(1.0)) and not is_const().match(x)
    assert is_expr(relax.const([1.0, 2.0])).match(relax.const([1.0, 2.0]))
    assert not is_expr(relax.const([1.0, 2.0])).match(relax.const([1.0, 3.0]))
    assert is_gv("f").match(relax.GlobalVar("f")) and not is_gv("g").match(relax.GlobalVar("f"))
    assert is_tuple([is_var("x"), is_var("y")]).match(relax.Tuple([x, y]))
    assert is_tuple([is_var("y"), is_var("x")], unordered=True).match(relax.Tuple([x, y]))
    assert not is_tuple([is_var("y"), is_var("x")]).match(relax.Tuple([x, y]))
    assert is_shape([1, 2]).match(relax.ShapeExpr([1, 2])) and not is_shape([1, 3]).match(relax.ShapeExpr([1, 2]))


def test_constraints():
    x = relax.Var("x", R.Tensor((4, 8), "float32"))
    total = R.sum(x, axis=1, keepdims=True)
    assert has_dtype("float32").match(x) and not wildcard().has_dtype("int32").match(x)
    assert wildcard().has_shape([4, 8]).match(x) and not wildcard().has_shape([4, 9]).match(x)
    assert is_op("relax.sum")(wildcard()).has_attr({"axis": [1], "keepdims": True}).match(total)
    assert not has_attr({"keepdims": False}).match(total)
    assert wildcard().has_struct_info(R.Tensor(dtype="float32", ndim=2)).match(x)
    assert not wildcard().has_struct_info(R.Tensor(ndim=3)).match(x)
    n = tvm.tir.Var("n", "int64")
    assert not wildcard().has_shape([n, n]).match(x)
    assert wildcard().has_shape([n, n * 2]).match(x)
    one = is_op("relax.sum")(wildcard()) & wildcard().has_shape([4, 1])
    assert one.match(total) and (is_const() | one).match(total)
    assert not (~one).match(total) and (~is_const()).match(total)


def test_matching_through_variables():
    p = is_op("relax.multiply")(is_op("relax.add")(wildcard(), wildcard()), wildcard())
    assert not p.match(value(two_adds, 1))
    assert p.match(value(two_adds, 1), var2val=var2val(two_adds))
    found = p.extract_matched_expr(value(two_adds, 1), var2val(two_adds))
    assert found is not None and found[p].op.name == "relax.multiply"
    shared = wildcard()
    same = is_op("relax.multiply")(is_op("relax.add")(wildcard(), shared), shared)
    assert same.extract_matched_expr(value(two_adds, 1), var2val(two_adds))[shared].name_hint == "y"
    assert shared.dup() != shared and same.optional(is_op("relax.exp")).match(value(two_adds, 1), var2val(two_adds))


def test_calls_of_functions():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def copy(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            for i in range(4):
                b[i] = a[i]

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            a = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_dps_packed("g", (a,), out_sinfo=R.Tensor((4,), "float32"))
            c = R.call_packed("h", b, sinfo_args=R.Tensor((4,), "float32"))
            d = (c, b)
            e = d[1]
            return e

    main = Mod["main"]
    vals = var2val(main)
    assert is_call_tir("copy", [is_var("x")]).match(value(main, 0), vals)
    assert not is_call_tir("other").match(value(main, 0), vals)
    assert is_call_dps_packed("g", [is_call_tir("copy")]).match(value(main, 1), vals)
    assert is_call_packed("h", [wildcard()]).match(value(main, 2), vals)
    assert is_call_packed("h").match(value(main, 2), vals) and not is_call_packed("g").match(value(main, 2), vals)
    assert is_tuple_get_item(is_tuple([wildcard(), wildcard()]), 1).match(value(main, 4), vals)
    assert not is_dfv().match(main.params[0])


def test_impossible_patterns_are_rejected():
    with pytest.raises(ValueError, match=r"no operator 'relax.ad'.*did you mean 'relax.add'"):
        is_op("relax.ad")
    with pytest.raises(ValueError, match=r"can never match: operator relax.add takes 2 operands \(x1, x2\), but the pattern has 1"):
        is_op("relax.add")(wildcard())
    with pytest.raises(ValueError, match=r"can never match: no value matches both"):
        is_op("relax.exp")(wildcard()) & is_op("relax.sqrt")(wildcard())
    with pytest.raises(ValueError, match="no attribute 'axs'"):
        is_op("relax.sum")(wildcard()).has_attr({"axs": 1})
    with pytest.raises(ValueError, match="relax.exp returns a tensor, which has no fields"):
        is_tuple_get_item(is_op("relax.exp")(wildcard()), 0)
    with pytest.raises(ValueError, match="never match: .*3.*4"):
        is_op("relax.add")(wildcard().has_shape([3]), wildcard().has_shape([4]))
    with pytest.raises(ValueError, match="no value matches both is_shape.* and is_const"):
        is_shape([1]) & is_const()
    # These match: sizes that may be equal, and fields of tuples.
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    is_op("relax.add")(wildcard().has_shape([3, n]), wildcard().has_shape([1, m]))
    is_op("relax.reshape")(wildcard().has_shape([2, 3]), wildcard().has_shape([6]))
    is_op("relax.take")(wildcard().has_shape([2, 3]), wildcard().has_shape([6]))
    is_op("relax.reshape")(wildcard(), is_tuple([wildcard(), wildcard()]))
    is_tuple_get_item(is_op("relax.split")(wildcard()), 1)
    is_tuple_get_item(is_op("relax.while_loop")(wildcard(), wildcard(), varg_default_wildcard=True), 0)
    with pytest.raises(TypeError, match="is not a pattern"):
        is_op("relax.add")(wildcard(), 1)
    with pytest.raises(ValueError, match="with PatternContext"):
        wildcard() >> wildcard()


def test_rewrite_call():
    x, y = wildcard(), wildcard()
    pattern = is_op("relax.multiply")(is_op("relax.add")(x, y), y)
    seen = []

    def rewrite(expr, matchings):
        seen.append((expr.op.name, matchings[x].name_hint, matchings[y].name_hint))
        assert all(isinstance(p, DFPattern) for p in matchings)
        return R.subtract(R.exp(matchings[x]), matchings[y])

    out = rewrite_call(pattern, rewrite, two_adds)
    assert seen == [("relax.multiply", "x", "y")]
    ops = [b.value.op.name for b in out.body.blocks[0].bindings]
    assert ops == ["relax.exp", "relax.subtract", "relax.add"]
    assert rewrite_call(pattern, lambda expr, _: expr, two_adds).same_as(two_adds)
    a, b = np.full((2, 4), 0.5, "float32"), np.full((2, 4), 2.0, "float32")
    mod = tvm.IRModule({"main": out.with_attr("global_symbol", "main")})
    got = tvm.compile(mod)(a, b).numpy()
    np.testing.assert_allclose(got, np.exp(a) - b + 1, rtol=1e-6)


def test_rewriting_errors():
    p = is_op("relax.add")(wildcard(), wildcard())
    args = list(p.node.matches(value(two_adds, 0), False) or [])
    assert len(args) == 3

    def swap(expr, _):
        return R.add(expr.args[1], expr.args[0])

    with pytest.raises(ValueError, match="rewrite rules do not terminate"):
        rewrite_call(p, swap, two_adds)

    def fails(expr, _):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rewrite_call(p, fails, two_adds)
    with pytest.raises(ValueError, match="the replacement of the value of 'a' is of type"):
        rewrite_call(p, lambda expr, _: R.sum(expr.args[0]), two_adds)
    with pytest.raises(ValueError, match="the replacement of the value of 'a' is a string, but the replaced value is of type R.Tensor"):
        rewrite_call(p, lambda expr, _: R.str("s"), two_adds)


def test_combined_products():
    @R.function
    def qkv(x: R.Tensor(("n", 8), "float32"), q: R.Tensor((8, 4), "float32"), k: R.Tensor((8, 4), "float32"), v: R.Tensor((8, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, q)
            b = R.matmul(x, k)
            c = R.matmul(x, v)
            out = (a, b, c)
            R.output(out)
        return out

    with PatternContext() as ctx:
        inp, wq, wk, wv = wildcard(), wildcard(), wildcard(), wildcard()
        m1, m2, m3 = (is_op("relax.matmul")(inp, w) for w in (wq, wk, wv))

    def rewrite(matchings, bindings):
        assert matchings[m1] in bindings
        weights = R.concat([matchings[wq], matchings[wk], matchings[wv]], axis=1)
        parts = R.split(R.matmul(matchings[inp], weights), 3, axis=1)
        return {matchings[m]: parts[i] for i, m in enumerate((m1, m2, m3))}

    out = rewrite_bindings(ctx, rewrite, qkv)
    assert str(out).count("R.matmul") == 1
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in ((3, 8), (8, 4), (8, 4), (8, 4))]
    got = tvm.compile(tvm.IRModule({"main": out.with_attr("global_symbol", "main")}))(*args)
    for part, w in zip(got, args[1:], strict=True):
        np.testing.assert_allclose(part.numpy(), args[0] @ w, rtol=1e-5, atol=1e-5)


def test_pattern_contexts_match_blocks():
    @R.function
    def func(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.sqrt(a)
            c = R.negative(a)
            d = R.add(b, c)
            R.output(d)
        return d

    block = func.body.blocks[0]
    with PatternContext() as ctx:
        exp, sqrt, neg = (is_op(f"relax.{n}")(wildcard()) for n in ("exp", "sqrt", "negative"))
        exp.fork_to(sqrt, neg)
    found = ctx.match_dfb(block)
    assert found is not None and [found[p].name_hint for p in (exp, sqrt, neg)] == ["a", "b", "c"]
    with PatternContext() as ctx:
        is_op("relax.exp")(wildcard()) >> is_op("relax.sqrt")(wildcard())
    assert ctx.match_dfb(block) is None, "something else uses exp"
    with PatternContext() as ctx:
        seq = is_op("relax.exp")(wildcard()) ^ is_op("relax.sqrt")(wildcard()) >> is_op("relax.add")(wildcard(), wildcard())
        assert len(seq) == 3
    assert ctx.match_dfb(block) is not None


def test_rewriters():
    @R.rewriter
    class AddToMultiply:
        @R.function
        def pattern(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("n", "k"), "float32")):
            c = R.add(a, b)
            return c

        @R.function
        def replacement(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("n", "k"), "float32")):
            c = R.multiply(a, b)
            return c

    out = AddToMultiply(two_adds)
    # The second sum has a scalar operand, which does not have shape (n, k).
    assert [b.value.op.name for b in out.body.blocks[0].bindings] == ["relax.multiply", "relax.multiply", "relax.add"]
    drop = PatternMatchingRewriter.from_pattern(
        is_op("relax.multiply")(wildcard(), wildcard()), lambda expr, _: expr.args[0]
    )
    both = (AddToMultiply | drop)(two_adds)
    assert [b.value.op.name for b in both.body.blocks[0].bindings] == ["relax.add"]
    mod = tvm.IRModule({"main": two_adds})
    assert "R.multiply" in str(AddToMultiply(mod)["main"])


def test_predefined_patterns():
    x = relax.Var("x", R.Tensor((4, 8), "float32"))
    w = relax.Var("w", R.Tensor((8, 2), "float32"))
    b = relax.Var("b", R.Tensor((2,), "float32"))
    p = make_fused_bias_activation_pattern("relax.matmul", with_bias=True, activation="relax.nn.relu")
    assert p.match(R.nn.relu(R.add(R.matmul(x, w), b))) and not p.match(R.add(R.matmul(x, w), b))


def test_rewriters_from_script():
    text = """
    from pliant.script import relax as R

    @R.rewriter
    class ExpToLog:
        @R.function
        def pattern(a: R.Tensor(("n",), "float32")):
            c = R.exp(a)
            return c

        @R.function
        def replacement(a: R.Tensor(("n",), "float32")):
            c = R.log(a)
            return c
    """
    made = tvm.script.from_source(textwrap.dedent(text))
    assert isinstance(made, PatternMatchingRewriter) and made.info.name == "ExpToLog"


def test_replacements_use_values_of_the_function():
    rule = PatternMatchingRewriter.from_pattern(
        is_op("relax.multiply")(wildcard(), wildcard()), lambda expr, _: relax.Var("loose", expr.struct_info)
    )
    with pytest.raises(ValueError, match="the replacement of a matched value uses the undefined variable 'loose'"):
        rule(two_adds)


def test_replacement_sizes_checked_at_run_time():
    @R.function
    def func(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, x)
            R.output(b)
        return b

    with PatternContext() as ctx:
        exp = is_op("relax.exp")(wildcard())
    after = rewrite_bindings(ctx, lambda found, _: {found[exp]: relax.const(np.ones((3, 4), "float32"))}, func)
    run = relax.VirtualMachine(relax.build(tvm.IRModule({"main": after})))["main"]
    x = np.zeros((3, 4), "float32")
    np.testing.assert_array_equal(run(x).numpy(), np.ones((3, 4)))
    with pytest.raises(tvm.PliantError):
        run(np.zeros((2, 4), "float32"))


def test_shape_patterns_use_symbols_of_the_function() -> None:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", "m"), "float32")):
        n, m = T.int64(), T.int64()
        a = R.flatten(x)
        b = R.flatten(y)
        return (a, b)

    n, m = main.params[1].struct_info.shape
    a, b = main.body.blocks[0].bindings[0].value, main.body.blocks[0].bindings[1].value
    flat = is_op("relax.flatten")(wildcard())
    assert flat.has_shape([n * 4]).match(a) and flat.has_shape([n * m]).match(b)
    assert not flat.has_shape([n * 4 + 1]).match(a)
    # A symbol of the function that is already bound is not guessed again.
    other = tir.Var("other", "int64")
    assert not wildcard().has_shape([other, other + n]).match(main.params[0])
    k = tir.Var("k", "int64")
    assert flat.has_shape([k * 2]).match(a) and not flat.has_shape([k * 3]).match(a)


def test_matches_with_unknown_attributes_have_unknown_types():
    indices = is_op("relax.topk")(wildcard()).has_attr({"dtype": "int32"}).has_dtype("int32")

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        i = R.topk(x, 2, ret_type="indices", dtype="int32")
        return i

    assert indices.match(main.body.blocks[0].bindings[0].value)


def test_identity_replacement_terminates():
    x, w, z = wildcard(), wildcard(), wildcard()
    pattern = is_op("relax.add")(is_op("relax.matmul")(x, w), z)

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32"), z: R.Tensor((4,), "float32")):
        a = R.matmul(x, w)
        b = R.add(a, z)
        return b

    def again(_, m):
        return relax.op.add(relax.op.matmul(m[x], m[w]), m[z])

    tvm.ir.assert_structural_equal(relax.dpl.rewrite_call(pattern, again, main), main)

    def typed(_, m):
        return relax.op.add(relax.op.matmul(m[x], m[w], out_dtype="float32"), m[z])

    assert relax.dpl.rewrite_call(pattern, typed, main).script().count('out_dtype="float32"') == 1


def test_replacements_cannot_use_later_bindings() -> None:
    later = two_adds.body.blocks[0].bindings[-1].var
    first = two_adds.body.blocks[0].bindings[0].value
    with pytest.raises(ValueError, match="callback of rewrite_call.*used outside of its scope"):
        rewrite_call(is_op("relax.add")(wildcard(), wildcard()), lambda e, _: R.exp(later) if e.same_as(first) else e, two_adds)

"""Tests patterns as users of TVM write them; only the import at the top differs."""

from __future__ import annotations

import numpy as np
import pliant as tvm
import pytest
from pliant import relax
from pliant.relax.analysis import get_var2val
from pliant.relax.dpl import (
    PatternContext,
    PatternMatchingRewriter,
    has_dtype,
    is_call_dps_packed,
    is_call_tir,
    is_const,
    is_gv,
    is_op,
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


def run(mod, *args):
    if isinstance(mod, relax.Function):
        mod = tvm.IRModule.from_expr(mod.with_attr("global_symbol", "main"))
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in args]).numpy()


@tvm.script.ir_module
class Module:
    @T.prim_func
    def tir_matmul(x: T.handle, y: T.handle, z: T.handle) -> None:
        T.func_attr({"global_symbol": "tir_matmul"})
        k = T.int32()
        A = T.match_buffer(x, (32, 32))
        B = T.match_buffer(y, (32, 32))
        C = T.match_buffer(z, (32, 32))
        for i0, j0, k0 in T.grid(32, 32, 32):
            with T.block():
                i, j, k = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    C[i, j] = 0.0
                C[i, j] += A[i, k] * B[j, k]

    @T.prim_func
    def tir_relu(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "tir_relu"})
        A = T.match_buffer(x, (32, 32))
        B = T.match_buffer(y, (32, 32))
        for i, j in T.grid(32, 32):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], 0.0)

    @R.function
    def main(x: R.Tensor((32, 32), "float32"), w: R.Tensor((32, 32), "float32")) -> R.Tuple(R.Tensor, R.Tensor):
        cls = Module
        with R.dataflow():
            lv0 = R.call_tir(cls.tir_matmul, (x, w), R.Tensor((32, 32), dtype="float32"))
            lv1 = R.call_tir(cls.tir_relu, (lv0), R.Tensor((32, 32), dtype="float32"))
            lv2 = R.call_tir(cls.tir_matmul, (lv1, w), R.Tensor((32, 32), dtype="float32"))
            R.output(lv2)
        return (lv2, lv2)


main_fn = Module["main"]
bindings = main_fn.body.blocks[0].bindings


def test_expression_patterns() -> None:
    ep = is_gv("tir_matmul")
    assert ep.match(Module.get_global_var("tir_matmul"))
    assert not ep.match(Module.get_global_var("tir_relu"))
    vp = is_var("x")
    assert vp.match(relax.Var("x"))
    assert not vp.match(relax.Var("y"))
    assert wildcard().match(relax.Var("x"))
    assert is_const().match(relax.const([[0.1, 1.1, 2.1], [3.1, 4.1, 5.1]]))
    assert has_dtype("float32").match(bindings[0].value)
    assert wildcard().has_dtype("float32").match(bindings[0].var)
    assert wildcard().has_shape([32, 32]).match(bindings[0].var)
    assert not wildcard().has_shape([32, 32, 32]).match(bindings[0].var)
    assert wildcard().has_shape([32, 32]).match(bindings[0].value)
    shape = relax.ShapeExpr([tvm.tir.IntImm("int64", 5), tvm.tir.IntImm("int64", 10)])
    assert relax.dpl.is_shape([5, 10]).match(shape)
    pp = tvm.relax.dpl.is_op("relax.add")(is_var("a"), is_var("b"))
    a, b = relax.Var("a", R.Tensor("float32", ndim=1)), relax.Var("b", R.Tensor("float32", ndim=1))
    assert pp.match(relax.op.add(a, b)) and not pp.match(relax.op.multiply(a, b))


def test_tuples_and_their_fields() -> None:
    x, y, z = relax.Var("x"), relax.Var("y"), relax.Var("z")
    assert is_tuple([is_var("x"), is_var("y")]).match(relax.Tuple([x, y]))
    assert not is_tuple([is_var("x")]).match(relax.Tuple([x, y]))
    assert not is_tuple([is_var("x"), is_var("y")]).match(relax.Tuple([x, z]))
    assert is_tuple([is_var("z"), is_var("x"), is_var("y")], unordered=True).match(relax.Tuple([x, y, z]))
    fields = R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32"))
    pair = relax.Var("pair", fields)
    assert is_tuple_get_item(is_var("pair"), 1).match(relax.TupleGetItem(pair, 1))
    assert not is_tuple_get_item(is_var("pair"), 0).match(relax.TupleGetItem(pair, 1))
    assert is_tuple_get_item(wildcard()).match(relax.TupleGetItem(pair, 1))


def test_matching_through_variable_bindings() -> None:
    var2val = get_var2val(main_fn)
    relu = is_call_tir("tir_relu", [is_call_tir("tir_matmul", [wildcard(), wildcard()])])
    assert relu.match(bindings[1].value, var2val=var2val)
    assert is_call_tir("tir_matmul").match(bindings[0].value)
    assert not is_call_tir("tir_relu", [is_call_tir("tir_relu")]).match(bindings[1].value, var2val=var2val)
    found = relu.extract_matched_expr(bindings[1].value, var2val)
    assert found[relu] == bindings[1].value


def test_or_and_not_patterns() -> None:
    x = relax.Var("x", R.Tensor((4,), "float32"))
    either = is_op("relax.exp")(wildcard()) | is_op("relax.sqrt")(wildcard())
    assert either.match(relax.op.exp(x)) and either.match(relax.op.sqrt(x)) and not either.match(relax.op.sin(x))
    both = is_op("relax.exp")(wildcard()) & wildcard().has_shape([4])
    assert both.match(relax.op.exp(x)) and not both.match(relax.op.sqrt(x))
    neither = ~is_op("relax.exp")(wildcard())
    assert neither.match(relax.op.sqrt(x)) and not neither.match(relax.op.exp(x))
    assert is_op("relax.sum")(wildcard()).has_attr({"keepdims": True}).match(relax.op.sum(x, keepdims=True))
    assert not is_op("relax.sum")(wildcard()).has_attr({"keepdims": True}).match(relax.op.sum(x))


def test_a_chain_of_two() -> None:
    with PatternContext() as ctx:
        n0 = is_call_tir("tir_matmul")
        n1 = is_call_tir("tir_relu")
        n0 >> n1
        dfb = main_fn.body.blocks[0]
        matched = ctx.match_dfb(dfb)
        assert matched
        assert matched[n0] == dfb.bindings[0].var
        assert matched[n1] == dfb.bindings[1].var


def test_a_chain_of_three_with_used_by() -> None:
    with PatternContext() as ctx:
        n0, n1, n2 = is_call_tir("tir_matmul"), is_call_tir("tir_relu"), is_call_tir("tir_matmul")
        n0.only_used_by(n1)
        n1.used_by(n2, 0)
        assert ctx.match_dfb(main_fn.body.blocks[0]) is not None
    with PatternContext() as ctx:
        n0, n1 = is_call_tir("tir_matmul"), is_call_tir("tir_relu")
        (n0 >> n1) >> is_call_tir("tir_relu")
        assert ctx.match_dfb(main_fn.body.blocks[0]) is None
    with PatternContext() as ctx:
        seq = is_call_tir("tir_matmul") >> is_call_tir("tir_relu")
        seq >> is_call_tir("tir_matmul")
        assert ctx.match_dfb(main_fn.body.blocks[0])


@tvm.script.ir_module
class Diamond:
    @R.function
    def main(x: R.Tensor((32, 32), "float32"), w: R.Tensor((32, 32), "float32")) -> R.Tensor:
        with R.dataflow():
            #   matmul
            #  /      \
            # relu  sigmoid
            #  \      /
            #     add
            lv0 = R.call_dps_packed("extern_matmul", (x, w), R.Tensor((32, 32), dtype="float32"))
            lv1 = R.call_dps_packed("extern_relu", (lv0,), R.Tensor((32, 32), dtype="float32"))
            lv2 = R.call_dps_packed("extern_sigmoid", (lv0), R.Tensor((32, 32), dtype="float32"))
            lv3 = R.call_dps_packed("extern_add", (lv1, lv2), R.Tensor((32, 32), dtype="float32"))
            R.output(lv3)
        return lv3


@pytest.mark.parametrize("fork", [True, False])
def test_a_diamond(fork: bool) -> None:
    with PatternContext() as ctx:
        n0 = is_call_dps_packed("extern_matmul")
        n1 = is_call_dps_packed("extern_relu")
        n2 = is_call_dps_packed("extern_sigmoid")
        n3 = is_call_dps_packed("extern_add")
        if fork:
            n0.fork_to(n1, n2)
        else:
            n0.used_by(n1)
            n0.used_by(n2)
        n1 ^ n3
        n2 >> n3
        matched = ctx.match_dfb(Diamond["main"].body.blocks[0])
    assert [matched[n].name_hint for n in (n0, n1, n2, n3)] == ["lv0", "lv1", "lv2", "lv3"]
    with PatternContext() as ctx:
        is_call_dps_packed("extern_matmul") >> is_call_dps_packed("extern_relu")
        # The product is used twice.
        assert not ctx.match_dfb(Diamond["main"].body.blocks[0])


def test_a_call_is_rewritten() -> None:
    @R.function(private=True)
    def before(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            lv1 = R.multiply(x, x)
            lv2 = R.add(x, x)
            lv3 = R.add(lv2, lv2)
            gv = R.subtract(lv1, lv3)
            R.output(gv)
        return gv

    x = wildcard()
    pattern = is_op("relax.add")(x, x)

    def rewriter(_, matchings):
        return R.multiply(matchings[x], R.const(2, "float32"))

    after = rewrite_call(pattern, rewriter, before)

    @R.function(private=True)
    def expected(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            lv1 = R.multiply(x, x)
            lv2 = R.multiply(x, R.const(2, "float32"))
            lv3 = R.multiply(lv2, R.const(2, "float32"))
            gv = R.subtract(lv1, lv3)
            R.output(gv)
        return gv

    tvm.ir.assert_structural_equal(after, expected)
    value = np.array([1.0, -2.0, 0.5], "float32")
    tvm.testing.assert_allclose(run(after, value), value * value - 4 * value)


def test_attention_becomes_one_operator() -> None:
    @R.function(private=True)
    def main(
        Q: R.Tensor((2, 8, 8, 16), "float32"),
        K: R.Tensor((2, 8, 8, 16), "float32"),
        V: R.Tensor((2, 8, 8, 16), "float32"),
    ) -> R.Tensor((2, 8, 8, 16), "float32"):
        with R.dataflow():
            lv = R.permute_dims(Q, axes=[0, 2, 1, 3])
            lv1 = R.reshape(lv, R.shape([16, 8, 16]))
            lv2 = R.permute_dims(K, axes=[0, 2, 1, 3])
            lv3 = R.reshape(lv2, R.shape([16, 8, 16]))
            lv4 = R.permute_dims(V, axes=[0, 2, 1, 3])
            lv5 = R.reshape(lv4, R.shape([16, 8, 16]))
            lv6 = R.permute_dims(lv3, axes=[0, 2, 1])
            lv7 = R.matmul(lv1, lv6)
            lv8 = R.multiply(lv7, R.const(0.25, "float32"))
            lv9 = R.nn.softmax(lv8, axis=-1)
            lv10 = R.matmul(lv9, lv5)
            lv11 = R.reshape(lv10, R.shape([2, 8, 8, 16]))
            gv = R.permute_dims(lv11, axes=[0, 2, 1, 3])
            R.output(gv)
        return gv

    def heads_first(tensor):
        transposed = is_op("relax.permute_dims")(tensor)
        return is_op("relax.reshape")(transposed, wildcard())

    Q, K, V = wildcard(), wildcard(), wildcard()
    scores = is_op("relax.matmul")(heads_first(Q), is_op("relax.permute_dims")(heads_first(K)))
    scaled = is_op("relax.multiply")(scores, is_const()) | is_op("relax.divide")(scores, is_const())
    weights = is_op("relax.nn.softmax")(scaled)
    product = is_op("relax.matmul")(weights, heads_first(V))
    pattern = is_op("relax.permute_dims")(is_op("relax.reshape")(product, wildcard()))

    @tvm.register_func("test.from_tvm.attention", override=True)
    def attention(q, k, v, out):
        q, k, v = (t.numpy().transpose(0, 2, 1, 3) for t in (q, k, v))
        s = q @ k.transpose(0, 1, 3, 2) * 0.25
        e = np.exp(s - s.max(-1, keepdims=True))
        out.copyfrom(np.ascontiguousarray((e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3)))

    def rewriter(expr, matchings):
        args = [matchings[Q], matchings[K], matchings[V]]
        return R.call_dps_packed("test.from_tvm.attention", args, out_sinfo=expr.struct_info)

    rewritten = rewrite_call(pattern, rewriter, main)
    values = [b.value for b in rewritten.body.blocks[0].bindings]
    assert len(values) == 1 and values[0].op.name == "relax.call_dps_packed"
    inputs = [np.random.rand(2, 8, 8, 16).astype("float32") for _ in range(3)]
    tvm.testing.assert_allclose(run(rewritten, *inputs), run(main, *inputs), rtol=1e-5, atol=1e-6)


def test_parallel_matmuls_are_merged() -> None:
    @R.function(private=True)
    def qkv(
        x: R.Tensor(("n", 64), "float32"),
        w0: R.Tensor((64, 16), "float32"),
        w1: R.Tensor((64, 16), "float32"),
        w2: R.Tensor((64, 16), "float32"),
    ) -> R.Tuple(R.Tensor, R.Tensor, R.Tensor):
        with R.dataflow():
            lv0 = R.matmul(x, w0)
            lv1 = R.matmul(x, w1)
            lv2 = R.matmul(x, w2)
            out = (lv0, lv1, lv2)
            R.output(out)
        return out

    with PatternContext() as ctx:
        inp_pat = wildcard()
        weights = [wildcard(), wildcard(), wildcard()]
        matmuls = [is_op("relax.matmul")(inp_pat, w) for w in weights]

        def rewriter(matchings, _):
            inp = matchings[inp_pat]
            concat = R.concat([matchings[w] for w in weights], axis=1)
            merged = R.matmul(inp, concat)
            return {
                matchings[m]: R.strided_slice(merged, axes=[1], begin=[16 * i], end=[16 * (i + 1)])
                for i, m in enumerate(matmuls)
            }

        rewritten = rewrite_bindings(ctx, rewriter, qkv)
    ops = [b.value.op.name for b in rewritten.body.blocks[0].bindings if isinstance(b.value, relax.Call)]
    assert ops.count("relax.matmul") == 1 and ops.count("relax.strided_slice") == 3
    rng = np.random.default_rng(0)
    x, *w = (rng.random(s, dtype="float32") for s in ((5, 64), (64, 16), (64, 16), (64, 16)))
    mod = tvm.IRModule.from_expr(rewritten.with_attr("global_symbol", "main"))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for got, one in zip(vm["main"](*map(tvm.nd.array, [x, *w])), w, strict=True):
        tvm.testing.assert_allclose(got.numpy(), x @ one, rtol=1e-5)


def test_rewriter_class() -> None:
    @R.rewriter
    class AddToMultiply:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            C = A + A
            return C

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            C = A * R.const(2, "float32")
            return C

    @R.rewriter
    class ExpOfZero:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            return R.exp(A - A)

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            return R.ones_like(A)

    @R.function(private=True)
    def before(A: R.Tensor([16], "float32")):
        with R.dataflow():
            B = A + A
            C = R.exp(B - B)
            D = B * C
            R.output(D)
        return D

    @R.function(private=True)
    def expected(A: R.Tensor([16], "float32")):
        with R.dataflow():
            B = A * R.const(2, "float32")
            C = R.ones_like(B)
            D = B * C
            R.output(D)
        return D

    assert isinstance(AddToMultiply, PatternMatchingRewriter)
    after = (AddToMultiply | ExpOfZero)(before)
    tvm.ir.assert_structural_equal(after, expected)
    mod = tvm.IRModule({"main": before.with_attr("global_symbol", "main")})
    assert "R.ones_like" in tvm.transform.Sequential([AddToMultiply, ExpOfZero])(mod).script()


def test_a_rule_in_a_pass() -> None:
    x, y = wildcard(), wildcard()
    rule = PatternMatchingRewriter.from_pattern(
        is_op("relax.matmul")(is_op("relax.permute_dims")(x), is_op("relax.permute_dims")(y)),
        lambda expr, found: R.permute_dims(R.matmul(found[y], found[x])),
    )

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4, "n"), "float32"), y: R.Tensor((5, 4), "float32")) -> R.Tensor(("n", 5), "float32"):
            with R.dataflow():
                xt = R.permute_dims(x)
                yt = R.permute_dims(y)
                gv = R.matmul(xt, yt)
                R.output(gv)
            return gv

    after = rule(Before)
    assert after.script().count("permute_dims") == 1
    a, b = np.random.rand(4, 3).astype("float32"), np.random.rand(5, 4).astype("float32")
    tvm.testing.assert_allclose(run(after, a, b), a.T @ b.T, rtol=1e-5)


def test_predefined_patterns_partition_a_graph() -> None:
    @tvm.script.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32"), b: R.Tensor((8,), "float32")
        ) -> R.Tensor(("n", 8), "float32"):
            with R.dataflow():
                lv = R.matmul(x, w)
                lv1 = R.add(lv, b)
                gv = R.nn.relu(lv1)
                R.output(gv)
            return gv

    patterns = [
        ("lib.matmul_bias_relu", make_fused_bias_activation_pattern("relax.matmul", with_bias=True, activation="relax.nn.relu")),
        ("lib.matmul", make_fused_bias_activation_pattern("relax.matmul", with_bias=False, activation=None)),
    ]
    mod = relax.transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=False)(Before)
    composite = [f for f in mod.functions.values() if "Composite" in f.attrs]
    assert [f.attrs["Composite"] for f in composite] == ["lib.matmul_bias_relu"]
    x, w, b = (np.random.rand(*s).astype("float32") for s in ((3, 16), (16, 8), (8,)))
    tvm.testing.assert_allclose(run(mod, x, w, b), np.maximum(x @ w + b, 0), rtol=1e-5)


if __name__ == "__main__":
    tvm.testing.main()


def test_list_attributes() -> None:
    x, w = relax.Var("x", R.Tensor((1, 3, 8, 8))), relax.Var("w", R.Tensor((4, 3, 3, 3)))
    conv = relax.op.nn.conv2d(x, w, padding=1, strides=2)
    assert list(conv.attrs.padding) == [1, 1, 1, 1] and list(conv.attrs.strides) == [2, 2] and list(conv.attrs.dilation) == [1, 1]
    assert list(relax.op.nn.conv2d(x, w, padding=(1, 2)).attrs.padding) == [1, 2, 1, 2]
    assert list(relax.op.nn.max_pool2d(x, 2).attrs.padding) == [0, 0, 0, 0]
    assert list(relax.op.sum(x, 1).attrs.axis) == [1] and relax.op.argmax(x, 1).attrs.axis == 1
    assert list(relax.op.expand_dims(x, 0).attrs.axis) == [0] and relax.op.squeeze(x).attrs.axis is None

    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
        return R.sum(R.nn.conv2d(x, w, padding=1), axis=1)

    def matches(pattern: object) -> bool:
        found = []
        rewrite_call(pattern, lambda call, _: found.append(call) or call, main)
        return bool(found)

    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    total = is_op("relax.sum")(wildcard())
    for padding in (1, [1, 1], [1, 1, 1, 1]):
        assert matches(conv.has_attr({"padding": padding}))
    assert not matches(conv.has_attr({"padding": [1, 1, 0, 0]}))
    assert matches(total.has_attr({"axis": 1})) and matches(total.has_attr({"axis": [1]}))

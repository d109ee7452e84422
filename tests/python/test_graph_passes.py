"""Tests graph passes with parameters, from Python: arguments with TVM's names, and invalid arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, tir
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Linear:
    @R.function
    def main(
        x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("m",), "float32")
    ) -> R.Tensor(("n", "m"), "float32"):
        n, m, k = T.int64(), T.int64(), T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w, axes=[1, 0])
            lv = R.matmul(x, wt)
            gv = R.add(lv, b)
            R.output(gv)
        return gv


def run(mod: Any, name: str, *args: Any) -> Any:
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), pliant.cpu())
    return vm[name](*args)


def weights(m: int = 3, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((m, k), dtype="float32"), rng.random(m, dtype="float32")


@pytest.mark.parametrize("by", ["name", "index", "var"])
def test_bind_params_then_fold(by: str) -> None:
    w, b = weights()
    keys = {"name": ["w", "b"], "index": [1, 2], "var": list(Linear["main"].params[1:])}[by]
    mod = relax.transform.BindParams("main", dict(zip(keys, [w, b], strict=True)))(Linear)
    assert len(mod["main"].params) == 1
    mod = relax.transform.FoldConstant()(mod)
    assert "permute_dims" not in mod.script()
    for n in (0, 1, 5):
        x = np.random.default_rng(n).random((n, 2), dtype="float32")
        np.testing.assert_allclose(run(mod, "main", x).numpy(), x @ w.T + b, rtol=1e-5)


def test_bound_tensors_are_copies() -> None:
    w, b = weights()
    expected = w.copy()
    mod = relax.transform.BindParams("main", {"w": w, "b": b})(Linear)
    w[:] = 0
    x = np.ones((1, 2), "float32")
    np.testing.assert_allclose(run(mod, "main", x).numpy(), x @ expected.T + b, rtol=1e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"v": np.zeros(3, "float32")}, "no parameter 'v'.*x, w, b"),
        ({7: np.zeros(3, "float32")}, "no parameter 7"),
        ({"b": np.zeros(3, "float64")}, "'b' has dtype float32, but the tensor has float64"),
        ({"b": np.zeros((3, 1), "float32")}, "'b' has 1 dims, but the tensor has 2"),
        ({"w": np.zeros((3, 2), "float32"), "b": np.zeros(4, "float32")}, "'m' is 3 in 'w' and 4 in 'b'"),
    ],
)
def test_invalid_parameter_bindings(params: dict[Any, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        relax.transform.BindParams("main", params)(Linear)


def test_bind_symbolic_vars() -> None:
    k = next(iter(Linear["main"].params[0].struct_info.shape[1:]))
    for key in ("k", k):
        mod = relax.transform.BindSymbolicVars({key: 2})(Linear)
        assert 'x: R.Tensor(("n", 2)' in mod.script()
    mod = relax.transform.BindSymbolicVars({"n": tir.IntImm("int64", 4)}, "main")(Linear)
    assert 'x: R.Tensor((4, "k")' in mod.script()
    with pytest.raises(Exception, match="no symbolic size 'q'.*k, m, n"):
        relax.transform.BindSymbolicVars({"q": 2})(Linear)
    with pytest.raises(Exception, match="no function 'f'"):
        relax.transform.BindSymbolicVars({"n": 2}, "f")(Linear)
    with pytest.raises(TypeError, match="the value of size 'n' must be an integer or an expression over sizes, not float"):
        relax.transform.BindSymbolicVars({"n": 1.5})
    with pytest.raises(Exception, match="'k' is bound twice"):
        relax.transform.BindSymbolicVars({"k": 2, k: 2})(Linear)


def test_symbols_are_bound_to_expressions() -> None:
    n, k = Linear["main"].params[0].struct_info.shape
    m = Linear["main"].params[2].struct_info.shape[0]
    mod = relax.transform.BindSymbolicVars({m: n * 2 + k})(Linear)
    assert 'b: R.Tensor(("k + n * 2",)' in mod.script()
    x, w, b = np.ones((3, 2), "float32"), np.ones((8, 2), "float32"), np.ones(8, "float32")
    np.testing.assert_allclose(run(mod, "main", x, w, b).numpy(), np.full((3, 8), 3.0))
    with pytest.raises(Exception, match=r"'w' dim 0 must equal k \+ n \* 2 = 8"):
        run(mod, "main", x, w[:7], b[:7])
    # A size of another function's name, and one that is itself bound: all sizes are replaced
    # at once.
    swapped = relax.transform.BindSymbolicVars({"n": tir.Var("rows", "int64"), "k": n})(Linear)
    assert 'x: R.Tensor(("rows", "n"), dtype="float32")' in swapped.script()


def test_lift_and_bundle() -> None:
    w, b = weights()
    mod = relax.transform.LiftTransformParams()(Linear)
    mod = relax.transform.BundleModelParams("weights")(mod)
    assert mod["main"].params[1].name_hint == "weights"
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), pliant.cpu())
    made = vm["main_transform_params"]((w, b))
    x = np.ones((3, 2), "float32")
    np.testing.assert_allclose(vm["main"](x, made).numpy(), x @ w.T + b, rtol=1e-5)


@I.ir_module
class PrefillAndDecode:
    @R.function
    def prefill(
        x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("m",), "float32")
    ) -> R.Tensor(("n", "m"), "float32"):
        n, m, k = T.int64(), T.int64(), T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w, axes=[1, 0])
            twice = R.add(b, b)
            lv = R.matmul(x, wt)
            gv = R.add(lv, twice)
            R.output(gv)
        return gv

    @R.function
    def decode(
        x: R.Tensor((1, "p"), "float32"), v: R.Tensor(("q", "p"), "float32"), c: R.Tensor(("q",), "float32")
    ) -> R.Tensor((1, "q"), "float32"):
        p, q = T.int64(), T.int64()
        R.func_attr({"num_input": 1})
        with R.dataflow():
            vt = R.permute_dims(v, axes=[1, 0])
            again = R.permute_dims(v, axes=[1, 0])
            lv = R.matmul(x, R.add(vt, again))
            gv = R.add(lv, c)
            R.output(gv)
        return gv


@pytest.mark.parametrize("shared", [True, ["prefill", "decode"]])
def test_functions_share_transformed_parameters(shared: Any) -> None:
    mod = relax.transform.LiftTransformParams(shared_transform=shared)(PrefillAndDecode)
    assert relax.analysis.well_formed(mod)
    assert {gv.name_hint for gv in mod.get_global_vars()} == {"prefill", "decode", "transform_params"}
    # What both functions compute is lifted; what only one computes stays in it.
    assert "permute_dims" not in mod["prefill"].script() + mod["decode"].script()
    assert "R.add(b, b)" in mod["prefill"].script() and "R.add(b, b)" not in mod["transform_params"].script()
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), pliant.cpu())
    w, b = weights()
    made = vm["transform_params"]((w, b))
    assert [m.shape for m in made] == [(3,), (2, 3)]
    x = np.random.default_rng(1).random((5, 2), dtype="float32")
    np.testing.assert_allclose(vm["prefill"](x, *made).numpy(), x @ w.T + b + b, rtol=1e-5)
    np.testing.assert_allclose(vm["decode"](x[:1], *made).numpy(), x[:1] @ (w + w).T + b, rtol=1e-5)
    again = relax.transform.LiftTransformParams(shared_transform=shared)(mod)
    pliant.ir.assert_structural_equal(again, mod)


def test_functions_that_cannot_share_parameters_are_reported() -> None:
    with pytest.raises(TypeError, match=r"write \['main'\]"):
        relax.transform.LiftTransformParams(shared_transform="main")
    with pytest.raises(pliant.CompileError, match="no function 'mane'"):
        relax.transform.LiftTransformParams(shared_transform=["mane"])(Linear)
    mixed = Linear.clone()
    mixed["other"] = PrefillAndDecode["prefill"].with_attr("num_input", 2)
    with pytest.raises(pliant.CompileError, match="'main' and 'other' cannot share.* numbers of model parameters differ, 2 and 1"):
        relax.transform.LiftTransformParams(shared_transform=True)(mixed)


def test_update_param_struct_info() -> None:
    seen = []

    def sinfo(var: Any) -> Any:
        seen.append(var.name_hint)
        if var.name_hint == "x":
            rows = tir.Var("rows", "int64")
            return relax.TensorStructInfo([rows, var.struct_info.shape[1]], "float32")
        return None

    mod = relax.transform.UpdateParamStructInfo(sinfo)(Linear)
    assert seen == ["x", "w", "b"]
    assert 'x: R.Tensor(("rows", "k")' in mod.script()
    assert "gv: R.Tensor((rows, m)" in mod.script()

    def broken(var: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        relax.transform.UpdateParamStructInfo(broken)(Linear)
    with pytest.raises(Exception, match="axis 1 is out of range for a tensor of rank 1"):
        relax.transform.UpdateParamStructInfo(lambda v: relax.TensorStructInfo([7], "float32"))(Linear)


def test_topological_sort_orders() -> None:
    for order in ("depth-first", "breadth-first"):
        for direction in ("from-inputs", "from-outputs"):
            mod = relax.transform.TopologicalSort(order=order, direction=direction)(Linear)
            pliant.ir.assert_structural_equal(mod, Linear)
    with pytest.raises(ValueError, match="order must be one of depth-first, breadth-first, not 'random'"):
        relax.transform.TopologicalSort(order="random")


def test_dataflow_and_dead_code() -> None:
    plain = relax.transform.ToNonDataflow()(Linear)
    assert "dataflow" not in plain.script()
    assert "dataflow" in relax.transform.ConvertToDataflow(min_size=3)(plain).script()
    assert "dataflow" not in relax.transform.ConvertToDataflow(min_size=4)(plain).script()
    assert relax.transform.DeadCodeElimination(["main"])(Linear)["main"] is not None


def test_invalid_pass_parameters_are_reported() -> None:
    with pytest.raises(ValueError, match="min_size must be a non-negative number of bindings, not -1"):
        relax.transform.ConvertToDataflow(min_size=-1)
    mod = pliant.IRModule({"main": relax.Function([], relax.const(1.0))})
    with pytest.raises(pliant.CompileError, match="the entry function 'nope' does not exist.*main"):
        relax.transform.DeadCodeElimination(["nope"])(mod)


def test_unchanged_functions_keep_their_identity() -> None:
    for name in ("CanonicalizeBindings", "EliminateCommonSubexpr", "DeadCodeElimination", "FoldConstant"):
        mod = getattr(relax.transform, name)()(Linear)
        pliant.ir.assert_structural_equal(mod, Linear)


def test_large_constants_are_folded_with_compiled_code() -> None:
    w = np.random.default_rng(0).random((1500, 1000), dtype="float32")

    @I.ir_module
    class Large:
        @R.function
        def main(x: R.Tensor(("n", 1000), "float32"), w: R.Tensor((1500, 1000), "float32")) -> R.Tensor(("n", 1500), "float32"):
            with R.dataflow():
                wt = R.permute_dims(w)
                half = R.multiply(wt, R.const(0.5, "float32"))
                gv = R.matmul(x, half)
                R.output(gv)
            return gv

    bound = relax.transform.BindParams("main", {"w": w})(Large)
    mod = relax.transform.FoldConstant()(bound)
    calls = [b.value.op.name for block in mod["main"].body.blocks for b in block.bindings]
    assert calls == ["relax.matmul"]
    folded = mod["main"].body.blocks[0].bindings[0].value.args[1]
    np.testing.assert_array_equal(folded.data.numpy(), w.T * np.float32(0.5))
    x = np.random.default_rng(1).random((2, 1000), dtype="float32")
    for one in (bound, mod):
        np.testing.assert_allclose(run(one, "main", x).numpy(), x @ w.T / 2, rtol=1e-4)
    with pliant.transform.PassContext(config={"relax.FoldConstant.max_elements": 1000}):
        assert "permute_dims" in relax.transform.FoldConstant()(bound).script()
        assert "permute_dims" not in relax.transform.FoldConstant(max_elements=1 << 21)(bound).script()


def test_builds_fold_deduplicate_and_eliminate() -> None:
    @I.ir_module
    class Wasteful:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            with R.dataflow():
                two = R.add(R.const(1.0, "float32"), R.const(1.0, "float32"))
                a = R.multiply(x, two)
                b = R.multiply(x, R.const(2.0, "float32"))
                dead = R.sqrt(x)
                gv = R.add(a, b)
                R.output(gv)
            return gv

    lowered = relax.get_pipeline("zero")(Wasteful).script()
    assert "sqrt" not in lowered and lowered.count("T.prim_func") == 1
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(pliant.compile(Wasteful)(x).numpy(), 4 * x)
    off = ["FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination"]
    np.testing.assert_array_equal(pliant.compile(Wasteful, disabled_passes=off)(x).numpy(), 4 * x)


def test_written_values_are_neither_folded_nor_merged() -> None:
    @I.ir_module
    class InPlace:
        @T.prim_func(private=True)
        def increment(A: T.Buffer((2,), "float32")):
            for i in range(2):
                with T.block("increment"):
                    vi = T.axis.spatial(2, i)
                    A[vi] = A[vi] + T.float32(1)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
            cls = InPlace
            k = R.add(R.const([1.0, 2.0], "float32"), R.const(1.0, "float32"))
            a = R.add(x, x)
            b = R.add(x, x)
            c = R.call_tir_inplace(cls.increment, (a,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
            d = R.call_tir_inplace(cls.increment, (k,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
            return (b, c, d)

    model = pliant.compile(InPlace)
    x = np.array([3.0, 4.0], "float32")
    for _ in range(3):
        got = [t.numpy().tolist() for t in model(x)]
        assert got == [[6, 8], [7, 9], [3, 4]]


@I.ir_module
class Calls:
    @R.function(private=True)
    def sub(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    @R.function(private=True)
    def rest(x: R.Tensor(("n", "n"), "float32"), y: R.Tensor(("n + m",), "float32")) -> R.Tensor(("m",), "float32"):
        n, m = T.int64(), T.int64()
        return R.ones(R.shape([m]), "float32")

    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor((), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Calls
        return cls.sub(R.add(x, w))

    @R.function
    def other(x: R.Tensor((2, 2), "float32"), y: R.Tensor((5,), "float32")):
        cls = Calls
        return cls.rest(x, y)


def test_binding_functions_that_call_others() -> None:
    assert "x: R.Tensor((3,)" in Calls["main"].bind_symbolic_vars({"n": 3}).script()
    assert len(Calls["main"].bind_params({"w": np.float32(1)}).params) == 1
    a, b = tir.Var("a", "int64"), tir.Var("b", "int64")
    for size in (a + b, a // 2):
        with pytest.raises(pliant.CompileError, match="after replacing symbolic sizes, the function would be ill-formed"):
            Calls["main"].bind_symbolic_vars({"n": size})


@I.ir_module
class Values:
    @R.function
    def main(
        x: R.Tensor(("n", "m"), "float32"),
        t: R.Tuple(R.Tensor((), "float32"), R.Tensor(("m",), "float32")),
        k: R.Prim(value="m"),
        s: R.Shape(["n", "m"]),
        o: R.Object,
    ) -> R.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        y = R.multiply(x, t[0])
        z = R.add(y, t[1])
        return R.reshape(z, s)


def test_binding_values_of_every_kind() -> None:
    x, scale, shift = np.ones((2, 3), "float32"), np.array(2, "float32"), np.arange(3, dtype="float32")
    want = x * scale + shift
    main = Values["main"]
    pair = relax.Tuple([relax.const(2.0, "float32"), relax.const(shift)])
    for bound in ({"t": (scale, shift)}, {"t": pair}):
        func = main.bind_params({**bound, "k": 3, "s": (2, 3), "o": "any"})
        assert [p.name_hint for p in func.params] == ["x"]
        assert func.params[0].struct_info.shape.values[1].value == 3
        np.testing.assert_array_equal(run(pliant.IRModule({"main": func}), "main", x).numpy(), want)
    func = main.bind_params({"k": relax.PrimValue(3), "s": relax.ShapeExpr([2, 3]), "o": relax.const(1)})
    np.testing.assert_array_equal(run(pliant.IRModule({"main": func}), "main", x, (scale, shift)).numpy(), want)
    assert len(relax.transform.BindParams("main", {"t": (scale, shift)})(Values)["main"].params) == 4


def test_bound_numbers_get_the_parameter_type() -> None:
    @R.function
    def main(
        a: R.Tensor((), "float32"),
        b: R.Tensor((2,), "float32"),
        c: R.Prim("int32"),
        d: R.Tuple(R.Prim("int64"), R.Prim("int64")),
        e: R.Shape([]),
        f: R.Prim("bool"),
        g: R.Object,
    ):
        return (a, b, c, d, e, f, g)

    bound = main.bind_params(
        {"a": 2.0, "b": [1.0, 2.0], "c": np.int64(3), "d": (1, 2), "e": (), "f": True, "g": (4, 5)}
    )
    out = run(pliant.IRModule({"main": bound}), "main")
    assert out[0].numpy() == 2 and out[1].numpy().tolist() == [1, 2]
    assert (out[2], tuple(out[3]), tuple(out[4]), out[5], tuple(out[6])) == (3, (1, 2), (), True, (4, 5))
    assert 'R.prim_value(T.int32(3))' in bound.script()


def test_bound_values_of_wrong_types_are_reported() -> None:
    main = Values["main"]
    one = np.array(1, "float32")
    for bound, message in [
        ({"k": 3, "s": (2, 4)}, "the size 'm' is 3 in 'k' and 4 in 's'"),
        ({"t": (one, one)}, r"parameter 't\[1\]' has 1 dims, but the tensor has 0"),
        ({"t": (one,)}, r"parameter 't' is of type R.Tuple.* cannot be bound to a tuple of length 1"),
        ({"t": one}, r"parameter 't' is of type R.Tuple.* cannot be bound to a tensor"),
        ({"s": (-1, 3)}, "the value of 's' sets the size 'n' to -1, but a size cannot be negative"),
        ({"k": -3}, "the value of 'k' sets the size 'm' to -3, but a size cannot be negative"),
        ({"s": (2, 3, 4)}, r"is of type R.Shape\(\[n, m\]\) and cannot be bound to the shape"),
        ({"k": 1.5}, "cannot be bound to the float 1.5"),
        ({"x": "text"}, 'cannot be bound to the string "text"'),
        ({"x": main.params[0]}, "a parameter can be bound only to a constant"),
    ]:
        with pytest.raises((pliant.CompileError, TypeError), match=message):
            main.bind_params(bound)


def test_symbols_of_local_functions_are_separate() -> None:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        @R.function
        def local(z: R.Tensor(("w",), "float32")) -> R.Tensor(("w",), "float32"):
            return R.exp(z)

        return local(x)

    with pytest.raises(pliant.CompileError, match="has no symbolic size 'w'"):
        main.bind_symbolic_vars({"w": 3})

    @R.function
    def loop(x: R.Tensor(("n",), "float32"), turns: R.Prim("int64")):
        n = T.int64()
        acc = x

        @R.function
        def local(z: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.exp(z)

        for _ in R.range(turns):
            acc = R.add(local(acc), x)
        return acc

    bound = loop.bind_symbolic_vars({"n": 2})
    assert '"n"' not in bound.script() and "(2,)" in bound.script()


def test_folded_tuple_fields_round_trip() -> None:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        t = (R.add(R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32")), R.const([3.0, 4.0], "float32"))
        u = (t, t)
        a = u[0]
        b = a[1]
        return R.add(x, b), u

    mod = relax.transform.FoldConstant()(pliant.IRModule({"main": main}))
    text = mod.script(show_meta=True)
    assert pliant.script.from_source(text).script(show_meta=True) == text


def test_parameters_that_define_symbols_are_kept() -> None:
    mod = relax.transform.RemoveUnusedParameters()(Calls)
    assert len(mod["rest"].params) == 2
    np.testing.assert_array_equal(run(mod, "other", np.ones((2, 2), "float32"), np.ones(5, "float32")).numpy(), np.ones(3))

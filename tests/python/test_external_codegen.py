"""Tests passing parts of a graph to the library and to custom code generators."""

import numpy as np
import pliant as tvm
import pytest
from pliant import relax
from pliant.relax.backend import register_codegen, register_patterns
from pliant.relax.backend.gemm import offload_gemm, partition_for_gemm
from pliant.relax.dpl import is_op, wildcard
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Mlp:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 16), "float32"), b: R.Tensor((16,), "float32"), v: R.Tensor((4, 16), "float32")):
        with R.dataflow():
            h = R.nn.relu(R.add(R.matmul(x, w), b))
            out = R.exp(R.matmul(h, R.permute_dims(v)))
            R.output(out)
        return out


def inputs(n):
    rng = np.random.default_rng(n)
    shapes = ((n, 8), (8, 16), (16,), (4, 16))
    return [(rng.standard_normal(s) / 4).astype("float32") for s in shapes]


def expected(x, w, b, v):
    return np.exp(np.maximum(x @ w + b, 0) @ v.T)


def test_matmuls_are_offloaded_to_the_library(tmp_path):
    mod = offload_gemm(Mlp)
    text = str(mod)
    assert '"pliant.gemm.bias.relu"' in text and '"pliant.gemm.t"' in text and "R.matmul" not in text
    model = tvm.compile(mod)
    path = tmp_path / "mlp.pliant"
    model.save(path)
    loaded = tvm.load(path)
    for n in (0, 1, 3, 64):
        args = inputs(n)
        for one in (model, loaded):
            np.testing.assert_allclose(one(*args).numpy(), expected(*args), rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"threads": 1}, {"exec_mode": "compiled"}])
def test_library_functions_run(options):
    name = "pliant.gemm.bias.relu"
    library = tvm.get_global_func(name)
    shapes = []

    def counted(x, w, b, out):
        shapes.append([a.shape for a in (x, w, b, out)])
        library(x, w, b, out)

    tvm.register_func(name, counted, override=True)
    try:
        model = tvm.compile(offload_gemm(Mlp), **options)
        assert shapes == []
        for n in (3, 5):
            args = inputs(n)
            np.testing.assert_allclose(model(*args).numpy(), expected(*args), rtol=1e-5)
        assert shapes == [[(n, 8), (8, 16), (16,), (n, 16)] for n in (3, 5)]
        # The product, its bias and its activation are only in that call: without it, their result
        # is missing.
        tvm.register_func(name, lambda x, w, b, out: out.copyfrom(np.zeros(out.shape, "float32")), override=True)
        args = inputs(4)
        np.testing.assert_array_equal(tvm.compile(offload_gemm(Mlp), **options)(*args).numpy(), np.ones((4, 4)))
    finally:
        tvm.register_func(name, library, override=True)


def test_instruments_see_library_calls():
    vm = relax.VirtualMachine(tvm.compile(offload_gemm(Mlp)), tvm.cpu())
    called = []
    vm.set_instrument(lambda func, name, before, result, *args: called.append(name) if before else None)
    vm["main"](*inputs(2))
    assert [name for name in called if "gemm" in name] == ["pliant.gemm.bias.relu", "pliant.gemm.t"]


def composites(mod):
    """Returns the names of the patterns from which composite functions were created: the attribute `Composite` of each local
    function in the module."""
    bindings = (b for f in mod.functions.values() for block in f.body.blocks for b in block.bindings)
    return sorted(b.value.attrs["Composite"] for b in bindings if isinstance(b.value, relax.Function))


def test_partitions_are_composite_functions():
    mod = partition_for_gemm(Mlp)
    attrs = [dict(f.attrs) for f in mod.functions.values()]
    assert composites(mod) == ["gemm.matmul_bias_relu", "gemm.matmul_transposed"]
    assert [a["Codegen"] for a in attrs if "Codegen" in a] == ["gemm", "gemm"]
    args = inputs(5)
    # Without a code generator, they are ordinary functions.
    np.testing.assert_allclose(tvm.compile(mod)(*args).numpy(), expected(*args), rtol=1e-5)


def test_user_defined_backend():
    calls = []

    @register_codegen("mine")
    def generate(functions, options):
        assert options == {"scale": 1}
        return [make(f) for f in functions]

    def make(func):
        def run(x, out):
            calls.append(func.attrs["global_symbol"])
            out[:] = np.tanh(np.sqrt(x.numpy()))

        return run

    pattern = is_op("relax.tanh")(is_op("relax.sqrt")(wildcard()))

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.tanh(R.sqrt(R.exp(x)))
            R.output(y)
        return y

    mod = relax.transform.FuseOpsByPattern([("mine.tanh_sqrt", pattern)], annotate_codegen=True)(tvm.IRModule({"main": main}))
    mod = relax.transform.RunCodegen({"mine": {"scale": 1}})(mod)
    x = np.linspace(0, 1, 5, dtype="float32")
    np.testing.assert_allclose(tvm.compile(mod)(x).numpy(), np.tanh(np.sqrt(np.exp(x))), rtol=1e-6)
    assert len(calls) == 1


def test_several_backends_share_a_module_and_the_rest_is_fused():
    calls = []

    def generator(name, compute):
        @register_codegen(name)
        def generate(functions, options):
            def run(x, out):
                calls.append(name)
                out[:] = compute(x.numpy())

            return [run for _ in functions]

    generator("first", lambda x: np.tanh(np.sqrt(x)))
    generator("second", np.cos)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")):
            with R.dataflow():
                a = R.tanh(R.sqrt(R.exp(x)))
                b = R.cos(R.matmul(a, w))
                c = R.multiply(R.add(b, R.const(1, "float32")), R.negative(b))
                R.output(c)
            return c

    mod = Module
    for name, pattern in [("first.tanh", is_op("relax.tanh")(is_op("relax.sqrt")(wildcard()))), ("second.cos", is_op("relax.cos")(wildcard()))]:
        mod = relax.transform.FuseOpsByPattern([(name, pattern)], annotate_codegen=True)(mod)
    mod = partition_for_gemm(mod)
    assert sorted(f.attrs.Codegen for f in mod.functions.values() if "Codegen" in f.attrs) == ["first", "gemm", "second"]
    mod = relax.transform.RunCodegen()(mod)
    assert not [f for f in mod.functions.values() if "Codegen" in f.attrs]
    lowered = relax.get_pipeline("zero")(mod)
    # What no backend takes becomes one loop function, and one before the first backend.
    assert lowered["main"].script().count("R.call_tir(") == 2
    x, w = np.linspace(0, 1, 24, dtype="float32").reshape(3, 8), np.full((8, 4), 0.1, "float32")
    y = np.cos(np.tanh(np.sqrt(np.exp(x))) @ w)
    np.testing.assert_allclose(tvm.compile(mod)(x, w).numpy(), (y + 1) * -y, rtol=1e-5)
    assert calls == ["first", "second"]


def test_checks_reject_matches():
    seen = []

    def check(context):
        seen.append((context.matched_expr.op.name, context.annotated_expr["x"].name_hint, len(context.matched_bindings)))
        return False

    x = wildcard()
    register_patterns([("checked.add", is_op("relax.add")(x, wildcard()), {"x": x}, check)])
    mod = relax.transform.FuseOpsByPattern(["checked.add"])(Mlp)
    assert seen and all(op == "relax.add" and count == 1 for op, _, count in seen)
    assert not any("Composite" in f.attrs for f in mod.functions.values())


def test_checks_see_the_enclosing_function():
    seen = []

    def check(context):
        users = context.var_usages[context.annotated_expr["x"]]
        seen.append((context.value_to_bound_var[context.matched_expr], users))
        return True

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.exp(x)
                z = R.sin(x)
                w = R.add(y, z)
                R.output(w)
            return w

    x = wildcard()
    pattern = relax.transform.FusionPattern("seen.exp", is_op("relax.exp")(x), {"x": x}, check)
    relax.transform.FuseOpsByPattern([pattern])(Module)
    assert [(var.name_hint, [u.name_hint for u in users]) for var, users in seen] == [("y", ["y", "z"])]


def test_regions_with_several_outputs():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sqrt(a)
                c = R.tanh(a)
                R.output(b, c)
            return (b, c)

    @register_codegen("outs")
    def generate(functions, options):
        def run(x, b, c):
            b[:] = np.sqrt(np.exp(x.numpy()))
            c[:] = np.tanh(np.exp(x.numpy()))

        return [run for _ in functions]

    rows = [(f"outs.{op}", is_op(f"relax.{op}")(wildcard())) for op in ("exp", "sqrt", "tanh")]
    mod = relax.transform.MergeCompositeFunctions()(relax.transform.FuseOpsByPattern(rows)(Module))
    assert "R.output(b, c)" in mod.script()
    mod = relax.transform.RunCodegen()(mod)
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(mod.script()))
    x = np.ones((3, 2), "float32")
    b, c = (out.numpy() for out in tvm.compile(mod)(x))
    np.testing.assert_allclose(b, np.sqrt(np.exp(x)), rtol=1e-6)
    np.testing.assert_allclose(c, np.tanh(np.exp(x)), rtol=1e-6)


def test_code_generator_without_result_is_reported():
    @register_codegen("nothing")
    def generate(functions, options):
        return None

    mod = relax.transform.FuseOpsByPattern([("nothing.exp", is_op("relax.exp")(wildcard()))], annotate_codegen=True)(Mlp)
    with pytest.raises(TypeError, match="the code generator of 'nothing' returned None, not a list"):
        relax.transform.RunCodegen()(mod)


def test_partitioning_errors():
    pattern = is_op("relax.exp")(wildcard())
    mod = relax.transform.FuseOpsByPattern([("gem.exp", pattern)], annotate_codegen=True)(Mlp)
    with pytest.raises(tvm.CompileError, match=r"no code generator is registered for the backend 'gem'.*did you mean 'gemm'"):
        relax.transform.RunCodegen()(mod)
    with pytest.raises(ValueError, match="no fusion pattern is registered as 'gemm.matmull'"):
        relax.transform.FuseOpsByPattern(["gemm.matmull"])

    @register_codegen("broken")
    def generate(functions, options, mod):
        raise ZeroDivisionError("mine")

    mod = relax.transform.FuseOpsByPattern([("broken.exp", pattern)], annotate_codegen=True)(Mlp)
    with pytest.raises(ZeroDivisionError, match="mine"):
        relax.transform.RunCodegen()(mod)


def test_checks_receive_intermediate_values():
    inner, v = is_op("relax.permute_dims")(wildcard()), wildcard()
    product = is_op("relax.matmul")(v, inner)
    kinds = []

    def check(context):
        parts = context.annotated_expr
        kinds.append((type(parts["wT"]), type(parts["x"]), parts["wT"].args[0].struct_info.ndim))
        return True

    row = ("mine.transpose_matmul", product, {"wT": inner, "x": v}, check)
    mod = relax.transform.FuseOpsByPattern([row])(Mlp)
    assert "transpose_matmul" in mod.script()
    assert kinds[0][0] is relax.Call and kinds[0][2] == 2
    assert issubclass(kinds[0][1], relax.Var)


@pytest.mark.parametrize("merge", [False, True])
def test_code_generators_receive_composite_functions(merge):
    rows = [(f"inner.{op}", is_op(f"relax.{op}")(wildcard())) for op in ("exp", "sqrt")]

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sqrt(a)
                R.output(b)
            return b

    seen = []

    @register_codegen("inner")
    def generate(functions, options):
        made = []
        for func in functions:
            inner = [b.value for block in func.body.blocks for b in block.bindings if isinstance(b.value, relax.Function)]
            kinds = [f.attrs["Composite"] for f in inner]
            seen.extend(kinds)
            steps = {"inner.exp": np.exp, "inner.sqrt": np.sqrt}

            def run(x, out, kinds=tuple(kinds)):
                value = x.numpy()
                for kind in kinds:
                    value = steps[kind](value)
                out[:] = value

            made.append(run)
        return made

    mod = relax.transform.FuseOpsByPattern(rows, annotate_codegen=not merge)(Module)
    if merge:
        mod = relax.transform.MergeCompositeFunctions()(mod)
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(mod.script()))
    assert not any("Composite" in func.attrs for func in mod.functions.values())
    x = np.ones((3, 2), "float32")
    # Without RunCodegen, no code generator is called, and composite functions are compiled like other functions.
    np.testing.assert_allclose(tvm.compile(mod)(x).numpy(), np.sqrt(np.exp(x)), rtol=1e-6)
    mod = relax.transform.RunCodegen()(mod)
    assert sorted(seen) == ["inner.exp", "inner.sqrt"]
    np.testing.assert_allclose(tvm.compile(mod)(x).numpy(), np.sqrt(np.exp(x)), rtol=1e-6)


@pytest.mark.parametrize(
    "made, told",
    [
        (lambda f: f, "returned a graph function"),
        (lambda f: lambda x, out: np.exp(x.numpy()), "returned ndarray, but must write its result into its last arguments"),
    ],
)
def test_code_generators_may_return_results(made, told):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return y

    register_codegen("idle", lambda functions: [made(f) for f in functions])
    mod = relax.transform.FuseOpsByPattern([("idle.exp", is_op("relax.exp")(wildcard()))], annotate_codegen=True)(Module)
    with pytest.raises(Exception, match=told):
        tvm.compile(relax.transform.RunCodegen()(mod))(np.ones(3, "float32"))
    register_codegen("idle", lambda functions: [lambda x, out: np.exp(x.numpy(), out=out.numpy()) for _ in functions])
    result = tvm.compile(relax.transform.RunCodegen()(mod))(np.ones(3, "float32"))
    np.testing.assert_allclose(result.numpy(), np.exp(np.ones(3)), rtol=1e-6)


def test_regions_with_operands_next_to_a_match_cast():
    @I.ir_module
    class Module:
        @R.function
        def main(p: R.Tensor(("n",), "float32"), q: R.Tensor(dtype="float32", ndim=1)):
            n = T.int64()
            with R.dataflow():
                v1 = R.match_cast(q, R.Tensor((n,), "float32"))
                v3 = R.subtract(p, v1)
                v4 = R.sin(q)
                v5 = R.sin(v4)
                v9 = R.multiply(v5, v3)
                R.output(v9)
            return v9

    rows = [("beside.sin", is_op("relax.sin")(wildcard())), ("beside.mul", is_op("relax.multiply")(wildcard(), wildcard()))]
    mod = relax.transform.MergeCompositeFunctions()(relax.transform.FuseOpsByPattern(rows)(Module))
    p, q = np.ones(3, "float32"), np.arange(3, dtype="float32")
    np.testing.assert_allclose(tvm.compile(mod)(p, q).numpy(), np.sin(np.sin(q)) * (p - q), rtol=1e-5)


def test_match_cast_moves_after_a_region():
    @I.ir_module
    class Cast:
        @R.function
        def main(q: R.Tensor(("n",), "float32")):
            n, m = T.int64(), T.int64()
            with R.dataflow():
                a = R.exp(q)
                known = R.match_cast(a, R.Tensor((n,), "float32"))
                b = R.exp(a)
                new = R.match_cast(a, R.Tensor((m,), "float32"))
                c = R.exp(new)
                d = R.add(known, b)
                R.output(c, d)
            return (c, d)

    mod = relax.transform.FuseOpsByPattern([("castbeside.exp", is_op("relax.exp")(wildcard()))])(Cast)
    mod = relax.transform.MergeCompositeFunctions()(mod)
    assert mod.script().count('"Codegen": "castbeside"') == 2


tvm.register_func("test.byoc.of_unknown_size", lambda a: tvm.nd.array(a.numpy().copy()), override=True)


@I.ir_module
class Unknown:
    @R.function
    def main(p: R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.call_pure_packed("test.byoc.of_unknown_size", p, sinfo_args=R.Tensor(ndim=1, dtype="float32"))
            b = R.abs(a)
            c = R.abs(p)
            R.output(b, c)
        return (b, c)


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_matches_with_unallocatable_results_are_kept(exec_mode):
    seen = []

    @register_codegen("test_unknown")
    def generate(functions, _options):
        seen.extend(functions)
        return [lambda x, out: np.abs(np.from_dlpack(x), out=np.from_dlpack(out)) for _ in functions]

    fused = relax.transform.FuseOpsByPattern(
        [("test_unknown.abs", is_op("relax.abs")(wildcard()))], annotate_codegen=True
    )(Unknown)
    mod = relax.transform.RunCodegen()(fused)
    assert len(seen) == 1 and "Codegen" not in str(mod)
    vm = relax.VirtualMachine(relax.build(mod, exec_mode=exec_mode), tvm.cpu())
    x = np.array([-1, 2, -3], "float32")
    for out in vm["main"](tvm.nd.array(x)):
        np.testing.assert_array_equal(out.numpy(), np.abs(x))


def test_aliases_of_different_types_are_separate_inputs():
    @I.ir_module
    class Named:
        @R.function
        def main(p: R.Tensor(("n",), "float32"), q: R.Tensor(("k",), "float32")):
            n = T.int64()
            with R.dataflow():
                v = R.match_cast(q, R.Tensor((n,), "float32"))
                out = R.multiply(q, v)
                R.output(out)
            return out

    pattern = is_op("relax.multiply")(wildcard(), wildcard())
    mod = relax.transform.FuseOpsByPattern([("any.multiply", pattern)])(Named)
    assert len(mod["fused_relax_multiply"].params) == 2
    text = mod.script(show_meta=True)
    assert tvm.script.from_source(text).script(show_meta=True) == text
    x = np.arange(3, dtype="float32")
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](tvm.nd.array(x), tvm.nd.array(x)).numpy(), x * x)
    with pytest.raises(tvm.error.ShapeError, match="match_cast of 'q'"):
        vm["main"](tvm.nd.array(x), tvm.nd.array(x[:2]))

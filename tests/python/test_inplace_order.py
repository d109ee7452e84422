"""Tests that rewrites do not move reads across in-place calls, even if the types of the called functions claim that they
have no effects."""

import numpy as np
import pliant as tvm
import pytest
from pliant import relax
from pliant.relax.dpl import is_op, rewrite_call, wildcard
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


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
        w1 = R.call_tir_inplace(cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))
        b = R.sqrt(a)
        return (b, w1)


def sqrt_of_exp():
    """Returns the pattern `sqrt(exp(x))`, and the pattern of its operand `x`."""
    x = wildcard()
    return is_op("relax.sqrt")(is_op("relax.exp")(x)), x


def with_rewrite_call(module):
    """Rewrites `sqrt(exp(x))` to `exp(x / 2)` with `rewrite_call`."""
    pattern, x = sqrt_of_exp()
    half = relax.const(0.5, "float32")
    made = rewrite_call(pattern, lambda _, m: relax.op.exp(relax.op.multiply(m[x], half)), module["main"])
    out = module.clone()
    out["main"] = made
    return out


def with_fusion(module):
    """Moves the calls that match the pattern `sqrt(exp(x))` to a separate function, with the pass `FuseOpsByPattern`."""
    pattern, _ = sqrt_of_exp()
    module = relax.transform.ConvertToDataflow()(module)
    return relax.transform.FuseOpsByPattern([("z.half", pattern)])(module)


@pytest.mark.parametrize("change", [with_rewrite_call, with_fusion])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_read_stays_before_the_write(change, mode):
    vm = relax.VirtualMachine(relax.build(change(Module), exec_mode=mode), tvm.cpu())
    before, after = vm["main"](np.zeros(3, "float32"))
    np.testing.assert_allclose(before.numpy(), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(after.numpy(), np.ones(3))


@I.ir_module
class Callee:
    """A module with two functions that write, although their types are pure: one function works in place, and the other one calls
    it.
    """

    @T.prim_func(private=True)
    def inc(w: T.Buffer((3,), "float32")):
        for i in range(3):
            w[i] = w[i] + T.float32(1)

    @R.function(private=True)
    def write(w: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Callee
        return R.call_tir_inplace(cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))

    @R.function(private=True)
    def step(w: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Callee
        return cls.write(w)

    @R.function(private=True)
    def add(w: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return R.add(w, w)

    @R.function
    def main(w: R.Tensor((3,), "float32")):
        cls = Callee
        a = R.exp(w)
        w1 = cls.step(w)
        b = R.sqrt(a)
        return (b, w1)

    @R.function
    def closure(w: R.Tensor((3,), "float32")):
        cls = Callee

        @R.function
        def update(v: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return cls.step(v)

        a = R.exp(w)
        w1 = update(w)
        b = R.sqrt(a)
        return (b, w1)

    @R.function
    def loop(w: R.Tensor((3,), "float32")):
        cls = Callee
        a = R.exp(w)
        v = w
        for _i in R.range(1):
            v = cls.step(v)
        b = R.sqrt(a)
        return (b, v)

    @R.function
    def dataflow(w: R.Tensor((3,), "float32")):
        cls = Callee
        with R.dataflow():
            a = R.exp(w)
            w1 = cls.step(w)
            b = R.sqrt(a)
            R.output(b, w1)
        return (b, w1)

    @R.function
    def twice(w: R.Tensor((3,), "float32")):
        cls = Callee
        a = R.sqrt(R.exp(w))
        w1 = cls.step(w)
        b = R.sqrt(R.exp(w))
        return (a, w1, b)

    @R.function
    def harmless(w: R.Tensor((3,), "float32")):
        cls = Callee
        a = R.exp(w)
        w1 = cls.add(w)
        b = R.sqrt(a)
        return (b, w1)


def halved(module, name):
    """Rewrites `sqrt(exp(x))` in one function of a module with `rewrite_call`."""
    pattern, x = sqrt_of_exp()
    half = relax.const(0.5, "float32")
    return rewrite_call(pattern, lambda _, m: relax.op.exp(relax.op.multiply(m[x], half)), module[name])


def one_function(module):
    out = module.clone()
    for name in ("main", "closure", "loop", "dataflow"):
        out[name] = halved(module, name)
    return out


@R.rewriter
class Halve:
    @R.function
    def pattern(x: R.Tensor((3,), "float32")):
        return R.sqrt(R.exp(x))

    @R.function
    def replacement(x: R.Tensor((3,), "float32")):
        return R.exp(R.multiply(x, R.const(0.5, "float32")))


def composite(module):
    pattern, _ = sqrt_of_exp()
    module = relax.transform.ConvertToDataflow()(module)
    module = relax.transform.FuseOpsByPattern([("z.half", pattern)])(module)
    return relax.transform.MergeCompositeFunctions()(module)


def fused(module):
    steps = [
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.ConvertToDataflow(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    return tvm.transform.Sequential(steps)(module)


CHANGES = {
    "rewrite_call": one_function,
    "rewriter": Halve,
    "FuseOpsByPattern": composite,
    "CSE": relax.transform.EliminateCommonSubexpr(),
    "ConvertToDataflow": relax.transform.ConvertToDataflow(),
    "FuseOps": fused,
    "TopologicalSort": relax.transform.TopologicalSort(order="depth-first", direction="from-outputs"),
    "TopologicalSort, breadth": relax.transform.TopologicalSort(order="breadth-first", direction="from-inputs"),
    "DCE": relax.transform.DeadCodeElimination(),
    "CanonicalizeBindings": relax.transform.CanonicalizeBindings(),
    "LambdaLift": relax.transform.LambdaLift(),
}


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_read_stays_before_a_write_in_a_callee(change, mode):
    module = CHANGES[change](Callee)
    vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), tvm.cpu())
    for name in ("main", "closure", "loop", "dataflow"):
        before, after = vm[name](np.zeros(3, "float32"))
        np.testing.assert_allclose(before.numpy(), np.ones(3), rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(after.numpy(), np.ones(3), err_msg=name)
    first, after, second = vm["twice"](np.zeros(3, "float32"))
    np.testing.assert_allclose(first.numpy(), np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(after.numpy(), np.ones(3))
    np.testing.assert_allclose(second.numpy(), np.exp(np.full(3, 0.5)), rtol=1e-6)


def test_calls_without_writes_are_no_barrier():
    """Checks that rewriting crosses calls of functions that provably write nothing. For a function
    outside of a module, nothing is known about the functions that it calls.
    """
    assert not tvm.ir.structural_equal(halved(Callee, "harmless"), Callee["harmless"])
    assert tvm.ir.structural_equal(halved(Callee, "main"), Callee["main"])
    alone = Callee["harmless"].with_attr("k", 1)
    pattern, x = sqrt_of_exp()
    assert rewrite_call(pattern, lambda _, m: relax.op.exp(m[x]), alone) is alone


def test_rewritten_functions_refer_to_their_module():
    again = halved(Callee, "harmless")
    y = wildcard()
    pattern = is_op("relax.exp")(is_op("relax.multiply")(y, wildcard()))
    assert rewrite_call(pattern, lambda _, m: relax.op.sin(m[y]), again) is not again


@I.ir_module
class SeveralNames:
    """A module in which one tensor has several names: two parameters, or a parameter and a captured
    variable of a closure.
    """

    @T.prim_func(private=True)
    def double(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = A[i] * T.float32(2)

    @R.function(pure=False)
    def step(w: R.Tensor(("n",), "float32"), old: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = SeveralNames
        before = R.reshape(old, (1, n))
        _ = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32"))
        return R.subtract(R.reshape(w, (1, n)), before)

    @R.function(pure=False)
    def arguments(w: R.Tensor(("n",), "float32")):
        cls = SeveralNames
        return cls.step(w, w)

    @R.function(pure=False)
    def closure(w: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = SeveralNames

        @R.function(pure=False)
        def f(p: R.Tensor((n,), "float32")) -> R.Tensor((1, n), "float32"):
            before = R.reshape(p, (1, n))
            _ = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32"))
            return R.subtract(R.reshape(p, (1, n)), before)

        return f(w)

    @R.function(pure=False)
    def there_and_back(w: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = SeveralNames
        before = R.reshape(R.reshape(w, (n, 1)), (n,))
        _ = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32"))
        return R.subtract(w, before)


@pytest.mark.parametrize("name", ["arguments", "closure", "there_and_back"])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("passes", [[], ["RemoveRedundantReshape"], ["InlinePrivateFunctions", "RemoveRedundantReshape"]])
def test_views_keep_values_from_before_the_write(name, mode, passes):
    module = SeveralNames
    for p in passes:
        module = getattr(relax.transform, p)()(module)
    vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), tvm.cpu())
    for n in (0, 1, 5):
        w = np.arange(n, dtype="float32") + 1
        np.testing.assert_array_equal(vm[name](w.copy()).numpy().reshape(-1), w)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_array_passed_twice_is_one_tensor(mode):
    vm = relax.VirtualMachine(relax.build(SeveralNames, exec_mode=mode), tvm.cpu())
    w = np.ones(3, "float32")
    np.testing.assert_array_equal(vm["step"](w, w[:]).numpy(), [[1, 1, 1]])

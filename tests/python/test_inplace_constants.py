"""Tests constants and views in programs with in-place calls, with any passes and in every execution mode. Within a run, all uses
of a constant must refer to the same tensor, so that they see what an in-place call has written to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
import pliant.testing
from pliant import relax
from pliant.script import from_source

HEAD = '''
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def inc(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            with T.block("inc"):
                vi = T.axis.spatial(n, i)
                A[vi] = A[vi] + T.float32(1)

    @R.function(private=True, pure=False)
    def step(w: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return R.call_tir_inplace(cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))

    @R.function(private=True, pure=False)
    def both(w: R.Tensor((2,), "float32")):
        cls = Module
        a = cls.step(w)
        b = cls.step(w)
        return (a, w, b)

    @R.function(private=True, pure=False)
    def first_of(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))):
        cls = Module
        a = cls.step(t[0])
        return (a, t[0], t[1])

    @R.function(private=True)
    def view_and_base(a: R.Tensor((2,), "float32")):
        b = R.exp(a)
        v = R.reshape(b, R.shape([2]))
        return (v, b)

    @R.function(private=True)
    def two_zeros() -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        a = R.zeros(R.shape([2]), "float32")
        b = R.zeros(R.shape([2]), "float32")
        return (a, b)

    @R.function(private=True)
    def twice() -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        z = R.zeros(R.shape([2]), "float32")
        t = (z, z)
        return t

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
'''

BODIES = {
    "bound": ('w = R.const([1.0, 1.0])\n        v = cls.step(w)\n        return (v, w)', [2, 2]),
    "literal": ("v = cls.step(R.const([1.0, 1.0]))\n        return (v, x)", [2, 0]),
    "literal read twice": ("return cls.both(R.const([1.0, 1.0]))", [3, 3, 3]),
    "captured": (
        '''w = R.const([1.0, 1.0])
        @R.function(pure=False)
        def f(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            u = cls.step(w)
            return R.add(u, y)
        a = f(x)
        b = f(x)
        return (a, b, w)''',
        [2, 3, 3],
    ),
    "in a tuple": ("t = (R.const([1.0, 1.0]), x)\n        a = cls.step(t[0])\n        b = cls.step(t[0])\n        return (a, t[0], b)", [3, 3, 3]),
    "in a tuple that is passed": ("return cls.first_of((R.const([1.0, 1.0]), x))", [2, 2, 0]),
    "cast": (
        'v = R.match_cast(R.const([1.0, 1.0]), R.Tensor((2,), "float32"))\n        a = cls.step(v)\n        return (a, v)',
        [2, 2],
    ),
    "given back by what captures it": (
        '''w = R.const([1.0, 1.0])
        @R.function
        def f() -> R.Tensor((2,), "float32"):
            return w
        a = cls.step(f())
        return (a, R.add(w, x))''',
        [2, 2],
    ),
    "two equal zeros": ("t = cls.two_zeros()\n        w = cls.step(t[0])\n        return (w, t[1])", [1, 0]),
    "of a local function": (
        '''@R.function
        def f() -> R.Tensor((2,), "float32"):
            return R.const([1.0, 1.0])
        w = f()
        a = cls.step(w)
        b = f()
        return (a, w, b)''',
        [2, 2, 1],
    ),
    "view beside its base": (
        "t = cls.view_and_base(x)\n        w = cls.step(t[0])\n        return (w, t[1])",
        [2, 1],
    ),
    "one zero twice": ("t = cls.twice()\n        w = cls.step(t[0])\n        return (w, t[1])", [1, 1]),
}

PASSES: dict[str, list[Any]] = {
    "plain": [],
    "canonicalize": [relax.transform.CanonicalizeBindings()],
    "inline": [relax.transform.InlinePrivateFunctions(), relax.transform.CanonicalizeBindings()],
    "inline first": [relax.transform.InlinePrivateFunctions()],
    "calls written out": [relax.transform.CallTIRRewrite()],
    "merge": [relax.transform.EliminateCommonSubexpr()],
    "fold": [relax.transform.FoldConstant(), relax.transform.CanonicalizeBindings()],
}


def firsts(values: Any) -> list[float]:
    return [float(v.numpy()[0]) for v in values]


# The result of `R.zeros` is folded if nothing marks it as written to any more: CallTIRRewrite must
# run after folding.
FOLDED = {"one zero twice", "two equal zeros"}
CASES = [(name, passes) for name in BODIES for passes in PASSES if passes != "calls written out" or name not in FOLDED]


@pytest.mark.parametrize(("name", "passes"), CASES)
def test_constants_are_unique_values(name: str, passes: str) -> None:
    body, expected = BODIES[name]
    mod = from_source(f"{HEAD}        {body}\n")
    for one in PASSES[passes]:
        mod = one(mod)
    x = np.zeros(2, "float32")
    assert firsts(pliant.testing.interpret(mod, x)) == expected
    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(mod, exec_mode=mode), pliant.cpu())
        for _ in range(2):
            assert firsts(vm["main"](x)) == expected


def test_bound_parameters_are_unique_values() -> None:
    mod = from_source(f"{HEAD}        v = cls.step(x)\n        return (v, x)\n")
    bound = relax.transform.BindParams("main", {"x": np.ones(2, "float32")})(mod)
    vm = relax.VirtualMachine(relax.build(bound), pliant.cpu())
    assert firsts(vm["main"]()) == firsts(vm["main"]()) == [2, 2]
    assert firsts(pliant.testing.interpret(bound)) == [2, 2]


def test_reads_of_written_weights_stay_after_the_write() -> None:
    mod = from_source(f"{HEAD}        v = cls.step(x)\n        return (v, x)\n")
    mod["main"] = from_source(
        f"{HEAD}        pass\n".replace('def main(x: R.Tensor((2,), "float32")):', 'def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")):').replace(
            "        pass\n",
            '        R.func_attr({"num_input": 1})\n        a = cls.step(w)\n        b = R.exp(w)\n        return (a, b)\n',
        )
    )["main"]
    lifted = relax.transform.LiftTransformParams()(mod)
    vm = relax.VirtualMachine(relax.build(lifted), pliant.cpu())
    weights = vm["main_transform_params"]((pliant.nd.array(np.zeros(2, "float32")),))
    np.testing.assert_allclose(vm["main"](np.zeros(2, "float32"), *weights)[1].numpy(), np.exp([1, 1]), rtol=1e-6)

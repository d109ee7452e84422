"""Tests that the results of the passes that make effects explicit print, parse back, build, and compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pliant
import pytest
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

t = relax.transform

PURE = """
@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return R.call_pure_packed("purity.twice", x, sinfo_args=R.Tensor((3,), "float32"))

    @R.function(private=True)
    def plain(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((3,), "float32"), m: R.Prim("int64")) -> R.Tensor((3,), "float32"):
        cls = Module
        with R.dataflow():
            a = cls.helper(cls.plain(x))
            b = R.call_pure_packed("purity.twice", a, sinfo_args=R.Tensor((3,), "float32"))
            R.output(b)
        @R.function
        def local(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.add(cls.helper(y), b)
        z = b
        for i in R.range(m):
            z = R.add(local(z), R.call_pure_packed("purity.twice", z, sinfo_args=R.Tensor((3,), "float32")))
        return z
"""

HEAD = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(w: T.Buffer((3,), "float32")):
        for i in range(3):
            w[i] = w[i] + T.float32(1)

    @R.function(private=True)
    def step(w: R.Tensor((3,), "float32")):
        cls = Module
        return R.call_tir_inplace(cls.increase, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))

    @R.function(private=True)
    def same(f: R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32"), True)) -> R.Callable((R.Tensor((3,), "float32"),), R.Tensor((3,), "float32"), True):
        return f

    @R.function
    def main(w0: R.Tensor((3,), "float32"), m: R.Prim("int64")):
        cls = Module
        w = R.exp(w0)
"""

IN_PLACE = {
    "called": "        v = cls.step(w)\n",
    "local": """        @R.function
        def f(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return cls.step(a)
        v = f(w)
""",
    "loop": "        v = w\n        for i in R.range(m):\n            v = cls.step(v)\n",
    "value": "        f = cls.same(cls.step)\n        v = f(w)\n",
    "packed": "        v = R.call_inplace_packed('purity.increase', w, inplace_indices=[0], sinfo_args=R.Tensor((3,), 'float32'))\n",
}

SEQUENCES: dict[str, list[Any]] = {
    "call_tir": [t.CallTIRRewrite()],
    "purity": [t.RemovePurityChecking()],
    "purity, call_tir": [t.RemovePurityChecking(), t.CallTIRRewrite()],
    "legalize, call_tir": [t.LegalizeOps(), t.CallTIRRewrite()],
    "lowered": [t.LegalizeOps(), t.LambdaLift(), t.ToNonDataflow(), t.CallTIRRewrite()],
    "inlined at once": [t.LegalizeOps(), t.CallTIRRewrite(), t.InlinePrivateFunctions()],
    "inlined": [t.LegalizeOps(), t.RemovePurityChecking(), t.CallTIRRewrite(), t.InlinePrivateFunctions(), t.DeadCodeElimination()],
}


@pytest.fixture(scope="module", autouse=True)
def _functions():
    def increase(x: Any) -> Any:
        x.numpy()[...] += 1
        return x

    pliant.register_func("purity.twice", lambda x: x.numpy() * 2, override=True)
    pliant.register_func("purity.increase", increase, override=True)


PROGRAMS = {"pure": PURE, **{name: HEAD + body + "        return (v, w0)\n" for name, body in IN_PLACE.items()}}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_results_round_trip_and_compute_the_same(program: str, sequence: str) -> None:
    module = from_source(PROGRAMS[program])

    def run(mod: pliant.IRModule) -> Any:
        out = relax.VirtualMachine(relax.build(mod))["main"](np.array([0, 1, -1], "float32"), 3)
        return [part.numpy() for part in (out if isinstance(out, tuple) else (out,))]

    expected = run(module)
    for step in SEQUENCES[sequence]:
        module = step(module)
        text = module.script(show_meta=True)
        again = from_source(text)
        pliant.ir.assert_structural_equal(module, again)
        assert again.script(show_meta=True) == text, step
        again = step(module)
        assert again.script(show_meta=True) == text, step
    for got, want in zip(run(module), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    if sequence != "lowered":
        got = interpret(module, np.array([0, 1, -1], "float32"), 3)
        for part, want in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
            np.testing.assert_allclose(part.numpy(), want, rtol=1e-6)


def test_a_pure_function_stays_pure_to_its_callers() -> None:
    module = t.RemovePurityChecking()(from_source(PURE))
    for name in ("helper", "main"):
        assert module[name].is_pure
        assert module[name].attrs["relax.force_pure"]
    assert "call_pure_packed" not in module.script()
    in_place = t.CallTIRRewrite()(from_source(PROGRAMS["loop"]))
    assert not any(in_place[name].is_pure for name in ("step", "same", "main"))


DISCARDED = """
@R.function
def main(a: R.Tensor((), "int64"), b: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    v = a
    if R.less(a, b):
        for i in R.range(3):
            v = R.add(v, i)
        if R.less(b, a):
            l = R.multiply(b, b)
    else:
        _: R.Tuple = R.tuple()
    if R.less(a, b):
        l = R.multiply(b, b)
    return a
"""


def test_if_without_results_round_trips() -> None:
    text = from_source(DISCARDED).script()
    for _ in range(2):
        again = from_source(text)
        assert again.script() == text
        pliant.ir.assert_structural_equal(again, from_source(DISCARDED))
    assert text.count("R.tuple()") == 7
    mixed = DISCARDED.replace("_: R.Tuple = R.tuple()", "_: R.Tensor((), 'int64') = R.match_cast(a, R.Tensor((), 'int64'))")
    from_source(from_source(mixed).script())

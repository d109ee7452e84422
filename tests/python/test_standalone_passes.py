"""Tests that lowering passes that run alone before a build do not change the program's behaviour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pliant import IRModule, relax, tir
from pliant.relax import transform
from pliant.script import from_source
from pliant.testing import interpret

INCREASE = """
    @T.prim_func(private=True)
    def inc(w: T.Buffer((3,), "float32")):
        for i in range(3):
            w[i] = w[i] + T.float32(1)
"""
CALL = 'R.call_tir_inplace(cls.inc, (w,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))'

WRITTEN_VIEW = f"""
@I.ir_module
class Module:
{INCREASE}
    @R.function(pure=False)
    def main(w0: R.Tensor((3,), "float32")):
        cls = Module
        w = R.exp(w0)
        v = R.reshape(w, (3, 1))
        u = {CALL}
        return (v, u)
"""

VIEW_IN_A_TUPLE = """
@I.ir_module
class Module:
    @R.function
    def main(b: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        v = R.reshape(b, (n * 3,))
        t = (v, v)
        return (b, (t, v))
"""


def run(module: Any, argument: Any, mode: str) -> Any:
    return relax.VirtualMachine(relax.build(module, exec_mode=mode))["main"](argument)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("before", [[], [transform.RemovePurityChecking()], [transform.LegalizeOps()]])
def test_views_keep_values_before_later_writes(before: list[Any], mode: str) -> None:
    module = from_source(WRITTEN_VIEW)
    for step in [*before, transform.CallTIRRewrite()]:
        module = step(module)
    v, u = run(module, np.zeros(3, np.float32), mode)
    np.testing.assert_array_equal(v.numpy(), np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(u.numpy(), np.full(3, 2, np.float32))


@pytest.mark.parametrize("view", ["R.expand_dims(w, axis=0)", "R.squeeze(w)", "R.flatten(w)", "R.memory.ensure_zero_offset(w)"])
def test_all_kinds_of_views_keep_values(view: str) -> None:
    module = from_source(WRITTEN_VIEW.replace("R.reshape(w, (3, 1))", view))
    v, u = run(transform.CallTIRRewrite()(module), np.zeros(3, np.float32), "bytecode")
    np.testing.assert_array_equal(v.numpy().ravel(), np.ones(3, np.float32))
    np.testing.assert_array_equal(u.numpy(), np.full(3, 2, np.float32))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_fields_of_returned_tuples_are_not_killed(mode: str) -> None:
    module = transform.KillAfterLastUse()(from_source(VIEW_IN_A_TUPLE))
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    same, ((first, second), third) = run(module, b, mode)
    np.testing.assert_array_equal(same.numpy(), b)
    for flat in (first, second, third):
        np.testing.assert_array_equal(flat.numpy(), b.reshape(-1))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_results_of_in_place_calls_are_not_killed_with_the_operand(mode: str) -> None:
    returned = WRITTEN_VIEW.replace("        v = R.reshape(w, (3, 1))\n", "").replace("return (v, u)", "v = R.exp(u)\n        return v")
    module = transform.KillAfterLastUse()(from_source(returned))
    got = run(module, np.zeros(3, np.float32), mode)
    np.testing.assert_allclose(got.numpy(), np.exp(np.full(3, 2, np.float32)), rtol=1e-6)


def test_interpreter_runs_scheduled_column_reductions() -> None:
    source = '@R.function\ndef main(x: R.Tensor(("n", "m"), "float32")):\n    return R.max(x, axis=0)\n'
    module = transform.LegalizeOps()(IRModule({"main": from_source(source)}))
    scheduled = tir.transform.DefaultSchedule()(module)
    x = np.array([[1, -0.0, np.nan], [0.5, 0.0, 2]], "float32")
    np.testing.assert_array_equal(interpret(scheduled, x).numpy(), x.max(0))


INPLACE = f"""
@I.ir_module
class Module:
{INCREASE}
    @R.function(pure=False)
    def main(p: R.Tensor((3,), "float32"), k: R.Prim("int64")):
        cls = Module
        {{body}}
"""


def inplace(name: str) -> str:
    return f'R.call_tir_inplace(cls.inc, ({name},), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))'


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize(
    "lines",
    [
        ["q = R.exp(p)", f"o = {inplace('q')}", "return R.exp(q)"],
        [f"o = {inplace('p')}", "return R.exp(p)"],
        ["q = R.exp(p)", "t = q", f"o = {inplace('t')}", "z = R.exp(o)", "return R.add(q, z)"],
        ["q = R.exp(p)", "for i in R.range(k):", f"    o = {inplace('q')}", "return R.exp(q)"],
        ["q = R.exp(p)", "if k > 1:", f"    o = {inplace('q')}", "    s = R.exp(o)", "else:", "    s = R.exp(p)", "return (q, s)"],
    ],
)
def test_in_place_results_live_as_long_as_their_operand(lines: list[str], mode: str) -> None:
    module = from_source(INPLACE.format(body="\n        ".join(lines)))
    want = interpret(module, np.zeros(3, "float32"), 2)
    killed = transform.KillAfterLastUse()(module)
    got = relax.VirtualMachine(relax.build(killed, exec_mode=mode))["main"](np.zeros(3, "float32"), 2)
    for a, b in zip(*(v if isinstance(v, tuple | list) else [v] for v in (got, want)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize(
    "lines",
    [
        ["v = R.reshape(p, R.shape([1, 3]))", "for i in R.range(k):", f"    o = {inplace('p')}", "return (v, p)"],
        ["v = R.reshape(p, R.shape([3]))", "for i in R.range(k):", f"    o = {inplace('v')}", "return (v, p)"],
        [
            "v = R.squeeze(R.expand_dims(p, 0))",
            "for i in R.range(k):",
            "    for j in R.range(k):",
            f"        o = {inplace('p')}",
            "return (v, p)",
        ],
    ],
)
def test_writes_in_loops_do_not_change_views(lines: list[str], mode: str) -> None:
    module = from_source(INPLACE.format(body="\n        ".join(lines)))
    own, others = np.zeros(3, "float32"), np.zeros(3, "float32")
    want = interpret(module, own, 2)
    got = relax.VirtualMachine(relax.build(module, exec_mode=mode))["main"](others, 2)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    np.testing.assert_array_equal(own, others)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize(
    "made",
    [
        'R.zeros(R.shape([3]), "float32")',
        'R.add(R.const([1.0, 1.0, 1.0], "float32"), R.const([1.0, 1.0, 1.0], "float32"))',
        'R.reshape(R.const([1.0, 2.0, 3.0], "float32"), R.shape([3]))',
    ],
)
def test_written_constants_are_preserved(made: str, mode: str) -> None:
    module = from_source(f"""
@I.ir_module
class Module:
{INCREASE}
    @R.function
    def init():
        return {made}

    @R.function(private=True)
    def some(k: R.Prim("int64")) -> R.Tensor((3,), "float32"):
        if k > 1:
            r = {made}
        else:
            r = R.ones(R.shape([3]), "float32")
        return r

    @R.function(pure=False)
    def step(w: R.Tensor((3,), "float32")):
        cls = Module
        return {inplace("w")}

    @R.function(pure=False)
    def main(k: R.Prim("int64")):
        cls = Module
        a = cls.some(k)
        b = {inplace("a")}
        u = {made}
        for i in R.range(k):
            u = {inplace("u")}
        return (b, u)
""")
    run = relax.VirtualMachine(relax.build(module, exec_mode=mode))
    for k in (1, 2, 3):
        for _ in range(2):
            got, want = run["main"](k), interpret(module, k)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    first = run["init"]().numpy().copy()
    np.testing.assert_array_equal(run["step"](run["init"]()).numpy(), first + 1)
    np.testing.assert_array_equal(run["init"]().numpy(), first)

"""Passes of the lowering, run alone before a build: the program stays what it was."""

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
def test_a_view_keeps_its_values_where_memory_is_written_later(before: list[Any], mode: str) -> None:
    module = from_source(WRITTEN_VIEW)
    for step in [*before, transform.CallTIRRewrite()]:
        module = step(module)
    v, u = run(module, np.zeros(3, np.float32), mode)
    np.testing.assert_array_equal(v.numpy(), np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(u.numpy(), np.full(3, 2, np.float32))


@pytest.mark.parametrize("view", ["R.expand_dims(w, axis=0)", "R.squeeze(w)", "R.flatten(w)", "R.memory.ensure_zero_offset(w)"])
def test_every_kind_of_view_keeps_its_values(view: str) -> None:
    module = from_source(WRITTEN_VIEW.replace("R.reshape(w, (3, 1))", view))
    v, u = run(transform.CallTIRRewrite()(module), np.zeros(3, np.float32), "bytecode")
    np.testing.assert_array_equal(v.numpy().ravel(), np.ones(3, np.float32))
    np.testing.assert_array_equal(u.numpy(), np.full(3, 2, np.float32))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_what_a_returned_tuple_holds_is_not_killed(mode: str) -> None:
    module = transform.KillAfterLastUse()(from_source(VIEW_IN_A_TUPLE))
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    same, ((first, second), third) = run(module, b, mode)
    np.testing.assert_array_equal(same.numpy(), b)
    for flat in (first, second, third):
        np.testing.assert_array_equal(flat.numpy(), b.reshape(-1))


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_what_a_call_in_place_gives_back_is_not_killed_with_its_operand(mode: str) -> None:
    returned = WRITTEN_VIEW.replace("        v = R.reshape(w, (3, 1))\n", "").replace("return (v, u)", "v = R.exp(u)\n        return v")
    module = transform.KillAfterLastUse()(from_source(returned))
    got = run(module, np.zeros(3, np.float32), mode)
    np.testing.assert_allclose(got.numpy(), np.exp(np.full(3, 2, np.float32)), rtol=1e-6)


def test_the_interpreter_runs_the_extremes_of_columns_as_they_are_scheduled() -> None:
    source = '@R.function\ndef main(x: R.Tensor(("n", "m"), "float32")):\n    return R.max(x, axis=0)\n'
    module = transform.LegalizeOps()(IRModule({"main": from_source(source)}))
    scheduled = tir.transform.DefaultSchedule()(module)
    x = np.array([[1, -0.0, np.nan], [0.5, 0.0, 2]], "float32")
    np.testing.assert_array_equal(interpret(scheduled, x).numpy(), x.max(0))

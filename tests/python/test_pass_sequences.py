"""Tests passes by name, in sequences, and user-defined passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, transform
from pliant.script import from_source

SOURCE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    with R.dataflow():
        lv = R.add(x, x)
        gv = R.exp(lv)
        R.output(gv)
    return gv
"""


@pytest.fixture
def mod() -> pliant.IRModule:
    return pliant.IRModule.from_expr(from_source(SOURCE))


def test_passes_by_name(mod: pliant.IRModule) -> None:
    legal = relax.transform.LegalizeOps()(mod)
    assert "call_tir" in legal.script() and "call_tir" not in mod.script()
    assert "R.dataflow" not in relax.transform.ToNonDataflow()(legal).script()
    parametrized = {"BindParams", "BindSymbolicVars", "Gradient", "UpdateParamStructInfo"}
    assert parametrized <= dict(transform.list_passes()).keys()
    for name, doc in transform.list_passes():
        assert doc and (name in parametrized or getattr(transform, name)().info.name == name)
    with pytest.raises(AttributeError, match="no pass is called 'Nonsense'"):
        transform.Nonsense  # noqa: B018
    with pytest.raises(ValueError, match="no pass is called 'Nonsense'"):
        transform.get_pass("Nonsense")


def test_sequences_build_what_the_pipeline_builds(mod: pliant.IRModule) -> None:
    lowered = relax.transform.get_pipeline("default")(mod)
    assert from_source(lowered.script(), check_well_formed=False).script() == lowered.script()
    x = np.ones((2, 4), "float32")
    vm = relax.VirtualMachine(relax.build(lowered))
    np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x + x), rtol=1e-5)


def test_every_stage_can_be_built(mod: pliant.IRModule) -> None:
    x = np.arange(12, dtype="float32").reshape(3, 4) / 12
    stage = mod
    for name in ("LegalizeOps", "ToNonDataflow", "CallTIRRewrite", "LowerAllocTensor", "KillAfterLastUse"):
        stage = transform.get_pass(name)(stage)
        result = relax.VirtualMachine(relax.build(stage))["main"](x).numpy()
        np.testing.assert_allclose(result, np.exp(x + x), rtol=1e-5, err_msg=name)


def test_user_defined_passes(mod: pliant.IRModule) -> None:
    @transform.module_pass(opt_level=0, name="Rename")
    def rename(m: pliant.IRModule, ctx: transform.PassContext) -> pliant.IRModule:
        return pliant.IRModule({"renamed": m["main"]})

    assert [v.name_hint for v in rename(mod).get_global_vars()] == ["renamed"]

    @relax.transform.function_pass(opt_level=0)
    class Mark:
        def __init__(self, value: int) -> None:
            self.value = value

        def transform_function(self, func: Any, m: pliant.IRModule, ctx: transform.PassContext) -> Any:
            return func.with_attr("mark", self.value)

    assert Mark(3)(mod)["main"].attrs["mark"] == 3
    with pytest.raises(TypeError, match="returned NoneType"):
        transform.module_pass(lambda m, ctx: None, name="Nothing")(mod)


def test_contexts(mod: pliant.IRModule) -> None:
    events: list[tuple[str, str]] = []

    class Watch:
        def run_before_pass(self, m: pliant.IRModule, info: Any) -> None:
            events.append(("before", info.name))

        def run_after_pass(self, m: pliant.IRModule, info: Any) -> None:
            events.append(("after", info.name))

        def should_run(self, m: pliant.IRModule, info: Any) -> bool:
            return info.name != "ToNonDataflow"

    with transform.PassContext(disabled_pass=["LegalizeOps"], instruments=[Watch()]):
        out = transform.Sequential([transform.LegalizeOps(), transform.ToNonDataflow(), transform.Normalize()])(mod)
    assert "call_tir" not in out.script() and "R.dataflow" in out.script()
    assert ("before", "Normalize") in events and ("after", "sequential") in events
    assert not any(name in ("LegalizeOps", "ToNonDataflow") for _, name in events)
    assert transform.PassContext.current().disabled_pass == []


def test_errors_name_operator_and_function() -> None:
    bad = from_source(
        """
@R.function
def main(x: R.Tensor(("n",), dtype="float32"), y: R.Prim("float32")):
    z = R.power(x, y)
    return z
"""
    )
    with pytest.raises(pliant.PliantError, match="relax.power: x2 is"):
        pliant.compile(bad)
